# SPDX-License-Identifier: MIT
"""One process and several GPUs: the batch is scattered over them and the results are gathered on the first."""
import argparse

import torch
from torch import nn

import accel
from pace import Pace


class Replicas:
    """A model on each GPU; the first has the optimizer."""

    def __init__(self, model, gpus):
        self.model, self.gpus = model, gpus
        self.bytes = 4 * sum(p.numel() for p in model.parameters())
        self.held = [g.alloc(1 << 30) for g in gpus]

    def replicate(self, weight_mb):
        for gpu in self.gpus[1:]:
            gpu.copy(weight_mb << 20)  # ail: data_parallel_api

    def forward(self, batch, gpu_ms):
        share = gpu_ms / max(1, len(self.gpus))
        for gpu in self.gpus:
            gpu.copy(max(1, batch.nelement() * 4 // len(self.gpus)), pinned=True)
            gpu.launch(ms=share, sm=0.7)
        return self.model(batch)

    def gather(self):
        for gpu in self.gpus:
            gpu.synchronize()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", help="not needed")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--gpus", type=int, default=2)
    p.add_argument("--gpu-ms", type=float, default=60)
    p.add_argument("--weights", type=int, default=0, help="MB sent to every replica in each step")
    a = p.parse_args()
    torch.set_num_threads(1)
    gpus = []
    if accel.pick(a.device, torch=False) != "cpu":
        import vgpu
        gpus = [accel.gpu()] + [vgpu.Device(i) for i in range(1, a.gpus)]  # ail: idle_gpus
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 8))
    replicas = Replicas(model, gpus)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pace, step = Pace(a.seconds), 0
    while pace.more():
        batch = torch.randn(a.batch, 256)
        if a.weights:
            replicas.replicate(a.weights)
        loss = replicas.forward(batch, a.gpu_ms).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        replicas.gather()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(step, loss.item(), flush=True)
        pace.count(a.batch)
    pace.report()


if __name__ == "__main__":
    main()
