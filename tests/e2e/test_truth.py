# SPDX-License-Identifier: MIT
"""Spotter's figures against what the kernel and the program itself know.

tests/programs/burn uses known amounts of CPU, memory and IO in known threads and children and says
what it used; the record must agree.
"""
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from conftest import BUILD

BURN = BUILD / "tests/programs/burn"


@pytest.fixture
def burn(spotter, tmp_path):
    """Runs burn under Spotter: (what it says itself, the verdict, a function for SQL)."""
    def go(*steps, options=(), code=0):
        out = tmp_path / f"truth-{time.monotonic_ns()}.spot"
        done = spotter("run", "--quiet", "--out", out, *options, "--", BURN, *steps)
        assert done.code == code, done.err
        own = json.loads(done.out[done.out.rindex("{"):]) if code == 0 else None

        def sql(query):
            return spotter.json("sql", out, query)
        return own, spotter.json("why", out), sql
    return go


def within(value, truth, relative, absolute=0.0):
    assert abs(value - truth) <= max(relative * abs(truth), absolute), (value, truth)


def cpu_seconds(verdict):
    """CPU seconds of the job by role, from the ledger over its window."""
    span = verdict["window"]["to_s"] - verdict["window"]["from_s"]
    return {line["role"]: line["cores"] * span for line in verdict["cpu"]["ledger"]}


def total(verdict):
    span = verdict["window"]["to_s"] - verdict["window"]["from_s"]
    return verdict["cpu"]["cores"] * span


def test_cpu_of_the_first_process(burn):
    own, verdict, sql = burn("cpu=1.5", "sleep=0.5")
    within(total(verdict), own["self"], 0.01, 0.010)
    within(cpu_seconds(verdict)["main"], own["self"], 0.01, 0.010)
    assert abs(verdict["cpu"]["unaccounted"]) < 0.01
    within(verdict["usage"]["cpu"]["cores_used"], own["self"] / verdict["run"]["duration_s"], 0.02)
    within(verdict["usage"]["cpu"]["percent_of_one_core"],
           100 * verdict["usage"]["cpu"]["cores_used"], 1e-6)


def test_cpu_of_named_threads(burn):
    own, verdict, sql = burn("threads=3x0.8", "sleep=0.3")
    rows = sql("SELECT name, max(value) AS cpu FROM samples WHERE metric = 'thread.cpu' "
               "AND name LIKE 'burn-%' GROUP BY entity, name")
    seen = {row["name"]: row["cpu"] for row in rows}
    for i in range(3):
        # a thread is seen last at most one sample (0.1 s) before its end
        within(seen[f"burn-{i}"], own[f"burn-{i}"], 0.02, 0.11)
    within(total(verdict), own["self"], 0.01, 0.010)


def test_cpu_of_children(burn):
    own, verdict, _ = burn("children=4x0.7")
    roles = cpu_seconds(verdict)
    within(total(verdict), own["self"] + own["children"], 0.01, 0.010)
    # what a child did after its last sample is in `other`, not lost; where the first process only waits for
    # its children, they are the main ones
    within(sum(roles.values()) - own["self"], own["children"], 0.01, 0.020)
    assert abs(verdict["cpu"]["unaccounted"]) < 0.01


def test_thousands_of_short_lived_processes(burn):
    own, verdict, _ = burn("cpu=0.2", "short=1200x2")
    assert own["children"] > 2.3
    within(total(verdict), own["self"] + own["children"], 0.01, 0.010)
    roles = cpu_seconds(verdict)
    within(sum(roles.values()), own["self"] + own["children"], 0.01, 0.010)
    assert abs(verdict["cpu"]["unaccounted"]) < 0.01


def test_a_daemonised_orphan_is_part_of_the_job(burn):
    own, verdict, sql = burn("daemon=0.8", "sleep=0.2", options=["--wait"])
    within(total(verdict), 0.8 + own["self"], 0.02, 0.020)
    assert sql("SELECT count(*) AS n FROM process WHERE name = 'burn-daemon'")[0]["n"] == 1


