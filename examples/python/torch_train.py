#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small PyTorch training. It says nothing to Spotter, and needs not:

    spotter run -- python3 examples/python/torch_train.py

Steps, losses, epochs, waits for data, the evaluation and the checkpoint are in the record all the same:

    spotter sql 'SELECT step, seconds, loss, data_wait FROM steps LIMIT 5'
    spotter sql 'SELECT name, seconds FROM phases'
"""
import argparse
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--epochs", type=int, default=5)
arguments.add_argument("--workers", type=int, default=2)
options = arguments.parse_args()

torch.manual_seed(0)
x = torch.randn(4096, 64)
y = (x @ torch.randn(64, 1)).tanh()
train = DataLoader(TensorDataset(x[:3584], y[:3584]), batch_size=64, shuffle=True, num_workers=options.workers)
test = DataLoader(TensorDataset(x[3584:], y[3584:]), batch_size=64)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
steps = 0

for epoch in range(options.epochs):
    for inputs, wanted in train:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        steps += 1
    with torch.no_grad():
        error = sum(torch.nn.functional.mse_loss(model(a), b).item() for a, b in test) / len(test)
    print(f"epoch {epoch + 1}: step {steps}, loss {loss.item():.4f}, test {error:.4f}")
with tempfile.NamedTemporaryFile(suffix=".pt") as file:
    torch.save(model.state_dict(), file)
