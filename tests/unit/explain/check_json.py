# SPDX-License-Identifier: MIT
"""check_json.py VERDICT_OF FOLDER: the JSON of every scenario is JSON, has the promised keys and no others, and
figures that agree with each other."""
import json
import math
import pathlib
import re
import subprocess
import sys

KEYS = {
    "": {"schema", "run", "window", "level", "level_why", "steps", "usage", "time", "cpu", "ranks", "findings", "notes", "healthy", "limit", "together", "cannot_tell",
         "overhead"},
    "run": {"id", "name", "argv", "host", "started", "duration_s", "exit", "ranks", "complete"},
    "window": {"from_s", "to_s", "why"},
    "usage": {"cpu", "memory", "storage", "gpus", "others"},
    "usage.cpu": {"cores_used", "cores_allowed", "cores_machine", "threads_per_core", "steal", "percent_of_one_core",
                  "percent_of_allowed", "limit"},
    "usage.memory": {"used_bytes", "peak_bytes", "allowed_bytes", "limit"},
    "usage.storage": {"read_bytes", "written_bytes"},
    "usage.others": {"cpu_cores"},
    "cpu": {"cores", "ledger", "unaccounted"},
    "overhead": {"cpu_share_of_core", "rss_bytes", "samples", "samples_skipped", "stack_samples", "stack_unproven",
                 "stack_partial"},
}
# What only a run has whose training says something.
SAID = {"steps", "ranks"}
STEPS = {"count", "rate_hz", "median_s", "p95_s", "source", "marker", "warm_up", "data_wait_share", "aside_share", "first_loss",
         "last_loss"}
RANK = {"rank", "host", "pid", "steps", "rate_hz", "median_s", "data_wait_share", "own_work_s", "comm_wait_s"}
# What only a run with stacks has, and a level that is as high as it gets has no reason.
STACKS = {"level_why", "time", "stack_samples", "stack_unproven", "stack_partial"}
# What a scenario may not have measured, and a healthy one does not say. COMPLETE has all of it.
MAY_BE_ABSENT = {"limit", "together", "gpus", "healthy", "exit", "threads_per_core", "steal", "cpu_cores", "read_bytes",
                 "written_bytes"} | KEYS["overhead"] | STACKS | SAID
COMPLETE = "threads-no-as-many.scn"
FINDING = {"cause", "family", "title", "cost", "confidence", "where", "evidence", "fix", "gain"}
GPU = {"index", "partition", "profile", "uuid", "name", "vendor", "simulated", "allowed", "used_by_job", "busy",
       "busy_at_least", "sm_active", "memory_used_bytes", "memory_peak_bytes", "memory_total_bytes", "power_w", "energy_j",
       "temperature_c", "clock_hz", "clock_max_hz", "held_by", "processes", "processes_left_out", "state",
       "seen_s", "unified_memory"}
GPU_PROCESS = {"pid", "memory_bytes", "busy", "job", "name"}
EVIDENCE = {"text", "metric", "value", "unit"}
STATES = {"data_wait", "data_load", "transfer", "dispatch", "python", "gpu_wait", "comm_wait", "io", "cpu_queue",
          "memory_stall", "lock_wait", "idle", "other"}
ROLES = {"main", "loader_worker", "pin_thread", "blas_threads", "comm_threads", "spin_wait", "framework_threads",
         "tokenizer_threads", "child", "kernel_side", "other"}
TOP = {"function", "file", "line", "share"}


def at(v, path):
    for key in filter(None, path.split(".")):
        v = v[key]
    return v


def finite(v, where="$"):
    if isinstance(v, dict):
        for k, x in v.items():
            finite(x, f"{where}.{k}")
    elif isinstance(v, list):
        for i, x in enumerate(v):
            finite(x, f"{where}[{i}]")
    else:
        assert v is not None, where
        assert not isinstance(v, float) or math.isfinite(v), where


def check_finding(f):
    assert set(f) <= FINDING and set(f) >= {"cause", "family", "title", "confidence", "evidence", "fix"}, f
    assert 0 <= f.get("cost", 0) <= 1 and 0 < f["confidence"] <= 1 and f["title"]
    assert f["evidence"] and all(set(e) == EVIDENCE for e in f["evidence"])
    assert f["fix"]["summary"]
    if "speedup" in f.get("gain", {}):
        g = f["gain"]
        assert 1 <= g["low"] <= g["speedup"] <= g["high"] <= g.get("most", 1e9), g
        assert g["speedup"] == 1 or g["then"], g


def check_gpus(gpus):
    for g in gpus:
        assert {"index", "name", "simulated"} <= set(g) <= GPU, g
        assert 0 <= g.get("busy", 0) <= 1 and g.get("memory_used_bytes", 0) <= g.get("memory_total_bytes", 1e15)
        assert g.get("memory_used_bytes", 0) <= g.get("memory_peak_bytes", 0)
        assert g.get("state", "lost") in {"lost", "hung", "not read"} and g.get("seen_s", 0) >= 0
        for p in g.get("processes", []):
            assert set(p) <= GPU_PROCESS and ("pid" in p) == ("job" in p), p
    # the job's own first, hidden ones last
    order = [0 if g.get("used_by_job") else 2 if g.get("allowed") is False else 1 for g in gpus if "partition" not in g]
    assert order == sorted(order)


