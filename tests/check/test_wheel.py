# SPDX-License-Identifier: MIT
"""The wheel: what is in it, and that it works in a fresh environment of every Python of this machine."""
import base64
import csv
import glob
import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()


def pythons():
    """$SPOTTER_PYTHONS (with colons), else Debian's and those of pyenv; 3.8 and later."""
    named = [p for p in os.environ.get("SPOTTER_PYTHONS", "").split(":") if p]
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    found = named or ["/usr/bin/python3", *sorted(glob.glob(f"{root}/versions/3.*/bin/python3"))]
    return [p for p in found if os.access(p, os.X_OK) and subprocess.run(
        [p, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"], capture_output=True).returncode == 0]


def clean_environment(home):
    """Nothing of ours, of an environment around us or of the user's own configuration of pip."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPOTTER_", "PIP_", "PYTHON")) and k != "VIRTUAL_ENV"}
    return env | {"HOME": str(home), "SPOTTER_DIR": str(home / "runs"), "PIP_CONFIG_FILE": os.devnull,
                  "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1", "PATH": "/usr/bin:/bin"}


@pytest.fixture(scope="module")
def backend():
    spec = importlib.util.spec_from_file_location("wheel_backend", TREE / "packaging/python/wheel_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(backend, tmp_path_factory):
    """Of what is built, without building."""
    folder = tmp_path_factory.mktemp("wheel")
    return folder / backend.write(folder, BUILD)


def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def install(python, wheel, place):
    """A fresh environment with nothing but the wheel; the pip is the Python's own."""
    if not (has(python, "pip") and has(python, "venv")):
        pytest.skip(f"{python} has no venv or no pip")
    env = clean_environment(place)
    subprocess.run([python, "-m", "venv", "--without-pip", place / "venv"], check=True, env=env)
    done = subprocess.run([python, "-m", "pip", "--python", place / "venv/bin/python", "install", "-q", "--no-compile",
                           "--no-index", "--no-deps", wheel], capture_output=True, text=True, env=env)
    if "no such option: --python" in done.stderr:
        pytest.skip(f"the pip of {python} is older than 22.3")
    assert done.returncode == 0, done.stderr
    return place / "venv/bin", env


def test_record_is_right(wheel):
    with zipfile.ZipFile(wheel) as z:
        record = next(n for n in z.namelist() if n.endswith(".dist-info/RECORD"))
        rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(z.read(record).decode()))}
        assert set(rows) == set(z.namelist()) and rows.pop(record) == ("", "")
        for name, (digest, size) in rows.items():
            data = z.read(name)
            right = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == ("sha256=" + right, str(len(data))), name


def test_contents(wheel):
    with zipfile.ZipFile(wheel) as z:
        names = set(z.namelist())
        package = {"spotter/" + str(p.relative_to(TREE / "python/spotter")) for p in (TREE / "python/spotter").rglob("*")
                   if p.is_file() and "__pycache__" not in p.parts}
        assert {n for n in names if n.startswith("spotter/")} == package | {"spotter/libspotter.so"}
        script = next(n for n in names if n.endswith(".data/scripts/spotter"))
        assert z.getinfo(script).external_attr >> 16 & 0o111, "the program could not be run"
        for name in (script, "spotter/libspotter.so"):
            assert z.read(name)[:4] == b"\x7fELF" and str(TREE).encode() not in z.read(name), name


def test_name_carries_the_libc(wheel, backend):
    libc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    assert wheel.name == f"spotter-{backend.project()['version']}-py3-none-manylinux_{libc}_{os.uname().machine}.whl"


def test_same_bytes_again(wheel, backend, tmp_path):
    assert (tmp_path / backend.write(tmp_path, BUILD)).read_bytes() == wheel.read_bytes()


def test_one_version_everywhere(backend):
    version = backend.project()["version"]
    assert f"version: '{version}'" in (TREE / "meson.build").read_text()
    assert f'__version__ = "{version}"' in (TREE / "python/spotter/__init__.py").read_text()


PROGRAM = """
import json, os, spotter
assert spotter.active()
for loss in (3.0, 2.0, 1.5):
    spotter.step(loss=loss)
print(json.dumps([spotter.__file__, os.environ["SPOTTER_PYTHON"], os.environ["SPOTTER_LIB"], os.environ["SPOTTER_EXE"]]))
"""


@pytest.mark.parametrize("python", pythons())
def test_works_when_installed(python, wheel, tmp_path):
    scripts, env = install(python, wheel, tmp_path)

    def run(*words):
        done = subprocess.run(list(words), capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "0.1.0" in run(scripts / "spotter", "--version")
    package, folder, library, program = json.loads(
        run(scripts / "spotter", "run", "-q", "--", scripts / "python", "-c", PROGRAM))
    site = Path(package).parents[1]
    assert site.name == "site-packages" and tmp_path in site.parents
    assert (Path(folder), Path(library), Path(program)) == (site, site / "spotter/libspotter.so", scripts / "spotter")
    steps = json.loads(run(scripts / "spotter", "sql", "--json", "SELECT step, loss FROM steps ORDER BY step"))
    assert [(s["step"], s["loss"]) for s in steps] == [(1, 3.0), (2, 2.0), (3, 1.5)]
    # The package finds the program where pip put it: its folder is not on PATH here.
    found = run(scripts / "python", "-c", "from spotter._program import executable; print(executable())")
    assert Path(found.strip()).resolve() == (scripts / "spotter").resolve()


@pytest.mark.parametrize("layout", ["target", "prefix"])
def test_other_places(layout, wheel, tmp_path):
    """pip install --target and --prefix: the program and the package find each other there, too."""
    python = "/usr/bin/python3"
    if not (os.access(python, os.X_OK) and has(python, "pip")):
        pytest.skip("no /usr/bin/python3 with pip")
    place, env = tmp_path / "place", clean_environment(tmp_path)
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--ignore-installed",
                    "--no-warn-script-location", f"--{layout}", place, wheel], check=True, env=env)
    package = next(p for p in place.rglob("spotter/__init__.py"))
    program = next(place.rglob("bin/spotter"))
    env["PYTHONPATH"] = str(package.parents[1])
    done = subprocess.run([python, "-c", "from spotter._program import executable; print(executable())"],
                          capture_output=True, text=True, env=env, check=True)
    assert Path(done.stdout.strip()) == program
    done = subprocess.run([program, "run", "-q", "--", "sh", "-c", "echo $SPOTTER_PYTHON"],
                          capture_output=True, text=True, env=env, check=True)
    assert Path(done.stdout.strip()) == package.parents[1]


@pytest.mark.skipif(not (shutil.which("meson") and shutil.which("ninja")), reason="no meson or no ninja")
def test_pip_builds_it_from_the_tree(wheel, tmp_path):
    """Through PEP 517, offline, from what is built already."""
    python = sys.executable
    if not has(python, "pip"):
        pytest.skip(f"{python} has no pip")
    env = clean_environment(tmp_path) | {"PATH": os.environ["PATH"]}
    done = subprocess.run([python, "-m", "pip", "wheel", "-q", "--no-index", "--no-deps", "-w", tmp_path / "out",
                           "--config-settings", f"build={BUILD}", TREE], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [p.name for p in (tmp_path / "out").iterdir()] == [wheel.name]
