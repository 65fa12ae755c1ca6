# SPDX-License-Identifier: MIT
"""Photos with MXNet's gluon. Needs mxnet (PyPI)."""
import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from PIL import Image

import accel
import data
from pace import Pace


class Pictures(gluon.data.Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*/*.jpg"))

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        path = self.files[i % len(self.files)]
        image = Image.open(path).convert("RGB").resize((64, 64))  # ail: no_workers
        return np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 255, np.float32(path.parent.name[-1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--gpu-ms", type=float, default=30)
    a = p.parse_args()
    accel.pick(a.device, torch=False)
    loader = gluon.data.DataLoader(Pictures(data.ready("photos", a.data)), a.batch, num_workers=a.workers)  # ail: no_workers
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.AvgPool2D(8), gluon.nn.Flatten(), gluon.nn.Dense(8))
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    lossf = gluon.loss.SoftmaxCrossEntropyLoss()
    pace = Pace(a.seconds)
    for step, (image, label) in enumerate(loader):  # ail: no_workers
        accel.work(a.gpu_ms)
        with autograd.record():
            loss = lossf(net(image), label)
        loss.backward()
        trainer.step(a.batch)
        accel.wait()
        if step % 50 == 0:
            print(step, float(loss.mean().asscalar()), flush=True)
        pace.count(a.batch)
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    main()
