#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training in plain NumPy: no framework to hook, so it says itself what a step is, in two lines.

    spotter run -- python3 examples/python/numpy_train.py
    spotter sql 'SELECT step, seconds, loss, data_wait FROM steps LIMIT 5'

Without a recorder the same lines do nothing."""
import argparse
import time

import numpy as np

try:
    import spotter
except ImportError:
    raise SystemExit("run me with `spotter run`, or with PYTHONPATH naming the folder `python` of Spotter")

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--steps", type=int, default=300)
options = arguments.parse_args()

rng = np.random.default_rng(0)
truth = rng.normal(size=(256, 1))


def batches():
    """As a slow disk would give them: spotter.steps() marks the wait."""
    for _ in range(options.steps):
        time.sleep(0.002)
        x = rng.normal(size=(512, 256))
        yield x, x @ truth + rng.normal(size=(512, 1))


def evaluate(weights):
    with spotter.phase("evaluate"):
        x = rng.normal(size=(4096, 256))
        return float(np.mean((x @ weights - x @ truth) ** 2))


weights = np.zeros((256, 1))
for n, (x, y) in enumerate(spotter.steps(batches()), 1):
    error = x @ weights - y
    weights -= 0.02 * x.T @ error / len(x)
    spotter.step(loss=float(np.mean(error ** 2)))
    if n % 100 == 0:
        test = evaluate(weights)
        spotter.log(test_error=test)
        print(f"step {n}: test {test:.6f}")
