# SPDX-License-Identifier: MIT
"""The Debian packages: whatever `meson install` installs is in exactly one of them. Building them takes minutes: only with
SPOTTER_LONG=1, and where debhelper is."""
import fnmatch
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()
DEBIAN = TREE / "packaging/debian"
PACKAGES = {"spotter", "libspotter0", "libspotter-dev", "python3-spotter"}


def patterns():
    """[(package, pattern)] of the .install files."""
    return [(file.stem, line.split()[0]) for file in sorted(DEBIAN.glob("*.install"))
            for line in file.read_text().splitlines() if line]


def installed():
    """What goes where, as Debian's prefix has it; of a folder its name."""
    def ask(what):
        done = subprocess.run(["meson", "introspect", what, BUILD], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    prefix = next(o["value"] for o in ask("--buildoptions") if o["name"] == "prefix")
    found = {path.replace(prefix, "usr", 1) for path in ask("--installed").values()}
    version = re.search(r"version: '(.*)'", (TREE / "meson.build").read_text())[1]
    # The names that lead to it are not listed.
    for path in list(found):
        if path.endswith(f"libspotter.so.{version}"):
            found |= {path[:-len(version) - 1], path[:-len(version) + 1]}
    # On systems without multiarch it is lib/, and lib/spotter is both.
    return {re.sub(r"^usr/lib(?:64)?/(?=libspotter|pkgconfig|spotter/spotter_sqlite)", "usr/lib/some/", p) for p in found}


def takes(pattern, path):
    """dh_install's: a pattern may name a folder above it; * stays within one."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(wanted) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, wanted))


@pytest.mark.skipif(not shutil.which("meson"), reason="no meson")
def test_every_file_is_in_one_package():
    files, lists = installed(), patterns()
    assert len(files) > 10
    for path in files:
        owners = {package for package, pattern in lists if takes(pattern, path)}
        assert len(owners) == 1, f"{path}: {owners or 'in no package'}"
    for package, pattern in lists:
        assert any(takes(pattern, path) for path in files), f"{package}: {pattern} matches nothing that is installed"


def test_packages_have_their_lists():
    named = set(re.findall(r"^Package: (.*)$", (DEBIAN / "control").read_text(), re.M))
    assert named == {package for package, _ in patterns()} == PACKAGES


def test_version_is_the_projects():
    version = re.search(r"version: '(.*)'", (TREE / "meson.build").read_text())[1]
    assert (DEBIAN / "changelog").read_text().startswith(f"spotter ({version})")


def test_says_why_it_is_not_built(tmp_path):
    """Without debhelper: a reason, and no trace."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "dirname"):
        (tools / name).symlink_to(shutil.which(name))
    done = subprocess.run([TREE / "packaging/deb", tmp_path / "out"], capture_output=True, text=True,
                          env={"PATH": str(tools)})
    assert done.returncode == 77 and "debhelper" in done.stderr and not (tmp_path / "out").exists()


@pytest.mark.skipif(not os.environ.get("SPOTTER_LONG"), reason="long: run by make check-all")
def test_builds(tmp_path):
    done = subprocess.run([TREE / "packaging/deb", tmp_path / "out"], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    lists = {}
    for file in (tmp_path / "out").glob("*.deb"):
        out = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], capture_output=True, check=True).stdout
        names = subprocess.run(["tar", "-t"], input=out, capture_output=True, check=True).stdout.decode()
        lists[file.name.split("_")[0]] = {n[2:] for n in names.splitlines() if not n.endswith("/")}
    assert set(lists) - {p for p in lists if p.endswith("-dbgsym")} == PACKAGES
    assert "usr/bin/spotter" in lists["spotter"] and "usr/include/spotter.h" in lists["libspotter-dev"]
    assert any(n.endswith("/libspotter.so.0") for n in lists["libspotter0"])
    package = {"usr/lib/python3/dist-packages/spotter/" + str(p.relative_to(TREE / "python/spotter"))
               for p in (TREE / "python/spotter").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert package <= lists["python3-spotter"]
