# SPDX-License-Identifier: MIT
"""Programs that do one thing: moving.py threads|gil|fork|exec|reuse|gc|interpreter. Prints "ready" first."""
import os
import sys
import threading
import time


def ready(*words):
    print("ready", *words, flush=True)


def short_life(n):
    if n:
        short_life(n - 1)
    else:
        time.sleep(0.0005)


def threads():
    ready()
    while True:
        some = [threading.Thread(target=short_life, args=(k * 10,)) for k in range(4)]
        for t in some:
            t.start()
        for t in some:
            t.join()


def spinner():
    while True:
        sum(range(50))


def waiter():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def gil():
    made = [threading.Thread(target=f, daemon=True) for f in (spinner, spinner, waiter)]
    for t in made:
        t.start()
    ready(*(t.native_id for t in made))
    time.sleep(1000)


def child_sleeps():
    time.sleep(1000)


def fork():
    pid = os.fork()
    if pid == 0:
        child_sleeps()
    ready(pid)
    sys.stdin.read()
    os.kill(pid, 9)
    os.waitpid(pid, 0)


def execute():
    ready()
    sys.stdin.readline()
    os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, "gil"])


def reuse():
    """Code that is made, run and thrown away: addresses come to hold other code all the time."""
    ready()
    number = 0
    while True:
        number += 1
        scope = {"time": time}
        exec(f"def made_{number % 50}():\n\ttime.sleep(0.0005)\nmade_{number % 50}()", scope)
        number_of(number % 50, scope)


def number_of(number, scope):
    pass


def collect():
    import gc
    gc.disable()
    many = [[number] for number in range(300000)]
    ready()
    while many:
        gc.collect()


def interpreter():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    other = interpreters.create()
    text = "import time\ndef inside():\n\ttime.sleep(1000)\ninside()"
    threading.Thread(target=interpreters.run_string, args=(other, text), daemon=True).start()
    time.sleep(0.1)
    ready()
    time.sleep(1000)


{"threads": threads, "gil": gil, "fork": fork, "exec": execute, "reuse": reuse, "gc": collect,
 "interpreter": interpreter}[sys.argv[1]]()
