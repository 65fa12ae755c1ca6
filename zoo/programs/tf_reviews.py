# SPDX-License-Identifier: MIT
"""Reviews with tf.data: split by a function in Python, or by TensorFlow's own operations. Needs tensorflow (PyPI)."""
import argparse

import numpy as np
import tensorflow as tf

import accel
import data
from pace import Pace

WIDTH = 64


def in_python(lines):
    out = np.zeros((len(lines), WIDTH), dtype=np.int64)
    for r, line in enumerate(lines.numpy()):
        for c, word in enumerate(line.decode().lower().split()[:WIDTH]):
            value = 0
            for letter in word:
                value = (value * 31 + ord(letter)) % 4000  # ail: python_loop_preprocessing tokenization
            out[r, c] = value
    return out


def in_graph(lines):
    words = tf.strings.split(tf.strings.lower(lines))
    return tf.strings.to_hash_bucket_fast(words, 4000).to_tensor(shape=(None, WIDTH))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--py-function", action="store_true")
    p.add_argument("--gpu-ms", type=float, default=15)
    a = p.parse_args()
    accel.pick(a.device, torch=False)
    split = in_graph
    if a.py_function:
        def split(lines):
            ids = tf.py_function(in_python, [lines], tf.int64)  # ail: python_loop_preprocessing tokenization
            ids.set_shape((None, WIDTH))
            return ids
    lines = tf.data.TextLineDataset(str(data.ready("sentences", a.data) / "reviews.txt")).repeat()
    batches = lines.batch(a.batch, drop_remainder=True).map(split).prefetch(2)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Embedding(4000, 16), layers.GlobalAveragePooling1D(), layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam()

    @tf.function
    def train_step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(ids)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    pace = Pace(a.seconds)
    for step, ids in enumerate(batches):
        accel.work(a.gpu_ms)
        loss = train_step(ids)
        accel.wait()
        if step % 50 == 0:
            print(step, float(loss), flush=True)
        pace.count(a.batch)
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    main()
