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
    assert steps["count"] == 40 and (steps["source"], steps["marker"]) == ("mark", "api"), steps
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
    usage = spotter.json("sql", "SELECT step, cpu_cores, memory FROM steps WHERE step IN (29, 30)")
    of = {u["step"]: u for u in usage}
    assert of[30]["cpu_cores"] < 0.3 and of[30]["memory"] > 1e6 and of[29]["cpu_cores"] is None, usage
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


SILENT = """
import json, multiprocessing, random, sys, time

def loader(out, seed):
    "A worker: makes a batch, hands it over; evenly, or whenever it likes."
    chance = random.Random(seed)
    begin = time.monotonic()
    for i in range(30):
        rows = [((i * 31 + k) % 97 / 97, (i * 17 + k) % 89 / 89) for k in range(2000)]
        due = chance.expovariate(1 / 0.5) if seed else begin + (i + 1) * 0.6 - time.monotonic()
        time.sleep(max(0, due))
        out.send(rows)

if __name__ == "__main__":
    seed = int(sys.argv[2])
    ready, out = multiprocessing.Pipe(duplex=False)
    worker = multiprocessing.Process(target=loader, args=(out, seed))
    worker.start()
    a = b = 0.0
    ends = []
    for _ in range(30):
        rows = ready.recv()
        end = time.monotonic() + (random.expovariate(5) if seed else 0.25)
        while time.monotonic() < end:
            for x, y in rows[:200]:
                error = a * x + b - y
                a, b = a - 1e-3 * error * x, b - 1e-3 * error
        ends.append(time.monotonic())
    worker.join()
    json.dump(ends, open(sys.argv[1], "w"))
"""


def test_steps_of_a_program_that_says_nothing(spotter, tmp_path):
    """A plain training loop without hooks: its rate is seen. One of which the batches come at any time: nothing is."""
    (tmp_path / "train.py").write_text(SILENT)
    runs = [subprocess.Popen([spotter.binary, "run", "--no-hooks", "--out", tmp_path / f"{seed}.spot", sys.executable,
                              tmp_path / "train.py", tmp_path / f"said{seed}", str(seed)], env=spotter.env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for seed in (0, 3)]
    shown = [run.communicate(timeout=300)[1].decode() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], shown
    assert "steps" not in spotter.json("why", tmp_path / "3.spot")
    ends = json.loads((tmp_path / "said0").read_text())
    took = sorted(b - a for a, b in zip(ends, ends[1:]))
    mean = sum(took) / len(took)
    v = spotter.json("why", tmp_path / "0.spot")
    # Where the machine is so busy that the loop is not regular, or no stacks may be read, nothing is told.
    if "steps" in v:
        assert v["steps"]["source"] == "inferred", v["steps"]
        assert set(v["steps"]) <= {"count", "rate_hz", "median_s", "source"}, v["steps"]
        assert math.isclose(v["steps"]["rate_hz"], 1 / mean, rel_tol=0.03), (v["steps"], mean)
        assert abs(v["steps"]["count"] - 30) <= 3, v["steps"]
        assert " about 1.7 a second; inferred" in spotter("why", tmp_path / "0.spot", check=True).out
        return
    queued = sum(x["share"] for x in v.get("time", {}).get("ledger", []) if x["state"] == "cpu_queue")
    calm = v["level"] not in ("L0", "L1") and queued < 0.1 and took[-2] < 1.1 * mean
    assert not calm, f"no steps were seen: {v['level']}, {queued}, {took}"
    pytest.skip(f"too busy a machine, or stacks could not be read: level {v['level']}, {queued:.0%} queued")


def test_without_steps(spotter, tmp_path):
    """Nothing is made up: no steps, no key, no file."""
    spotter("run", "sleep", "0.5", check=True)
    assert "steps" not in spotter.json("why")
    asked = spotter("report", "--step", "1")
    assert asked.code == 1 and "no steps were recorded" in asked.err
    out = tmp_path / "steps.csv"
    assert spotter("export", "--to", "csv", "--what", "steps", "--out", out).code == 1 and not out.exists()
