# SPDX-License-Identifier: MIT
"""The zoo: its table agrees with its programs, its programs run, its figures are computed right, its stored records
are scored again."""
import json
import os
import subprocess
import sys

import pytest
from conftest import BUILD, TREE

ZOO = TREE / "zoo"
sys.path.insert(0, str(ZOO))
sys.dont_write_bytecode = True

import cases  # noqa: E402
import gain  # noqa: E402
import inject  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import score  # noqa: E402
import stats  # noqa: E402

TABLE = cases.every()
STORED = ZOO / "stored"
# one healthy case of each program, for the programs that need nothing but Debian
EACH = sorted({c.program: c.name for c in reversed(TABLE) if c.healthy and not c.injure}.values())
QUICK = ["digits-cpu", "finetune-fine"]


def zoo(*words, timeout=120):
    env = dict(os.environ, SPOTTER_BUILD=str(BUILD))
    line = [sys.executable, ZOO / "zoo", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, env=env, timeout=timeout)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("zoo-data")


def runnable(name):
    case = cases.by_name([name])[0]
    why = inject.lacking(case)
    if not why and not inject.importable("numpy"):
        why = "numpy cannot be imported"
    if why:
        pytest.skip(why)
    return case


def test_wilson():
    assert stats.wilson(0, 0) == (0.0, 1.0)
    low, high = stats.wilson(5, 10)
    assert (round(low, 4), round(high, 4)) == (0.2366, 0.7634)
    low, high = stats.wilson(0, 150)
    assert low == 0 and round(high, 4) == 0.025
    assert stats.wilson(10, 10)[1] == 1.0 and stats.share(9, 10) == "9/10 = 90 % (60-98)"


def test_bootstrap_and_quantiles():
    assert stats.bootstrap([2.0] * 5) == (2.0, 2.0, 2.0)
    middle, low, high = stats.bootstrap([1.0, 1.1, 1.2, 1.3, 5.0])
    assert middle == 1.2 and 1.0 <= low < middle < high <= 5.0
    assert stats.bootstrap([1.0, 1.1, 1.2, 1.3, 5.0]) == (middle, low, high)
    assert stats.quantile([1, 2, 3, 4], 0.5) == 2.5 and stats.quantile([], 0.5) is None and stats.quantile([7], 0.9) == 7


def test_gain_is_scored_where_it_is_known_well():
    assert gain.summary([[10, 20], [10, 20.2], [10, 19.8]])["narrow"]
    assert not gain.summary([[10, 20], [10, 20]])["narrow"], "two pairs are too few"
    assert not gain.summary([[10, 12], [10, 20], [10, 30]])["narrow"]


def test_the_table(spotter):
    """Enough of everything; every cause is one that Spotter knows; every mark is in its program."""
    known = {c["id"] for c in spotter.json("causes")["causes"]}
    named = {cause for c in TABLE for cause in c.causes + c.also}
    assert named <= known, named - known
    assert len(named) >= 30 and len({c.program for c in TABLE}) >= 14
    assert 3 * sum(c.healthy for c in TABLE) >= len(TABLE)
    assert len({c.name for c in TABLE}) == len(TABLE)
    for c in TABLE:
        assert (cases.PROGRAMS / c.program).exists(), c.name
        assert not c.marks or c.places(), f"{c.name}: no line of {c.program} has '# ail: {c.marks}'"
        assert c.healthy == (not c.causes), c.name


def test_no_program_names_a_cause():
    """What a rule could read off a name would prove nothing: causes stand in the marks only."""
    causes = {cause for c in TABLE for cause in c.causes + c.also}
    for file in sorted(cases.PROGRAMS.glob("*.py")) + sorted((ZOO / "injure").glob("*.py")):
        code = "\n".join(line.split("# ail:")[0] for line in file.read_text().splitlines())
        assert not {c for c in causes if c in code or c in file.name}, file.name


def test_judging():
    ill, fine = cases.by_name(["photos-inline"])[0], cases.by_name(["photos-fine"])[0]
    line = ill.places()[0][1]
    right = {"cause": "no_workers", "where": {"file": "/kit/zoo/photos.py", "line": line},
             "gain": {"speedup": 2.0, "low": 1.8, "high": 2.2}}
    other = {"cause": "cpu_quota", "gain": {"speedup": 3.0}}
    row = score.judge(ill, {"level": "L2", "findings": [right, other]})
    assert row["top1"] and row["top3"] and row["place"]
    score.with_gain(ill, row, {"photos-inline": {"speedup": 1.9, "low": 1.85, "high": 1.95, "narrow": True}})
    assert row["covered"] and not row["hit"] and round(row["error"], 3) == 0.053
    row = score.judge(ill, {"level": "L2", "findings": [other, dict(right, where={"file": "/kit/zoo/pace.py", "line": line})]})
    assert not row["top1"] and row["top3"] and row["place"] is False
    assert score.judge(ill, {"findings": [], "cannot_tell": [{"cause": "no_workers"}]})["abstained"]
    assert score.judge(fine, {"findings": [other]})["alarm"]
    assert not score.judge(fine, {"findings": [dict(other, gain={"speedup": 1.03})], "notes": [right]})["alarm"]
    rows = [dict(r, record="x") for r in (row, score.judge(fine, {"findings": [other]}))]
    table = {c.name: c for c in TABLE}
    result = {"groups": {"all": score.summary(table, rows)}, "confusion": score.confusion(table, rows), "peers": {}, "rows": rows}
    assert result["confusion"]["healthy"] == {"cpu_quota": 1}
    assert "| first finding is right | 0/1" in report.markdown(json.loads(json.dumps(result)))


