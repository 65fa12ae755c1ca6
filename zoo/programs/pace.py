# SPDX-License-Identifier: MIT
"""How long a program trains and how fast it was.

    pace = Pace(20)
    while pace.more():
        ...
        pace.count(batch_size)
    pace.report()          # last line: {"samples_per_s": ..., "steps": ..., "steady_s": ...}

The first third is warm-up (imports of workers, cold caches) and is not counted. What is queued on the GPU is waited for
once then and once at the end: a program may be a second of work ahead of it, and only what is done counts."""
import json
import time

import accel


class Pace:
    def __init__(self, seconds):
        self.start = time.monotonic()
        self.steady, self.end = self.start + seconds / 3, self.start + seconds
        self.first = None
        self.samples = self.steps = 0

    def more(self):
        return time.monotonic() < self.end

    def count(self, samples):
        if self.first is not None:
            self.samples += samples
            self.steps += 1
        elif time.monotonic() >= self.steady:
            accel.wait()
            self.first = time.monotonic()

    def report(self):
        accel.wait()
        took = time.monotonic() - (self.first or 0)
        if not self.steps:
            print(json.dumps({"steps": self.steps}), flush=True)
            return
        rate = round(self.samples / took, 3)
        print(json.dumps({"samples_per_s": rate, "steps": self.steps, "steady_s": round(took, 3)}), flush=True)
