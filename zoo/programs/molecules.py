# SPDX-License-Identifier: MIT
"""Molecules of very different size, one to a batch; their distances are counted on the fly."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import accel
from pace import Pace


class Molecules(Dataset):
    def __init__(self, n, share, atoms):
        self.atoms = np.where(np.random.default_rng(8).random(n) < share, atoms, 220)

    def __len__(self):
        return len(self.atoms)

    def __getitem__(self, i):
        place = np.random.default_rng(i).random((int(self.atoms[i]), 3))
        apart = np.sqrt(((place[:, None] - place[None]) ** 2).sum(-1))
        counts, _ = np.histogram(apart, bins=64)
        return torch.tensor(counts / len(place), dtype=torch.float32)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", help="not needed")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--large", type=float, default=0.0, help="share of molecules that are large")
    p.add_argument("--atoms", type=int, default=2000, help="of the large ones")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--prefetch", type=int, default=2)
    p.add_argument("--gpu-ms", type=float, default=22)
    a = p.parse_args()
    torch.set_num_threads(1)
    device = accel.pick(a.device)
    head = nn.Linear(64, 1).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    loader = DataLoader(Molecules(40000, a.large, a.atoms), batch_size=1, num_workers=a.workers, prefetch_factor=a.prefetch)
    pace = Pace(a.seconds)
    for counts in loader:  # ail: uneven_samples
        accel.work(a.gpu_ms)
        loss = head(counts.to(device, non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accel.wait()
        pace.count(1)
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    main()
