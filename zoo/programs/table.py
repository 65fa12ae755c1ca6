# SPDX-License-Identifier: MIT
"""A classifier on a CSV table, trained on the CPU: rows are parsed as they come, or all read before."""
import argparse
import csv

import numpy as np
import torch
from torch import nn

import accel
import data
from pace import Pace

ap = argparse.ArgumentParser()
ap.add_argument("--data")
ap.add_argument("--device", default="cpu")
ap.add_argument("--seconds", type=float, default=15)
ap.add_argument("--batch", type=int, default=512)
ap.add_argument("--stream", action="store_true", help="parse the file again in every epoch")
ap.add_argument("--width", type=int, default=256)
ap.add_argument("--layers", type=int, default=3)
ap.add_argument("--threads", type=int, default=0)
ap.add_argument("--gpu-ms", type=float, default=0)
ap.add_argument("--metrics", choices=["none", "sometimes", "always"], default="sometimes")
args = ap.parse_args()

if args.threads:
    torch.set_num_threads(args.threads)
device = accel.pick(args.device)
place = data.ready("table", args.data)


def parsed():
    """One batch after the other out of the file."""
    rows = []
    with open(place / "train.csv", newline="") as f:
        reader = csv.reader(f)
        next(reader)
        for row in reader:
            rows.append([float(v) for v in row])  # ail: python_loop_preprocessing no_workers
            if len(rows) == args.batch:
                yield torch.tensor(rows)
                rows = []


def held():
    everything = torch.from_numpy(np.load(place / "train.npy"))
    order = torch.randperm(len(everything))
    for at in range(0, len(everything) - args.batch, args.batch):
        yield everything[order[at:at + args.batch]]


def auc(score, label):
    """Area under the curve, pair by pair."""
    pairs = better = 0
    score, label = score.tolist(), label.tolist()
    for s, l in zip(score, label):
        for t, m in zip(score[:120], label[:120]):
            if l > m:  # ail: loop_overhead
                pairs += 1
                better += s > t
    return better / max(1, pairs)


layers = [nn.Linear(24, args.width)]
for _ in range(args.layers):
    layers += [nn.ReLU(), nn.Linear(args.width, args.width)]
model = nn.Sequential(*layers, nn.ReLU(), nn.Linear(args.width, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
pace, step = Pace(args.seconds), 0
while pace.more():
    for batch in (parsed() if args.stream else held()):  # ail: no_workers
        x, y = batch[:, :-1].to(device), batch[:, -1:].to(device)
        accel.work(args.gpu_ms)
        out = model(x)
        loss = nn.functional.binary_cross_entropy_with_logits(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if args.metrics == "always" or args.metrics == "sometimes" and step % 100 == 0:
            area = auc(out.detach().cpu()[:, 0], y.cpu()[:, 0])  # ail: loop_overhead
            if step % 100 == 0:
                print(f"step {step} loss {loss.item():.4f} auc {area:.3f}", flush=True)
        pace.count(len(x))
        if not pace.more():
            break
pace.report()
