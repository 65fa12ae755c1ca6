# SPDX-License-Identifier: MIT
"""The API: on every Python without a recorder, and what it marks with one."""
import json
import math
import os
import subprocess
import sys

import pytest

from programs import BUILD, PACKAGE, needs, of, pythons

EVERY = sorted(pythons().items())

SILENT = """
import sys, json
import spotter
assert "ctypes" not in sys.modules and "sqlite3" not in sys.modules
spotter.step(loss=1.0, accuracy=2)
spotter.step(loss=object())
spotter.log(rate=0.1)
with spotter.phase("evaluate") as p:
    assert isinstance(p, spotter.phase)
@spotter.phase("x")
def f(a, b=2):
    "doc"
    return a + b
assert f(1) == 3 and f.__doc__ == "doc"
assert list(spotter.steps([1, 2, 3])) == [1, 2, 3] and len(spotter.steps([1])) == 1
assert not spotter.active()
assert set(spotter.__all__) <= set(dir(spotter))
for name in spotter.__all__:
    if not name.endswith("Callback"):
        getattr(spotter, name)
try:
    spotter.KerasCallback
except ImportError as e:
    assert "keras" in str(e)
try:
    spotter.nothing
except AttributeError:
    print("[1]")
"""


@pytest.mark.parametrize("name,python", EVERY, ids=[n for n, _ in EVERY])
def test_without_a_recorder(world, name, python):
    done = world.plain(SILENT, python=python)
    assert done.said == [[1]] and done.err == ""


@pytest.mark.parametrize("name,python", EVERY, ids=[n for n, _ in EVERY])
def test_marks(world, name, python):
    done = world.run("""
        import spotter
        for i in range(3):
            spotter.step(loss=1.0 / (i + 1), accuracy=i)
        spotter.step(number=100)
        spotter.step()
        with spotter.phase("evaluate"):
            with spotter.phase("\\u00fc" * 40 + "\\0x"):
                spotter.log(rate=0.25, word="none", none=None, **{"a b": True})
        """, python=python)
    steps = of(done.marks, "step")
    assert [s.number for s in steps] == [1, 2, 3, 100, 101]
    assert [s.value for s in steps][:3] == [1.0, 0.5, 1 / 3] and all(math.isnan(s.value) for s in steps[3:])
    assert [(m.name, m.value) for m in of(done.marks, "scalar")] == [
        ("accuracy", 0), ("accuracy", 1), ("accuracy", 2), ("rate", 0.25), ("a b", 1)]
    assert [m.name for m in done.marks if m.kind.startswith("phase")] == [
        "evaluate", "\u00fc" * 31, "\u00fc" * 31, "evaluate"]
    assert [m.name for m in of(done.marks, "source")] == ["api"]


def test_steps_of_an_iterable(world):
    done = world.run("""
        import spotter, time
        def batches():
            for i in range(4):
                time.sleep(0.01)
                yield i
        for b in spotter.steps(batches()):
            pass
        for b in spotter.steps(batches()):
            spotter.step(loss=b)
        """)
    assert [s.number for s in of(done.marks, "step")] == list(range(1, 9))
    assert [s.value for s in of(done.marks, "step")][4:] == [0, 1, 2, 3]
    waits = of(done.marks, "data_wait")
    assert len(waits) == 8 and all(w.number >= 10_000_000 for w in waits)


def test_a_phase_ends_with_an_exception(world):
    done = world.run("""
        import spotter
        try:
            with spotter.phase("a"): 1 / 0
        except ZeroDivisionError:
            print("[1]")
        """)
    assert done.said == [[1]] and [m.kind for m in done.marks] == ["phase_begin", "phase_end"]


def test_too_many_names(world):
    done = world.run("""
        import spotter
        for i in range(1500):
            spotter.log(**{"name%d" % i: i})
        spotter.step()
        """)
    assert len(of(done.marks, "scalar")) == 1000 and len(of(done.marks, "step")) == 1


