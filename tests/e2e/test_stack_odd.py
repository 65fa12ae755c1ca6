# SPDX-License-Identifier: MIT
"""Stacks of programs that make it hard: short turns between Python and native code, deep recursion, many
processes that are no Python, source "files" that are traps, a first thread that ends before the others."""

PYTHON = "/usr/bin/python3"

# 4 ms of an int loop, 4 ms of SHA-256 in libcrypto, in turns: a native sample that is a few ms old is put
# below a line that never called it.
TURNS = r'''
import hashlib, sys, time
data = bytes(1 << 20)
def only_python(until):
    x = 0
    while time.perf_counter() < until:
        for k in range(500):
            x += k
def only_native(until):
    while time.perf_counter() < until:
        hashlib.sha256(data)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    only_python(time.perf_counter() + 0.004)
    only_native(time.perf_counter() + 0.004)
'''

DEEP = r'''
import sys, time
sys.setrecursionlimit(100000)
def burn(until):
    while time.monotonic() < until:
        sum(range(300))
def down(n, until):
    if n:
        return down(n - 1, until)
    burn(until)
down(int(sys.argv[1]), time.monotonic() + float(sys.argv[2]))
'''

CROWD = r'''
import multiprocessing, subprocess, sys, time
def work(end):
    while time.time() < end:
        sum(range(1000))
        time.sleep(0.01)
sleepers = [subprocess.Popen(["sleep", "30"]) for _ in range(60)]
end = time.time() + float(sys.argv[1])
workers = [multiprocessing.Process(target=work, args=(end,)) for _ in range(4)]
for w in workers: w.start()
for w in workers: w.join()
for s in sleepers: s.kill()
for s in sleepers: s.wait()
'''

# Code named after a FIFO whose writer waits for a reader, and after a file with a lease on it.
TRAPS = r'''
import errno, fcntl, os, signal, sys, threading, time
fifo, leased = sys.argv[1] + "/fifo.py", sys.argv[1] + "/leased.py"
os.mkfifo(fifo)
with open(leased, "w") as f: f.write("x = 1\n" * 9)
os.utime(leased, (1e9, 1e9))
fd = os.open(leased, os.O_RDWR)
fcntl.fcntl(fd, 1024, fcntl.F_WRLCK)  # F_SETLEASE; a break is SIGIO, which kills
opened = []
def wait_for_reader():
    os.open(fifo, os.O_WRONLY)
    opened.append(1)
threading.Thread(target=wait_for_reader, daemon=True).start()
def run(name):
    scope = {"time": time, "end": time.monotonic() + 1.5}
    exec(compile("def spin():\n  while time.monotonic() < end:\n    sum(range(99))\nspin()\n", name, "exec"), scope)
run(fifo)
run(leased)
run("/etc/shadow")
print("opened" if opened else "still waiting", flush=True)
os._exit(0)
'''

# The first thread ends, and the training goes on in another: the process has its number still, and by it
# no memory any more.
HEADLESS = r'''
import ctypes, os, sys, threading, time
end = time.monotonic() + float(sys.argv[1])
def train():
    while time.monotonic() < end:
        sum(range(1000))
    os._exit(0)
threading.Thread(target=train).start()
time.sleep(0.5)
ctypes.CDLL(None).pthread_exit(None)
'''


def write(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text)
    return path


def test_native_code_is_put_below_no_line_that_did_not_call_it(spotter, tmp_path):
    spotter("run", "-q", "--", PYTHON, write(tmp_path, TURNS), "8", check=True)
    rows = spotter.json("sql", "--json", "SELECT p.function AS line, s.file AS library, sum(x.samples) AS n"
                        " FROM stack_samples x JOIN stacks s ON s.id = x.stack JOIN stacks p ON p.id = s.parent"
                        " WHERE s.kind = 'native' AND s.file LIKE '%libcrypto%' GROUP BY 1, 2")
    found = {row["line"]: row["n"] for row in rows}
    wrong = {line: n for line, n in found.items() if "only_python" in line}
    assert not wrong, found
    if spotter.json("why", "--json")["level"] == "L3":
        assert sum(n for line, n in found.items() if "only_native" in line) >= 5, found


def test_a_deep_stack_keeps_its_ends(spotter, tmp_path):
    spotter("run", "-q", "--", PYTHON, write(tmp_path, DEEP), "1000", "4", check=True)
    verdict = spotter.json("why", "--json")
    assert verdict["level"] in ("L2", "L3")
    top = {line["role"]: line.get("top", []) for line in verdict["cpu"]["ledger"]}["main"]
    assert "burn" in top[0]["function"], top
    assert verdict["time"]["unaccounted"] < 0.15, verdict["time"]
    outer = spotter.json("sql", "--json", "SELECT count(*) AS n FROM stacks WHERE function = '[...]'")
    assert outer[0]["n"] >= 1


def test_python_is_found_among_many_that_are_none(spotter, tmp_path):
    spotter("run", "-q", "--", PYTHON, write(tmp_path, CROWD), "4", check=True)
    read = spotter.json("sql", "--json", "SELECT count(DISTINCT entity) AS n FROM event"
                        " WHERE kind = 'stacks' AND value >= 2")
    assert read[0]["n"] == 5


def test_what_code_is_named_after_is_not_touched(spotter, tmp_path):
    program = write(tmp_path, TRAPS)
    traps = tmp_path / "traps"
    traps.mkdir()
    done = spotter("run", "-q", "--", PYTHON, program, traps)
    assert done.code == 0, done.err
    assert done.out == "still waiting\n"
    rows = spotter.json("sql", "--json", "SELECT file, source FROM place WHERE source <> ''")
    assert not [row for row in rows if "shadow" in row["file"] or "fifo" in row["file"]], rows


def test_a_training_that_outlives_its_first_thread_is_found(spotter, tmp_path):
    spotter("run", "-q", "--", PYTHON, write(tmp_path, HEADLESS), "3.5", check=True)
    verdict = spotter.json("why", "--json")
    assert verdict["time"]["tid"] != verdict["time"]["pid"], verdict["time"]
    top = {line["role"]: line.get("top", []) for line in verdict["cpu"]["ledger"]}["main"]
    assert "train" in top[0]["function"], top
    assert verdict["time"]["unaccounted"] < 0.2, verdict["time"]