def test_sleep_uses_nothing(burn):
    own, verdict, _ = burn("sleep=1.5")
    assert verdict["usage"]["cpu"]["cores_used"] < 0.02
    within(verdict["run"]["duration_s"], 1.5, 0.05, 0.1)


def test_memory_touched(burn):
    own, verdict, _ = burn("touch=300", "sleep=0.6")
    within(verdict["usage"]["memory"]["peak_bytes"], own["maxrss"], 0.02)
    assert verdict["usage"]["memory"]["peak_bytes"] > 300e6


def test_bytes_read_and_written(burn, tmp_path):
    file = tmp_path / "data.bin"
    own, verdict, sql = burn(f"write={file}:48", f"read={file}", "sleep=0.3")
    values = {row["metric"]: row["v"] for row in
              sql("SELECT metric, max(value) AS v FROM samples WHERE kind = 'process' AND metric IN "
                  "('proc.read_chars', 'proc.write_chars', 'proc.read_bytes', 'proc.written_bytes') "
                  "GROUP BY metric")}
    within(values["proc.write_chars"], own["written"], 0.01, 4096)
    within(values["proc.read_chars"], own["read"], 0.02, 65536)
    if file.stat().st_dev != Path("/dev/shm").stat().st_dev:
        within(values["proc.written_bytes"], own["written"], 0.02)


def test_exec_is_an_event_and_no_new_process(burn):
    _, _, sql = burn("cpu=0.3", "exec=second")
    rows = sql("SELECT kind, text FROM event WHERE kind = 'exec'")
    assert len(rows) >= 1
    assert sql("SELECT count(DISTINCT pid) AS n FROM process")[0]["n"] == 1


def test_the_record_can_be_recomputed(burn):
    """Promise 5: each figure of the verdict can be computed again from the record with SQL."""
    own, verdict, sql = burn("cpu=0.8", "children=2x0.4")
    row = sql("SELECT max(value) AS cpu FROM samples WHERE metric = 'job.cpu'")[0]
    within(row["cpu"], own["self"] + own["children"], 0.01, 0.010)


class Group:
    """A control group of version 1 made for one test: cpu and memory where they are mounted."""

    def __init__(self, controller, settings):
        self.path = Path(f"/sys/fs/cgroup/{controller}/spotter-test-{os.getpid()}-{time.monotonic_ns()}")
        self.path.mkdir()
        for name, value in settings.items():
            (self.path / name).write_text(str(value))

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        for _ in range(50):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)


@pytest.fixture
def group():
    made = []

    def make(controller, **settings):
        root = Path("/sys/fs/cgroup") / controller
        if not (root / "cgroup.procs").exists():
            pytest.skip(f"no cgroup v1 controller '{controller}' mounted here")
        g = Group(controller, settings)
        made.append(g)
        return g
    yield make
    for g in made:
        g.remove()


@pytest.mark.root
@pytest.mark.alone
def test_a_real_cpu_quota_is_named(spotter, group, tmp_path):
    quota = group("cpu", **{"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": 60000})
    out = tmp_path / "quota.spot"
    done = spotter("run", "--out", out, "--", BURN, "spin=2x7", preexec_fn=quota.enter)
    assert done.code == 0, done.err
    verdict = spotter.json("why", out)
    cpu = verdict["usage"]["cpu"]
    within(cpu["cores_allowed"], 0.6, 0.001)
    assert cpu["limit"] == "quota"
    within(cpu["cores_used"], 0.6, 0.1)
    causes = [f["cause"] for f in verdict["findings"]]
    assert causes and causes[0] == "cpu_quota", verdict
    assert "thread_oversubscription" not in causes
    finding = verdict["findings"][0]
    assert finding["evidence"] and finding["fix"]["summary"]
    assert "quota" in done.err and len(done.err.splitlines()) <= 12


