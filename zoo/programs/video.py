# SPDX-License-Identifier: MIT
"""Action recognition on clips that are large next to the work on them: what counts is how they get to the GPU."""
import argparse

import torch
from torch import nn

import accel
from pace import Pace


class Clips:
    """Decoded clips of the whole set are kept; a batch is a view of them."""

    def __init__(self, megabytes):
        self.frames = torch.zeros(4, megabytes << 18)

    def __iter__(self):
        i = 0
        while True:
            yield self.frames[i % 4], torch.tensor([i % 8])
            i += 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", help="not needed")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--clip-mb", type=int, default=192)
    p.add_argument("--pinned", action="store_true")
    p.add_argument("--gpu-ms", type=float, default=20)
    p.add_argument("--log-every", type=int, default=20)
    a = p.parse_args()
    torch.set_num_threads(1)
    device = accel.pick(a.device)
    head = nn.Linear(256, 8).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    pace = Pace(a.seconds)
    for step, (clip, label) in enumerate(Clips(a.clip_mb)):
        clip = clip.to(device, non_blocking=a.pinned)  # ail: pageable_copy
        label = label.to(device, non_blocking=True)
        accel.work(a.gpu_ms)
        loss = nn.functional.cross_entropy(head(clip[None, :256]), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % a.log_every == 0:
            print(step, f"{loss.item():.4f}", flush=True)
        pace.count(1)
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    main()
