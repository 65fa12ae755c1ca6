# SPDX-License-Identifier: MIT
"""Looking at what runs now: top, why PID."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import cores_of

# ---- top

BURN = "import time\nend = time.monotonic() + %g\nwhile time.monotonic() < end: pass\n"


def burner(spotter, seconds=20.0):
    child = subprocess.Popen([sys.executable, "-c", BURN % seconds])
    spotter.started.append(child)
    return child


def test_top_shows_a_busy_process(spotter, pace):
    child = burner(spotter)
    time.sleep(0.3)
    with cores_of(child.pid) as truth:
        data = spotter.json("top", "--once", "--processes", "1000")
    mine = [p for p in data["processes"] if p["pid"] == child.pid]
    assert len(mine) == 1
    assert 0.5 * truth.cores - 0.1 <= mine[0]["cores"] < 1.1, (mine, truth)
    assert data["machine"]["cpu"]["cores_used"] <= data["machine"]["cpu"]["cores_machine"] + 0.1
    assert 0.9 < data["interval_s"] < 2 + 3 * pace.worst, (data["interval_s"], pace.worst)


def test_top_of_a_tree_has_threads(spotter):
    code = "import threading, time\n[threading.Thread(target=time.sleep, args=(20,), daemon=True).start()" \
           " for _ in range(3)]\nprint('all', flush=True)\ntime.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    spotter.started.append(child)
    assert child.stdout.readline() == b"all\n"
    data = spotter.json("top", child.pid, "--once")
    assert [p["pid"] for p in data["processes"]] == [child.pid]
    assert len(data["processes"][0]["threads"]) == 4
    assert data["job"]["processes"] == 1 and data["job"]["threads"] == 4


def test_top_plain_is_a_line_at_a_time(spotter, pace):
    child = spotter.start("top", "--every", "0.2s", text=True)
    start = time.monotonic()
    lines = [child.stdout.readline() for _ in range(3)]
    assert time.monotonic() - start < 5 + 20 * pace.worst, pace.worst
    assert child.poll() is None  # the lines came while it runs
    child.send_signal(signal.SIGINT)
    rest, err = child.communicate(timeout=10)
    assert child.returncode == 0 and err == ""
    for line in lines:
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z cpu [\d.]+/\d+ cores ", line)


def test_top_counts(spotter):
    out = spotter("top", "--json", "--every", "0.1s", "--count", "3", check=True).out.splitlines()
    assert len(out) == 3
    times = [json.loads(line)["time"] for line in out]
    assert times == sorted(set(times))


def test_top_when_the_process_ends(spotter):
    child = burner(spotter, 0.5)
    done = spotter("top", child.pid, "--every", "0.2s", timeout=20)
    assert done.code == 0 and f"process {child.pid} has ended" in done.err
    child.wait()


def test_hostile_names(spotter, tmp_path):
    """A process may be called anything; nothing of it reaches a terminal."""
    evil = tmp_path / "\x1b[2Jev\nil"
    evil.symlink_to("/bin/sleep")
    child = subprocess.Popen([evil, "30"])
    spotter.started.append(child)
    time.sleep(0.2)
    for words in (["top", "--once", "-n", "10000"], ["top", child.pid, "--once"], ["top", child.pid, "--count", "1"],
                  ["why", child.pid, "--for", "0.5s"], ["report", child.pid, "--for", "0.5s"]):
        done = spotter(*words, check=True)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.out + done.err), words
    data = spotter.json("top", child.pid, "--once")
    assert "\x1b[2Jev\nil" in data["processes"][0]["command"]


# ---- a process that runs now

def test_why_of_a_process(spotter, pace):
    child = burner(spotter)
    time.sleep(1.5)  # what it used before must not count
    with cores_of(child.pid) as truth:
        data = spotter.json("why", child.pid, "--for", "2s")
    assert data["schema"] == "spotter.verdict/1"
    assert 0.5 * truth.cores - 0.1 <= data["usage"]["cpu"]["cores_used"] < 1.1, (data["usage"], truth)
    assert 1.5 < data["window"]["to_s"] - data["window"]["from_s"] < 4 + 3 * pace.worst, (data["window"], pace.worst)
    assert child.poll() is None
    assert not spotter.dir.exists() or not spotter.records()  # nothing was recorded


def test_why_of_a_process_that_ends(spotter):
    child = burner(spotter, 1.0)
    time.sleep(0.3)
    done = spotter("why", child.pid, "--for", "30s", timeout=25)
    assert done.code == 0 and "ended meanwhile" in done.err
    child.wait()


def test_why_is_cut_short_by_ctrl_c(spotter, pace):
    child = burner(spotter)
    look = spotter.start("why", str(child.pid), "--for", "60s", "--json", text=True)
    time.sleep(1.5)
    time.sleep(20 * pace.worst)  # till it has begun to look
    look.send_signal(signal.SIGINT)
    out, err = look.communicate(timeout=60)
    assert look.returncode == 0, err
    assert json.loads(out)["schema"] == "spotter.verdict/1"


def test_a_run_called_like_a_number_wins(spotter):
    spotter("run", "--quiet", "--name", str(os.getpid()), "--", "true", check=True)
    assert spotter.json("why", str(os.getpid()))["run"]["argv"] == ["true"]
