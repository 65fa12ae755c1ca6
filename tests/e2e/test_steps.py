# SPDX-License-Identifier: MIT
"""Steps of a real program: what `why`, `report` and every export say about them is what the program itself says."""
import csv
import importlib.util
import io
import json
import math
import subprocess
import sys

import pytest

TRAIN = """
import json, os, sys, time
sys.path.insert(0, os.environ["SPOTTER_PYTHON"])
import spotter
said = []
for i in range(1, 41):
    begin = time.monotonic()
    if i == 30:
        time.sleep(2.6)
    end = begin + 0.08
    while time.monotonic() < end:
        sum(range(1000))
    loss = 3.0 / i
    spotter.step(loss=loss, accuracy=i / 64)
    said.append((i, loss, i / 64, time.monotonic() - begin))
    if i == 20:
        with spotter.phase("evaluate"):
            time.sleep(0.3)
json.dump(said, open(sys.argv[1], "w"))
"""


@pytest.fixture
def files(tree):
    path = tree / "tests/unit/sink/proto_files.py"
    spec = importlib.util.spec_from_file_location("proto_files", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(spotter, *args):
    return subprocess.run([spotter.binary, "export", *args], env=spotter.env, check=True, stdout=subprocess.PIPE,
                          timeout=60).stdout


def test_a_program_and_its_steps(spotter, files, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    spotter("run", sys.executable, tmp_path / "train.py", tmp_path / "said", check=True)
    said = json.loads((tmp_path / "said").read_text())

    steps = spotter.json("why")["steps"]
    assert steps["count"] == 40 and steps["source"] == "api", steps
    assert math.isclose(steps["first_loss"], 3.0) and math.isclose(steps["last_loss"], 3.0 / 40)
    usual = sorted(s[3] for s in said)[20]
    assert math.isclose(steps["median_s"], usual, rel_tol=0.1), (steps, usual)

    story, = spotter.json("report", "--step", "30")["steps"]
    assert math.isclose(story["seconds"], said[29][3], rel_tol=0.05) and story["loss"] == 0.1, story
    assert story["scalars"] == [{"name": "accuracy", "value": 30 / 64}]
    # it slept for 2.6 s of it: by what its CPU clock says
    assert story["cpu_cores"] < 0.3, story
    text = spotter("report", check=True).out
    assert "Slowest steps" in text and "spotter report --step 30" in text, text

    rows = list(csv.DictReader(io.StringIO(exported(spotter, "--to", "csv", "--what", "steps").decode())))
    assert [(int(r["step"]), float(r["loss"]), float(r["accuracy"])) for r in rows] == [tuple(s[:3]) for s in said]
    timed = {int(r["step"]): float(r["step_time"]) for r in rows if r["step_time"]}
    assert len(timed) >= 39 and abs(timed[30] - said[29][3]) < 0.05
    # the evaluation is no part of the step behind it
    assert timed[21] < 0.3

    board = {}
    for _, step, tag, value in files.read_tensorboard(exported(spotter, "--to", "tensorboard")):
        board.setdefault(tag, []).append((step, value))
    assert [s for s, _ in board["loss"]] == list(range(1, 41))
    assert all(math.isclose(v, 3.0 / s, rel_tol=1e-6) for s, v in board["loss"])
    assert board["accuracy"] == [(s[0], s[2]) for s in said] and board["spotter/cpu_cores"]

    tracks = files.read_perfetto(exported(spotter, "--to", "perfetto"))
    named = {t.name: t for t in tracks.values() if t.name}
    names = [s[2] for s in named["steps"].slices]
    assert names == [f"step {n}" for n in sorted(timed)] and len(named["evaluate"].slices) == 1
    assert len(named["loss"].counts) == 40

    lines = [json.loads(x) for x in exported(spotter, "--to", "jsonl").splitlines()]
    assert [x["step"] for x in lines if x["type"] == "step"] == list(range(1, 41))
    assert lines[-1]["steps"] == 40


RANKS = """
import os, subprocess, sys, time
if len(sys.argv) == 1:
    kids = [subprocess.Popen([sys.executable, __file__, "rank"], env=dict(os.environ, RANK=str(r), WORLD_SIZE="2"))
            for r in range(2)]
    sys.exit(max(k.wait() for k in kids))
sys.path.insert(0, os.environ["SPOTTER_PYTHON"])
import spotter
for i in range(1, 26):
    time.sleep(0.1 if os.environ["RANK"] == "0" else 0.12)
    spotter.step(loss=1 / i)
"""


def test_two_ranks_in_one_run(spotter, tmp_path):
    (tmp_path / "train.py").write_text(RANKS)
    spotter("run", sys.executable, tmp_path / "train.py", check=True)
    v = spotter.json("why")
    assert v["run"]["ranks"] == 2 and v["steps"]["count"] == 25, v["steps"]
    assert [(r["rank"], r["steps"]) for r in v["ranks"]] == [(0, 25), (1, 25)], v["ranks"]
    assert len({r["pid"] for r in v["ranks"]}) == 2 and v["ranks"][0]["rate_hz"] > v["ranks"][1]["rate_hz"]
    both = spotter.json("report", "--step", "9")["steps"]
    assert [s["rank"] for s in both] == [0, 1] and all(s["step"] == 9 for s in both)
    assert "Ranks\nRANK " in spotter("report", check=True).out
    rows = list(csv.DictReader(io.StringIO(exported(spotter, "--to", "csv", "--what", "steps").decode())))
    assert sorted((r["rank"], int(r["step"])) for r in rows) == [(r, s) for r in "01" for s in range(1, 26)]


def test_without_steps(spotter, tmp_path):
    """Nothing is made up: no steps, no key, no file."""
    spotter("run", "sleep", "0.5", check=True)
    assert "steps" not in spotter.json("why")
    asked = spotter("report", "--step", "1")
    assert asked.code == 1 and "no steps were recorded" in asked.err
    out = tmp_path / "steps.csv"
    assert spotter("export", "--to", "csv", "--what", "steps", "--out", out).code == 1 and not out.exists()
