# SPDX-License-Identifier: MIT
"""Photos with tf.data and Keras layers. Needs tensorflow (PyPI)."""
import argparse

import tensorflow as tf

import accel
import data
from pace import Pace


def decode(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(tf.cast(image, tf.float32) / 255, (64, 64))
    return image, tf.strings.to_number(tf.strings.substr(tf.strings.split(path, "/")[-2], 5, 1), tf.int32)


def pipeline(folder, batch, serial):
    files = tf.data.Dataset.list_files(str(folder / "*/*.jpg"), shuffle=False).repeat()
    if serial:
        return files.map(decode).batch(batch)  # ail: no_workers too_few_workers
    return files.map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(batch).prefetch(tf.data.AUTOTUNE)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data")
    p.add_argument("--device", default="auto")
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--serial", action="store_true")
    p.add_argument("--gpu-ms", type=float, default=40)
    a = p.parse_args()
    accel.pick(a.device, torch=False)
    model = tf.keras.Sequential([tf.keras.layers.AveragePooling2D(8), tf.keras.layers.Flatten(), tf.keras.layers.Dense(8)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    lossf = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = lossf(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    pace = Pace(a.seconds)
    for step, (x, y) in enumerate(pipeline(data.ready("photos", a.data), a.batch, a.serial)):  # ail: no_workers too_few_workers
        accel.work(a.gpu_ms)
        loss = train_step(x, y)
        accel.wait()
        if step % 50 == 0:
            print(step, float(loss), flush=True)
        pace.count(a.batch)
        if not pace.more():
            break
    pace.report()


if __name__ == "__main__":
    main()
