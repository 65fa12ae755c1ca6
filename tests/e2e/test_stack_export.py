# SPDX-License-Identifier: MIT
"""export --to speedscope|collapsed: what readers of their own find in it is what the record holds."""
import importlib.util
import math
import re
import subprocess

import pytest

BUSY = """
import time

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))

def main():
    for _ in range(5):
        spin(0.3)
        time.sleep(0.2)

main()
"""


@pytest.fixture
def files(tree):
    path = tree / "tests/unit/sink/stack_files.py"
    spec = importlib.util.spec_from_file_location("stack_files", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def stacked(build, tmp_path):
    """A run of known frames (tests/golden/make_record.c)."""
    subprocess.run([build / "tests/golden/make_record", "stacked", tmp_path], check=True, timeout=60)
    return next(tmp_path.glob("*.spot"))


def seconds_in(spotter, record):
    return float(spotter("sql", record, "--csv", "SELECT sum(seconds) FROM stack_samples", check=True).out.split()[1])


def read_both(spotter, files, record):
    scope = files.read_speedscope(spotter("export", record, "--to", "speedscope", check=True).out)
    lines = files.read_collapsed(spotter("export", record, "--to", "collapsed", check=True).out)
    return scope, lines


def test_known_run(spotter, files, stacked):
    scope, lines = read_both(spotter, files, stacked)
    total = seconds_in(spotter, stacked)
    assert math.isclose(total, 40)
    assert math.isclose(files.seconds(scope), total, rel_tol=1e-9)
    assert math.isclose(files.seconds(lines), total, rel_tol=1e-9)
    loader = "_MultiProcessingDataLoaderIter._try_get_data"
    assert math.isclose(scope["python (4242), main thread"][("<module>", "train", loader, "[waiting: pipe]")], 12)
    assert math.isclose(lines["python (4242), main thread"][("<module>", "train", "sgemm_kernel [libblas.so.3]")], 5.2)


def test_real_run(spotter, files, tmp_path):
    program = tmp_path / "busy.py"
    program.write_text(BUSY)
    record = tmp_path / "busy.spot"
    spotter("run", "--quiet", "--out", record, "--budget", "20%", "--", "python3", program, check=True, timeout=60)
    scope, lines = read_both(spotter, files, record)
    total = seconds_in(spotter, record)
    assert math.isclose(files.seconds(scope), total, rel_tol=1e-6)
    assert math.isclose(files.seconds(lines), total, rel_tol=1e-4)
    # on a busy machine there is another: what the program was before it was Python
    (stacks,) = [s for name, s in scope.items() if name.endswith("main thread") and any("main" in frames for frames in s)]
    spin = sum(w for s, w in stacks.items() if "spin" in s)
    sleep = sum(w for s, w in stacks.items() if s[-1] == "[waiting: sleep]" and "main" in s)
    # 1.5 s and 1 s, and whatever a busy machine makes of them
    assert spin > 0.7 and sleep > 0.4, stacks
    assert spin + sleep < spotter.json("why", record)["run"]["duration_s"] * 1.05 + 0.2, stacks
    assert all(s[:2] == ("<module>", "main") for s in stacks if "spin" in s), stacks


def test_every_format_is_offered(spotter, tree):
    names = re.findall(r"(\w+)_sink\b", (tree / "src/sink/all.c").read_text().split(";")[0])
    assert {"csv", "speedscope", "collapsed"} <= set(names)
    told = spotter("export", "--to", "none-such").err
    assert re.search(r"expected one of (\S+)", told)[1].split("|") == names
    for name in names:
        assert f"{name}:" in spotter("export", "--help", check=True).out


def test_no_stacks(spotter, tmp_path):
    record = tmp_path / "none.spot"
    spotter("run", "--quiet", "--stacks", "0", "--out", record, "--", "true", check=True)
    for name in ("speedscope", "collapsed"):
        done = spotter("export", record, "--to", name, "--out", tmp_path / "x")
        assert done.code == 1 and done.out == "" and not (tmp_path / "x").exists()
        assert "no stacks were recorded" in done.err and "spotter doctor" in done.err
