# SPDX-License-Identifier: MIT
"""A search over learning rates: so many trainings side by side, each of them a program of its own."""
import argparse
import subprocess
import sys
from pathlib import Path

p = argparse.ArgumentParser()
p.add_argument("--data")
p.add_argument("--device", default="auto")
p.add_argument("--seconds", default="15")
p.add_argument("--trials", type=int, default=2)
p.add_argument("program")
p.add_argument("flags", nargs=argparse.REMAINDER)


def main():
    a = p.parse_args()
    line = [sys.executable, str(Path(__file__).with_name(a.program)), "--device", a.device, "--seconds", a.seconds]
    line += ["--data", a.data] if a.data else []
    trials = [subprocess.Popen(line + a.flags, stdout=None if i == 0 else subprocess.DEVNULL) for i in range(a.trials)]
    return max(t.wait() for t in trials)


if __name__ == "__main__":
    sys.exit(main())
