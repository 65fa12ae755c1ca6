# SPDX-License-Identifier: MIT
"""Commands over records: runs, rm, sql, export, and files that are no records."""
import json
import os
import shutil
import signal
import subprocess

import pytest


def test_round_trip(run, tmp_path):
    listed = run.json("runs")
    assert [r["name"] for r in listed["runs"]] == ["short"]
    only = listed["runs"][0]
    assert only["exit"] == {"code": 0} and only["state"] == "ended" and only["duration_s"] >= 0.5
    assert listed["total_bytes"] == only["bytes"] > 0
    path = only["path"]
    for name in ("last", "short", only["id"], only["id"][:-2], path):
        assert run.json("why", name)["run"]["id"] == only["id"]
    rows = run.json("sql", "short", "SELECT count(*) AS n FROM samples")
    run("export", "--to", "jsonl", "--out", tmp_path / "x.jsonl", check=True)
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert lines[0]["type"] == "run" and lines[-1] == {"type": "end", "samples": rows[0]["n"]}
    assert sum(x["type"] == "sample" for x in lines) == rows[0]["n"] > 0
    times = [x["t"] for x in lines if x["type"] in ("sample", "event")]
    assert times == sorted(times)
    ids = {x["id"] for x in lines if x["type"] == "entity"}
    assert {x["entity"] for x in lines if x["type"] == "sample"} <= ids
    run("rm", "short", check=True)
    assert run.json("runs")["runs"] == [] and not os.path.exists(path)


def test_a_record_from_elsewhere(run, tmp_path):
    copy = tmp_path / "copy.spot"
    shutil.copy(run.records()[0], copy)
    copy.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert run.json("why", copy)["run"]["name"] == "short"
        assert run("export", copy, "--to", "csv", check=True).out.count("\n") > 10
    finally:
        tmp_path.chmod(0o755)


def test_compare(run, tmp_path):
    """Two runs of one program, the second of which sleeps longer; a copy of a run is that run."""
    run("run", "--quiet", "--name", "longer", "--", "sh", "-c", "sleep 1", check=True)
    run.settled("longer")
    data = run.json("compare", "short", "longer")
    assert data["schema"] == "spotter.compare/1"
    assert data["a"]["name"] == "short" and data["b"]["name"] == "longer"
    assert data["speed"]["basis"] == "wall" and data["speed"]["b_s"] >= 1
    assert data["speed"]["ratio"] == pytest.approx(data["speed"]["a_s"] / data["speed"]["b_s"])
    assert "low" not in data["speed"], "without steps nothing says how sure it is"
    assert {"steps", "wall"} <= {r["code"] for r in data["remarks"]}
    assert any(u["name"] == "cpu.cores_used" for u in data["usage"])
    other = run.json("compare", "longer", "short")
    assert other["speed"]["ratio"] == pytest.approx(1 / data["speed"]["ratio"])
    assert "sleep 1" in run("compare", "short", "longer", check=True).out
    shutil.copy(run.records()[0], tmp_path / "copy.spot")
    done = run("compare", run.records()[0], tmp_path / "copy.spot")
    assert done.code == 1 and "both are the same run" in done.err and done.out == ""


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "foreign", "folder", "fifo", "bits"])
def test_files_that_are_no_records(run, tmp_path, damage):
    path = tmp_path / "x.spot"
    data = bytearray(run.records()[0].read_bytes())
    if damage == "foreign":
        subprocess.run(["sqlite3", path, "CREATE TABLE a (b)"], check=True)
    elif damage == "folder":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    elif damage == "bits":
        data[100:4096] = os.urandom(3996)
        path.write_bytes(data)
    else:
        path.write_bytes({"empty": b"", "cut": bytes(data[:3000]), "text": b"hello\n" * 1000}[damage])
    for words in (["why", path], ["report", path], ["sql", path, "SELECT * FROM run"],
                  ["export", path, "--to", "csv"], ["top", path], ["compare", "short", path],
                  ["compare", path, "short"]):
        done = run(*words, timeout=20)
        assert done.code == 1, words
        assert done.err.startswith("spotter: "), words
    run("runs", check=True)


def test_export_leaves_nothing_when_it_fails(run, tmp_path):
    done = run("export", "--to", "csv", "--out", tmp_path / "no/such/x.csv")
    assert done.code == 1 and "cannot write" in done.err
    (tmp_path / "x.csv").write_text("mine")
    done = run("export", "--to", "csv", "--out", tmp_path / "x.csv")
    assert done.code == 1 and "--force" in done.err
    assert (tmp_path / "x.csv").read_text() == "mine"
    run("export", "--to", "csv", "--out", tmp_path / "x.csv", "--force", check=True)
    assert (tmp_path / "x.csv").read_text().startswith("time,")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("x")] == ["x.csv"]
    run("export", "--to", "csv", "--out", "/dev/null", check=True)


def test_a_run_that_is_still_going(spotter, wait_for):
    child = spotter.start("run", "--name", "going", "--", "sleep", "60", text=True)
    wait_for(lambda: spotter.dir.exists() and [r for r in spotter.json("runs")["runs"] if r.get("state") == "going"],
             "the run in the list")
    done = spotter("why", "going", check=True)
    assert "still going" in done.err
    data = spotter.json("why", "going")
    assert data["run"]["argv"] == ["sleep", "60"] and not data["run"]["complete"]
    seen = wait_for(lambda: spotter("top", "going", "--once", "--json").out, "its process")
    assert [p["name"] for p in json.loads(seen)["processes"]] == ["sleep"]
    assert spotter("export", "going", "--to", "csv", check=True).out.startswith("time,")
    done = spotter("rm", "going")
    assert done.code == 1 and "going" in done.err
    assert spotter("runs", "--gc", "--max-size", "0").code == 0
    assert len(spotter.json("runs")["runs"]) == 1
    assert child.poll() is None
    child.terminate()
    child.communicate(timeout=20)
    assert child.returncode == -signal.SIGTERM
    assert spotter.json("runs")["runs"][0]["exit"] == {"signal": int(signal.SIGTERM)}
    spotter("rm", "going", check=True)
