# SPDX-License-Identifier: MIT
"""SageMaker Debugger's profiler rules at their defaults (sagemaker-debugger-rulesconfig, profiler_rules/rules.py), without
their patience of 1000 points: with it no run of minutes would ever get an answer."""
from .facts import quantile

GPU_LOW, CPU_HIGH, IO_HIGH, OF_TIME = 0.10, 0.90, 0.50, 0.50


def together(gpu, other, limit):
    """Share of the time in which the GPU is idle and the other is high."""
    pairs = list(zip(gpu, other))
    return sum(g < GPU_LOW and o > limit for g, o in pairs) / len(pairs) if pairs else 0


def moving(values, n=10):
    return [sum(values[i:i + n]) / n for i in range(len(values) - n + 1)]


def uneven(gpus, bins=10):
    """Distance between the histograms of two GPUs' load, 0..1."""
    def histogram(values):
        out = [0.0] * bins
        for v in values:
            out[min(bins - 1, int(v * bins))] += 1 / len(values)
        return out
    shapes = [histogram(g) for g in gpus if g]
    return max((sum(abs(a - b) for a, b in zip(x, y)) / 2 for x in shapes for y in shapes), default=0)


def outliers(steps):
    times = [t for t, _ in steps]
    if len(times) < 20:
        return 0
    mean = sum(times) / len(times)
    sigma = (sum((t - mean) ** 2 for t in times) / len(times)) ** 0.5
    return sum(t > mean + 3 * sigma for t in times)


def rules(f):
    said, gpu = [], f["gpu"][0] if f["gpu"] else []
    if together(gpu, f["cpu"], CPU_HIGH) > OF_TIME:
        said.append("cpu bottleneck")
    if together(gpu, f["iowait"], IO_HIGH) > OF_TIME:
        said.append("io bottleneck")
    cores = f["cores"]
    if f["gpu"] and (f["loader_processes"] < 0.7 * cores or f["loader_processes"] > 2 * cores):
        said.append("number of loader processes")
    high, low = quantile(gpu, 0.95), quantile(gpu, 0.05)
    memory = quantile(f["gpu_memory"][0], 0.95) if f["gpu_memory"] else None
    if high is not None and high < 0.7:
        small = memory is not None and memory < 0.7 and (quantile(f["cpu"], 0.95) or 0) < 0.7
        said.append("batch too small" if small else "gpu under-used")
    elif high is not None and low < 0.1:
        said.append("gpu fluctuates")
    if any(max(m) - min(m) > 0.05 for m in map(moving, f["gpu_memory"]) if m):
        said.append("gpu memory grows")
    if len(f["gpu"]) > 1 and uneven(f["gpu"]) > 0.5:
        said.append("gpus unevenly loaded")
    if outliers(f["steps"]) > 10:
        said.append("step outliers")
    if f["startup_s"] > 20 * 60:
        said.append("long start")
    return said
