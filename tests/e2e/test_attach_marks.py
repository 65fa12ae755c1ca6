# SPDX-License-Identifier: MIT
"""`spotter attach PID --marks DIR`: the marks of a process that was not started by Spotter."""
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from conftest import BUILD

MARKS = BUILD / "tests/programs/marks"


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="marks-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    yield path
    for file in path.glob("*"):
        file.unlink()
    if path.exists():
        path.rmdir()


@pytest.fixture
def start():
    """Starts programs that may be there no longer than the test."""
    children = []

    def popen(*words, **kwargs):
        children.append(subprocess.Popen([str(w) for w in words], **kwargs))
        return children[-1]
    yield popen
    for child in children:
        if child.poll() is None:
            child.kill()
        child.wait()


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


needs_program = pytest.mark.skipif(not MARKS.exists(), reason="tests/programs/marks was not built")


@needs_program
def test_marks_until_the_process_ends(spotter, start, folder, tmp_path):
    env = dict(os.environ, SPOTTER_MARKS=str(folder))
    target = start(MARKS, "steps", 150, 10, env=env, stdout=subprocess.PIPE, text=True)
    out = tmp_path / "a.spot"
    done = spotter("attach", target.pid, "--marks", folder, "--out", out, timeout=40)
    assert done.code == 0, done.err
    pid, count = map(int, target.stdout.read().split())
    seen = spotter.json("sql", out, "SELECT pid, count(*) AS n, min(step) AS first, max(step) AS last FROM steps")
    assert seen == [{"pid": pid, "n": count, "first": 1, "last": count}]
    assert not folder.exists()


@needs_program
def test_ctrl_c_leaves_the_program_and_no_folder(spotter, start, folder, tmp_path):
    env = dict(os.environ, SPOTTER_MARKS=str(folder))
    target = start(MARKS, "steps", 100000, 10, env=env, stdout=subprocess.DEVNULL)
    out = tmp_path / "b.spot"
    recorder = spotter.start("attach", target.pid, "--marks", folder, "--out", out)
    until(lambda: any(folder.glob("*.ring")))
    time.sleep(1.5)
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(timeout=20) == 0
    assert target.poll() is None and not folder.exists()
    steps = [s["step"] for s in spotter.json("sql", out, "SELECT step FROM steps ORDER BY step")]
    assert steps == list(range(1, len(steps) + 1)) and len(steps) > 20


def test_it_says_where_the_record_is_while_it_goes_on(spotter, start, tmp_path):
    target = start("sleep", 30)
    out = tmp_path / "named by me.spot"
    done = spotter("attach", target.pid, "--for", "1s", "--name", "x", "--out", out)
    assert re.match(r"spotter: recording x \(%d\) into (.*)$" % target.pid, done.err.splitlines()[0]).group(1) == str(out)


def test_a_folder_that_is_not_private_is_refused(spotter, start, folder, tmp_path):
    target = start("sleep", 30)
    out = tmp_path / "c.spot"
    folder.chmod(0o755)
    done = spotter("attach", target.pid, "--marks", folder, "--out", out)
    assert done.code == 1 and "folder of yours" in done.err and "mktemp" in done.err
    done = spotter("attach", target.pid, "--marks", folder / "nowhere", "--out", out)
    assert done.code == 1 and "no folder" in done.err
    link = tmp_path / "link"
    folder.chmod(0o700)
    link.symlink_to(folder)
    assert spotter("attach", target.pid, "--marks", link, "--out", out).code == 1
    assert folder.exists() and not out.exists()
