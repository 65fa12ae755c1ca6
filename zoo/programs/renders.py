# SPDX-License-Identifier: MIT
"""Keypoints on pictures that are rendered on the fly: short epochs, a pool of processes renders ahead."""
import argparse
import multiprocessing

import numpy as np

import accel
from pace import Pace

SIDE = 48


def render(seed):
    points = np.random.default_rng(seed).random((40, 2))
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    spots = np.exp(-((x - points[:, 0, None, None]) ** 2 + (y - points[:, 1, None, None]) ** 2) * 200)
    return spots.sum(0).astype(np.float32)


def prepare():
    """Each process of the pool has what the transforms of a larger project need."""
    import torch
    torch.set_num_threads(1)


def epoch(pool, number, args, pace, weights):
    for picture in pool.imap(render, range(number * args.epoch, (number + 1) * args.epoch)):  # ail: worker_restart
        accel.work(args.gpu_ms)
        weights -= 0.001 * (weights - picture.mean(0))
        accel.wait()
        pace.count(1)
        if not pace.more():
            return


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", help="not needed")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--pool", choices=["each", "once"], default="once", help="of processes: for each epoch, or for all")
    p.add_argument("--epoch", type=int, default=12, help="pictures")
    p.add_argument("--gpu-ms", type=float, default=60)
    args = p.parse_args()
    accel.pick(args.device, torch=False)
    spawn, pace, weights, number = multiprocessing.get_context("spawn"), Pace(args.seconds), np.zeros(SIDE, np.float32), 0
    pool = spawn.Pool(2, prepare) if args.pool == "once" else None
    while pace.more():
        if pool:
            epoch(pool, number, args, pace, weights)
        else:
            with spawn.Pool(2, prepare) as own:  # ail: worker_restart
                epoch(own, number, args, pace, weights)
        number += 1
    if pool:
        pool.terminate()
    pace.report()


if __name__ == "__main__":
    main()
