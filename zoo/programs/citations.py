# SPDX-License-Identifier: MIT
"""Node classification with neighbour sampling: a graph in memory, two hops of neighbours for each batch."""
import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

import accel
import data
from pace import Pace


class Neighbours(torch.utils.data.IterableDataset):
    def __init__(self, path, batch, vectorised, fanout):
        graph = np.load(path)
        self.edges, self.features, self.label = graph["neighbours"], graph["features"], graph["label"]
        self.batch, self.vectorised, self.fanout = batch, vectorised, fanout

    def walk(self, seeds):
        """Two hops, node by node."""
        found = []
        for node in seeds:
            for hop in random.sample(range(12), self.fanout):
                near = self.edges[node, hop]
                for far in random.sample(range(12), self.fanout):
                    found.append(self.edges[near, far])  # ail: python_loop_preprocessing no_workers
        return np.array(found)

    def gather(self, seeds, rng):
        near = self.edges[seeds[:, None], rng.integers(0, 12, (len(seeds), self.fanout))].ravel()
        return self.edges[near[:, None], rng.integers(0, 12, (len(near), self.fanout))].ravel()

    def __iter__(self):
        rng = np.random.default_rng()
        while True:
            seeds = rng.integers(0, len(self.label), self.batch)
            nodes = self.gather(seeds, rng) if self.vectorised else self.walk(seeds)  # ail: no_workers
            mean = self.features[nodes].reshape(self.batch, -1, 64).mean(1)
            yield torch.from_numpy(mean), torch.from_numpy(self.label[seeds])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--fanout", type=int, default=8)
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--vectorised", action="store_true")
    p.add_argument("--gpu-ms", type=float, default=25)
    a = p.parse_args()
    torch.set_num_threads(1)
    device = accel.pick(a.device)
    sampler = Neighbours(data.ready("graph", a.data) / "graph.npz", a.batch, a.vectorised, a.fanout)
    loader = DataLoader(sampler, batch_size=None, num_workers=a.workers)  # ail: no_workers
    sage = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to(device)
    optimizer = torch.optim.Adam(sage.parameters())
    pace = Pace(a.seconds)
    for step, (x, y) in enumerate(loader):  # ail: no_workers
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        accel.work(a.gpu_ms)
        loss = nn.functional.cross_entropy(sage(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print("step", step, f"{loss.item():.3f}", flush=True)
        pace.count(a.batch)
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    main()
