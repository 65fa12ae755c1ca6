# SPDX-License-Identifier: MIT
"""Photos out of tar shards, one worker a shard: sequential reads, as large data sets are kept."""
import argparse
import io
import tarfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import accel
import data
from pace import Pace


class Shards(IterableDataset):
    def __init__(self, folder, side):
        self.files, self.side = sorted(folder.glob("*.tar")), side

    def mine(self):
        info = get_worker_info()
        return self.files[info.id::info.num_workers] if info else self.files

    def __iter__(self):
        while True:
            for file in self.mine():
                with tarfile.open(file) as tar:
                    for entry in tar:
                        image = Image.open(io.BytesIO(tar.extractfile(entry).read()))
                        image = image.convert("RGB").resize((self.side, self.side))  # ail: too_few_workers no_workers
                        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255)
                        yield pixels, int(entry.name[:5]) % 4


def main(a):
    torch.set_num_threads(1)
    device = accel.pick(a.device)
    shards = Shards(data.ready("shards", a.data), a.side)
    loader = DataLoader(shards, a.batch, num_workers=a.workers)  # ail: too_few_workers no_workers
    net = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.LazyLinear(4))
    net(torch.zeros(1, 3, a.side, a.side))
    net.to(device)
    sgd = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    pace, running = Pace(a.seconds), None
    for i, (x, y) in enumerate(loader):  # ail: too_few_workers no_workers
        loss = nn.functional.cross_entropy(net(x.to(device, non_blocking=True)), y.to(device, non_blocking=True))
        accel.work(a.gpu_ms)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        if i % a.log_every == 0:
            running = loss.item()
        if i % 50 == 0:
            print(i, running, flush=True)
        pace.count(len(y))
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--data")
    cli.add_argument("--device", default="auto")
    cli.add_argument("--seconds", type=float, default=15)
    cli.add_argument("--batch", type=int, default=8)
    cli.add_argument("--workers", type=int, default=1)
    cli.add_argument("--side", type=int, default=64)
    cli.add_argument("--gpu-ms", type=float, default=40)
    cli.add_argument("--log-every", type=int, default=10)
    main(cli.parse_args())
