# SPDX-License-Identifier: MIT
"""The recommendations of the PyTorch profiler's TensorBoard plug-in (kineto, tb_plugin/torch_tb_profiler/profiler/data.py)."""
from .facts import mean


def rules(f):
    said = []
    if f["loader"] > 0.05:
        said.append("set num_workers")
    if f["ledger"].get("comm_wait", 0) > 0.10:
        said.append("communication")
    busy = mean(f["gpu"][0]) if f["gpu"] else None
    if busy is not None and busy < 0.50:
        said.append("increase the batch")
    if any(max(m) > 0.90 for m in f["gpu_memory"] if m):
        said.append("gpu memory nearly full")
    return said
