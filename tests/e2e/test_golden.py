# SPDX-License-Identifier: MIT
"""Golden tests: tests/golden/CASE/ holds

    cmd           a shell line; `spotter` is the built program, $ROOTS are the fixture machines
    expected      its standard output
    expected.err  its standard error (absent: there is none)
    exit          its exit status (absent: 0)
    vary          what differs from machine to machine: a regular expression and what stands for
                  it, a tab between, one a line (absent: nothing)

The folder of runs holds two runs made of known frames (tests/golden/make_record.c): "tidy", which
exited with 0, and "killed", ended by SIGKILL; $STACKED is the path of a third, with stacks, $TRAINED of one
with steps too. UPDATE=1
writes what came out as what is expected; read the difference before you keep it."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CASES = sorted(p.parent for p in GOLDEN.glob("*/cmd"))
BUILD = Path(os.environ.get("SPOTTER_BUILD") or GOLDEN.parents[1] / "build").resolve()


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The folder of runs, made once; each case gets a copy that it may change."""
    folder = tmp_path_factory.mktemp("golden") / "runs"
    folder.mkdir(mode=0o700)
    maker = BUILD / "tests/golden/make_record"
    for name in ("tidy", "killed"):
        subprocess.run([maker, name, folder], check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def stacked(tmp_path_factory):
    """A run with stacks, and one with steps too. They are not among the others: most cases are about those two."""
    folder = tmp_path_factory.mktemp("stacked")
    paths = []
    for name in ("stacked", "trained"):
        (folder / name).mkdir()
        subprocess.run([BUILD / "tests/golden/make_record", name, folder / name], check=True, timeout=60)
        paths.append(next((folder / name).glob("*.spot")))
    return paths


def normal(text, case, home):
    """What differs in every case, then what this case says differs."""
    text = text.replace(str(home), "HOME").replace(str(case), "CASE")
    vary = case / "vary"
    for line in vary.read_text().splitlines() if vary.exists() else []:
        pattern, stands = line.split("\t")
        text = re.sub(pattern, stands, text)
    return text


def run(case, home, stacked):
    env = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "HOME": str(home), "SPOTTER_DIR": str(home / "runs"),
           "ROOTS": str(GOLDEN.parent / "roots"), "CASE": str(case), "STACKED": str(stacked[0]),
           "TRAINED": str(stacked[1]),
           "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
        if name in os.environ:
            env[name] = os.environ[name]
    return subprocess.run(["bash", "-c", (case / "cmd").read_text()], cwd=home, env=env,
                          capture_output=True, text=True, errors="replace", timeout=60)


def keep(path, text, default):
    if text == default:
        path.unlink(missing_ok=True)
    else:
        path.write_text(text)


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_golden(case, records, stacked, tmp_path):
    shutil.copytree(records, tmp_path / "runs")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/spotter").symlink_to(BUILD / "spotter")
    done = run(case, tmp_path, stacked)
    out, err = normal(done.stdout, case, tmp_path), normal(done.stderr, case, tmp_path)
    if os.environ.get("UPDATE"):
        (case / "expected").write_text(out)
        keep(case / "expected.err", err, "")
        keep(case / "exit", f"{done.returncode}\n", "0\n")
    status = int((case / "exit").read_text()) if (case / "exit").exists() else 0
    want_err = (case / "expected.err").read_text() if (case / "expected.err").exists() else ""
    assert (case / "expected").exists(), "no 'expected': run with UPDATE=1 and read what it wrote"
    assert done.returncode == status, out + err
    assert err == want_err
    assert out == (case / "expected").read_text()


def test_there_are_cases():
    assert len(CASES) > 20


def test_every_command_has_help_and_a_case():
    """A command without a golden case is one nobody looks at."""
    main = (GOLDEN.parents[1] / "src/cli/main.c").read_text()
    commands = re.findall(r"&(\w+)_command", main)
    lines = "\n".join((c / "cmd").read_text() for c in CASES)
    for name in commands:
        if "\n\t.hidden = true" in (GOLDEN.parents[1] / f"src/cli/cmd_{name}.c").read_text():
            continue  # Spotter starts it, nobody else
        assert re.search(rf"\bspotter {name}\b", lines), f"no golden case runs 'spotter {name}'"
        assert (GOLDEN / f"help-{name}/cmd").exists(), f"no golden case help-{name}"
