# SPDX-License-Identifier: MIT
"""Trains with blocks of device and host memory that come and go: long sequences, growing caches, kept losses."""
import argparse
import sys

import numpy as np
import torch
from torch import nn

import accel
from pace import Pace


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--data", help="not needed")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--gpu-ms", type=float, default=20)
    p.add_argument("--fill", type=float, default=0.3, help="share of the GPU's memory that is held")
    p.add_argument("--blocks", type=int, default=0, help="blocks freed and taken again in each step")
    p.add_argument("--grow-gb", type=float, default=0, help="device memory more in each step")
    p.add_argument("--keep", choices=["nothing", "value", "graph"], default="value", help="of each loss")
    p.add_argument("--host-mb", type=float, default=0, help="host memory more in each step")
    p.add_argument("--index", type=int, default=0, help="files to look at before the start, in thousands")
    return p.parse_args()


def build_index(thousands):
    """What is where: read line by line, as first versions of programs do."""
    index = {}
    for i in range(thousands * 1000):
        name = f"sample-{i % 500000:08d}.jpg"
        index[name] = (hash(name) % 1000, len(name), name.split("-")[1].rstrip(".jpg"))  # ail: slow_startup
    return index


def main():
    a = arguments()
    torch.set_num_threads(1)
    index = build_index(a.index)
    device = accel.pick(a.device)
    gpu, held, spare, cache, losses = accel.gpu(), [], [], [], []
    if gpu:
        free, total = gpu.memory_info()
        held.append(gpu.alloc(int(total * a.fill) - (total - free)))
    model = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 8)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    pace, step = Pace(a.seconds), 0
    print(len(index), "samples", flush=True)
    while pace.more():
        if gpu and a.blocks:
            for block in spare:
                block.free()  # ail: gpu_memory_full
            spare = [gpu.alloc(64 << 20) for _ in range(a.blocks)]  # ail: gpu_memory_full
        if gpu and a.grow_gb:
            held.append(gpu.alloc(int(a.grow_gb * (1 << 30))))  # ail: gpu_oom
        if a.host_mb:
            cache.append(np.ones(int(a.host_mb * (1 << 18)), dtype=np.float32))  # ail: oom_killed memory_leak
        loss = model(torch.randn(a.batch, 512).to(device, non_blocking=True)).pow(2).mean()
        accel.work(a.gpu_ms)
        optimizer.zero_grad()
        loss.backward(retain_graph=a.keep == "graph")
        optimizer.step()
        if a.keep == "graph":
            losses.append(loss)  # ail: memory_leak
        step += 1
        if step % 25 == 0:
            value = loss.item()
            if a.keep == "value":
                losses.append(value)
            print(f"step {step}: {value:.4f}", flush=True)
        pace.count(a.batch)
    pace.report()


if __name__ == "__main__":
    sys.exit(main())
