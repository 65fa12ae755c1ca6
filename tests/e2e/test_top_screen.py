# SPDX-License-Identifier: MIT
"""`spotter top` on a real terminal (tmux): every key, other sizes, colours, names that would like to be commands, and
the terminal afterwards, however it ended."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from conftest import BUILD

if not shutil.which("tmux"):
    pytest.skip("needs tmux", allow_module_level=True)

PATIENCE = 60.0  # seconds, on a machine that has other things to do
VERDICT = 90.0   # until there is one: it takes about 15 s of looking


def unique():
    """A word that is no other's: this file runs as several users side by side. No digits: they may be a process'."""
    return uuid.uuid4().hex[:16].translate(str.maketrans("0123456789", "ghijklmnop"))


class Screen:
    """A shell in a terminal of its own. Its last line says when a command is over."""

    def __init__(self, spotter, cols, rows, **env):
        self.folder = Path(tempfile.mkdtemp(prefix="spt"))  # short: a socket's path has at most 107 bytes
        self.spotter = spotter
        self.starts = 0
        keep = {"PATH": os.environ["PATH"], "HOME": str(spotter.home), "SPOTTER_DIR": str(spotter.dir),
                "LC_ALL": "C.UTF-8", "TZ": "UTC", "PS1": "", "ENV": ""}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "SPOTTER_NVML"):
            if name in os.environ:
                keep[name] = os.environ[name]
        keep.update(env)
        shell = ["env", "-i", *(f"{k}={v}" for k, v in keep.items()), "TERM=tmux-256color", "/bin/sh"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", cols, "-y", rows, *shell)
        self.type("echo rea''dy; tput cols", "Enter")
        self.expect("ready")

    def tmux(self, *args):
        done = subprocess.run(["tmux", "-u", "-S", self.folder / "s", *map(str, args)], capture_output=True,
                              encoding="utf-8", errors="replace", timeout=60,
                              env=dict(os.environ, SHELL="/bin/sh", LC_ALL="C.UTF-8"))
        assert done.returncode == 0, f"tmux {args}: {done.stderr}"
        return done.stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def filter(self, word):
        """In two halves: the tmux that sends them is a process, too, and must not match."""
        self.type("/", word[:8], word[8:], "Enter")

    def text(self, *how):
        return self.tmux("capture-pane", "-p", *how)

    def show(self, name):
        return self.tmux("display-message", "-p", f"#{{{name}}}").strip()

    def expect(self, *patterns, gone=(), patience=PATIENCE):
        """Until all of them are on the screen (and none of `gone`): the screen."""
        end = time.monotonic() + patience
        while True:
            text = self.text()
            missing = [p for p in patterns if not re.search(p, text)] + [p for p in gone if re.search(p, text)]
            if not missing:
                return text
            assert time.monotonic() < end, f"{missing} after {patience} s in\n{text}"
            time.sleep(0.05)

    def start(self, *args):
        """spotter, between two looks at how the terminal is set. What is said at its end has a number: the screen may
        still have what was said of the one before."""
        self.starts += 1
        line = " ".join(map(shlex.quote, map(str, (self.spotter.binary, *args))))
        out = shlex.quote(str(self.folder))
        n = self.starts
        self.type(f"clear; stty -g >{out}/before{n}; {line}; echo END{n}=$?; stty -g >{out}/after{n}", "Enter")

    def pid(self):
        """Of spotter, once it is there."""
        end = time.monotonic() + PATIENCE
        shell = self.show("pane_pid")
        while time.monotonic() < end:
            found = subprocess.run(["pgrep", "-P", shell, "spotter"], capture_output=True, text=True).stdout.split()
            if found:
                return int(found[0])
            time.sleep(0.05)
        raise AssertionError("spotter did not start")

    def ended(self, code):
        """It is over, and the terminal is as it was: modes, the other screen, the cursor, keys."""
        n = self.starts
        text = self.expect(rf"END{n}={code}\b")
        self.type(f"echo af''ter{n}", "Enter")
        self.expect(rf"(?m)^after{n}\b")
        assert (self.folder / f"before{n}").read_text() == (self.folder / f"after{n}").read_text() != ""
        assert self.show("alternate_on") == "0"
        assert self.show("cursor_flag") == "1"
        assert self.show("keypad_cursor_flag") == "0"
        return text

    def close(self):
        subprocess.run(["tmux", "-S", self.folder / "s", "kill-server"], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def screen(spotter):
    opened = []

    def make(cols=160, rows=50, **env):
        opened.append(Screen(spotter, cols, rows, **env))
        return opened[-1]
    yield make
    for s in opened:
        s.close()


# A busy parent, a busy child with a name that is a command, text that runs backwards and broken bytes.
JOB = r"""
import os, sys, threading, time
def burn():
    while True:
        sum(range(20000)); time.sleep(0.002)
if os.fork() == 0:
    os.execv(sys.executable, [b"\x1b[31mRED\x1b]0;TITLE\x07\x1b[2J" + "\u202eBACK\u6f22".encode() + b"\xff", b"-c",
             b"# " + os.environb[b"WORD"] + b"\nimport time\nwhile True:\n    sum(range(9999)); time.sleep(0.01)"])
