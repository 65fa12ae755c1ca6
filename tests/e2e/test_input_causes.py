# SPDX-License-Identifier: MIT
"""Causes from stacks on real programs: what holds a training up is named with its line, and a program that only looks
alike is not accused."""
import sys

import pytest

TAIL = """
end = time.monotonic() + 6.5
while time.monotonic() < end:
    train_step(next(batches))
"""

# The GIL is held by threads that clean text; the training thread wants it as well.
GIL = """
import threading, time

def clean(n):
    total = 0
    for i in range(n):
        total += i * i % 7  # HOT
    return total

def feed():
    while True:
        clean(20000)

for _ in range(3):
    threading.Thread(target=feed, daemon=True).start()

def train_step(batch):
    return sum(i for i in range(20000))

batches = iter(int, 1)
""" + TAIL

# The training thread waits for a lock of the program's own, whose holder sleeps.
LOCK = """
import threading, time
lock = threading.Lock()

def hold():
    while True:
        with lock:
            time.sleep(0.02)
        time.sleep(0.001)

threading.Thread(target=hold, daemon=True).start()

def train_step(batch):
    with lock:
        return sum(i for i in range(20000))

batches = iter(int, 1)
""" + TAIL

# Loads in the training thread; the time is C code's that one line calls.
PACKED = """
import os, time, zlib
data = zlib.compress(os.urandom(1 << 16) * 16, 1)

def load_batch():
    return [zlib.decompress(data) for _ in range(8)]

def all_batches():
    while True:
        yield load_batch()

def train_step(batch):
    total = 0
    for i in range(30000):
        total += i
    return total

batches = all_batches()
""" + TAIL.replace("next(batches)", "next(batches)  # GETS\n    ")

# The same data from a pool that works ahead.
AHEAD = """
import multiprocessing, os, time, zlib
data = zlib.compress(os.urandom(1 << 16) * 4, 1)

def load_batch(_):
    return len(zlib.decompress(data))

def train_step(batch):
    total = 0
    for i in range(300000):
        total += i
    return total

pool = multiprocessing.Pool(2)
batches = pool.imap(load_batch, iter(range(3000)))
""" + TAIL + "pool.terminate()\n"


# Nothing trains: it parses, and that is all it is for.
PARSER = """
import json, time
text = json.dumps([{"a": i, "b": "x" * 10} for i in range(3000)])
end = time.monotonic() + 6
while time.monotonic() < end:
    len(json.loads(text))
"""

# Nothing trains: a pool computes, the first thread adds up.
SUMS = """
import multiprocessing, time

def square(n):
    total = 0
    for k in range(100000):
        total += k * k
    return total

if __name__ == "__main__":
    end = time.monotonic() + 6
    with multiprocessing.Pool(2) as pool:
        while time.monotonic() < end:
            sum(pool.imap(square, range(20)))
"""


def judge(spotter, tmp_path, code):
    """Causes of findings and notes, and the verdict."""
    program = tmp_path / "train.py"
    program.write_text(code)
    spotter("run", "-q", "--", sys.executable, program, check=True)
    verdict = spotter.json("why", "last")
    if verdict["level"] < "L2":
        pytest.skip(f"no stacks here: {verdict.get('level_why')}")
    return {f["cause"]: f for f in verdict["findings"] + verdict["notes"]}, verdict


def line_of(code, mark):
    return next(i for i, line in enumerate(code.splitlines(), 1) if mark in line)


def test_gil_contention_names_who_holds_it(spotter, tmp_path):
    found, verdict = judge(spotter, tmp_path, GIL)
    x = found["gil_contention"]
    assert x["where"]["file"] == str(tmp_path / "train.py") and x["where"]["function"].endswith("clean"), x
    assert abs(x["where"]["line"] - line_of(GIL, "# HOT")) <= 1
    assert x["gain"]["low"] <= x["gain"]["speedup"] <= x["gain"]["high"]
    assert "no_workers" not in found


def test_another_lock_is_not_the_gil(spotter, tmp_path):
    found, verdict = judge(spotter, tmp_path, LOCK)
    assert "gil_contention" not in found, found["gil_contention"]
    assert "gil_contention" not in {c["cause"] for c in verdict["cannot_tell"]}


def test_c_code_is_not_a_python_loop(spotter, tmp_path):
    found, verdict = judge(spotter, tmp_path, PACKED)
    assert "python_loop_preprocessing" not in found, found["python_loop_preprocessing"]
    x = found["no_workers"]
    assert x["where"]["file"] == str(tmp_path / "train.py")
    assert "load" in x["where"]["function"] or x["where"]["line"] == line_of(PACKED, "# GETS"), x


def test_a_pool_that_loads_ahead_is_not_accused(spotter, tmp_path):
    found, verdict = judge(spotter, tmp_path, AHEAD)
    assert not {"no_workers", "too_few_workers"} & set(found), found


@pytest.mark.parametrize("code", [PARSER, SUMS], ids=["parser", "pool"])
def test_a_program_that_trains_nothing_is_not_accused(spotter, tmp_path, code):
    found, verdict = judge(spotter, tmp_path, code)
    assert not {"no_workers", "too_few_workers", "python_loop_preprocessing"} & set(found), found
    # told of each process, shown once
    events = [line for line in spotter("report", "last").out.splitlines() if ": stacks are read" in line]
    assert len(events) == len(set(line.split("stacks  ")[-1].split(" (")[0] for line in events)), events
