# SPDX-License-Identifier: MIT
"""Lines of progress and the title of the window, on a real terminal, and nowhere else."""
import importlib.util
import io
import os
import pty
import re
import select
import shutil
import time

import pytest

TITLE = re.compile(r"\x1b\]2;(.*?)\x1b\\")
PATIENCE = 60


class Screen:
    """What a program wrote to a pseudo-terminal of its own session."""

    def __init__(self):
        self.text = ""
        self.fd = self.pid = -1
        self.status = None

    def start(self, argv, env, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.execvpe(argv[0], [str(a) for a in argv], env)
            finally:
                os._exit(99)
        return self

    def read(self, timeout=0.05):
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def wait(self, read=True):
        end = time.monotonic() + PATIENCE
        while self.status is None:
            if read:
                self.read()
            else:
                time.sleep(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < end, f"still running: {self.text!r}"
        while self.read():
            pass
        return self.status

    def close(self):
        if self.pid > 0 and self.status is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        if self.fd >= 0:
            os.close(self.fd)


@pytest.fixture
def screen(spotter, tmp_path):
    opened = []

    def start(*words, term="xterm", argv=None):
        env = dict(spotter.env, TERM=term)
        s = Screen().start(argv or [spotter.binary, *words], env, tmp_path)
        opened.append(s)
        return s
    yield start
    for s in opened:
        s.close()


def test_title(screen):
    """Set each second, put back at the end; the program's own lines are all there."""
    s = screen("run", "--quiet", "--status", "--name", "my\trun", "--", "sh", "-c",
               "i=0; while [ $i -lt 35 ]; do echo line $i; i=$((i+1)); sleep 0.1; done; exit 3")
    assert s.wait() == 3
    titles = TITLE.findall(s.text)
    assert titles and all(t.startswith("my?run, ") for t in titles)
    rest = TITLE.sub("", s.text)
    assert rest.count("\x1b[22;2t") == 1 and rest.count("\x1b[23;2t") == 1
    assert s.text.index("\x1b[22;2t") < s.text.index("\x1b]2;")
    assert s.text.rindex("\x1b[23;2t") > s.text.rindex("\x1b]2;")
    plain = rest.replace("\x1b[22;2t", "").replace("\x1b[23;2t", "")
    assert plain.splitlines() == [f"line {i}" for i in range(35)]


def test_no_title_unless_asked(screen, spotter, tmp_path):
    for s in (screen("run", "--quiet", "--", "sleep", "1.5"),
              screen("run", "--quiet", "--status", "--", "sleep", "1.5", term="dumb"),
              screen(argv=["sh", "-c", f"exec {spotter.binary} run --quiet --status -- sleep 1.5 2>{tmp_path}/err"])):
        assert s.wait() == 0
        assert s.text == ""
    assert (tmp_path / "err").read_text() == ""


def test_a_stopped_terminal_stops_nobody(screen, tmp_path):
    s = screen("run", "--quiet", "--status", "--", "sh", "-c", "read line; sleep 2.5; echo over > over")
    os.write(s.fd, b"\x13go\n")  # Ctrl-S: from here on the terminal takes no output
    assert s.wait(read=False) == 0
    assert (tmp_path / "over").exists()
    assert not TITLE.findall(s.text)


class Waiting:
    """An export whose reader does not read for a while: .text() is what then stands on its terminal."""

    def __init__(self, spotter, record, *more, term="xterm"):
        self.master, self.slave = pty.openpty()
        self.child = spotter.start("export", record, "--to", "jsonl", *more, stderr=self.slave,
                                   start_new_session=True, env={**spotter.env, "TERM": term})

    def text(self):
        out = self.child.stdout.read()
        assert self.child.wait(PATIENCE) == 0
        # more than a pipe and the export's own buffer take, or it would not have waited
        assert len(out) > 500_000
        os.set_blocking(self.master, False)
        text = ""
        while True:
            try:
                text += os.read(self.master, 65536).decode()
            except BlockingIOError:
                break
        os.close(self.slave)
        os.close(self.master)
        return text


@pytest.fixture
def record(tree, tmp_path):
    """A run with enough samples."""
    return shutil.copy(tree / "zoo/stored/charlm-item.root.spot", tmp_path / "run.spot")


def test_export_shows_how_far_it_is(spotter, record):
    """And is quiet where it should."""
    loud = Waiting(spotter, record)
    quiet = Waiting(spotter, record, "--quiet")
    dumb = Waiting(spotter, record, term="dumb")
    piped = spotter.start("export", record, "--to", "jsonl", env={**spotter.env, "TERM": "xterm"})
    time.sleep(1.5)
    text = loud.text()
    assert re.search(r"\rexporting  \[=*> *\]  ?\d+ %\x1b\[K", text)
    assert text.endswith("\r\x1b[K") and "\n" not in text
    assert quiet.text() == "" and dumb.text() == ""
    assert piped.communicate(timeout=PATIENCE)[1] == b""


def test_the_zoo_has_a_bar(tree):
    """Its line fits any terminal; on none nothing is drawn."""
    spec = importlib.util.spec_from_file_location("bar", tree / "zoo/bar.py")
    bar = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bar)
    b = bar.Bar("scoring", 40, stream=io.StringIO())
    assert b.line(10, "name", 80) == "scoring    [" + "=" * 10 + ">" + " " * 29 + "] 10/40 name"
    assert all(len(b.line(n, "a-long-name", columns)) < columns for n in (0, 40, 90) for columns in range(2, 120))
    assert list(b.over(iter([1, 2]))) == [1, 2] and b.stream.getvalue() == ""
    assert bar.Bar("scoring", 0).line(0, "", 80)
