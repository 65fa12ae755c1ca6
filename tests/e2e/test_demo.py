# SPDX-License-Identifier: MIT
"""`spotter demo`: a real training, a real verdict, and nothing left behind. The verdict names the lines of
the program that are at fault; the cured program has none to name."""
import ast
import os
import signal
import stat
import subprocess
import sys

import pytest

SECONDS = 8  # a verdict needs 5, and the first are spent on making images
INPUT = {"no_workers", "too_few_workers", "python_loop_preprocessing"}


@pytest.fixture
def demo(spotter, tmp_path):
    """`demo` with a folder for temporary files of its own, by the Python that runs the tests."""
    place = tmp_path / "temporary"
    place.mkdir()
    spotter.env["TMPDIR"] = str(place)

    def run(*args, **kwargs):
        return spotter("demo", "--python", sys.executable, *args, **kwargs)
    run.place = place
    return run


def lines_of(tree, name):
    """Lines of a function of the program, by its qualified name."""
    nodes = ast.parse((tree / "examples/demo_train.py").read_text()).body
    for part in name.split("."):
        node = next(n for n in nodes if getattr(n, "name", None) == part)
        nodes = node.body
    return range(node.lineno, node.end_lineno + 1)


def findings(verdict):
    return {f["cause"]: f for f in verdict["findings"]}


@pytest.mark.alone
def test_the_verdict_names_the_lines(spotter, demo, tree):
    done = demo("--seconds", SECONDS, check=True)
    assert "num_workers=0" in done.out and "images/s" in done.out
    assert done.err.rstrip().splitlines()[-1].startswith("Next ")
    assert "spotter demo --fixed" in done.err and "spotter report last" in done.err
    assert list(demo.place.iterdir()) == []
    assert len(spotter.records()) == 1

    verdict = spotter.json("why", "demo")
    assert verdict["run"]["exit"] == {"code": 0}
    assert verdict["level"] >= "L2"
    found = findings(verdict)
    if verdict["usage"]["others"]["cpu_cores"] > 0.5:  # no core for a worker: then it is a note
        found.update((n["cause"], n) for n in verdict["notes"])
    for cause in ("no_workers", "python_loop_preprocessing"):
        assert cause in found, (verdict["findings"], verdict["notes"])
        assert found[cause]["where"]["file"].endswith("/demo_train.py")
    assert "demo_train.py:" in done.err
    # The line to change: of the loop over pixels, and where the batches come from.
    for cause, function in (("python_loop_preprocessing", "adjust_pixel_by_pixel"), ("no_workers", "train")):
        where = found[cause]["where"]
        assert where["line"] in lines_of(tree, function) and where["function"] == function, where
    assert not verdict["healthy"]


@pytest.mark.skipif(os.environ.get("SPOTTER_TURNS") == "user", reason="every test of this turn is without it")
@pytest.mark.alone
def test_the_lines_without_native_code(spotter, demo, tree, build):
    """As in a container, where process_vm_readv and perf_event_open are refused: L2, and it is enough."""
    subprocess.run([build / "tests/programs/refuse", spotter.binary, "demo", "--python", sys.executable,
                    "--seconds", str(SECONDS)], env=spotter.env, check=True, capture_output=True, timeout=60)
    verdict = spotter.json("why", "demo")
    assert verdict["level"] == "L2" and "perf_event_open" in verdict["level_why"]
    where = findings(verdict)["python_loop_preprocessing"]["where"]
    assert where["line"] in lines_of(tree, "adjust_pixel_by_pixel"), where


@pytest.mark.alone
def test_the_cured_program_has_nothing_to_name(spotter, demo):
    done = demo("--seconds", SECONDS, "--fixed", check=True)
    assert "adjust_whole_rows" in done.out and "num_workers=0" not in done.out
    verdict = spotter.json("why", "demo-fixed")
    assert not INPUT & set(findings(verdict)), verdict["findings"]


def test_it_really_learns(demo):
    """The loss it prints falls."""
    out = demo("--seconds", 5, "--fixed", check=True).out
    losses = [float(line.split("loss")[1].split()[0]) for line in out.splitlines() if "loss" in line]
    assert len(losses) >= 2 and losses[-1] < losses[0] * 0.8, out


def test_both_ways_give_the_same_numbers(tree):
    """The cure cures, and changes nothing else."""
    code = ("import sys, zlib; sys.dont_write_bytecode = True; sys.path.insert(0, 'examples'); import demo_train as d\n"
            "for data, kind in d.make_files(8, seed=5):\n"
            "    for contrast in (0.6, 1.0, 1.5):\n"
            "        pixels = zlib.decompress(data)\n"
            "        assert d.adjust_pixel_by_pixel(pixels, contrast) == d.adjust_whole_rows(pixels, contrast)\n")
    subprocess.run([sys.executable, "-c", code], cwd=tree, check=True, timeout=60)


def test_keep_leaves_the_program(demo, tree):
    done = demo("--seconds", 1, "--keep", check=True)
    folder, = demo.place.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.name.startswith("spotter-demo-")
    assert (folder / "demo_train.py").read_bytes() == (tree / "examples/demo_train.py").read_bytes()
    assert str(folder / "demo_train.py") in done.err.splitlines()[-2]


@pytest.mark.parametrize("number, whole_group", [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_stopped_early(spotter, demo, wait_for, number, whole_group):
    """Ctrl-C reaches the whole group, kill only us: the training ends, the folder goes, and so do we."""
    child = spotter.start("demo", "--python", sys.executable, "--seconds", 60, start_new_session=True)
    assert wait_for(lambda: b"training on" in child.stdout.readline(), "the training")
    if whole_group:
        os.killpg(child.pid, number)
    else:
        child.send_signal(number)
    child.communicate(timeout=30)
    assert child.returncode in (-number, 1)
    assert list(demo.place.iterdir()) == []


@pytest.mark.parametrize("answer, words", [
    ("printf 3.7", "is Python 3.7; the demo needs 3.8 or later"),
    ("printf 2.7", "is Python 2.7; the demo needs 3.8 or later"),
    ("exit 3", "did not answer as Python does"),
    ("yes", "did not answer as Python does"),
    ("printf '3.11 '", "did not answer as Python does"),
    ("printf 99999999999999999999.1", "did not answer as Python does"),
])
def test_a_python_that_is_none(spotter, tmp_path, answer, words):
    fake = tmp_path / "python3"
    fake.write_text(f"#!/bin/sh\n{answer}\n")
    fake.chmod(0o755)
    done = spotter("demo", "--python", fake)
    assert done.code == 1 and done.out == ""
    assert words in done.err and "--python PATH" in done.err
    assert spotter.records() == []


def test_no_python_at_all(spotter, tmp_path):
    done = spotter("demo", env=dict(spotter.env, PATH=str(tmp_path)))
    assert done.code == 1 and "there is no python3 in PATH" in done.err
    done = spotter("demo", "--python", tmp_path / "nosuch")
    assert done.code == 1 and "no such file or directory" in done.err


def test_no_place_for_the_program(spotter, tmp_path):
    spotter.env["TMPDIR"] = str(tmp_path / "nosuch")
    done = spotter("demo", "--python", sys.executable)
    assert done.code == 1 and "cannot make a folder" in done.err and "TMPDIR=" in done.err
