# SPDX-License-Identifier: MIT
"""export --to parquet and openmetrics, as other programs read them."""
import csv
import datetime
import io
import re
import shutil
import subprocess
import sys

import pytest


@pytest.fixture
def record(tree, tmp_path):
    """A real run, with steps and GPUs."""
    return shutil.copy(tree / "zoo/stored/charlm-item.root.spot", tmp_path / "run.spot")


@pytest.fixture
def parquet_files(tree):
    sys.path.insert(0, str(tree / "tests/unit/sink"))
    import parquet_files
    sys.path.pop(0)
    return parquet_files


def iso(us):
    t = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us)
    return t.isoformat(timespec="milliseconds") + "Z"


@pytest.mark.parametrize("what", ["samples", "steps"])
def test_parquet_has_what_csv_has(spotter, record, parquet_files, tmp_path, what):
    file = tmp_path / "out.parquet"
    spotter("export", record, "--to", "parquet", "--what", what, "--out", file, check=True)
    columns, words, kinds, _ = parquet_files.table(file.read_bytes())
    rows = list(csv.DictReader(io.StringIO(
        spotter("export", record, "--to", "csv", "--what", what, check=True).out)))
    assert rows and list(columns) == list(rows[0])
    assert kinds["time"][1] is False and words["spotter.schema"] == f"spotter.{what}/1"
    for name, values in columns.items():
        wanted = [row[name] for row in rows]
        if name == "time":
            assert [iso(v) for v in values] == wanted
        elif kinds[name][0] == parquet_files.TEXT:
            assert ["" if v is None else v for v in values] == wanted
        else:
            assert values == [float(v) if v else None for v in wanted], name


def test_parquet_to_a_pipe(spotter, record, parquet_files):
    done = subprocess.run([spotter.binary, "export", record, "--to", "parquet"], env=spotter.env, capture_output=True,
                          check=True, timeout=60)
    assert sum(parquet_files.table(done.stdout)[3]) > 1000


def test_what_steps_is_for_tables(spotter, record):
    done = spotter("export", record, "--to", "jsonl", "--what", "steps")
    assert done.code == 2 and "csv and parquet" in done.err


LINE = re.compile(r'([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)+)\})? (\S+) (\d+\.\d{3})')


def families(text):
    """{family: {"type":, "unit":, "series": {labels: [(time, value)]}}}, in order; refuses what the format forbids."""
    out, current = {}, None
    lines = text.splitlines()
    assert lines[-1] == "# EOF" and "" not in lines
    for line in lines[:-1]:
        if line.startswith("# "):
            _, key, name, rest = line.split(" ", 3)
            if name not in out:
                current = out[name] = {"series": {}}
            assert current is out[name], f"{name} is in two places"
            assert not current["series"] and key.lower() not in current
            current[key.lower()] = rest
            continue
        found = LINE.fullmatch(line)
        assert found, line
        name, labels, value, time = found.groups()
        suffix = {"counter": "_total", "info": "_info"}.get(current["type"], "")
        assert out.get(name.removesuffix(suffix)) is current, line
        series = current["series"].setdefault(labels or "", [])
        assert next(reversed(current["series"])) == (labels or ""), f"{line}: a series in two places"
        assert not series or series[-1][0] < float(time), line
        series.append((float(time), float(value)))
    return out


def test_openmetrics(spotter, record):
    all_of = families(spotter("export", record, "--to", "openmetrics", check=True).out)
    assert all(name.startswith("spotter_") for name in all_of)
    for name, family in all_of.items():
        assert family["series"], f"{name} has no samples"
        if "unit" in family:
            assert name.endswith("_" + family["unit"])
        if family["type"] == "counter":
            for labels, points in family["series"].items():
                assert labels.startswith('node="'), labels
    rows = list(csv.DictReader(io.StringIO(spotter("export", record, "--to", "csv", "--what", "steps", check=True).out)))
    (labels, points), = all_of["spotter_steps"]["series"].items()
    assert 'run_id="' in labels
    assert points[-1][1] == len(rows)
    modes = {re.search('mode="([a-z]+)"', labels)[1] for labels in all_of["spotter_node_cpu_seconds"]["series"]}
    assert {"user", "system", "idle"} <= modes
    assert "spotter_job_cpu_seconds" in all_of and not any(name.startswith("spotter_process") for name in all_of)


def test_openmetrics_goes_into_prometheus(spotter, record, tmp_path):
    if not shutil.which("promtool"):
        pytest.skip("promtool (Debian's prometheus) is not there")
    file = tmp_path / "run.om"
    spotter("export", record, "--to", "openmetrics", "--out", file, check=True)
    data = tmp_path / "data"
    done = subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", file, data], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    # a line a block: id, two times, duration, samples, ...
    blocks = [line.split() for line in done.stdout.splitlines() if re.match("[0-9A-Z]{26} ", line)]
    assert sum(int(b[4]) for b in blocks) == len([line for line in file.read_text().splitlines() if line[0] != "#"])


def test_hostile_names(spotter, tmp_path):
    """Names of processes and runs cannot break a format."""
    spotter("run", "--quiet", "--name", 'a"b\\c\nd{}', "--", "sh", "-c", "sleep 0.4", check=True)
    spotter.settled()
    info, = families(spotter("export", "--to", "openmetrics", check=True).out)["spotter_run"]["series"]
    assert 'name="a\\"b\\\\c?d{}"' in info