def test_threads_and_forks(world):
    done = world.run("""
        import os, spotter, threading, json
        spotter.step()
        def log(): [spotter.log(x=i) for i in range(100)]
        all = [threading.Thread(target=log) for _ in range(4)]
        [t.start() for t in all]; [t.join() for t in all]
        pid = os.fork()
        if pid == 0:
            spotter.step(loss=7)
            os._exit(0)
        os.waitpid(pid, 0)
        spotter.step()
        print(json.dumps([pid]))
        """)
    assert len(of(done.marks, "scalar")) == 400 and [s.number for s in of(done.marks, "step")] == [1, 2]
    child = done.all_marks[done.said[0][0]]
    assert [(s.number, s.value) for s in of(child, "step")] == [(1, 7)]


def test_a_mark_is_cheap(world):
    """bench/hooks measures it (goal: 2 us); this is far from that only if something is wrong."""
    code = """
import spotter, time, json
def best(f):
    found = []
    for _ in range(9):
        t = time.perf_counter()
        for _ in range(2000): f()
        found.append((time.perf_counter() - t) / 2000)
    return min(found) * 1e6
print(json.dumps([best(lambda: spotter.step(loss=1.0)), best(lambda: spotter.log(x=1.0))]))
"""
    out = subprocess.run([sys.executable, "-c", code], env=world.env, capture_output=True, text=True, check=True)
    assert max(json.loads(out.stdout)) < 10, out.stdout


needs_program = pytest.mark.skipif(not (BUILD / "spotter").exists(), reason="the program is not built")


@needs_program
@pytest.mark.parametrize("name,python", EVERY[:1] + EVERY[-1:], ids=[n for n, _ in EVERY[:1] + EVERY[-1:]])
def test_snapshot(world, name, python):
    done = world.plain("""
        import spotter, json, os
        s = spotter.snapshot(seconds=0.3)
        assert s.job.processes == 1 and s.processes[0].pid == os.getpid(), s
        assert 0 <= s.job.cores_used and s.job.rss_bytes > 1e6
        assert s.cpu.cores_allowed <= s.cpu.cores_machine
        assert 0 < s.memory.used_bytes < s.memory.total_bytes
        assert isinstance(s.gpus, list) and "cores" in str(s) and s.raw["schema"] == "spotter.top/1"
        everything = spotter.snapshot(pid=0, seconds=0.2)
        assert everything.job is None and len(everything.processes) >= 1
        """, python=python)
    assert done.err == ""


@needs_program
def test_watch(world):
    done = world.plain("""
        import spotter, threading, json, time
        seen, enough = [], threading.Event()
        def look(s):
            seen.append(s.job.cores_used)
            if len(seen) == 3: enough.set()
        with spotter.watch(every=0.1, callback=look) as w:
            assert enough.wait(20)
        assert not w.active and len(seen) >= 3 and w._child.poll() is not None
        w = spotter.watch(every=0.1, callback=lambda s: 1 / 0)
        end = time.monotonic() + 20
        while w.active and time.monotonic() < end: time.sleep(0.02)
        assert isinstance(w.error, ZeroDivisionError) and w._child.poll() is not None
        try:
            spotter.watch(every=0)
        except spotter.SpotterError as e:
            print(json.dumps([str(e)]))
        spotter.watch(every=0.1)   # ends with the program
        time.sleep(0.5)
        """)
    assert "more than 0" in done.said[0][0] and "spotter: job" in done.out


@needs_program
def test_start_stop_load(world):
    done = world.plain("""
        import spotter, json, time, os, subprocess, sys
        r = spotter.start(name="mine", out="a.spot")
        assert spotter.start() is r and r.active
        child = os.fork()
        if child == 0:
            time.sleep(0.3); os._exit(0)
        end = time.monotonic() + 2.5
        while time.monotonic() < end: sum(range(1000))
        os.waitpid(child, 0)
        path = spotter.stop()
        assert spotter.stop() is None and not r.active
        run = spotter.load(path)
        cpu = run.samples("job.cpu", as_="list")
        print(json.dumps({"path": path, "name": run.name, "pid": run.info["pid"], "me": os.getpid(),
                          "cpu": cpu[-1]["value"] - cpu[0]["value"], "steps": run.steps(as_="list"),
                          "schema": spotter.verdict(run)["schema"], "again": spotter.verdict(path)["schema"],
                          "sql": run.sql("SELECT count(*) AS n FROM process", as_="list")}))
        try:
            spotter.load("no-such-run")
        except spotter.SpotterError as e:
            print(json.dumps([str(e)]))
        """)
    said = done.said[0]
    assert said["path"].endswith("a.spot") and said["name"] == "mine" and said["pid"] == said["me"]
    assert said["cpu"] > 0.5 and said["steps"] == [] and said["sql"][0]["n"] >= 2
    assert said["schema"] == said["again"] == "spotter.verdict/1"
    assert "no-such-run" in done.said[1][0]


