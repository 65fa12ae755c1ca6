# SPDX-License-Identifier: MIT
"""An auto-encoder on satellite tiles: thousands of files of six kilobytes, or one file with all of them."""
import argparse
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import accel
import data
from pace import Pace


class Tiles(Dataset):
    def __init__(self, root):
        self.names = sorted(os.path.join(d, f) for d, _, files in os.walk(root) for f in files if f.endswith(".bin"))

    def __len__(self):
        return len(self.names) * 100

    def __getitem__(self, i):
        with open(self.names[i * 7919 % len(self.names)], "rb") as f:
            body = f.read()  # ail: many_small_files slow_storage network_storage
        return torch.frombuffer(bytearray(body), dtype=torch.uint8).float()


class OneFile(Dataset):
    """All tiles end to end: read in runs of 64."""

    def __init__(self, root):
        self.path = os.path.join(root, "all.pack")
        if not os.path.exists(self.path):
            part = f"{self.path}.{os.getpid()}"
            with open(part, "wb") as out:
                for name in Tiles(root).names:
                    with open(name, "rb") as f:
                        out.write(f.read())
            os.rename(part, self.path)
        self.count = os.path.getsize(self.path) // 6144
        self.at, self.run = None, None

    def __len__(self):
        return self.count * 100

    def __getitem__(self, i):
        first = i % self.count // 64 * 64
        if self.at != first:
            with open(self.path, "rb") as f:
                f.seek(first * 6144)
                self.at, self.run = first, np.frombuffer(f.read(64 * 6144), dtype=np.uint8)
        k = i % self.count - first
        return torch.from_numpy(self.run[k * 6144:(k + 1) * 6144].astype(np.float32))


p = argparse.ArgumentParser()
p.add_argument("--data")
p.add_argument("--folder")
p.add_argument("--device", default="auto")
p.add_argument("--seconds", type=float, default=15)
p.add_argument("--batch", type=int, default=64)
p.add_argument("--workers", type=int, default=1)
p.add_argument("--packed", action="store_true")
p.add_argument("--gpu-ms", type=float, default=15)


def main():
    a = p.parse_args()
    torch.set_num_threads(1)
    device = accel.pick(a.device)
    root = a.folder or str(data.ready("tiles", a.data))
    tiles = OneFile(root) if a.packed else Tiles(root)
    loader = DataLoader(tiles, a.batch, num_workers=a.workers)
    net = nn.Sequential(nn.Linear(6144, 16), nn.ReLU(), nn.Linear(16, 64)).to(device)
    adam = torch.optim.Adam(net.parameters())
    pace = Pace(a.seconds)
    for i, x in enumerate(loader):  # ail: many_small_files slow_storage network_storage
        x = x.to(device, non_blocking=True)
        accel.work(a.gpu_ms)
        loss = (net(x / 255) - x[:, :64] / 255).pow(2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if i % 50 == 0:
            print(i, loss.item(), flush=True)
        pace.count(a.batch)
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    main()
