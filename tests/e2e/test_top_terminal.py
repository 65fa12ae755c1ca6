# SPDX-License-Identifier: MIT
"""`top` on terminals it cannot draw on: lines instead, and the terminal's modes as they were."""
import os
import pty
import select
import subprocess
import termios
import time

import pytest


def read_until(fd, word, seconds=60):
    text, end = b"", time.monotonic() + seconds
    while word not in text and time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            text += os.read(fd, 4096)
    return text


@pytest.mark.parametrize("kind", ["dumb", "vt52", "none-such"])
def test_a_terminal_it_cannot_use_is_left_as_it_was(spotter, build, kind):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    top = subprocess.Popen([build / "spotter", "top", "--every", "1s"], stdin=slave, stdout=slave, stderr=slave,
                           env=spotter.env | {"TERM": kind})
    try:
        assert b" cores" in read_until(master, b" cores")
        assert termios.tcgetattr(slave) == before  # also while it writes lines
    finally:
        top.terminate()
        top.wait(30)
        os.close(master)
        os.close(slave)
