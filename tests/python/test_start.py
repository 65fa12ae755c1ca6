# SPDX-License-Identifier: MIT
"""spotter.start() and stop(): marks of a program that was not started by `spotter run`, and nothing left of it."""
import os
import re
import shutil
import sys
import time

import pytest

from programs import BUILD, PACKAGE, needs

sys.path.insert(0, str(PACKAGE.parent))
from spotter import _yama  # noqa: E402

pytestmark = pytest.mark.skipif(not (BUILD / "spotter").exists(), reason="the program was not built")

DEBIAN = "/usr/bin/python3"


def test_marks_are_recorded_twice_and_the_environment_is_as_before(world):
    done = world.plain("""
        import json, os, time
        import spotter
        before = dict(os.environ)
        spotter.step(loss=9)  # nobody listens
        said = []
        for turn in range(2):
            recording = spotter.start(out="run%d.spot" % turn)
            folder = os.environ["SPOTTER_MARKS"]
            assert spotter.active() and recording.path.endswith("run%d.spot" % turn)
            for i in range(20 + turn):
                spotter.step(loss=i / 4, accuracy=i)
            with spotter.phase("checkpoint"): time.sleep(0.02)
            path = spotter.stop()
            assert not os.path.exists(folder) and not spotter.active() and dict(os.environ) == before
            run = spotter.load(path)
            said.append([[s["step"] for s in run.steps(as_="list")], [s["loss"] for s in run.steps(as_="list")],
                         len(run.scalars(as_="list")), [p["name"] for p in run.phases(as_="list")]])
            spotter.step(loss=9)
        print(json.dumps(said))
        """)
    for turn, (steps, losses, scalars, phases) in enumerate(done.said[0]):
        assert steps == list(range(1, 21 + turn)) and losses == [i / 4 for i in range(20 + turn)]
        assert scalars == 20 + turn and phases == ["checkpoint"]
    assert done.err == ""


def test_workers_mark_too_however_they_are_started(world):
    done = world.plain("""
        import json, multiprocessing, os, subprocess, sys, time
        import spotter
        def work(n):
            for i in range(n):
                spotter.step(loss=float(i))
                time.sleep(0.01)
        if __name__ == "__main__":
            spotter.start(out="a.spot")
            work(5)
            for how, n in (("fork", 30), ("spawn", 31)):
                child = multiprocessing.get_context(how).Process(target=work, args=(n,))
                child.start(); child.join()
            # Where the package is not on the path: as under `spotter run`.
            env = dict(os.environ, PYTHONPATH=os.environ["PYTHONPATH"].partition(":")[0])
            subprocess.run([sys.executable, "-c", "import spotter, time\\nfor i in range(32):\\n spotter.step()\\n"
                            " time.sleep(0.01)"], check=True, env=env)
            path = spotter.stop()
            steps = spotter.load(path).sql("SELECT count(*) AS n FROM steps GROUP BY pid ORDER BY n", as_="list")
            print(json.dumps([s["n"] for s in steps]))
        """)
    assert done.said[0] == [5, 30, 31, 32]


@pytest.mark.parametrize("when", ["before", "after"])
def test_steps_of_torch_are_seen_without_a_line(world, when):
    python = needs(DEBIAN, "torch")
    done = world.plain("""
        import json, sys
        import spotter
        if sys.argv[1] == "before": import torch
        spotter.start(out="a.spot")
        import torch
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for i in range(12):
            loss = model(torch.ones(2, 4)).pow(2).mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            losses.append(loss.item())
        run = spotter.load(spotter.stop())
        for i in range(3): optimizer.step()  # and afterwards they do nothing
        print(json.dumps([losses, run.steps(as_="list")]))
        """, when, python=python)
    losses, steps = done.said[0]
    assert [s["loss"] for s in steps] == losses and {s["source"] for s in steps} == {"torch"}


