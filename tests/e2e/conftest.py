# SPDX-License-Identifier: MIT
"""What every end-to-end test gets: the built program, run for real in a world of its own.

    def test_exit_code(spotter):
        assert spotter("run", "--", "sh", "-c", "exit 7").code == 7

`spotter` keeps runs, HOME and the rest below the test's own tmp_path, so tests run side by side and
as any user. SPOTTER_BUILD names the build folder (default: build). Marks:

    alone   measures time or CPU and needs the machine to itself: runs after the others, one at a time
    long    only in `make check-all` (SPOTTER_LONG=1)
    root    needs root (cgroups, mounts); skipped with that reason otherwise
    one_user  takes its time and is the same for every user: where root's turn is followed by an ordinary
            user's (tests/run says so in SPOTTER_TURNS), only in the latter, which has less rights

SPOTTER_PART=1/3: the second third of the tests chosen, as tests/run cuts a long file.
"""
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()
# Prometheus and VictoriaMetrics that tools/setup unpacked; those of the system come first.
os.environ["PATH"] += f"{os.pathsep}{BUILD / 'engines/usr/bin'}"


def pytest_configure(config):
    for mark in ("alone: needs the machine to itself",
                 "long: only with SPOTTER_LONG=1 (make check-all)",
                 "root: needs root",
                 "one_user: once is enough, preferably as an ordinary user"):
        config.addinivalue_line("markers", mark)
    # What runs in the background of a script, or with nohup, ignores these, and so would all we start.
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config, items):
    part, parts = map(int, os.environ.get("SPOTTER_PART", "0/1").split("/"))
    if parts > 1:
        config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % parts != part])
        items[:] = items[part::parts]
    for item in items:
        if item.get_closest_marker("long") and not os.environ.get("SPOTTER_LONG"):
            item.add_marker(pytest.mark.skip(reason="long: run by make check-all"))
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root"))


class Spotter:
    """Runs build/spotter. Call it and it waits; .start() gives a Popen that ends with the test."""

    def __init__(self, home: Path):
        self.binary = BUILD / "spotter"
        self.home = home
        self.dir = home / "runs"
        self.env = dict(os.environ, HOME=str(home), SPOTTER_DIR=str(self.dir), NO_COLOR="1")
        for name in ("XDG_STATE_HOME", "PYTHONPATH", "SPOTTER_NVML", "VGPU_SCENARIO", "VGPU_STATE", "LD_LIBRARY_PATH",
                     "CUDA_VISIBLE_DEVICES"):
            self.env.pop(name, None)
        self.started = []

    def __call__(self, *args, timeout=180, check=False, input=None, **kwargs):
        """Result with .code (negative: signal), .out, .err. check=True: fails unless it is 0."""
        kwargs.setdefault("env", self.env)
        done = subprocess.run([self.binary, *map(str, args)], input=input, capture_output=True,
                              text=True, errors="replace", timeout=timeout, **kwargs)
        if check and done.returncode:
            raise AssertionError(f"spotter {' '.join(map(str, args))}: exit {done.returncode}\n"
                                 f"{done.stdout}{done.stderr}")
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)

    def json(self, *args, **kwargs):
        """What a --json command says, as objects. Refuses NaN and infinity, which are not JSON."""
        def refuse(word):
            raise AssertionError(f"{word} in JSON")
        return json.loads(self(*args, "--json", check=True, **kwargs).out, parse_constant=refuse)

    def start(self, *args, **kwargs):
        kwargs.setdefault("env", self.env)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        child = subprocess.Popen([self.binary, *map(str, args)], **kwargs)
        self.started.append(child)
        return child

    def records(self):
        """The run files, oldest first."""
        return sorted(self.dir.glob("*.spot"), key=lambda p: p.stat().st_mtime_ns)

    def settled(self, run="last", patience=60):
        """Waits till a record is whole: the program does not wait long for a recorder that gets no CPU."""
        end = time.monotonic() + patience
        while not self.json("why", run)["run"]["complete"]:
            assert time.monotonic() < end, f"the record of {run} is not complete after {patience} s"
            time.sleep(0.05)

    def done(self):
        for child in self.started:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                child.wait()


@pytest.fixture
def spotter(tmp_path):
    if not (BUILD / "spotter").exists():
        pytest.fail(f"{BUILD / 'spotter'} is not there: run make first")
    home = tmp_path / "home"
    home.mkdir()
    s = Spotter(home)
    yield s
    s.done()


@pytest.fixture(scope="session")
def short_runs(tmp_path_factory):
    """A folder with one real run called "short"."""
    s = Spotter(tmp_path_factory.mktemp("short"))
    s("run", "--quiet", "--name", "short", "--", "sh", "-c", "sleep 0.5", check=True)
    s.settled()
    return s.dir


@pytest.fixture
def run(spotter, short_runs):
    """`spotter` with a real run to look at: a copy of its own of the one that was recorded."""
    shutil.copytree(short_runs, spotter.dir)
    return spotter


@pytest.fixture
def wait_for():
    """wait_for(lambda: ..., "what is awaited"): polls until it is true, and returns that value."""
    def wait(condition, what, timeout=10.0):
        end = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            assert time.monotonic() < end, f"waited {timeout:g} s in vain for {what}"
            time.sleep(0.02)
    return wait


def cpu_seconds(pid):
    """User and system time of a process (field 14 and 15 of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def cores_of(pid):
    """What the kernel itself gave a process meanwhile: less than it wanted where others want it, too.

    with cores_of(pid) as truth: ...
    assert ... truth.cores"""
    truth = SimpleNamespace(cores=None)
    begin, used = time.monotonic(), cpu_seconds(pid)
    yield truth
    truth.cores = (cpu_seconds(pid) - used) / (time.monotonic() - begin)


class Pace(threading.Thread):
    """How late a thread wakes up here that sleeps 0.1 s at a time: what any program on this machine suffers
    now, to be told from what Spotter itself is late by."""

    def __init__(self):
        super().__init__(daemon=True)
        self.worst = self.lost = 0.0  # seconds: the longest delay, and all of them
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            begin = time.monotonic()
            time.sleep(0.1)
            late = time.monotonic() - begin - 0.1
            self.worst = max(self.worst, late)
            self.lost += late


@pytest.fixture
def pace():
    thread = Pace()
    thread.start()
    yield thread
    thread.over.set()
    thread.join()


@pytest.fixture
def tree():
    return TREE


@pytest.fixture
def build():
    return BUILD


@pytest.fixture
def roots():
    """The fixture machines, for --root."""
    return TREE / "tests" / "roots"
