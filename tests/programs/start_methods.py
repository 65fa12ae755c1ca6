# SPDX-License-Identifier: MIT
"""Workers of every start method, each dead one second after its birth began:

    start_methods.py

The last line is JSON: {method: [pid, ...]}.
"""
import json
import multiprocessing
import os
import time

WORKERS = 3
LIFE_S = 1.0


def load_item(end):
    total = 0
    while time.monotonic() < end:
        busy = time.monotonic() + 0.0005  # a fifth of the time on any machine, so that it is seen at it
        while time.monotonic() < busy:
            total += 1
        time.sleep(0.002)
    return total


def load_items(born, results):
    results.put(os.getpid())
    load_item(born + LIFE_S)


def start(method):
    context = multiprocessing.get_context(method)
    results = context.Queue()
    some = []
    for _ in range(WORKERS):
        w = context.Process(target=load_items, args=(time.monotonic(), results))
        w.start()
        some.append(w)
    pids = [results.get() for _ in some]
    for w in some:
        w.join()
    return pids


def main():
    pids = {}
    for method in ("fork", "spawn", "forkserver"):
        pids[method] = start(method)
        time.sleep(0.3)
    print(json.dumps(pids), flush=True)


if __name__ == "__main__":
    main()
