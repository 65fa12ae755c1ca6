# SPDX-License-Identifier: MIT
"""Classifies photos in a folder of classes: JPEG files, PIL, a DataLoader, a small residual network."""
import argparse
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter
from torch import nn
from torch.utils.data import DataLoader, Dataset

import accel
import data
from pace import Pace


class PhotoFolder(Dataset):
    def __init__(self, root, opt):
        self.paths = sorted(Path(root).glob("*/*.jpg"))
        self.opt = opt
        self.decoded = [self.load(p) for p in self.paths] if opt.in_memory else None

    def __len__(self):
        return self.opt.epoch_samples or len(self.paths) * 50

    def load(self, path):
        image = Image.open(path)
        if self.opt.draft:
            image.draft("RGB", (96, 96))
        image = image.convert("RGB")  # ail: no_workers too_few_workers heavy_preprocessing
        if self.opt.augment:
            image = self.distort(image)
        image = image.resize((64, 64), Image.BILINEAR)
        return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)

    def distort(self, image):
        for _ in range(self.opt.augment):
            image = image.filter(ImageFilter.GaussianBlur(random.uniform(1, 3)))  # ail: heavy_preprocessing
        return image.rotate(random.uniform(-20, 20))

    def __getitem__(self, i):
        i %= len(self.paths)
        x = self.decoded[i] if self.decoded else self.load(self.paths[i])
        return x.float() / 255, int(self.paths[i].parent.name[-1])


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))

    def forward(self, x):
        return torch.relu(x + self.body(x))


class Net(nn.Module):
    def __init__(self, gpu_ms):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, stride=8)
        self.block = Block(8)
        self.head = nn.Linear(8, 8)
        self.gpu_ms = gpu_ms

    def forward(self, x):
        x = self.block(self.stem(x))
        accel.work(self.gpu_ms)
        return self.head(x.mean((2, 3)))


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--set", default="photos")
    p.add_argument("--folder", help="the photos are here instead")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--gpu-ms", type=float, default=30)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--prefetch", type=int, default=2)
    p.add_argument("--persistent", action="store_true")
    p.add_argument("--epoch-samples", type=int, default=0)
    p.add_argument("--draft", action="store_true")
    p.add_argument("--augment", type=int, default=0)
    p.add_argument("--in-memory", action="store_true")
    p.add_argument("--log-every", type=int, default=10)
    p.add_argument("--spin", action="store_true")
    p.add_argument("--save", type=int, default=0, help="a checkpoint every N steps")
    p.add_argument("--save-mb", type=int, default=200)
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def save(model, opt, ballast):
    accel.wait()  # the weights have to come from the device
    path = f"photos-{os.getpid()}.pt"
    torch.save({"model": model.state_dict(), "moments": ballast}, path)  # ail: checkpoint_stall
    os.unlink(path)


def main():
    opt = arguments()
    torch.set_num_threads(opt.threads)
    torch.manual_seed(0)
    device = accel.pick(opt.device)
    dataset = PhotoFolder(opt.folder or data.ready(opt.set, opt.data), opt)
    extra = {"prefetch_factor": opt.prefetch, "persistent_workers": opt.persistent} if opt.workers else {}
    loader = DataLoader(dataset, batch_size=opt.batch, shuffle=True,
                        num_workers=opt.workers, **extra)  # ail: no_workers too_few_workers too_many_workers worker_restart
    model = Net(opt.gpu_ms / 3).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ballast = torch.zeros(opt.save_mb << 18) if opt.save else None
    pace, step = Pace(opt.seconds), 0
    while pace.more():
        for images, labels in loader:  # ail: no_workers too_few_workers too_many_workers worker_restart
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            accel.work(opt.gpu_ms * 2 / 3)
            optimizer.step()
            step += 1
            if step % opt.log_every == 0:
                print(f"{time.strftime('%X')} step {step} loss {loss.item():.3f}", flush=True)
            if opt.spin:
                accel.wait(spin=True)
            if opt.save and step % opt.save == 0:
                save(model, opt, ballast)
            pace.count(len(labels))
            if not pace.more():
                break
    pace.report()


if __name__ == "__main__":
    main()