def test_a_recorder_that_was_killed(world):
    done = world.plain("""
        import json, os, signal, time
        import spotter
        r = spotter.start(out="a.spot")
        folder = os.environ["SPOTTER_MARKS"]
        os.kill(r.pid, signal.SIGKILL)
        while r.active: time.sleep(0.01)
        for i in range(10000): spotter.step()  # more than a ring holds
        again = spotter.start(out="b.spot")
        assert again is not r and again.active and not os.path.exists(folder)
        spotter.step()
        path = spotter.stop()
        print(json.dumps([path, len(spotter.load(path).steps(as_="list"))]))
        """)
    assert done.said[0][0].endswith("b.spot") and done.said[0][1] == 1


@pytest.mark.parametrize("how", ["r.stop(0.3)", "spotter.stop()"])
def test_one_that_does_not_end_is_ended(world, how):
    """It is stopped, and whoever waits for it gives up, or is interrupted."""
    done = world.plain("""
        import json, os, signal, sys
        import spotter
        before = dict(os.environ)
        r = spotter.start(out="a.spot")
        folder = os.environ["SPOTTER_MARKS"]
        os.kill(r.pid, signal.SIGSTOP)
        def interrupt(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        try:
            eval(sys.argv[1])
            how = "gave up"
        except KeyboardInterrupt:
            how = "interrupted"
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert not r.active and not os.path.exists("/proc/%d" % r.pid) and not os.path.exists(folder)
        assert dict(os.environ) == before and not spotter.active()
        print(json.dumps([how]))
        """, how)
    assert done.said[0] == ["gave up" if "0.3" in how else "interrupted"]


def test_no_recorder_no_folder(world):
    """What cannot be recorded is said, and nothing stays."""
    done = world.plain("""
        import json, os
        import spotter
        from spotter import _listening
        made = []
        make = _listening.make_folder
        _listening.make_folder = lambda: made.append(make()) or made[-1]
        before = dict(os.environ)
        try:
            spotter.start(out="/nonexistent/a.spot")
        except spotter.SpotterError as e:
            print(json.dumps([str(e)]))
        assert made[0] and not os.path.exists(made[0]) and dict(os.environ) == before
        assert not spotter.active() and spotter.stop() is None
        """)
    assert "/nonexistent" in done.said[0][0]


def test_an_exit_and_a_kill_leave_nothing(world):
    for end in ("sys.exit(3)", "os.kill(os.getpid(), 9)"):
        done = world.plain("""
            import json, os, sys, time
            import spotter
            r = spotter.start()
            spotter.step()
            print(json.dumps([r.pid, os.environ["SPOTTER_MARKS"], r.path]), flush=True)
            time.sleep(0.2)
            """ + end, check=False)
        pid, folder, path = done.said[0]
        patience = time.monotonic() + 30
        while (os.path.exists(f"/proc/{pid}") or os.path.exists(folder)) and time.monotonic() < patience:
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{pid}") and not os.path.exists(folder) and os.path.exists(path)


def test_yama_allows_the_recorder_here_and_in_forked_workers(world):
    done = world.plain("""
        import json, os
        from spotter import _yama
        asked = []
        _yama.allow = asked.append
        import spotter
        r = spotter.start(out="a.spot")
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, json.dumps(asked).encode()); os._exit(0)
        os.wait()
        child = json.loads(os.read(reader, 1000))
        named = os.environ["SPOTTER_RECORDER"]
        spotter.stop()
        print(json.dumps([r.pid, asked, child, named]))
        """)
    pid, here, child, named = done.said[0]
    assert here == [pid, 0] and child == [pid, pid] and named == str(pid)


@pytest.mark.parametrize("recorder", ["77", None])
def test_programs_that_workers_start_allow_it_too(world, recorder):
    env = dict(world.env, **({"SPOTTER_RECORDER": recorder} if recorder else {}))
    done = world.run("""
        import json, sys
        print(json.dumps(["_spotter_run._yama" in sys.modules, "ctypes" in sys.modules]))
        """, env=env)
    restricted = _yama.restricted()
    assert done.said[0] == [bool(recorder), bool(recorder) and restricted]


