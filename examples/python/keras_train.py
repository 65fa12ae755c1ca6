#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small Keras training, any backend. Under `spotter run` its steps, losses, epochs and evaluations are seen
without a line. With `--callback` it adds Spotter's callback itself, which is what to do where the hooks are
off (`spotter run --no-hooks`, `python -I`); twice is once.

    spotter run -- python3 examples/python/keras_train.py
"""
import argparse

import numpy as np

try:
    import keras
except ImportError as error:
    raise SystemExit(f"this example needs Keras and a backend for it: {error}")

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--epochs", type=int, default=5)
arguments.add_argument("--callback", action="store_true")
options = arguments.parse_args()

callbacks = []
if options.callback:
    import spotter
    callbacks.append(spotter.KerasCallback())

rng = np.random.default_rng(0)
x = rng.normal(size=(4096, 64)).astype("float32")
y = np.tanh(x @ rng.normal(size=(64, 1))).astype("float32")
model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
history = model.fit(x, y, epochs=options.epochs, batch_size=64, validation_split=0.125, verbose=0, callbacks=callbacks)
for epoch, (loss, test) in enumerate(zip(history.history["loss"], history.history["val_loss"]), 1):
    print(f"epoch {epoch}: loss {loss:.4f}, test {test:.4f}")
