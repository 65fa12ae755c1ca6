# SPDX-License-Identifier: MIT
"""A character-level language model on tokens that were made beforehand: a memory map, random windows."""
import argparse
import gc
import math

import numpy as np
import torch
from torch import nn

import accel
import data
from pace import Pace


class Gpt(nn.Module):
    def __init__(self, depth, width, gpu_ms, gpu_us):
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.mix = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.norm = nn.ModuleList([nn.LayerNorm(width) for _ in range(depth)])
        self.head = nn.Linear(width, 256)
        self.gpu_ms, self.gpu_us = gpu_ms, gpu_us

    def forward(self, ids):
        x = self.embed(ids)
        for mix, norm in zip(self.mix, self.norm):
            x = x + torch.tanh(mix(norm(x)))  # ail: launch_bound
            if self.gpu_us:
                accel.work(self.gpu_us / 1000, sm=0.2)  # ail: launch_bound
        accel.work(self.gpu_ms)
        return self.head(x)


class Record:
    """What was seen of one step; knows the one before."""

    def __init__(self, step, before):
        self.step, self.before, self.me = step, before, self
        self.parts = [{"i": i, "of": self} for i in range(40)]


def windows(tokens, batch, length, rng):
    at = rng.integers(0, len(tokens) - length - 1, batch)
    x = np.stack([tokens[a:a + length + 1] for a in at]).astype(np.int64)
    return torch.from_numpy(x[:, :-1].copy()), torch.from_numpy(x[:, 1:].copy())


def perplexity_report(loss, parameters):
    norms = [float(np.sqrt((np.asarray(p.detach()) ** 2).sum())) for p in parameters for _ in range(6)]
    return math.exp(min(loss, 20)), max(norms)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--length", type=int, default=32)
    p.add_argument("--lengths", type=int, default=1, help="so many different lengths")
    p.add_argument("--trace", action="store_true", help="compile the model for each shape")
    p.add_argument("--depth", type=int, default=2)
    p.add_argument("--gpu-ms", type=float, default=25)
    p.add_argument("--gpu-us", type=float, default=0, help="a small kernel in each layer")
    p.add_argument("--per-sample-ms", type=float, default=0, help="GPU time that grows with the batch")
    p.add_argument("--log-every", type=int, default=20)
    p.add_argument("--report", action="store_true", help="perplexity and norms with every log")
    p.add_argument("--spin", action="store_true")
    p.add_argument("--journal", type=int, default=0, help="keep linked records, this many thousand to begin with")
    p.add_argument("--tidy", type=int, default=0, help="collect garbage every N steps")
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


def main():
    args = parse()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    device = accel.pick(args.device)
    tokens = np.memmap(data.ready("sentences", args.data) / "chars.u16", dtype=np.uint16, mode="r")
    model = Gpt(args.depth, 32, args.gpu_ms + args.per_sample_ms * args.batch, args.gpu_us).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pace, step, last, shapes = Pace(args.seconds), 0, None, set()
    journal = [Record(i, None) for i in range(args.journal * 1000)]
    while pace.more():
        length = args.length + (step * 7 % args.lengths)
        x, y = windows(tokens, args.batch, length, rng)
        if args.trace and (length not in shapes):
            shapes = {length}
            torch.jit.trace(model, x, check_trace=False)  # ail: recompiles
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        logits = model(x)
        loss = nn.functional.cross_entropy(logits.reshape(-1, 256), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.spin:
            accel.wait(spin=True)
        step += 1
        if step % args.log_every == 0:
            value = loss.item()  # ail: sync_points
            if args.report:
                value = perplexity_report(value, model.parameters())[0]  # ail: sync_points loop_overhead
            if step % 50 == 0:
                print(f"iter {step}: {value:.3f}", flush=True)
        if args.journal:
            last = Record(step, last)
            journal.append(last)
        if args.tidy and step % args.tidy == 0:
            gc.collect()  # ail: gc_pauses
        pace.count(args.batch)
    pace.report()


if __name__ == "__main__":
    main()