@needs_program
def test_what_steps_used(world):
    """Those that are long enough: as `sql` says, which computes it. Short ones, and all without the program: not known."""
    done = world.plain("""
        import spotter, json, time, os
        block = bytearray(64 << 20)
        spotter.start(out="a.spot", hz=20)
        for length in spotter.steps((0.6, 0.001, 0.6)):
            end = time.monotonic() + length
            while time.monotonic() < end: sum(range(1000))
            spotter.step(loss=length)
        run = spotter.load(spotter.stop())
        rows = run.steps(as_="list")
        asked = run.sql("SELECT * FROM steps ORDER BY rank, t_end", as_="list")
        frame, arrays = run.steps(), run.steps(as_="numpy")
        kinds = [str(frame[c].dtype) for c in ("gpu_power", "cpu_cores")] if hasattr(frame, "dtypes") else None
        from spotter import _run
        def gone(*_): raise spotter.SpotterError("the program is gone")
        _run.ask_json = gone
        print(json.dumps([rows, asked, kinds, [str(arrays[c].dtype) for c in ("gpu_power", "cpu_cores")],
                          run.steps(as_="list")]))
        """, python=needs("/usr/bin/python3", "pandas"))
    rows, asked, kinds, arrays, without = done.said[0]
    assert [r.pop("t_end") for r in rows] == pytest.approx([a.pop("t_end") for a in asked])
    for name in ("t", "seconds", "data_wait"):
        assert [r.pop(name) for r in rows] == pytest.approx([a.pop(name) for a in asked])
    assert rows == asked and [r["loss"] for r in rows] == [0.6, 0.001, 0.6]
    assert all(0.1 < rows[i]["cpu_cores"] < 4 and rows[i]["memory"] > 64 << 20 for i in (0, 2))
    assert rows[1]["cpu_cores"] is None and rows[1]["memory"] is None and rows[0]["gpu_busy"] is None
    assert kinds in (None, ["float64"] * 2) and arrays == ["float64"] * 2
    assert [w["loss"] for w in without] == [0.6, 0.001, 0.6] and {w["cpu_cores"] for w in without} == {None}
    assert set(without[0]) == set(asked[0]) | {"t", "t_end", "seconds", "data_wait"}


@needs_program
def test_start_does_nothing_under_a_recorder(world):
    done = world.run("""
        import spotter
        r = spotter.start()
        assert r.pid is None and r.active and spotter.stop() is None
        """)
    assert done.err == "" and not list(world.place.glob("runs/*.spot"))


@needs_program
def test_the_recorder_ends_with_the_program(world):
    done = world.plain("""
        import spotter, os, json
        r = spotter.start()
        print(json.dumps([r.pid]), flush=True)
        os._exit(3)
        """, check=False)
    assert done.code == 3
    import time
    end = time.monotonic() + 15
    while os.path.exists(f"/proc/{done.said[0][0]}/exe") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{done.said[0][0]}/exe")


def test_without_the_program(world):
    env = dict(world.base, PYTHONPATH=str(world.place / "copy"), PATH="/nonexistent")
    import shutil
    shutil.copytree(PACKAGE, world.place / "copy" / "spotter")
    done = world.run("""
        import spotter, json
        try:
            spotter.snapshot()
        except spotter.SpotterError as e:
            print(json.dumps([str(e)]))
        """, env=env)
    assert "SPOTTER_EXE" in done.said[0][0]
