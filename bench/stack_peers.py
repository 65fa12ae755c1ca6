# SPDX-License-Identifier: MIT
"""The samplers that bench/stack compares: how they are called, and how what they wrote is read."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

OURS, WAITS = "Spotter", "Spotter, with what each thread waits for"


def say(*words):
    print("bench/stack:", *words, file=sys.stderr, flush=True)


# How each tool is called (hz, seconds, pid, file) and how its file names the frames of a stack.

def call_pyspy(path, hz, seconds, pid, file):
    return [path, "record", "-r", hz, "-d", seconds, "--idle", "--format", "raw", "-o", file, "-p", pid]


def call_austin(path, hz, seconds, pid, file):
    return [path, "-i", f"{round(1e6 / hz)}us", "-x", seconds, "-o", file, "-p", pid]


def read_ours(words):
    """'<module>:190;deep:87;outer_0:4'"""
    return [w.rsplit(":", 1)[0] for w in words]


def read_pyspy(words):
    """'<module> (oracle.py:74);loop (oracle.py:52)'"""
    return [w.rsplit(" (", 1)[0] for w in words if not w.startswith(("process ", "thread "))]


def read_austin(words):
    """'P4711;T0:4711;/a/oracle.py:<module>:74;/a/oracle.py:loop:52'; behind it microseconds, no count"""
    return [w.rsplit(":", 2)[1] for w in words[2:] if w.count(":") >= 2]


READ = {OURS: read_ours, WAITS: read_ours, "py-spy": read_pyspy, "py-spy --nonblocking": read_pyspy, "austin": read_austin}


def find_peer(name, folder):
    """Its path and version; None: there is none, or it does not run here."""
    path = folder / name
    path = str(path) if path.exists() else shutil.which(name)
    if not path:
        return say(f"no {name}: not in PATH, and not by `make peers`")
    try:
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as e:
        return say(f"no {name}: {path} does not run:", (getattr(e, "stderr", "") or str(e)).strip())
    if name == "austin" and not version.startswith("austin 3."):
        return say(f"no austin: {version} writes another format than 3.x, which is read here")
    say(f"{version} ({path})")
    return path, version


def find_tools(sample, folder):
    """{name: call}, [versions]: ours (bench/stack_sample), and the peers that there are, from the folder or PATH."""
    tools = {OURS: lambda *a: [sample, "stacks", *a], WAITS: lambda *a: [sample, "run", *a]}
    pyspy, austin = find_peer("py-spy", folder), find_peer("austin", folder)
    if pyspy:
        tools["py-spy"] = lambda *a: call_pyspy(pyspy[0], *a)
        tools["py-spy --nonblocking"] = lambda *a: [*call_pyspy(pyspy[0], *a), "--nonblocking"]
    if austin:
        tools["austin"] = lambda *a: call_austin(austin[0], *a)
    return tools, [peer[1] for peer in (pyspy, austin) if peer]


def stacks_in(name, file):
    """[([outermost, ..., innermost], count)]"""
    result = []
    for line in Path(file).read_text(errors="replace").splitlines():
        if line.startswith("#") or " " not in line:
            continue
        stack, number = line.rsplit(" ", 1)
        names = READ[name](stack.split(";"))
        if names:
            result.append((names, 1 if name == "austin" else int(number)))
    return result


DEPTH = re.compile(r"((?:chain|gen)_\d+)_(\d+)$")


def possible(names):
    """Every function of tests/unit/stack/oracle.py has one legal caller."""
    if names[0] != "<module>":
        return False
    for caller, callee in zip(names, names[1:]):
        inner, outer = DEPTH.match(callee), DEPTH.match(caller)
        if inner and inner[2] != "0":
            right = outer and outer[1] == inner[1] and int(outer[2]) == int(inner[2]) - 1
        elif inner:
            right = caller == "loop"
        elif callee == "spin":
            right = outer and int(outer[2]) >= 6
        elif callee == "loop":
            right = caller == "<module>"
        else:
            right = True
        if not right:
            return False
    return True