STARTED = """
import json, multiprocessing, os, subprocess, sys
import spotter
from spotter import _listening

def work(pipe):
    child = os.fork()  # as the workers of its DataLoader would be
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    pipe.send([os.getpid(), child])

if __name__ == "__main__":
    if sys.argv[1] == "no marks":
        _listening.library = lambda: None
    recorder = spotter.start(out="a.spot")
    allowed = {"here": [os.getpid()]}
    for how in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(how)
        ours, theirs = context.Pipe()
        worker = context.Process(target=work, args=(theirs,))
        worker.start()
        allowed[how] = ours.recv()
        worker.join()
    allowed["program"] = [int(subprocess.check_output([sys.executable, "-c", "import os; print(os.getpid())"]))]
    marks = "SPOTTER_MARKS" in os.environ
    spotter.stop()
    print(json.dumps([recorder.pid, allowed, marks]))
"""


@pytest.mark.parametrize("marks", ["marks", "no marks"])
def test_every_python_that_is_started_allows_it(world, marks):
    """A kernel with Yama is not always at hand: a copy of the package that finds one, and that writes down what it
    would ask of it."""
    copy, asked, scope = world.place / "copy", world.place / "asked", world.place / "scope"
    shutil.copytree(PACKAGE, copy / "spotter")
    scope.write_text("1\n")
    source = (copy / "spotter" / "_yama.py").read_text()
    changed = source.replace('"/proc/sys/kernel/yama/ptrace_scope"', repr(str(scope)))
    assert changed != source
    (copy / "spotter" / "_yama.py").write_text(changed + f"""

def allow(pid):
    with open({str(asked)!r}, "a") as f:
        f.write("%d %d\\n" % (os.getpid(), pid))
""")
    done = world.run(STARTED, marks, env=dict(world.base, PYTHONPATH=str(copy), SPOTTER_EXE=str(BUILD / "spotter"),
                                              SPOTTER_LIB=str(BUILD / "libspotter.so")))
    recorder, allowed, marked = done.said[0]
    assert marked == (marks == "marks") and done.err == ""
    calls = {tuple(map(int, line.split())) for line in asked.read_text().splitlines()}
    for how, pids in allowed.items():
        assert {(pid, recorder) for pid in pids} <= calls, (how, pids, calls)


def test_what_is_asked_of_yama(monkeypatch, tmp_path):
    calls = []

    class Libc:
        def prctl(self, *args):
            calls.append([a.value for a in args])
    import ctypes
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc())
    _yama.allow(4242)
    assert calls == [[0x59616D61, 4242, 0, 0, 0]]
    scope = tmp_path / "scope"
    assert not _yama.restricted(str(scope))
    for text, expected in (("0\n", False), ("1\n", True), ("2\n", True), ("", False)):
        scope.write_text(text)
        assert _yama.restricted(str(scope)) is expected
    for value, expected in (("77", [77, 77]), ("0", []), ("-1", []), ("x", []), ("", [])):
        seen = []
        monkeypatch.setattr(_yama, "restricted", lambda: True)
        monkeypatch.setattr(_yama, "allow", seen.append)
        monkeypatch.setattr(os, "register_at_fork", lambda after_in_child: after_in_child())
        monkeypatch.setenv("SPOTTER_RECORDER", value)
        _yama.allow_named()
        assert seen == expected


@pytest.mark.skipif(not shutil.which("strace"), reason="needs Debian's strace")
def test_what_the_kernel_is_asked(world):
    """The system calls themselves, with or without Yama: the process, its forked worker, and the end of it."""
    strace = ("-f", "-qq", "-e", "signal=none", "-e", "trace=prctl", "-o", "calls", sys.executable)
    done = world.plain("""
        import json, multiprocessing, os
        import spotter
        r = spotter.start(out="a.spot")
        worker = multiprocessing.get_context("fork").Process(target=int)
        worker.start()
        worker.join()
        spotter.stop()
        print(json.dumps([os.getpid(), worker.pid, r.pid]))
        """, python="strace", options=strace, check=False)
    if "Operation not permitted" in done.err:
        pytest.skip("strace may not trace here")
    assert done.code == 0, done.err
    here, worker, recorder = done.said[0]
    calls = re.findall(r"^(\d+) +prctl\(PR_SET_PTRACER, (\d+)", (world.place / "calls").read_text(), re.M)
    assert [(int(pid), int(allowed)) for pid, allowed in calls] == [(here, recorder), (worker, recorder), (here, 0)]
