# SPDX-License-Identifier: MIT
"""Two ranks, one process each, gradients averaged over gloo. Starts its ranks itself, as torchrun would."""
import argparse
import os
import socket
import subprocess
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

import accel
from pace import Pace


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--data", help="not needed")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--gpu-ms", type=float, default=20)
    p.add_argument("--late-gpu-ms", type=float, default=0, help="more of it on the last rank")
    p.add_argument("--late-decode-ms", type=float, default=0, help="CPU for each batch on the last rank")
    p.add_argument("--decode-ms", type=float, default=1)
    p.add_argument("--width", type=int, default=64, help="of the model: what is sent is its square")
    p.add_argument("--accumulate", type=int, default=1)
    return p.parse_args()


def launch(opt):
    """One process a rank with the variables that torchrun sets."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ranks = []
    for rank in range(2):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1")
        ranks.append(subprocess.Popen([sys.executable, os.path.abspath(__file__), *sys.argv[1:]], env=env))
    return max(r.wait() for r in ranks)


class Batches:
    """Decodes in the process itself; `cost` of CPU for each."""

    def __init__(self, batch, cost_ms):
        self.batch, self.cost, self.noise = batch, cost_ms / 1000, np.random.default_rng(0).normal(size=(64, 64))

    def __next__(self):
        end = time.thread_time() + self.cost
        image = self.noise
        while time.thread_time() < end:
            image = np.tanh(image @ self.noise)  # ail: input_straggler
        return torch.randn(self.batch, 64) + float(image[0, 0])


def train(opt):
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="env://")
    device = accel.pick(opt.device, index=rank)
    last = rank == dist.get_world_size() - 1
    batches = Batches(opt.batch, opt.late_decode_ms if last and opt.late_decode_ms else opt.decode_ms)
    gpu_ms = opt.gpu_ms + (opt.late_gpu_ms if last else 0)
    model = nn.Sequential(nn.Linear(64, opt.width), nn.ReLU(), nn.Linear(opt.width, opt.width), nn.Linear(opt.width, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pace, step, go = Pace(opt.seconds), 0, torch.ones(1)
    while go.item() > 0:
        batch = next(batches)  # ail: input_straggler
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        accel.work(gpu_ms)  # ail: compute_straggler
        accel.wait()  # ail: compute_straggler
        if step % opt.accumulate == 0:
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)  # ail: exposed_communication input_straggler compute_straggler
        optimizer.step()
        step += 1
        if step % 50 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        pace.count(opt.batch)
        go[0] = pace.more()
        dist.all_reduce(go, op=dist.ReduceOp.MIN)
    if rank == 0:
        pace.report()
    dist.destroy_process_group()


if __name__ == "__main__":
    options = arguments()
    sys.exit(train(options) if "RANK" in os.environ else launch(options))
