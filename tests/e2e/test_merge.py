# SPDX-License-Identifier: MIT
"""`spotter merge`: records of four machines with two ranks each as one run (tests/unit/explain/nodes_made.h)."""
import json
import shutil
import subprocess

import pytest


@pytest.fixture
def nodes(build, tmp_path):
    """nodes(rank, "data"): records in which this rank gets its data late; "work": has more to do."""
    def make(rank, what):
        folder = tmp_path / f"{what}{rank}"
        folder.mkdir()
        subprocess.run([build / "tests/unit/explain/nodes_as", folder, str(rank), what], check=True, timeout=60)
        return sorted(folder.glob("node*.spot"))
    return make


def causes(verdict):
    return {f["cause"]: f for f in verdict["findings"]}


def test_a_slow_loader_is_named(spotter, nodes):
    records = nodes(5, "data")
    before = [r.read_bytes() for r in records]
    done = spotter("merge", *reversed(records), "--name", "ddp", check=True)
    assert "4 records of 4 machines, 8 ranks" in done.out
    assert "node2: rank 4, 5 (" in done.out
    assert "node1: clock 1.2 s ahead of node0's, by 90 steps that end together" in done.out
    assert "rank 5 (pid 1001 on node2)" in done.out
    assert [r.read_bytes() for r in records] == before, "the records themselves stay as they are"

    verdict = spotter.json("why", "ddp")
    assert "rank 5 (pid 1001 on node2)" in causes(verdict)["input_straggler"]["title"]
    assert "compute_straggler" not in causes(verdict)
    assert {(r["rank"], r["host"], r["pid"]) for r in verdict["ranks"]} == \
        {(2 * n + i, f"node{n}", 1000 + i) for n in range(4) for i in range(2)}
    report = spotter("report", "ddp", check=True).out
    assert "MACHINE" in report and "node3" in report
    page = spotter("report", "ddp", "--html", "-", check=True).out
    assert "rank 5 (pid 1001 on node2)" in page

    rows = json.loads(spotter("sql", "ddp", "--json", "SELECT name, ranks, clock, round(clock_offset, 3) AS o FROM nodes"
                              " ORDER BY id", check=True).out)
    assert [tuple(r.values()) for r in rows] == [("node0", "0, 1", "same", 0), ("node1", "2, 3", "steps", 1.203),
                                                  ("node2", "4, 5", "steps", -40), ("node3", "6, 7", "steps", 0.004)]
    assert "ddp" in spotter("runs", check=True).out
    assert verdict["run"]["host"] == "node0 and 3 more"


def test_a_slow_rank_is_named(spotter, nodes, tmp_path):
    out = tmp_path / "all.spot"
    verdict = spotter.json("merge", *nodes(6, "work"), "--out", out)
    assert "rank 6 (pid 1000 on node3)" in causes(verdict)["compute_straggler"]["title"]
    assert "input_straggler" not in causes(verdict)
    # the GPU of its machine is hot
    assert "GPU 3" in causes(verdict)["gpu_throttled"]["title"]
    again = spotter.json("why", out)
    assert again["findings"] == verdict["findings"]
    # the line only this rank is at
    assert causes(again)["compute_straggler"]["where"]["line"] == 51


def test_alone_no_record_says_it(spotter, nodes):
    """Without merging, nobody sees it: the rank is one of the two of its machine, but all ranks wait for it."""
    verdict = spotter.json("why", nodes(6, "work")[0])
    assert "compute_straggler" not in causes(verdict)


def test_refusals(spotter, nodes, tmp_path):
    records = nodes(5, "data")
    out = tmp_path / "out.spot"
    for words, said in (
            ([records[0]], "RUN"),
            ([records[0], records[0]], "are the same run"),
            ([records[0], tmp_path / "no"], "no"),
    ):
        done = spotter("merge", *words, "--out", out)
        assert done.code != 0 and said in done.err and not out.exists()
    # a copy under another id has each rank twice
    copy = tmp_path / "copy.spot"
    shutil.copy(records[1], copy)
    import sqlite3
    with sqlite3.connect(copy) as db:
        db.execute("UPDATE run SET id = 'other', boot_id = 'other'")
    db.close()
    done = spotter("merge", records[0], records[1], copy, "--out", out)
    assert done.code == 1 and "rank 2 is in" in done.err and "--force" in done.err and not out.exists()
    assert "rank 2 is in" in spotter("merge", records[0], records[1], copy, "--out", out, "--force", check=True).out
    # it is there now, and stays
    whole = out.read_bytes()
    assert spotter("merge", *records, "--out", out).code == 1
    assert out.read_bytes() == whole
    done = spotter("merge", out, records[3], "--out", tmp_path / "again.spot")
    assert done.code == 1 and "merged run itself" in done.err


def test_damaged_records(spotter, nodes, tmp_path):
    """Whatever is in them: a sentence or a run, and nothing half-made."""
    records = nodes(5, "data")
    data = records[1].read_bytes()
    bad = tmp_path / "bad.spot"
    for i in range(12):
        at = len(data) * (i + 1) // 13
        bad.write_bytes(data[:at] + bytes(b ^ 0x5a for b in data[at:at + 64]) + data[at + 64:])
        out = tmp_path / f"out{i}.spot"
        done = spotter("merge", records[0], bad, records[2], "--out", out)
        assert done.code in (0, 1), done.err
        assert out.exists() == (done.code == 0)
        if done.code == 0:
            assert spotter("why", out).code == 0
    bad.write_bytes(data[:len(data) // 2])
    assert spotter("merge", records[0], bad, "--out", tmp_path / "cut.spot").code == 1


def test_a_recorder_a_rank(spotter, build):
    """Ranks of one machine, recorded one by one: the machine is there once."""
    if not (build / "libspotter.so.0").exists():
        pytest.skip("libspotter is not built")
    program = "import spotter, time\nfor i in range(30): time.sleep(0.03); spotter.step(loss=i)"
    ranks = [spotter.start("run", "--quiet", "--name", f"r{i}", "--", "python3", "-c", program,
                           env={**spotter.env, "RANK": str(i), "WORLD_SIZE": "3"}) for i in range(2)]
    assert [r.wait(120) for r in ranks] == [0, 0]
    for i in range(2):
        spotter.settled(f"r{i}")
    said = spotter("merge", "r0", "r1", "--name", "both", check=True).out
    assert "2 records of 1 machine, 2 ranks" in said
    assert "of ranks 0 to 2 these are in none of the records: 2" in said
    count = "SELECT (SELECT count(*) FROM device WHERE kind = 'host' AND key > 0) AS hosts, count(*) AS steps FROM steps"
    assert spotter.json("sql", "both", count) == [{"hosts": 1, "steps": 60}]


def test_real_records(spotter, tree, tmp_path):
    """Two that have nothing to do with each other: refused, and merged when told to."""
    stored = sorted((tree / "zoo/stored").glob("*.spot"))[:2]
    pair = [shutil.copy(r, tmp_path) for r in stored]
    out = tmp_path / "all.spot"
    assert spotter("merge", *pair, "--out", out).code == 1
    done = spotter("merge", *pair, "--out", out, "--force", check=True)
    assert "2 records" in done.out
    sums = [json.loads(spotter("sql", p, "--json", "SELECT count(*) AS n FROM stack_samples", check=True).out)[0]["n"]
            for p in (*pair, out)]
    assert sums[2] == sums[0] + sums[1]
    steps = [json.loads(spotter("sql", p, "--json", "SELECT count(*) AS n FROM steps", check=True).out)[0]["n"]
             for p in (*pair, out)]
    assert steps[2] == steps[0] + steps[1]
