# SPDX-License-Identifier: MIT
"""What every end-to-end test gets: the built program, run for real in a world of its own.

    def test_exit_code(spotter):
        assert spotter("run", "--", "sh", "-c", "exit 7").code == 7

`spotter` keeps runs, HOME and the rest below the test's own tmp_path, so tests run side by side and
as any user. SPOTTER_BUILD names the build folder (default: build). Marks:

    alone   measures time or CPU and needs the machine to itself: runs after the others, one at a time
    long    only in `make check-all` (SPOTTER_LONG=1)
    root    needs root (cgroups, mounts); skipped with that reason otherwise
"""
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()


def pytest_configure(config):
    for mark in ("alone: needs the machine to itself",
                 "long: only with SPOTTER_LONG=1 (make check-all)",
                 "root: needs root"):
        config.addinivalue_line("markers", mark)


def pytest_collection_modifyitems(items):
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

    def __call__(self, *args, timeout=60, check=False, input=None, **kwargs):
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