def check_top(line):
    shares = [top["share"] for top in line.get("top", [{"share": 1}])]
    assert 1 <= len(shares) <= 5 and shares == sorted(shares, reverse=True) and sum(shares) <= 1 + 1e-6, line
    for top in line.get("top", []):
        assert {"share"} < set(top) <= TOP and top["share"] > 0, top


def check_roles(ledger):
    assert len({x["role"] for x in ledger}) == len(ledger)
    for x in ledger:
        assert x["role"] in ROLES, x
        check_top(x)


def check_time(time, overhead):
    assert set(time) - {"name", "error"} == {"pid", "tid", "ledger", "unaccounted"}, time
    assert time["pid"] > 0 and time["tid"] > 0 and time["ledger"]
    for x in time["ledger"]:
        assert {"state", "share"} <= set(x) <= {"state", "share", "seconds", "seconds_per_step", "top"}, x
        check_top(x)
        assert x["state"] in STATES and -1e-9 <= x["share"] <= 1 + 1e-9, x
    assert len({x["state"] for x in time["ledger"]}) == len(time["ledger"])
    assert math.isclose(sum(x["share"] for x in time["ledger"]) + time["unaccounted"], 1, abs_tol=1e-6), time
    assert overhead["stack_samples"] > 0 and overhead["stack_unproven"] <= overhead["stack_samples"]


def check_steps(v):
    s = v["steps"]
    assert {"count", "warm_up"} <= set(s) <= STEPS and s["count"] > 0 and s["warm_up"] <= s["count"], s
    assert s.get("median_s", 0) <= s.get("p95_s", 1e9) and 0 <= s.get("data_wait_share", 0) <= 1, s
    assert ("ranks" in v) == ("ranks" in v["run"])
    for r in v.get("ranks", []):
        assert {"rank", "steps"} <= set(r) <= RANK, r
    assert len({r["rank"] for r in v.get("ranks", [])}) == v["run"].get("ranks", 0)
    for x in v.get("time", {}).get("ledger", []):
        # by the clock: all states of a step add up to it
        assert "seconds_per_step" not in x or math.isclose(x["seconds_per_step"] * s["rate_hz"], x["share"], abs_tol=1e-6)


def check(v, complete):
    assert v["schema"] == "spotter.verdict/1"
    for path, keys in KEYS.items():
        have = set(at(v, path))
        assert have <= keys, (path, have - keys)
        assert have >= keys - ({"gpus", "together"} | STACKS | SAID if complete else MAY_BE_ABSENT), (path, keys - have)
    assert "together" not in v or set(v["together"]) == {"speedup", "low", "high"}
    finite(v)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", v["run"]["started"])
    assert re.fullmatch(r"L[0-3]", v["level"])
    if "exit" in v["run"]:
        assert len(v["run"]["exit"]) == 1 and set(v["run"]["exit"]) <= {"code", "signal"}
    cpu = v["usage"]["cpu"]
    assert math.isclose(cpu["percent_of_one_core"], cpu["cores_used"] * 100)
    assert math.isclose(cpu["percent_of_allowed"], cpu["cores_used"] / cpu["cores_allowed"] * 100)
    check_gpus(v["usage"].get("gpus", []))
    shares = sum(x["share"] for x in v["cpu"]["ledger"]) + v["cpu"]["unaccounted"]
    assert math.isclose(shares, 1, rel_tol=1e-9), shares
    check_roles(v["cpu"]["ledger"])
    if "steps" in v:
        check_steps(v)
    if "time" in v:
        check_time(v["time"], v["overhead"])
    for f in v["findings"] + v["notes"]:
        check_finding(f)
    for f in v["findings"]:
        assert f.get("gain", {}).get("speedup", 2) >= 1.05
    gains = [f["gain"]["speedup"] for f in v["findings"] if "speedup" in f.get("gain", {})]
    assert gains == sorted(gains, reverse=True)
    assert v.get("healthy", True) == (not v["findings"])
    assert all(set(c) == {"cause", "why"} and c["why"] for c in v["cannot_tell"])


def main():
    program, folder = sys.argv[1:]
    scenarios = sorted(pathlib.Path(folder).glob("*.scn"))
    assert len(scenarios) >= 30 and any(p.name == COMPLETE for p in scenarios)
    for path in scenarios:
        out = subprocess.run([program, path, "json"], check=True, stdout=subprocess.PIPE).stdout
        try:
            check(json.loads(out.decode()), path.name == COMPLETE)
        except (AssertionError, ValueError, KeyError):
            print(f"{path.name}:", file=sys.stderr)
            raise
    print(f"{len(scenarios)} verdicts hold")


main()
