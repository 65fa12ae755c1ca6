#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small real training with a known ailment, for `spotter demo`. Standard library only, Python 3.8 or later.

It learns to tell four shapes (vertical stripes, horizontal stripes, disc, ring) on images of 64 x 64 grey
pixels. Everything is as in a training you know: a dataset with __getitem__, a loader that makes batches, a
model, a loss that falls. So is what is wrong with it:

  1. the loader works in the training thread (num_workers=0), so that the model waits for every image;
  2. each image is prepared by a Python loop over its pixels (adjust_pixel_by_pixel).

With --fixed both are cured: worker processes load ahead, and whole rows of pixels are handled at once by
code that runs in C (adjust_whole_rows). The numbers that come out are the same.

    python3 demo_train.py [--seconds 15] [--fixed]
"""
import argparse
import functools
import math
import multiprocessing
import os
import queue
import random
import signal
import time
import zlib
from operator import mul

SIDE = 64                       # pixels across and down
CELL = 8                        # the model sees the mean brightness of cells of 8 x 8 pixels
CELLS = SIDE // CELL
FEATURES = CELLS * CELLS
HIDDEN = 48
BATCH = 16
CLASSES = ("vertical stripes", "horizontal stripes", "disc", "ring")


# ---- the data: "files" of compressed pixels, as a folder of PNGs would be

def is_lit(kind, x, y, shift):
    """Whether the shape covers this pixel."""
    if kind == 0:
        return (x + shift) // 8 % 2 == 0
    if kind == 1:
        return (y + shift) // 8 % 2 == 0
    away = math.hypot(x - SIDE / 2 - shift % 5, y - SIDE / 2 + shift % 7)
    return away < 20 if kind == 2 else 14 < away < 26


def make_files(count, seed):
    """(compressed pixels, class) of each image; made once, before training begins."""
    rng = random.Random(seed)
    files = []
    for index in range(count):
        kind, shift = index % len(CLASSES), rng.randrange(4)
        pixels = bytes((138 if is_lit(kind, x, y, shift) else 118) + rng.randrange(-100, 100)
                       for y in range(SIDE) for x in range(SIDE))
        files.append((zlib.compress(pixels, 1), kind))
    return files


# ---- preparing an image: more or less contrast, at random, then the mean brightness of each cell

def adjust_pixel_by_pixel(pixels, contrast):
    """THE AILMENT: 4,096 turns of a Python loop for every single image."""
    cells = [0] * FEATURES
    for y in range(SIDE):
        for x in range(SIDE):
            value = round(128 + (pixels[y * SIDE + x] - 128) * contrast)
            value = 0 if value < 0 else 255 if value > 255 else value
            cells[y // CELL * CELLS + x // CELL] += value
    return [total / (CELL * CELL * 128.0) - 1.0 for total in cells]


@functools.lru_cache(maxsize=None)
def contrast_table(contrast):
    """What becomes of each of the 256 values a pixel can have."""
    return bytes(min(255, max(0, round(128 + (value - 128) * contrast))) for value in range(256))


def adjust_whole_rows(pixels, contrast):
    """THE CURE: the same numbers, but bytes.translate() looks up all pixels in one call, and sum() adds up
    a cell in one."""
    pixels = pixels.translate(contrast_table(contrast))
    features = []
    for top in range(0, SIDE * SIDE, SIDE * CELL):
        for left in range(top, top + SIDE, CELL):
            # The eight rows of a cell, put one behind the other.
            total = sum(b"".join([pixels[at:at + CELL] for at in range(left, left + SIDE * CELL, SIDE)]))
            features.append(total / (CELL * CELL * 128.0) - 1.0)
    return features


class ShapesDataset:
    def __init__(self, count, seed, adjust):
        self.files = make_files(count, seed)
        self.adjust = adjust
        self.random = random.Random(seed + 1)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        compressed, label = self.files[index]
        pixels = zlib.decompress(compressed)
        contrast = self.random.choice((0.6, 0.8, 1.0, 1.25, 1.5))
        return self.adjust(pixels, contrast), label


# ---- the loader

def load_batch(dataset, indices):
    return [dataset[index] for index in indices]


def worker_loop(dataset, seed, index_queue, batch_queue):
    """A loader worker: a process of its own that prepares the batches it is told to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the training process ends us
    dataset.random.seed(seed)                     # else all workers would draw the same numbers
    while True:
        indices = index_queue.get()
        if indices is None:
            return
        batch_queue.put(load_batch(dataset, indices))


