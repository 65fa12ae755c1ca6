# SPDX-License-Identifier: MIT
"""A neighbour that wants the cores: so many processes that look for primes, each busy for a share of the time.

    python3 burn.py PROCESSES [SHARE]"""
import os
import sys
import time


def primes(until):
    n = 3
    while time.monotonic() < until:
        n += 2
        all(n % d for d in range(3, min(n, 200), 2))


def main(processes, share):
    for _ in range(processes - 1):
        if os.fork() == 0:
            break
    parent = os.getppid()
    while os.getppid() == parent:
        primes(time.monotonic() + 0.1 * share)
        time.sleep(0.1 * (1 - share))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
