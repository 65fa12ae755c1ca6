# SPDX-License-Identifier: MIT
"""gpuprof's insights (src/gpuprof/insights.py): absolute limits and shares of the step."""
from statistics import median

from .facts import mean, quantile


def starved(steps):
    """Steps that wait for their batch longer than they work, and how long the slow ones wait."""
    waits = [w for _, w in steps]
    return (sum(w > t / 2 for t, w in steps) / len(steps) if steps else 0), quantile(waits, 0.95) or 0


def rules(f):
    said = []
    if f["loader"] >= 0.15:
        said.append("set num_workers")
    share, wait = starved(f["steps"])
    if share >= 0.20 and wait >= 0.020:
        said.append("starved steps")
    if (mean(f["cpu"]) or 0) >= 0.80:
        said.append("cpu bottleneck")
    if max(f["disk_bytes"], default=0) >= 500e6 or max(f["disk_reads"], default=0) > 5000:
        said.append("io bottleneck")
    hot = f["temperature"] and f["clock"] and f["clock_max"]
    if hot and max(f["temperature"][0], default=0) >= 82 and min(f["clock"][0], default=f["clock_max"]) < 0.85 * f["clock_max"]:
        said.append("hot")
    if max(f["pcie"], default=0) >= 20e9:
        said.append("pcie bound")
    cached = max((max(c) for c in f["cached"] if c), default=0)
    if f["memory"] and cached >= 0.4 * f["memory"] and (mean(f["disk_bytes"]) or 0) >= 100e6:
        said.append("cache thrash")
    if max(f["swap_in"], default=0) >= 1e6:
        said.append("swapping")
    times = [t for t, _ in f["steps"]]
    if len(times) > 5 and times[0] >= 3 * median(times):
        said.append("first step slow")
    known = ("gpu_wait", "dispatch", "transfer", "data_wait", "data_load", "comm_wait")
    if f["ledger"] and 1 - sum(f["ledger"].get(s, 0) for s in known) >= 0.10:
        said.append("unaccounted")
    return said