threading.Thread(target=burn, daemon=True, name="helper").start()
burn()
"""


def commands_with(word):
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [file] if word.encode() in file.read_bytes() else []
        except OSError:
            pass  # gone meanwhile
    return found


@pytest.fixture
def job(wait_for):
    """.word is in the command of its child, and in no other. The child is what it will be: who is seen in the middle of
    an exec() may be known by its name alone."""
    word = unique()
    child = subprocess.Popen([sys.executable, "-c", JOB], start_new_session=True, env=dict(os.environ, WORD=word))
    child.word = word
    try:
        wait_for(lambda: commands_with(word), "the child", PATIENCE)
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    yield child
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def test_every_key(screen, job):
    s = screen()
    s.tmux("set-option", "-g", "allow-rename", "on")
    s.start("top", job.pid, "--every", "250ms")
    text = s.expect(r"spotter +\S+ +pid \d+", r"[\d.]+ of [\d.]+ cores allowed +limit: \w+", "Memory", "Cores", "CPU ─",
                    "PID +CORES", r"\? help")
    assert s.show("alternate_on") == "1"
    # What the child is called is shown, and did nothing: no title, no colour of its own, the screen is there.
    text = s.expect(r"\?\[31mRED\?\]0;TITLE\?\?\[2J\?BACK漢\?")
    assert s.show("pane_title") != "TITLE"
    # The verdict comes by itself, and with it what needs stacks.
    s.expect(gone=["Looking:"], patience=VERDICT)
    for key, pattern in (("?", "share of time some kernel ran"), ("Escape", "PID +CORES"),
                         ("p", r"\d+ process(es)?, \d+ threads?"), ("f", "hottest functions.*time of the"),
                         ("w", "as 'spotter why' says it"), ("o", "Cores"), ("Tab", "as a tree"), ("Escape", "Cores")):
        s.type(key)
        s.expect(pattern, patience=VERDICT)
    s.type("H")
    s.expect("H no threads", "helper|python")
    s.type("H")
    s.expect("H threads")
    for name in ("memory", "IO", "number", "name", "cores"):
        s.type("s")
        s.expect(f"s {name}")
    s.type("t")
    s.expect("t tree")
    s.type("t")
    s.expect("t flat")
    s.type("/", "none such")
    s.expect("no process is called so")
    s.type(*["BSpace"] * 9, str(job.pid), "Enter")
    s.expect(rf"(?m)^ *{job.pid} .*-c", gone=[r"\?BACK"])
    s.type("Escape")
    s.expect("/ filter")
    s.type("Space")
    s.expect(r"paused \d+:\d\d ago", "Space go on")
    s.type("Left", "Left", "Left", "Left", "Left")
    s.expect(r"paused (?!0:00)\d+:\d\d ago")
    s.type("End")
    s.expect("live +\\d", gone=["paused"])
    s.type("<")
    s.expect("paused")
    s.type(">", ">", "End")
    s.expect(gone=["paused"])
    s.type("-")
    s.expect("2 min|s ─|min")
    s.type("+", "Down", "Up", "PageDown", "PageUp", "j", "k", "C-l")
    s.expect("PID +CORES")
    s.type("q")
    s.ended(0)
    assert job.poll() is None  # and nothing happened to what was watched


def test_sizes(screen, job):
    s = screen(80, 24)
    s.start("top", job.pid, "--every", "250ms")
    s.expect("PID +CORES", "cores allowed", r"\? help")
    for cols, rows in ((200, 60), (80, 24), (41, 9), (20, 3), (120, 40)):
        s.tmux("resize-window", "-x", cols, "-y", rows)
        text = s.expect("needs 40" if cols < 40 else "spotter", *([] if cols < 40 else [r"\? help"]))
        # All of it is used, and nothing was scrolled away: the keys are in the last row.
        if cols >= 40:
            end = time.monotonic() + PATIENCE
            while "? help" not in (text.rstrip("\n").split("\n") or [""])[-1] or not text.startswith(" spotter"):
                assert time.monotonic() < end, text
                time.sleep(0.05)
                text = s.text()
    s.type("q")
    s.ended(0)


@pytest.mark.parametrize("how", ["C-c", "SIGTERM", "SIGHUP", "SIGSEGV", "SIGABRT"])
def test_terminal_given_back(screen, job, how):
    s = screen(100, 30, ASAN_OPTIONS="handle_segv=0:handle_abort=0:detect_leaks=0")
    s.start("top", job.pid)
    s.expect("PID +CORES")
    if how == "C-c":
        s.type("C-c")
    else:
        os.kill(s.pid(), getattr(signal, how))
    s.ended({"SIGSEGV": 139, "SIGABRT": 134}.get(how, 0))


def test_stopped_and_continued(screen, job):
    s = screen(100, 30)
    s.type("set -m", "Enter")
    s.start("top", job.pid)
    s.expect("PID +CORES")
    s.type("C-z")
    s.expect("[Ss]topped")
    assert s.show("alternate_on") == "0"
    s.type("fg", "Enter")
    s.expect("PID +CORES", r"\? help")
    s.type("q")
    # The shell went on with its line when it stopped: END was said then.
    end = time.monotonic() + PATIENCE
    while not re.search("(?m)^over", s.text()):
        assert time.monotonic() < end, s.text()
        s.type("echo ov''er", "Enter")
        time.sleep(0.5)
    assert s.show("alternate_on") == "0"


def test_process_ends(screen):
    s = screen(100, 30)
    child = subprocess.Popen(["sleep", "600"])
    try:
        s.start("top", child.pid, "--every", "200ms")
        s.expect("PID +CORES", "sleep 600")
    finally:
        child.kill()
        child.wait()
    s.expect("The process has ended")
    s.type("q")
    s.ended(0)


def test_machine_and_into_a_job(screen, job):
    s = screen(120, 40)
    s.start("top", "--every", "300ms")
    s.expect("This machine uses", "PID +CORES")
    s.filter(job.word)
    s.expect(rf"/{job.word}(?!_)", r"(?m)^ *\d+ .*\?\[31mRED")
    s.type("Enter")
    s.expect("cores allowed", "m machine", r"\?\[31mRED")
    s.type("m")
    s.expect("This machine|Looking at this machine", gone=["m machine"])
    s.type("q")
    s.ended(0)


def test_into_a_job_that_is_recorded(screen, spotter, tmp_path, wait_for):
    """It is not read a second time: the record is shown."""
    word = unique()
    program = (f"import os, time; open({str(tmp_path / 'new')!r}, 'w').write(str(os.getpid())); "
               f"os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'pid')!r}); time.sleep(600)")
    # The word is whole in the command of the program alone, not in that of `spotter run`.
    spotter.start("run", "--quiet", "--name", "kept", "--", "sh", "-c", 'exec "$0" -c "# $2$3\n$1"',
                  sys.executable, program, word[:8], word[8:])
    pid = wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the program", PATIENCE)
    try:
        wait_for(lambda: "kept" in spotter("runs").out, "the record", PATIENCE)
        s = screen(120, 40)
        s.start("top", "--every", "300ms")
        s.expect("This machine uses", "PID +CORES")
        s.filter(word)
        s.expect(rf"/{word}(?!_)", rf"(?m)^ *{pid} ")
        s.type("Enter")
        s.expect("kept +pid", "recorded for", "m machine")
        s.type("q")
        s.ended(0)
    finally:
        os.kill(int(pid), signal.SIGKILL)


def test_replay(screen, spotter):
    maker = BUILD / "tests/golden/make_record"
    spotter.dir.mkdir(mode=0o700)
    subprocess.run([maker, "trained", spotter.dir], check=True, timeout=60)
    name = next(spotter.dir.glob("*.spot"))
    s = screen()
    s.start("top", name)
    s.expect(r"replay \d+:\d\d of \d+:\d\d", "PID +CORES", gone=["Reading the record"])
    before = re.search(r"replay (\S+) of", s.expect(r"replay \d+:\d\d of"))[1]
    s.type("Left", "Left", "Left")
    s.expect(rf"replay (?!{before} )\d+:\d\d of")
    s.type("Home")
    s.expect(r"replay 0:0[0-2] of")
    s.type("f")
    s.expect("hottest functions")
    s.type("w")
    s.expect("Run ")
    s.type("q")
    s.ended(0)


def test_colours(screen, job):
    """None where none are wanted, as many as there are elsewhere."""
    for env, wanted, refused in (({"NO_COLOR": "1"}, None, r"\x1b\[[\d;]*3[0-8]"),
                                 ({"COLORTERM": "truecolor"}, r"38;2;\d+", None),
                                 ({}, r"38;5;\d+", r"38;2;")):
        s = screen(100, 30, **env)
        s.start("top", job.pid)
        s.expect("PID +CORES", "cores allowed")
        raw = s.text("-e")
        assert not wanted or re.search(wanted, raw), raw
        assert not refused or not re.search(refused, raw), raw
        s.type("q")
        s.ended(0)


@pytest.mark.parametrize("env,args", [({"LC_ALL": "C"}, []), ({}, ["--ascii"])])
def test_ascii(screen, job, env, args):
    s = screen(100, 30, **env)
    s.start("top", job.pid, *args)
    text = s.expect("PID +CORES", "cores allowed")
    assert text.isascii(), text
    s.type("q")
    s.ended(0)


def test_lines_where_lines_are_asked_for(screen, job):
    s = screen(100, 30)
    s.start("top", "--plain", "--count", "1", "--every", "100ms")
    s.ended(0)
    s.start("top", "--count", "1", "--every", "100ms")
    s.ended(0)
    assert "\x1b" not in s.spotter("top", "--count", "1", "--every", "100ms", check=True).out
    # A terminal nothing is known about gets lines, too.
    s.type("TERM=none-such", "Enter")
    s.start("top", "--every", "2s")  # slowly: what it says first is to stay on the screen
    s.expect(r"(?s)nothing is known about a terminal 'none-such'.*cpu [\d.]+/\d+ cores")
    s.type("C-c")
    s.ended(0)
