# SPDX-License-Identifier: MIT
"""Counts and ratios with what they are worth: Wilson's interval, the bootstrap, quantiles."""
import math
import random
from statistics import median


def wilson(hits, n, z=1.96):
    """(low, high) for a share of hits in n; (0, 1) when nothing was counted."""
    if n == 0:
        return 0.0, 1.0
    p, zz = hits / n, z * z
    middle = (p + zz / (2 * n)) / (1 + zz / n)
    half = z * math.sqrt(p * (1 - p) / n + zz / (4 * n * n)) / (1 + zz / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(hits, n):
    """'12/14 = 86 % (60-96)'"""
    if n == 0:
        return "0/0"
    low, high = wilson(hits, n)
    return f"{hits}/{n} = {100 * hits / n:.0f} % ({100 * low:.0f}-{100 * high:.0f})"


def bootstrap(values, of=median, rounds=2000, level=0.95, seed=1):
    """(value, low, high) of a statistic; the same answer every time."""
    if not values:
        return None
    rng, n = random.Random(seed), len(values)
    seen = sorted(of([values[rng.randrange(n)] for _ in range(n)]) for _ in range(rounds))
    edge = (1 - level) / 2
    return of(values), seen[int(edge * (rounds - 1))], seen[math.ceil((1 - edge) * (rounds - 1))]


def quantile(values, q):
    """Linear between the two nearest; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
