# SPDX-License-Identifier: MIT
"""Programs to look at, for bench/stack. Each prints "ready" and ends with whoever started it.

    stack_target.py deep THREADS     20 frames in each thread: one works, its inner frames replaced every
                                     few ms; the others wait for a lock
    stack_target.py ab THREADS ACTIVE CYCLES SLOT   reads "PID" of a sampler from stdin (0: there is none), and
                                     compares its own work while that runs and while it is stopped
    stack_target.py crowd N SECONDS  N processes that do all sorts of things in the standard library
"""
import json
import os
import random
import signal
import sys
import threading
import time

FRAMES = 20
UNIT = 0.95e-3  # s, of work in one thread; with several active ones a tenth, as all of it is added up
PARENT = os.getppid()
spins = 1


def spin():
    for _ in range(spins):
        pass


def calibrate(seconds):
    """How many rounds of spin() last this long, by the best of some tries."""
    global spins

    def once():
        begin = time.perf_counter()
        spin()
        return time.perf_counter() - begin
    spins = 20000
    spins = max(1, int(spins * seconds / min(once() for _ in range(30))))


def nest(name, levels):
    """A chain of functions NAME_0 .. that calls what it is given; the way in."""
    text = f"def {name}_{levels}(f):\n\tf()\n"
    for i in range(levels):
        text += f"def {name}_{i}(f):\n\t{name}_{i + 1}(f)\n"
    space = {}
    exec(compile(text, f"<{name}>", "exec"), space)
    return space[f"{name}_0"]


def idle(gate):
    with gate:
        pass


def start_threads(n, body):
    # A small stack each: 64 of them are not what is measured.
    threading.stack_size(256 << 10)
    for _ in range(n):
        threading.Thread(target=body, daemon=True).start()


def start_idle(n):
    gate = threading.Lock()
    gate.acquire()
    # _bootstrap, _bootstrap_inner, run, the lambda, the chain, idle
    chain = nest("idle", FRAMES - 6)
    start_threads(n, lambda: chain(lambda: idle(gate)))


def deep(threads):
    start_idle(threads - 1)
    calibrate(100e-6)
    inner = [nest("left", 7), nest("right", 7)]

    def work():
        for _ in range(40):
            spin()

    def alternate():
        while os.getppid() == PARENT:
            for way in inner:
                way(work)
    print("ready", flush=True)
    # <module>, deep, the chain, alternate, 8 inner ones, work, spin
    nest("outer", FRAMES - 14)(alternate)


def ab(threads, active, cycles, slot_ms):
    """Ratios of the time of a unit of work, sampler on to off, in slots of random order."""
    calibrate(UNIT if active == 1 else UNIT / 10)
    start_idle(threads - active)
    done = [0] * active

    def busy(i):
        while os.getppid() == PARENT:
            spin()
            done[i] += 1
    others = iter(range(1, active))
    start_threads(active - 1, lambda: busy(next(others)))

    def slot():
        before, begin = sum(done), time.perf_counter()
        at, end = begin, begin + slot_ms / 1000
        while at < end:
            spin()
            done[0] += 1
            at = time.perf_counter()
        return (at - begin) / (sum(done) - before)

    print("ready", flush=True)
    sampler = int(sys.stdin.readline())
    slot()
    ratios = []
    for _ in range(cycles):
        times = {}
        for on in random.sample((True, False), 2):
            if sampler:
                os.kill(sampler, signal.SIGCONT if on else signal.SIGSTOP)
            times[on] = slot()
        ratios.append(times[True] / times[False])
    if sampler:
        os.kill(sampler, signal.SIGCONT)
    print(json.dumps(ratios), flush=True)
    os._exit(0)


def one_of_a_crowd(seed, until):
    """Many functions and lines, as programs have them."""
    import ast
    import difflib
    import re
    import textwrap
    import tokenize
    source = open(textwrap.__file__).read()
    lines = source.splitlines()
    chance = random.Random(seed)

    def write_json():
        json.dumps([{"a": i, "b": [str(i)] * 3} for i in range(300)], indent=1)

    def compile_patterns():
        re.purge()
        for i in range(20):
            re.compile(rf"(a{i}|b[^x]*|(?P<n>c+)){{2,{i + 3}}}(?:x|y)?$")

    def read_tokens():
        rest = iter(lines)
        for _ in tokenize.generate_tokens(lambda: next(rest, "") + "\n"):
            if chance.random() < 0.001:
                return

    def compare():
        difflib.SequenceMatcher(None, lines[:80], lines[40:120]).ratio()

    def unparse():
        ast.unparse(ast.parse(source))

    def rest():
        time.sleep(chance.random() * 0.05)
    kinds = [write_json, compile_patterns, read_tokens, compare, unparse, rest, rest]
    while time.monotonic() < until:
        chance.choice(kinds)()


def crowd(n, seconds):
    until = time.monotonic() + seconds
    children = []
    for seed in range(n):
        child = os.fork()
        if child == 0:
            # The parent may be gone before the time is over; then all of it is to go.
            threading.Thread(target=lambda: watch_parent(os.getppid()), daemon=True).start()
            one_of_a_crowd(seed, until)
            os._exit(0)
        children.append(child)
    print("ready", flush=True)
    for child in children:
        os.waitpid(child, 0)


def watch_parent(parent):
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


MODES = {"deep": deep, "ab": ab, "crowd": crowd}
MODES[sys.argv[1]](*map(int, sys.argv[2:]))
