# SPDX-License-Identifier: MIT
"""make install: everything is where a packager expects it, and works from there."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Installed below DESTDIR; the prefix inside it is whatever the build folder was given."""
    dest = tmp_path_factory.mktemp("dest")
    done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild"], capture_output=True, text=True,
                          env=os.environ | {"DESTDIR": str(dest)})
    assert done.returncode == 0, done.stdout + done.stderr
    found = list(dest.rglob("bin/spotter"))
    assert len(found) == 1, f"bin/spotter: {found}"
    return found[0].parents[1]


def commands(prefix):
    """What the program says it can do: not what only itself starts."""
    main = (TREE / "src/cli/main.c").read_text()
    return [c for c in re.findall(r"&(\w+)_command", main)
            if "\n\t.hidden = true" not in (TREE / f"src/cli/cmd_{c}.c").read_text()]


def test_program_runs_from_there(prefix, tmp_path):
    done = subprocess.run([prefix / "bin/spotter", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and re.search(r"\d+\.\d+\.\d+", done.stdout)


def test_every_command_has_a_man_page(prefix):
    pages = {p.name for p in (prefix / "share/man/man1").iterdir()}
    assert pages == {"spotter.1"} | {f"spotter-{c}.1" for c in commands(prefix)}


@pytest.mark.skipif(not shutil.which("man"), reason="no man")
def test_man_pages_are_clean(prefix):
    for page in sorted((prefix / "share/man/man1").iterdir()):
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page],
                              capture_output=True, text=True, env=os.environ | {"LC_ALL": "C.UTF-8"})
        assert done.returncode == 0 and not done.stderr, f"{page.name}: {done.stderr}"


def test_completions(prefix):
    bash = prefix / "share/bash-completion/completions/spotter.bash"
    subprocess.run(["bash", "-n", bash], check=True)
    for name, at in (("zsh", "share/zsh/site-functions/_spotter"),
                     ("fish", "share/fish/vendor_completions.d/spotter.fish")):
        text = (prefix / at).read_text()
        assert all(c in text for c in commands(prefix) if c != "completion"), name


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3")
def test_extension_loads(prefix):
    found = list(prefix.rglob("spotter/spotter_sqlite.so"))
    assert len(found) == 1, found
    done = subprocess.run(["sqlite3", ":memory:", f".load {found[0].with_suffix('')}",
                           "SELECT count(*) FROM pragma_module_list WHERE name = 'samples'"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert done.stdout.strip() == "1"


def pkg_config(prefix, *words):
    pc = next(prefix.rglob("spotter.pc"))
    dest = str(prefix)[:-len(re.search(r"^prefix=(.*)$", pc.read_text(), re.M)[1])]
    done = subprocess.run(["pkg-config", *words, "spotter"], capture_output=True, text=True,
                          env=os.environ | {"PKG_CONFIG_PATH": str(pc.parent), "PKG_CONFIG_SYSROOT_DIR": dest,
                                            "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1",
                                            "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not (shutil.which("pkg-config") and shutil.which("cc")), reason="no pkg-config or no cc")
@pytest.mark.parametrize("how", ["shared", "static"])
def test_example_in_c_builds_against_it(prefix, tmp_path, how):
    words = pkg_config(prefix, "--cflags", "--libs", *(["--static"] if how == "static" else []))
    library = next(prefix.rglob("libspotter.a")).parent
    if how == "static":
        words = [w if w != "-lspotter" else str(library / "libspotter.a") for w in words]
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", TREE / "examples/c/train.c", *words, "-lm",
                    "-o", tmp_path / "train"], check=True)
    done = subprocess.run([tmp_path / "train"], capture_output=True, text=True,
                          env=os.environ | {"LD_LIBRARY_PATH": str(library)})
    assert done.returncode == 0 and "y = 3.00 x + 1.00" in done.stdout, done
    needs = subprocess.run(["readelf", "-d", tmp_path / "train"], capture_output=True, text=True).stdout
    assert ("libspotter.so.0]" in needs) == (how == "shared")


def test_library_exports_only_what_the_header_says(prefix):
    header = (prefix / "include/spotter.h").read_text()
    said = set(re.findall(r"^(?:void|int) \*?(spotter_\w+)\(", header, re.M))
    library = next(prefix.rglob("libspotter.so"))
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    there = {line.split()[-1].split("@")[0] for line in out.splitlines() if " A " not in line}
    assert there == said and "spotter_step" in said
    # In the static one a name of ours may not be one of theirs.
    out = subprocess.run(["nm", "-g", "--defined-only", library.with_suffix(".a")], capture_output=True, text=True,
                         check=True).stdout
    there = {line.split()[-1] for line in out.splitlines() if len(line.split()) == 3}
    assert there >= said and all(name.startswith("spotter_") for name in there)


def test_nothing_refers_to_the_build(prefix):
    """A path of the build folder in the installed program would break on the user's machine."""
    for path in [prefix / "bin/spotter", *prefix.rglob("*.so"), *prefix.rglob("*.1")]:
        dump = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout \
            if path.suffix != ".1" else path.read_text()
        assert str(BUILD) not in dump, path


def test_program_finds_its_hooks(prefix, tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPOTTER_", "PYTHON"))}
    done = subprocess.run([prefix / "bin/spotter", "run", "-q", "--", "sh", "-c", "echo $SPOTTER_PYTHON; echo $SPOTTER_LIB"],
                          capture_output=True, text=True, env=env | {"SPOTTER_DIR": str(tmp_path)}, check=True)
    package, library = done.stdout.splitlines()
    assert Path(package) == prefix / "lib/spotter/python" and (Path(package) / "spotter/_site/sitecustomize.py").exists()
    assert Path(library).name == "libspotter.so" and prefix in Path(library).parents
    assert not list(Path(package).rglob("__pycache__"))
