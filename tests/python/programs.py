# SPDX-License-Identifier: MIT
"""Programs for tests of the Python package, for real: run with the environment that `spotter run` gives them, and their
rings read back. SPOTTER_BUILD names the build folder (default: build)."""
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import rings

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()
PACKAGE = TREE / "python" / "spotter"
OURS = ("SPOTTER_", "PYTHONPATH", "PYTHONSTARTUP", "RANK", "WORLD_SIZE", "XDG_STATE_HOME")


def as_json(line):
    """The object or list that this line is; None: something else that the program printed."""
    try:
        return json.loads(line) if line.startswith(("{", "[")) else None
    except ValueError:
        return None


class World:
    """Runs programs. `.run(code)` under a recorder's environment, `.plain(code)` without."""

    def __init__(self, place):
        self.place = place
        self.folder = place / "marks"
        self.folder.mkdir(mode=0o700)
        self.base = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        self.base.update(HOME=str(place), SPOTTER_DIR=str(place / "runs"))
        self.env = dict(self.base, PYTHONPATH=str(PACKAGE / "_site"), SPOTTER_PYTHON=str(PACKAGE.parent),
                        SPOTTER_MARKS=str(self.folder), SPOTTER_LIB=str(BUILD / "libspotter.so"),
                        SPOTTER_EXE=str(BUILD / "spotter"), SPOTTER_RUN="test")
        self.count = 0

    def run(self, code, *args, python=sys.executable, env=None, timeout=120, options=(), check=True):
        """Result: .said (the JSON objects it printed), .out, .err, .code, .marks (of the program itself)."""
        self.count += 1
        file = self.place / f"program{self.count}.py"
        file.write_text(textwrap.dedent(code))
        child = subprocess.Popen([python, *options, file, *map(str, args)], env=self.env if env is None else env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 cwd=self.place)
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            raise AssertionError(f"did not end within {timeout} s\n{out}{err}")
        assert not check or child.returncode == 0, f"exit {child.returncode}\n{out}{err}"
        said = [x for x in map(as_json, out.splitlines()) if x is not None]
        found = rings.read_all(self.folder)
        return SimpleNamespace(code=child.returncode, out=out, err=err, said=said, pid=child.pid,
                               marks=found.get(child.pid, []), all_marks=found)

    def plain(self, code, *args, **kwargs):
        """The package on the path, and no recorder."""
        return self.run(code, *args, env=dict(self.base, PYTHONPATH=str(PACKAGE.parent),
                                              SPOTTER_EXE=str(BUILD / "spotter")), **kwargs)


def of(marks, kind):
    return [m for m in marks if m.kind == kind]


def pythons():
    """Every CPython from 3.8 on that is here, by name."""
    found = {}
    places = [Path(p) for p in os.environ.get("PATH", "").split(":")]
    places += sorted(Path.home().glob(".pyenv/versions/*/bin"))
    for minor in range(8, 14):
        for place in places:
            file = place / f"python3.{minor}"
            if os.access(file, os.X_OK) and "shims" not in str(file):
                found[f"3.{minor}"] = str(file)
                break
    return found


def needs(python, *modules):
    """Skips with a reason unless this Python can import them."""
    wanted = ", ".join(modules)
    if not python or not shutil.which(python) or not can(python, f"import {wanted}"):
        pytest.skip(f"{wanted}: not importable by {python}")
    return python


def can(python, code, **env):
    """Whether it runs this without an error."""
    return not subprocess.run([python, "-c", code], capture_output=True,
                              env=dict(os.environ, **{"KERAS_BACKEND": "jax", **env})).returncode


def python_with(*modules, also="", **env):
    """The first of $SPOTTER_TEST_PYTHONS (separated by colons) that has them, or the one that runs the tests; `also`: a
    statement that must hold there, too."""
    code = f"import {', '.join(modules)}; {also}"
    for python in [*filter(None, os.environ.get("SPOTTER_TEST_PYTHONS", "").split(":")), sys.executable]:
        if shutil.which(python) and can(python, code, **env):
            return python
    pytest.skip(f"{', '.join(modules)} {also}: no Python here has it; $SPOTTER_TEST_PYTHONS names others")