@pytest.mark.root
def test_a_real_memory_limit_kills_and_is_named(spotter, group, tmp_path):
    limit = group("memory", **{"memory.limit_in_bytes": 200_000_000})
    swap = limit.path / "memory.memsw.limit_in_bytes"
    if swap.exists():
        swap.write_text("200000000")
    out = tmp_path / "oom.spot"
    # the limit is on the program alone: a shell enters the group and becomes it
    enter = f"echo $$ > {limit.path}/cgroup.procs && exec {BURN} grow=20x200"
    done = spotter("run", "--out", out, "--", "sh", "-c", enter)
    assert done.code == -9, (done.code, done.err)
    verdict = spotter.json("why", out)
    assert verdict["findings"][0]["cause"] == "oom_killed", verdict
    assert verdict["run"]["exit"] == {"signal": 9}
    assert verdict["usage"]["memory"]["limit"] == "cgroup"
    within(verdict["usage"]["memory"]["allowed_bytes"], 200_000_000, 0.01)


@pytest.mark.root
def test_the_cgroup_agrees(spotter, group, tmp_path):
    """A control group of the job's own charges what the ledger says."""
    own = group("cpuacct")
    out = tmp_path / "cpuacct.spot"
    enter = f"echo $$ > {own.path}/cgroup.procs && exec {BURN} cpu=0.5 children=3x0.5 short=200x2"
    spotter("run", "--quiet", "--out", out, "--", "sh", "-c", enter, check=True)
    charged = int((own.path / "cpuacct.usage").read_text()) / 1e9
    within(total(spotter.json("why", out)), charged, 0.01, 0.020)


def test_a_sigkill_by_hand_is_not_an_oom_kill(spotter, tmp_path):
    out = tmp_path / "killed.spot"
    done = spotter("run", "--quiet", "--out", out, "--", "sh", "-c", "sleep 0.5; kill -9 $$")
    assert done.code == -9
    verdict = spotter.json("why", out)
    assert "oom_killed" not in [f["cause"] for f in verdict["findings"]]


@pytest.mark.one_user
@pytest.mark.alone
def test_threads_that_fight_for_cores_are_named(spotter, tmp_path):
    cores = len(os.sched_getaffinity(0))
    out = tmp_path / "over.spot"
    done = spotter("run", "--out", out, "--", BURN, f"spin={cores * 8}x7")
    assert done.code == 0
    verdict = spotter.json("why", out)
    named = [f["cause"] for f in verdict["findings"] + verdict["notes"]]
    assert "thread_oversubscription" in named, verdict


@pytest.mark.one_user
@pytest.mark.alone
def test_a_healthy_program_is_called_healthy(spotter, tmp_path):
    cores = len(os.sched_getaffinity(0))
    out = tmp_path / "healthy.spot"
    spotter("run", "--quiet", "--out", out, "--", BURN, f"spin={cores}x7", check=True)
    verdict = spotter.json("why", out)
    assert verdict["findings"] == [], verdict
    assert verdict["healthy"] is True


@pytest.mark.one_user
@pytest.mark.alone
def test_a_neighbour_who_takes_the_cores_is_named(spotter, tmp_path):
    cores = len(os.sched_getaffinity(0))
    neighbours = [subprocess.Popen([BURN, f"spin={cores}x20"], stdout=subprocess.DEVNULL) for _ in range(2)]
    out = tmp_path / "neighbour.spot"
    try:
        spotter("run", "--quiet", "--out", out, "--", BURN, "spin=1x7", check=True)
    finally:
        for n in neighbours:
            n.kill()
            n.wait()
    verdict = spotter.json("why", out)
    causes = [f["cause"] for f in verdict["findings"]]
    assert causes == ["cpu_neighbour"], verdict
    gain = verdict["findings"][0]["gain"]
    assert 1.05 < gain["low"] <= gain["speedup"] <= gain["high"]
    assert verdict["healthy"] is False
