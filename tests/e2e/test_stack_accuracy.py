# SPDX-License-Identifier: MIT
"""Functions that burn known shares of CPU time (tests/programs/burn_shares.py, which measures them by
the clocks of its threads): at 3,000 samples each must come out within two points, in Python code and
in C, with and without the GIL, in threads and in 16 workers, on every Python of this machine."""
import glob
import json
import os
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import TREE

PROGRAM = TREE / "tests/programs/burn_shares.py"
PYTHON = "/usr/bin/python3"
POINTS = 0.02
SAMPLES = 3000
# 800 looks a second: 3,000 of a thread in some 4 s. In an hour's run 50 do.
RATE = ["--stacks", "800", "--budget", "0.5"]
SECONDS = 6
FRAME = re.compile(r"^(\S+) \((.+?)(?::(\d+))?\)$")


def runs_and_is_read(python):
    ask = "import sys; print(*sys.version_info[:2], sys.implementation.name)"
    try:
        done = subprocess.run([python, "-I", "-c", ask], capture_output=True, text=True, timeout=20)
    except OSError:
        return False
    words = done.stdout.split()
    return len(words) == 3 and words[2] == "cpython" and words[0] == "3" and int(words[1]) >= 8


def pythons():
    """As the unit tests look for them: $SPOTTER_PYTHONS, else Debian's and those of pyenv."""
    some = os.environ.get("SPOTTER_PYTHONS", "").split(":")
    if some == [""]:
        root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
        some = [PYTHON, "/usr/local/bin/python3", *sorted(glob.glob(f"{root}/versions/*/bin/python3"))]
    real = list(dict.fromkeys(os.path.realpath(p) for p in some))
    return [p for p in real if os.access(p, os.X_OK) and runs_and_is_read(p)]


def stripped_copy(folder):
    """(a Python without symbols, its environment)"""
    strip = shutil.which("strip")
    if not strip:
        return None
    original = pythons()[-1]
    copy = folder / "trainer"
    shutil.copy(original, copy)
    subprocess.run([strip, "-s", copy], check=True)
    return copy, {"PYTHONHOME": str(Path(original).parents[1])}


def burn(spotter, python, kind, out, env=None, seconds=SECONDS):
    """(truth: shares by function, the path of the record)"""
    done = spotter("run", "--quiet", "--out", out, *RATE, "--", python, "-S", "-B", PROGRAM, kind, seconds,
                   env=dict(spotter.env, **(env or {})))
    assert done.code == 0, done.err
    spent = json.loads(done.out.splitlines()[-1])
    total = sum(spent.values())
    return {f: s / total for f, s in spent.items()}, out


def stacks(spotter, out):
    """[(frames, what it waits for or "", microseconds)] of the collapsed stacks."""
    rows = []
    for line in spotter("export", "--to", "collapsed", out, check=True).out.splitlines():
        stack, weight = line.rsplit(" ", 1)
        frames = stack.split(";")
        mark = frames.pop() if frames[-1].startswith("[") and not frames[-1].endswith(".so]") else ""
        rows.append((frames, mark, int(weight)))
    return rows


def on_cpu(mark):
    return mark in ("", "[queued for a CPU]")


def by_stacks(spotter, out, names):
    """Shares of the time on a CPU by function, from the stacks themselves."""
    spent = {}
    for frames, mark, weight in stacks(spotter, out):
        found = [m[1] for m in map(FRAME.match, frames) if m and m[1] in names]
        if on_cpu(mark) and found:
            spent[found[-1]] = spent.get(found[-1], 0) + weight
    total = sum(spent.values())
    return {f: s / total for f, s in spent.items()}


def by_ledger(verdict, names):
    """The same from the CPU ledger: the top functions of all roles."""
    spent = {}
    for line in verdict["cpu"]["ledger"]:
        for top in line.get("top", []):
            name = top["function"].split(" -> ")[0].split(".")[-1]
            if name in names:
                spent[name] = spent.get(name, 0) + line["cores"] * top["share"]
    total = sum(spent.values())
    return {f: s / total for f, s in spent.items()}


def room(verdict):
    """Samples of a thread that is queued repeat themselves: on a busy machine 3,000 are worth fewer."""
    queued = [x["share"] for x in verdict["time"]["ledger"] if x["state"] == "cpu_queue"]
    return POINTS if sum(queued) < 0.15 else 2 * POINTS


def agree(what, got, truth, points):
    table = {f: (round(got.get(f, 0), 3), round(t, 3)) for f, t in truth.items()}
    print(what, table)
    for f, (share, true) in table.items():
        assert abs(share - true) <= points, (what, f, table)


def lines_of(function):
    """Where its body stands."""
    text = PROGRAM.read_text().splitlines()
    first = text.index(f"def {function}(end):") + 1
    last = next((n for n in range(first, len(text)) if not text[n].strip()), len(text))
    return range(first + 1, last + 1)


def lines_right(spotter, out, truth):
    for frames, _, _ in stacks(spotter, out):
        for m in filter(None, map(FRAME.match, frames)):
            if m[1] in truth:
                assert m[2] == PROGRAM.name, m[0]
                # an unproven innermost frame has no line
                assert m[3] is None or int(m[3]) in lines_of(m[1]), m[0]


def one_python(spotter, tmp_path, python, env):
    out = tmp_path / f"{time.monotonic_ns()}.spot"
    truth, out = burn(spotter, python, "python", out, env)
    verdict = spotter.json("why", out)
    assert verdict["overhead"]["stack_samples"] >= SAMPLES, (python, verdict["overhead"])
    assert verdict["overhead"]["stack_unproven"] <= 0.005 * verdict["overhead"]["stack_samples"]
    agree(f"{python} stacks", by_stacks(spotter, out, truth), truth, room(verdict))
    agree(f"{python} ledger", by_ledger(verdict, truth), truth, room(verdict))
    lines_right(spotter, out, truth)


@pytest.mark.alone
def test_python_code_on_every_python(spotter, tmp_path):
    """Two at a time: as many as there are CPUs at least."""
    some = [(p, {}) for p in pythons()]
    assert some, "no Python 3.8 or later that this user may run"
    with ThreadPoolExecutor(2) as pool:
        done = [(p, pool.submit(one_python, spotter, tmp_path, p, env)) for p, env in some]
    for _, result in done:
        result.result()
    print(len(some), "Pythons")


@pytest.mark.alone
def test_a_python_without_symbols(spotter, tmp_path):
    copy = stripped_copy(tmp_path)
    if not copy:
        pytest.skip("no strip here")
    one_python(spotter, tmp_path, *copy)


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["native", "threads", "workers"])
def test_functions_of_c_threads_and_workers(spotter, tmp_path, kind):
    truth, out = burn(spotter, PYTHON, kind, tmp_path / f"{kind}.spot")
    verdict = spotter.json("why", out)
    assert verdict["overhead"]["stack_samples"] >= SAMPLES
    agree(kind, by_ledger(verdict, truth), truth, room(verdict))
    if kind == "workers":
        assert max(line.get("processes", 0) for line in verdict["cpu"]["ledger"]) >= 16
