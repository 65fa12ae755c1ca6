# SPDX-License-Identifier: MIT
"""Told "call N", makes N functions that call one another, each with a long table of lines; says where
it is, and waits within the innermost one for the next line."""
import sys

PADDING = bytes(30000)  # behind the end of the table: nobody looks there
kept = []


def wait(what):
    print(what, flush=True)
    return sys.stdin.readline().split()


def make(number, then):
    place = {"wait": wait, "then": then}
    text = "def made_%d():\n    return %s\n" % (number, "then()" if then else "wait('%d')" % number)
    exec(compile(text, "%d.py" % number, "exec"), place)
    kept.append(place["made_%d" % number])  # no address is used again
    code = kept[-1].__code__
    lines = "co_linetable" if hasattr(code, "co_linetable") else "co_lnotab"
    kept[-1].__code__ = code.replace(**{lines: getattr(code, lines) + PADDING})
    return kept[-1]


def main():
    sys.setrecursionlimit(5000)
    number = 0
    told = wait("ready")
    while told:
        function = None
        for _ in range(int(told[1])):
            number += 1
            function = make(number, function)
        told = function() if function else wait("idle")


main()