def test_what_gains_nothing_here_is_not_ill_here():
    """A machine may be too fast for an ailment: its cure says so, and then silence is the right answer."""
    ill = cases.by_name(["photos-one"])[0]
    real = {"photos-one": gain.summary([[10, 10.1], [10, 10], [10, 10.2]])}
    assert score.harmless(ill, real) and not score.harmless(ill, {})
    assert not score.harmless(ill, {"photos-one": gain.summary([[10, 12], [10, 12], [10, 12.1]])})
    assert not score.harmless(ill, {"photos-one": gain.summary([[10, 10.1], [10, 10]])}), "not known well enough"
    row = dict(score.judge(ill, {"findings": []}), record="x", quiet=True)
    table = {c.name: c for c in TABLE}
    told = score.summary(table, [row])
    assert told["top1"]["of"] == 0 and told["harmless"]["hits"] == 1 and not report.is_wrong(row)
    assert report.is_wrong(dict(row, quiet=False))


def facts(**changed):
    base = {"gpu": [[0.95] * 20], "cpu": [0.3] * 20, "iowait": [0.0] * 20, "gpu_memory": [[0.8] * 20],
            "gpu_memory_bytes": [[1e9] * 20], "cores": 2, "loader_processes": 2, "steps": [(0.03, 0.0)] * 50, "startup_s": 3,
            "loader": 0.01, "ledger": {"gpu_wait": 0.95}, "disk_bytes": [0.0], "disk_reads": [0.0], "cached": [[1e9]],
            "memory": 1e10, "swap_in": [],
            "temperature": [[60]], "clock": [[1980]], "clock_max": 1980, "pcie": [1e6], "ranks": []}
    return {**base, **changed}


@pytest.mark.parametrize("changed, peer, advice", [
    ({"gpu": [[0.05] * 20], "cpu": [0.95] * 20}, "SageMaker Debugger", "cpu bottleneck"),
    ({"loader_processes": 1}, "SageMaker Debugger", "number of loader processes"),
    ({"loader": 0.06}, "TensorBoard plug-in", "set num_workers"),
    ({"gpu": [[0.4] * 20]}, "TensorBoard plug-in", "increase the batch"),
    ({"loader": 0.2, "ledger": {"gpu_wait": 0.7}}, "TraceML", "input bound"),
    ({"disk_reads": [6000.0]}, "gpuprof", "io bottleneck"),
    ({"temperature": [[85]], "clock": [[1200]]}, "gpuprof", "hot")])
def test_rules_of_others(changed, peer, advice):
    assert advice not in peers.RULES[peer](facts())
    assert advice in peers.RULES[peer](facts(**changed)) and advice in peers.ADVICE


def test_nothing_is_said_of_a_good_run():
    assert {name: rules(facts()) for name, rules in peers.RULES.items()} == {name: [] for name in peers.RULES}


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in sorted({*EACH, *QUICK})])
def test_programs_run(name, data):
    runnable(name)
    done = zoo("try", name, "--seconds", 2, "--data", data)
    assert done.returncode == 0 and '"steps"' in done.stdout, done.stdout + done.stderr


def test_record_and_score(tmp_path, data):
    """A fresh record; the second time nothing is to do; the score has it."""
    runnable("digits-cpu")
    done = zoo("record", "digits-cpu", "--seconds", 2.5, "--data", data, "--into", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    again = zoo("record", "digits-cpu", "--seconds", 2.5, "--data", data, "--into", tmp_path)
    assert "there" in again.stdout
    scored = zoo("score", tmp_path, "--json", tmp_path / "score.out")
    assert scored.returncode == 0 and "## The same records, other rules" in scored.stdout, scored.stderr
    result = json.loads((tmp_path / "score.out").read_text())
    assert result["groups"]["all"]["records"] == 1 and result["groups"]["all"]["alarms"]["of"] == 1


def test_recorded_right_before_its_cure(tmp_path, data):
    """One command records a case and holds the prediction against pairs of the same minute."""
    runnable("digits-blas")
    done = zoo("gain", "digits-blas", "--record", 2.5, "--pairs", 1, "--seconds", 2, "--data", data, "--into", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    real = json.loads((tmp_path / "gains.json").read_text())["digits-blas"]
    assert len(real["pairs"]) == 1 and not real["narrow"]
    assert len(list(tmp_path.glob("digits-blas.*.spot"))) == 1


def test_stored_records(tmp_path):
    """The set in the tree, scored again. It is small: a change for the worse is a test that fails."""
    if not list(STORED.glob("*.spot")):
        pytest.skip("no stored records in zoo/stored")
    assert sum(f.stat().st_size for f in STORED.iterdir()) < 4 << 20
    goals = json.loads((STORED / "goals.json").read_text()) if (STORED / "goals.json").exists() else {}
    groups = score.score(STORED)["groups"]["all"]
    assert groups["top1"]["hits"] >= goals.get("top1", 0), report.mistakes(score.score(STORED))
    assert groups["top3"]["hits"] >= goals.get("top3", 0)
    assert groups["alarms"]["hits"] <= goals.get("alarms", groups["alarms"]["of"])
