# SPDX-License-Identifier: MIT
"""A program started through launch() must not be able to tell, nor must the shell, the pipe or the
scheduler around it. Driven by launch_probe, which is `spotter run` with a recorder that records
nothing; all of it as the user who runs the tests and, if that is root, again as an ordinary one.

In here S is the supervisor (what the test starts), R the recorder (its child), P the program.
"""
import ctypes
import fcntl
import json
import os
import pty
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()
PROBE = BUILD / "tests/unit/launch/launch_probe"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
PYTHON = "/usr/bin/python3"
LIBC = ctypes.CDLL(None, use_errno=True)
# A sanitizer's runtime lowers the limit for cores, looks for leaks in a child of its own, and is slow.
SANITIZED = PROBE.exists() and any(s in PROBE.read_bytes() for s in (b"__asan_init", b"__tsan_init"))
SYS_RT_SIGPROCMASK = {"x86_64": 14, "aarch64": 135}.get(os.uname().machine)

# Says each signal it gets: "got NUMBER CODE SENDER VALUE". All are blocked and waited for, so none is
# lost or merged unless the kernel does it. Ends with 7 on a line on its standard input.
COUNTER = r'''
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
every = (ctypes.c_uint64 * 16)(*[2**64 - 1] * 16)
libc.sigprocmask(0, every, None)
if "setpgid" in sys.argv: os.setpgid(0, 0)
if "setsid" in sys.argv: os.setsid()
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND) if len(sys.argv) > 1 else 1
def wait_for_line():
    os.read(0, 1)
    os._exit(7)
if "stdin" in sys.argv: threading.Thread(target=wait_for_line, daemon=True).start()
os.write(out, b"ready\n")
info = (ctypes.c_int32 * 32)()
while True:
    sig = libc.sigwaitinfo(every, info)
    if sig > 0:
        os.write(out, b"got %d %d %d %d\n" % (sig, info[2], info[4], info[6]))
'''


class Probe:
    """Starts launch_probe; remembers what it started, and finds what was left behind."""

    def __init__(self, prefix, folder):
        self.binary = folder / "launch_probe"
        self.prefix = prefix
        self.folder = folder
        self.mark = f"LAUNCH_TEST={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.env = dict(os.environ, **{name: value}, HOME=str(folder), LC_ALL="C")
        if SANITIZED:
            for name in ("ASAN_OPTIONS", "TSAN_OPTIONS"):
                more = "disable_coredump=0:detect_leaks=0:handle_abort=0"
                self.env[name] = f"{self.env[name]}:{more}" if name in self.env else more
        self.started = []

    def argv(self, *args, options=()):
        return [*self.prefix, str(self.binary), *options, "--", *map(str, args)]

    def run(self, *args, options=(), timeout=20, bare=False, **kwargs):
        """bare: the same without Spotter, to compare with."""
        kwargs.setdefault("env", self.env)
        kwargs.setdefault("cwd", self.folder)
        if "input" not in kwargs:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
        if "stdout" not in kwargs:
            kwargs["capture_output"] = True
        argv = [*self.prefix, *map(str, args)] if bare else self.argv(*args, options=options)
        return subprocess.run(argv, timeout=timeout, **kwargs)

    def start(self, *args, options=(), **kwargs):
        kwargs.setdefault("env", self.env)
        kwargs.setdefault("cwd", self.folder)
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        kwargs.setdefault("start_new_session", True)
        child = subprocess.Popen(self.argv(*args, options=options), **kwargs)
        self.started.append(child)
        return child

    def path(self, name):
        return self.folder / name

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        path.write_text(text)
        path.chmod(mode)
        return path

    def counter(self, *words, options=(), **kwargs):
        """P that logs its signals; returned once it is ready: (S, R, P as pids, log)."""
        log = self.path(f"log-{uuid.uuid4().hex[:8]}")
        child = self.start(PYTHON, "-c", COUNTER, log, *words, options=options, **kwargs)
        wait_for(lambda: log.exists() and "ready" in log.read_text())
        r, p = family(child.pid)
        return SimpleNamespace(s=child.pid, r=r, p=p, log=log, child=child)

    def left_behind(self):
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
        return [pid for pid in found if pid != os.getpid()]

    def done(self):
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()
        left = []
        end = time.monotonic() + 3
        while time.monotonic() < end and (left := self.left_behind()):
            time.sleep(0.02)
        names = [(pid, cmdline(pid)) for pid in left]
        for pid in left:
            kill(pid, signal.SIGKILL)
        assert not left, f"left behind: {names}"


# Where all tests have an ordinary user's turn as well, root need not take its place.
@pytest.fixture(params=["here"] if os.environ.get("SPOTTER_TURNS") else ["here", "nobody"])
def probe(request):
    if not PROBE.exists():
        pytest.fail(f"{PROBE} is not there: run make first")
    prefix = []
    if request.param == "nobody":
        if os.geteuid() != 0:
            pytest.skip("the tests run as an ordinary user already")
        prefix = NOBODY
    folder = Path(tempfile.mkdtemp(prefix="launch-"))
    folder.chmod(0o777)
    shutil.copy(PROBE, folder / "launch_probe")
    (folder / "launch_probe").chmod(0o755)
    p = Probe(prefix, folder)
    try:
        yield p
        p.done()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(condition, timeout=10.0):
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def kill(pid, sig):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def children(pid):
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def family(s):
    """R and P of this S, once P has been exec'ed."""
    def look():
        for r in children(s):
            for p in children(r):
                if os.path.exists(f"/proc/{p}") and b"launch_probe" not in cmdline(p):
                    return r, p
        return None
    return wait_for(look)


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


def gone(pid):
    return state(pid) in (None, "Z")


def got(log, sig=None):
    """The signals in a counter's log."""
    all_of = [int(line.split()[1]) for line in log.read_text().splitlines() if line[:3] == "got"]
    return all_of if sig is None else [s for s in all_of if s == sig]


def settled(log, sig, least=1):
    """How often it came, given the time for one too many."""
    wait_for(lambda: len(got(log, sig)) >= least)
    time.sleep(0.15)
    return len(got(log, sig))


def finish(c):
    """Ends a counter as a user would end a program for good; S must say so."""
    kill(c.p, signal.SIGKILL)
    assert c.child.wait(10) == -signal.SIGKILL


def read_to_end(fd, timeout=5.0):
    """All there is until the last writer has gone; fails when that takes longer."""
    data, end = b"", time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        assert left > 0 and select.select([fd], [], [], left)[0], f"still open after {data!r}"
        more = os.read(fd, 65536)
        if not more:
            return data
        data += more


def report(path):
    """R's view of the run as launch_probe --report wrote it."""
    values = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition(" ")
        values[key] = int(value) if value.lstrip("-").isdigit() else value
    return values
