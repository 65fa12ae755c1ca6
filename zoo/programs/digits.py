# SPDX-License-Identifier: MIT
"""A two-layer perceptron in plain NumPy, on the CPU."""
import argparse
import multiprocessing
import os
import sys

import data
from pace import Pace


def softmax(z):
    import numpy as np
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


class Perceptron:
    def __init__(self, np, hidden, seed):
        rng = np.random.default_rng(seed)
        self.np = np
        self.w1 = rng.normal(0, 0.05, (784, hidden)).astype(np.float32)
        self.w2 = rng.normal(0, 0.05, (hidden, 10)).astype(np.float32)

    def train_step(self, x, y, rate=0.05):
        np = self.np
        hidden = np.maximum(x @ self.w1, 0)  # ail: thread_oversubscription
        grad = softmax(hidden @ self.w2)
        loss = -np.log(grad[np.arange(len(y)), y] + 1e-9).mean()
        grad[np.arange(len(y)), y] -= 1
        grad /= len(y)
        back = (grad @ self.w2.T) * (hidden > 0)
        self.w2 -= rate * (hidden.T @ grad)
        self.w1 -= rate * (x.T @ back)
        return loss


def fit(opt, seed=0):
    import numpy as np
    with np.load(data.ready("digits", opt.data) / "digits.npz") as f:
        images, labels = f["image"].astype(np.float32) / 255, f["label"]
    net, rng = Perceptron(np, opt.hidden, seed), np.random.default_rng(seed)
    pace, step, history = Pace(opt.seconds), 0, []
    while pace.more():
        picked = rng.integers(0, len(images), opt.batch)
        loss = net.train_step(images[picked], labels[picked])
        if opt.remember:
            history.append((loss, images[picked]))  # ail: memory_leak
        step += 1
        if step % 200 == 0 and seed == 0:
            print(f"{step}: {loss:.4f}", flush=True)
        pace.count(opt.batch)
    if seed == 0:
        pace.report()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", help="only the CPU")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--hidden", type=int, default=512)
    p.add_argument("--models", type=int, default=1, help="an ensemble: so many processes")
    p.add_argument("--blas", type=int, default=0, help="threads of the linear algebra of each process")
    p.add_argument("--remember", action="store_true")
    opt = p.parse_args()
    if opt.blas:
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(opt.blas)
    data.ready("digits", opt.data)
    others = [multiprocessing.get_context("spawn").Process(target=fit, args=(opt, k)) for k in range(1, opt.models)]
    for other in others:
        other.start()
    fit(opt)
    for other in others:
        other.join()


if __name__ == "__main__":
    sys.exit(main())
