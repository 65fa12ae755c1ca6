# SPDX-License-Identifier: MIT
"""Click prediction on a stream: threads fill a queue, the training takes from it."""
import argparse
import queue
import threading
import zlib

import numpy as np
import torch
from torch import nn

import accel
from pace import Pace

FIELDS = 16


def make_lines(n, rng):
    return ["\t".join(f"{k}:{v}" for k, v in enumerate(rng.integers(0, 5000, FIELDS))) for _ in range(n)]


def parse_batch(lines):
    """Each field by itself, as the log has them."""
    out = []
    for line in lines:
        row = []
        for field in line.split("\t"):
            key, value = field.split(":")
            row.append((int(value) * 31 + int(key)) % 997)  # ail: gil_contention
        out.append(row)
    return np.array(out)


def unpack_batch(body):
    """The same as one packed block: zlib and NumPy let other threads run meanwhile."""
    raw = np.frombuffer(zlib.decompress(body), dtype=np.int32).reshape(-1, FIELDS)
    return (raw * 31 + np.arange(FIELDS)) % 997


class Feeder(threading.Thread):
    def __init__(self, batches, source, parse):
        super().__init__(daemon=True)
        self.batches, self.source, self.parse = batches, source, parse

    def run(self):
        while True:
            self.batches.put(self.parse(self.source))


class Clicks(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.EmbeddingBag(1000, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, ids):
        return self.out(self.table(ids))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", help="not needed: the stream is made up")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=400)
    p.add_argument("--threads", type=int, default=3)
    p.add_argument("--format", choices=["text", "packed"], default="packed")
    p.add_argument("--gpu-ms", type=float, default=15)
    p.add_argument("--depth", type=int, default=4, help="of the queue")
    opt = p.parse_args()
    torch.set_num_threads(1)
    device = accel.pick(opt.device)
    rng = np.random.default_rng(0)
    if opt.format == "text":
        source, parse = make_lines(opt.batch, rng), parse_batch
    else:
        source = zlib.compress(rng.integers(0, 5000, (opt.batch, FIELDS)).astype(np.int32).tobytes(), 1)
        parse = unpack_batch
    batches = queue.Queue(opt.depth)
    for _ in range(opt.threads):
        Feeder(batches, source, parse).start()
    model = Clicks().to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    pace, step = Pace(opt.seconds), 0
    while pace.more():
        ids = torch.from_numpy(batches.get()).to(device, non_blocking=True)  # ail: gil_contention
        accel.work(opt.gpu_ms)
        loss = nn.functional.softplus(-model(ids)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(step, loss.item(), flush=True)
        pace.count(opt.batch)
    pace.report()


if __name__ == "__main__":
    main()
