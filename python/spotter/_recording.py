# SPDX-License-Identifier: MIT
"""Recording from within: for a notebook, or a script that was not started by `spotter run`.

The recorder is a process of its own (`spotter attach`) that looks at this one from outside, and ends when this one
does. Where Yama forbids that, this process and those it forks name it as allowed (_yama.py)."""
import atexit
import os
import re
import signal
import subprocess
import tempfile
import threading
from types import TracebackType
from typing import IO, List, Optional, Type

from . import _marks, _yama
from ._listening import Listening
from ._program import SpotterError, environment, executable

# "spotter: recording train.py (4242) into /home/me/x.spot until it ends or Ctrl-C; it is left running"
BEGAN = re.compile(r"^spotter: recording .* \(\d+\) into (.+\.spot)(?: until it ends.*)?$", re.M)
ENDED = re.compile(r"^Record\s+(.+?\.spot)(?: \(|;|$)", re.M)
PATIENCE_S = 20.0  # for its last words

_lock = threading.Lock()
_current: Optional["Recording"] = None
_allowed = 0  # the recorder's pid


def _in_child() -> None:
    global _current, _lock
    if _allowed:
        _yama.allow(_allowed)
    _current, _lock = None, threading.Lock()  # the recorder is our parent's, and so is who holds the lock


os.register_at_fork(after_in_child=_in_child)


class Recording:
    """A recording that `start()` began. Ends with `stop()`, with its `with` block, or with the program."""

    def __init__(self, child: Optional["subprocess.Popen[bytes]"], said: Optional[IO[bytes]],
                 listening: Optional[Listening] = None) -> None:
        self._child, self._said, self._listening = child, said, listening
        self.verdict = ""   # what Spotter said at the end, as text
        self.path: Optional[str] = None  # of the record
        self._owner = os.getpid()

    @property
    def pid(self) -> Optional[int]:
        """Of the recorder; None when `spotter run` records already."""
        return self._child.pid if self._child else None

    @property
    def active(self) -> bool:
        return self._child is None or self._child.poll() is None

    def stop(self, timeout: float = PATIENCE_S) -> Optional[str]:
        """Ends it, and returns the path of the record."""
        child = self._child
        if child is None or self._said is None or self._owner != os.getpid():
            return self.path
        try:
            _marks.shared().flush()
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        finally:  # an interrupt of whoever waits must not leave it behind
            self._end(child)
        found = ENDED.search(self.verdict)
        if found:
            self.path = found.group(1)
        return self.path

    def _end(self, child: "subprocess.Popen[bytes]") -> None:
        if child.poll() is None:
            child.kill()
            child.wait()
        if self._listening is not None:
            self._listening.end()
        said, self._said = self._said, None
        if said is not None:
            said.seek(0)
            self.verdict = said.read().decode("utf-8", "replace")
            said.close()

    def _await(self) -> None:
        """Until it records ("spotter: recording ..."), so that what comes next is in the record."""
        child, said = self._child, self._said
        assert child is not None and said is not None
        for _ in range(2000):
            words = os.pread(said.fileno(), 1 << 16, 0).decode("utf-8", "replace")
            found = BEGAN.search(words) if words.endswith("\n") else None
            if found:
                self.path = found.group(1)
            if found or child.poll() is not None:
                break
            try:
                child.wait(0.01)
            except subprocess.TimeoutExpired:
                pass
        if child.poll() is not None:
            self.stop()
            raise SpotterError(self.verdict.strip() or "the recorder ended with %d" % child.returncode)

    def __enter__(self) -> "Recording":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._child is not None:
            stop()


def _begin(options: List[str]) -> Recording:
    global _allowed
    listening = Listening()
    said = tempfile.TemporaryFile()
    command = [executable(), "attach", str(os.getpid()), "--color", "never", *listening.arguments(), *options]
    # The shell waits for a line, so that the recorder begins when it is allowed to look; without one (this
    # process ended) it ends. A session of its own: Ctrl-C is for this process, not for it.
    child = subprocess.Popen(["/bin/sh", "-c", 'read go && exec "$0" "$@" </dev/null', *command],
                             stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, env=environment(),
                             start_new_session=True)
    recording = Recording(child, said, listening)
    try:
        _allowed = child.pid
        _yama.allow(child.pid)
        assert child.stdin is not None
        try:
            child.stdin.write(b"go\n")
            child.stdin.close()
        except OSError:
            pass
        recording._await()
        listening.begin(child.pid)
    except BaseException:
        recording._end(child)
        _disallow()
        raise
    return recording


def _disallow() -> None:
    global _allowed
    _allowed = 0
    _yama.allow(0)


def start(name: Optional[str] = None, out: Optional[str] = None, hz: Optional[float] = None) -> Recording:
    """Records this process and its descendants from now on, with what they mark, until `stop()` or its end.

    Does nothing when `spotter run` records already, or this process does.
    """
    global _current
    with _lock:
        if _current is not None and _current.active:
            return _current
        if _current is not None:  # it ended by itself: killed, or its disk is gone
            _current.stop()
        if _marks.shared().active():
            return Recording(None, None)
        options: List[str] = []
        for option, value in (("--name", name), ("--out", out), ("--hz", hz)):
            if value is not None:
                options += [option, str(value)]
        _current = _begin(options)
        return _current


def stop() -> Optional[str]:
    """Ends the recording that `start()` began: the path of its record. None when there is none."""
    global _current
    with _lock:
        recording, _current = _current, None
        if recording is None:
            return None
        try:
            return recording.stop()
        finally:
            _disallow()


atexit.register(stop)
