# SPDX-License-Identifier: MIT
"""Segments medical volumes: npz files, random crops, a 3-D network."""
import argparse
import glob
import os

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

import accel
import data
from pace import Pace

parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--folder")
parser.add_argument("--device", default="auto")
parser.add_argument("--seconds", type=float, default=15)
parser.add_argument("--batch-size", type=int, default=2)
parser.add_argument("--num-workers", type=int, default=1)
parser.add_argument("--prefetch", type=int, default=2)
parser.add_argument("--gpu-ms", type=float, default=25)
parser.add_argument("--packed", action="store_true", help="read the compressed files")
parser.add_argument("--mmap", action="store_true", help="uncompressed arrays, mapped")
parser.add_argument("--spread", type=float, default=0, help="passes of smoothing: log-normal, this sigma")
parser.add_argument("--smooth", type=float, default=0, help="passes of smoothing, on average")
parser.add_argument("--keep-notes", type=int, default=0, help="this many thousand remarks, kept as Python objects")
parser.add_argument("--whole", action="store_true", help="send whole volumes to the GPU")
parser.add_argument("--blocking", action="store_true")
parser.add_argument("--log-every", type=int, default=20)


class Scans(Dataset):
    def __init__(self, folder, args):
        kind = "*.npz" if args.packed else "*.raw.npz"
        self.files = sorted(f for f in glob.glob(os.path.join(folder, kind)) if args.packed != f.endswith(".raw.npz"))
        self.args = args
        many = range(args.keep_notes * 1000)
        self.notes = [{"id": i, "remark": f"finding {i}"} for i in many]  # ail: worker_memory_growth

    def __len__(self):
        return 100000

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        with np.load(self.files[index % len(self.files)]) as scan:
            image, mask = scan["image"], scan["mask"]  # ail: decompression slow_storage cache_thrash network_storage
        if self.notes:
            some = rng.integers(0, len(self.notes), 100)
            picked = [self.notes[k]["id"] for k in some]  # ail: worker_memory_growth
            assert len(picked) == 100
        for _ in range(self.passes(rng)):
            near = np.roll(image, 1, 0) + np.roll(image, 1, 1) + np.roll(image, 1, 2)  # ail: uneven_samples
            image = (image + near) / 4  # ail: uneven_samples
        if self.args.whole:
            return torch.from_numpy(image), torch.from_numpy(mask)
        z, y, x = rng.integers(0, image.shape[0] - 32, 3)
        cut = np.s_[z:z + 32, y:y + 32, x:x + 32]
        return torch.from_numpy(image[cut].copy()), torch.from_numpy(mask[cut].copy())

    def passes(self, rng):
        if not self.args.spread:
            return int(self.args.smooth)
        s = self.args.spread
        return int(rng.lognormal(np.log(self.args.smooth) - s * s / 2, s) + 0.5)


def unet(width=4):
    return nn.Sequential(nn.Conv3d(1, width, 3, stride=4), nn.ReLU(), nn.Conv3d(width, width, 3, padding=1), nn.ReLU(),
                         nn.Flatten(), nn.LazyLinear(1))


def train(args):
    torch.set_num_threads(1)
    device = accel.pick(args.device)
    scans = Scans(args.folder or data.ready("volumes", args.data), args)
    options = dict(prefetch_factor=args.prefetch) if args.num_workers else {}
    loader = DataLoader(scans, batch_size=args.batch_size,
                        num_workers=args.num_workers, **options)  # ail: uneven_samples too_few_workers
    net = unet()
    net(torch.zeros(1, 1, 32, 32, 32))
    net.to(device)
    opt = torch.optim.Adam(net.parameters())
    pace = Pace(args.seconds)
    for i, (image, mask) in enumerate(loader):  # ail: uneven_samples too_few_workers
        image = image.to(device, non_blocking=not args.blocking)  # ail: pageable_copy
        mask = mask.to(device, non_blocking=not args.blocking)  # ail: pageable_copy
        accel.work(args.gpu_ms)
        loss = (net(image[:, None, :32, :32, :32]).mean() - mask.float().mean()) ** 2
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % args.log_every == 0:
            print(i, float(loss), flush=True)
        pace.count(len(mask))
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    train(parser.parse_args())
