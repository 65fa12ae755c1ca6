# SPDX-License-Identifier: MIT
"""Functions that burn known shares of CPU time. Runs in Python 3.8 and later.

    burn_shares.py python|native|threads|workers SECONDS

python: code of Python; native: C functions, with and without the GIL; threads: two that fight for the
GIL and two that need none; workers: 16 processes, each with the two functions of the first kind.
The last line is JSON: {function: CPU seconds}, as the threads' own clocks have it.
"""
import hashlib
import json
import multiprocessing
import os
import random
import sys
import threading
import time
import zlib

CHUNK_S = 0.012
DATA = bytes(range(256)) * 1024
NUMBERS = [n * 7919 % 100003 for n in range(20000)]


def tenth(end):
    while time.thread_time() < end:
        for _ in range(300):
            pass


def quarter(end):
    total = 0
    while time.thread_time() < end:
        for n in range(200):
            total += n * n
    return total


def rest(end):
    while time.thread_time() < end:
        "".join(map(str, range(100)))


def hashes(end):
    while time.thread_time() < end:
        hashlib.sha256(DATA).digest()


def packs(end):
    while time.thread_time() < end:
        zlib.compress(DATA, 6)


def sorts(end):
    while time.thread_time() < end:
        sorted(NUMBERS)


def fights_one(end):
    while time.thread_time() < end:
        sum(range(200))


def fights_two(end):
    while time.thread_time() < end:
        max(range(200))


def burn(shares, seconds, spent):
    """Chunks of CPU time to whom chance gives them, for so many seconds of the clock."""
    end = time.monotonic() + seconds
    chance = random.Random(os.getpid())  # workers must not all do the same at the same time
    functions, weights = list(shares), list(shares.values())
    own = {f.__name__: 0.0 for f in shares}
    while time.monotonic() < end:
        f = chance.choices(functions, weights)[0]
        before = time.thread_time()
        f(before + CHUNK_S)
        own[f.__name__] += time.thread_time() - before
    for name, used in own.items():
        spent[name] = spent.get(name, 0.0) + used


PYTHON = {tenth: 0.1, quarter: 0.25, rest: 0.65}
NATIVE = {hashes: 0.5, packs: 0.3, sorts: 0.2}


def threads(seconds, spent):
    some = [threading.Thread(target=burn, args=({f: 1.0}, seconds, spent))
            for f in (fights_one, fights_two, hashes, packs)]
    for t in some:
        t.start()
    for t in some:
        t.join()


def one_worker(seconds, results):
    spent = {}
    burn(PYTHON, seconds, spent)
    results.put(spent)


def workers(seconds, spent):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    some = [context.Process(target=one_worker, args=(seconds, results)) for _ in range(16)]
    for w in some:
        w.start()
    for _ in some:
        for name, used in results.get().items():
            spent[name] = spent.get(name, 0.0) + used
    for w in some:
        w.join()


def main():
    kind, seconds, spent = sys.argv[1], float(sys.argv[2]), {}
    if kind == "threads":
        threads(seconds, spent)
    elif kind == "workers":
        workers(seconds, spent)
    else:
        burn({"python": PYTHON, "native": NATIVE}[kind], seconds, spent)
    print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main()