class DataLoader:
    """Shuffled batches without end. num_workers=0: prepared here and now, by whoever asks for the next.
    num_workers=N: prepared ahead by N processes, two batches each."""

    def __init__(self, dataset, batch_size, num_workers=0):
        self.dataset = dataset
        self.batch_size = batch_size
        self.workers = []
        if num_workers > 0:
            self.start_workers(num_workers)

    def start_workers(self, count):
        self.index_queue = multiprocessing.Queue()
        self.batch_queue = multiprocessing.Queue()
        self.indices = self.shuffled()
        for number in range(count):
            worker = multiprocessing.Process(target=worker_loop, name="loader-worker-%d" % number, daemon=True,
                                             args=(self.dataset, number, self.index_queue, self.batch_queue))
            worker.start()
            self.workers.append(worker)
        for _ in range(2 * count):
            self.index_queue.put(next(self.indices))

    def shuffled(self):
        order, rng = list(range(len(self.dataset))), random.Random(7)
        while True:
            rng.shuffle(order)
            for first in range(0, len(order) - self.batch_size + 1, self.batch_size):
                yield order[first:first + self.batch_size]

    def __iter__(self):
        if self.workers:
            while True:
                batch = self.batch_queue.get()
                self.index_queue.put(next(self.indices))
                yield batch
        for indices in self.shuffled():
            yield load_batch(self.dataset, indices)

    def close(self):
        for _ in self.workers:
            self.index_queue.put(None)
        while any(worker.is_alive() for worker in self.workers):
            try:  # a worker ends only when what it has put is taken
                self.batch_queue.get(timeout=0.05)
            except queue.Empty:
                pass
        for worker in self.workers:
            worker.join()


# ---- the model: one hidden layer, trained by plain gradient descent

class Model:
    def __init__(self, seed):
        rng = random.Random(seed)
        self.hidden = [[rng.gauss(0, 0.15) for _ in range(FEATURES)] for _ in range(HIDDEN)]
        self.hidden_bias = [0.0] * HIDDEN
        self.out = [[rng.gauss(0, 0.3) for _ in range(HIDDEN)] for _ in CLASSES]
        self.out_bias = [0.0] * len(CLASSES)

    def forward(self, x):
        """What the hidden layer says, and the probability of each class."""
        h = [math.tanh(sum(map(mul, row, x)) + bias) for row, bias in zip(self.hidden, self.hidden_bias)]
        scores = [sum(map(mul, row, h)) + bias for row, bias in zip(self.out, self.out_bias)]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        total = sum(powers)
        return h, [power / total for power in powers]

    def backward(self, x, label, h, chances, rate):
        """One step down the gradient of this sample's loss."""
        errors = [chance - (kind == label) for kind, chance in enumerate(chances)]
        blames = [sum(error * row[j] for error, row in zip(errors, self.out)) * (1 - h[j] * h[j])
                  for j in range(HIDDEN)]
        for kind, error in enumerate(errors):
            step = rate * error
            self.out[kind] = [w - step * v for w, v in zip(self.out[kind], h)]
            self.out_bias[kind] -= step
        for j, blame in enumerate(blames):
            step = rate * blame
            self.hidden[j] = [w - step * v for w, v in zip(self.hidden[j], x)]
            self.hidden_bias[j] -= step


def train_step(model, batch, rate):
    """Learns from a batch; gives its mean loss and how many were right beforehand."""
    loss = right = 0.0
    for x, label in batch:
        h, chances = model.forward(x)
        loss -= math.log(max(chances[label], 1e-12))
        right += chances[label] == max(chances)
        model.backward(x, label, h, chances, rate)
    return loss / len(batch), right


# ---- the training loop

def train(model, loader, seconds):
    begin = told = time.monotonic()
    steps = images = 0
    losses, right = [], 0
    for batch in loader:
        loss, correct = train_step(model, batch, rate=0.003)
        steps += 1
        images += len(batch)
        losses.append(loss)
        right += correct
        now = time.monotonic()
        if now - told >= 2 or now - begin >= seconds:
            print("step %5d   loss %.3f   accuracy %3.0f %%   %5.0f images/s"
                  % (steps, sum(losses) / len(losses), 100 * right / (len(losses) * len(batch)),
                     len(losses) * len(batch) / (now - told)), flush=True)
            told, losses, right = now, [], 0
        if now - begin >= seconds:
            break
    print("%d images in %.1f s: %.0f images/s" % (images, now - begin, images / (now - begin)), flush=True)


def main():
    parser = argparse.ArgumentParser(description="a small real training with a known ailment")
    parser.add_argument("--seconds", type=float, default=15, help="how long to train (default 15)")
    parser.add_argument("--fixed", action="store_true", help="with worker processes, and no loop over pixels")
    options = parser.parse_args()

    adjust, workers = adjust_pixel_by_pixel, 0
    if options.fixed:
        adjust, workers = adjust_whole_rows, min(4, max(1, len(os.sched_getaffinity(0)) - 1))
    dataset = ShapesDataset(count=96, seed=1, adjust=adjust)
    print("training on %d images of %d x %d pixels, num_workers=%d, %s"
          % (len(dataset), SIDE, SIDE, workers, adjust.__name__), flush=True)
    loader = DataLoader(dataset, batch_size=BATCH, num_workers=workers)
    try:
        train(Model(seed=3), loader, options.seconds)
    finally:
        loader.close()


if __name__ == "__main__":
    main()
