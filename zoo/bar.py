# SPDX-License-Identifier: MIT
"""A line on a terminal that says how far long work has come, redrawn in place; elsewhere nothing."""
import os
import shutil
import sys
import time

AFTER = 1.0  # seconds: what is over by then needs no bar


class Bar:
    def __init__(self, what, total, stream=None):
        self.what, self.total, self.stream = what, total, stream or sys.stderr
        self.on = self.stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.began, self.shown = time.monotonic(), False

    def line(self, done, word, columns):
        """What is drawn: never as wide as the terminal."""
        share = min(max(done / self.total, 0), 1) if self.total else 0
        head, tail = f"{self.what:10} [", f"] {done}/{self.total} {word}".rstrip()
        width = min(columns - len(head) - len(tail) - 1, 40)
        if width < 8:
            return f"{self.what} {done}/{self.total}"[:columns - 1]
        at = int(share * width)
        return head + ("=" * at + ">" + " " * width)[:width] + tail

    def tell(self, done, word=""):
        if self.on and time.monotonic() - self.began >= AFTER:
            self.stream.write("\r" + self.line(done, word, shutil.get_terminal_size().columns) + "\x1b[K")
            self.stream.flush()
            self.shown = True

    def wipe(self):
        """Before a line of output, and at the end."""
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self.shown = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wipe()

    def over(self, rows):
        """The rows as they come, one piece of work each."""
        with self:
            for n, row in enumerate(rows, 1):
                self.tell(n)
                yield row
