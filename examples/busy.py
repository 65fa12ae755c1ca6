#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small stand-in for a training job, standard library only: for some seconds (argument, default 8)
the main process "trains", two workers "load data", and a steady stream of short-lived children
(an `exec` each, as a shell pipeline or a compiler cache makes) comes and goes between two samples.

It prints what it knows of itself, so that Spotter's ledger can be held against it."""
import multiprocessing
import os
import resource
import subprocess
import sys
import time


def burn(seconds):
    """CPU time, not wall time: the same work on a busy machine takes longer."""
    end = time.thread_time() + seconds
    x = 1
    while time.thread_time() < end:
        for _ in range(2000):
            x = x * 1103515245 + 12345 & 0x7FFFFFFF
    return x


def worker(until, share):
    """Busy for `share` of the time, as a data loader that waits for its consumer."""
    while time.monotonic() < until:
        burn(0.05 * share)
        time.sleep(0.05 * (1 - share))


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 8.0
    until = time.monotonic() + seconds
    loaders = [multiprocessing.Process(target=worker, args=(until, share), name=f"loader-{i}")
               for i, share in enumerate((0.6, 0.3))]
    for p in loaders:
        p.start()
    steps = children = 0
    while time.monotonic() < until:
        burn(0.03)
        steps += 1
        for _ in range(3):
            subprocess.run(["/bin/sh", "-c", "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); done"],
                           check=True)
            children += 1
    for p in loaders:
        p.join()
    own = resource.getrusage(resource.RUSAGE_SELF)
    rest = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime
    cpu_children = rest.ru_utime + rest.ru_stime
    print(f"{steps} steps, {len(loaders)} workers, {children} short-lived children; CPU: main {cpu:.2f} s, "
          f"the others {cpu_children:.2f} s, pid {os.getpid()}")


if __name__ == "__main__":
    main()
