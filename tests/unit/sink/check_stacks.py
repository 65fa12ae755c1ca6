# SPDX-License-Identifier: MIT
"""check_stacks.py STACKS_AS: both formats of stacks, read by readers of their own, have all of the run's seconds and
say the same."""
import math
import subprocess
import sys

import stack_files


def output(word):
    return subprocess.run([sys.argv[1], word], check=True, stdout=subprocess.PIPE).stdout.decode("utf-8")


def main():
    total = float(output("seconds"))
    scope = stack_files.read_speedscope(output("speedscope"))
    lines = stack_files.read_collapsed(output("collapsed"))
    assert math.isclose(stack_files.seconds(scope), total, abs_tol=1e-8), (stack_files.seconds(scope), total)
    assert math.isclose(stack_files.seconds(lines), total, abs_tol=1e-5), (stack_files.seconds(lines), total)
    # a semicolon parts frames in one of them and nothing in the other
    scope = {name.replace(";", ":"): {tuple(f.replace(";", ":") for f in s): w for s, w in stacks.items()}
             for name, stacks in scope.items()}
    assert set(scope) == set(lines), set(scope) ^ set(lines)
    for name, stacks in scope.items():
        assert set(stacks) == set(lines[name]), set(stacks) ^ set(lines[name])
        for stack, weight in stacks.items():
            assert math.isclose(weight, lines[name][stack], abs_tol=1e-6), (stack, weight)
    print(f"{len(scope)} threads, {total} s: both formats hold")


main()
