# SPDX-License-Identifier: MIT
"""`run --push` and `agent --remote-write --otlp`: what arrives is what the record and the page of metrics say, and neither the
program nor its exit status notices when nobody takes it."""
import re
import shutil
import signal
import subprocess
import time

import pytest

import push_world
from push_world import DIRECT, Held, Prometheus, Server, VictoriaMetrics, get_text, need_libcurl, wait_for
from virtual_gpu import vgpu  # noqa: F401 (fixture)

pytestmark = pytest.mark.one_user


@pytest.fixture(autouse=True)
def direct(spotter):
    need_libcurl()
    spotter.env.update(DIRECT)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SPOTTER_RUN_ID"):
        spotter.env.pop(name, None)


@pytest.fixture
def wire(tree, monkeypatch):
    monkeypatch.syspath_prepend(str(tree / "tests/unit/push"))
    import wire
    if not wire.available():
        pytest.skip("python3-protobuf is not installed")
    return wire


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


def received(wire, server):
    """{name: [(labels, value, milliseconds)]}, in the order it came."""
    series = {}
    for _, _, body, _ in list(server.requests):
        for labels, value, t in wire.read_remote_write(body):
            series.setdefault(labels.pop("__name__"), []).append((labels, value, t))
    return series


def test_a_run_arrives(spotter, build, wire, server):
    spotter.env.update(TORCHELASTIC_RUN_ID="exp-7", RANK="3", LOCAL_RANK="0", WORLD_SIZE="8")
    done = spotter("run", "--push", server.url(), "--push-every", "1s", "--push-flush", "60s", "--", build / "tests/programs/marks",
                   "steps", "60", "40", check=True)
    assert "pushed" not in done.err, done.err
    series = received(wire, server)
    assert all(("run_id" in labels and labels["run_id"] == "exp-7") or "gpu" in labels
               for rows in series.values() for labels, _, _ in rows)
    labels, steps, t = series["spotter_steps_total"][-1]
    assert steps == 60 and labels["rank"] == "3" and labels["node"]
    assert abs(t / 1000 - time.time()) < push_world.PATIENCE
    assert [value for _, value, _ in series["spotter_run_up"]][-1] == 0
    info, _, _ = series["spotter_run_info"][0]
    assert (info["name"], info["source"], info["world_size"]) == ("marks", "torchelastic", "8")
    assert series["spotter_step_duration_seconds_count"][-1][1] == 60
    assert 0 < series["spotter_loss"][-1][1] < 0.1
    assert series["spotter_job_cpu_seconds_total"][-1][1] > 0
    assert {"spotter_job_processes", "spotter_job_resident_memory_bytes"} <= set(series)
    assert not [name for name in series if name.startswith(("spotter_node", "spotter_agent", "spotter_self"))]
    # one value of a series at a time, in order
    for name, rows in series.items():
        seen = {}
        for labels, _, t in rows:
            key = tuple(sorted(labels.items()))
            assert seen.get(key, 0) < t, (name, labels)
            seen[key] = t


def test_another_rank_of_the_machine(spotter, build, wire, server):
    """With a recorder a rank, series that have no rank have one writer."""
    spotter.env.update(TORCHELASTIC_RUN_ID="exp-7", RANK="3", LOCAL_RANK="1", WORLD_SIZE="8")
    spotter("run", "-q", "--push", server.url(), "--push-flush", "60s", "--", build / "tests/programs/marks", "steps", "60", "10",
            check=True)
    series = received(wire, server)
    assert all(labels.get("rank") == "3" for rows in series.values() for labels, _, _ in rows)
    assert series["spotter_steps_total"][-1][1] == 60


def test_a_rank_that_starts_again_goes_on_counting(spotter, build, wire, server):
    """Also one that is over before anybody can have looked at it."""
    marks = f"'{build}/tests/programs/marks' steps"
    spotter.env.update(RANK="3", LOCAL_RANK="0", WORLD_SIZE="8")
    spotter("run", "-q", "--push", server.url(), "--push-every", "1s", "--push-flush", "60s", "--", "sh", "-c",
            f"{marks} 60 10; {marks} 20 10; {marks} 5 0", check=True)
    rows = received(wire, server)["spotter_steps_total"]
    assert rows[-1][1] == 85 and [value for _, value, _ in rows] == sorted(value for _, value, _ in rows)
    lines = re.findall(r"^spotter_steps_total{(.*)} (\S+) (\S+)$", spotter("export", "--to", "openmetrics", check=True).out, re.M)
    assert len({labels for labels, _, _ in lines}) == 1 and float(lines[-1][1]) == 85
    assert [(float(value), float(t)) for _, value, t in lines] == sorted((float(value), float(t)) for _, value, t in lines)


def test_why_samples_are_missing(spotter, server, tmp_path):
    server.plan.append((400, {}, b"out of order sample"))
    child = spotter.start("run", "--push", server.url(), "--push-every", "1s", "--push-flush", "60s", "--", "sh", "-c",
                          f"for i in $(seq 600); do test -e '{tmp_path}/go' && exit 0; sleep 0.1; done; exit 1", text=True)
    wait_for(lambda: len(server.requests) > 1, "a request that is taken")
    (tmp_path / "go").touch()
    _, err = child.communicate(timeout=push_world.PATIENCE)
    assert re.search(r"spotter: \d+ of \d+ samples were not pushed: .*HTTP status 400: out of order sample", err), err


def test_a_run_by_otlp(spotter, build, wire, server):
    spotter("run", "-q", "--push", server.url("/v1/metrics"), "--push-flush", "60s", "--", build / "tests/programs/marks", "steps", "20",
            "10", check=True)
    who, metrics = wire.read_otlp(server.requests[-1][2])
    assert who["service.name"] == "spotter" and who["spotter.run_id"] == spotter.json("why")["run"]["id"]
    assert metrics["spotter.steps"].sum.data_points[0].as_double == 20


def test_gpus_of_a_run(spotter, wire, server, vgpu, tmp_path):  # noqa: F811
    vgpu('gpu "NVIDIA H100 80GB HBM3"\n  memory 80G')
    child = spotter.start("run", "-q", "--push", server.url(), "--push-every", "1s", "--push-flush", "60s", "--", "sh", "-c",
                          f"for i in $(seq 600); do test -e '{tmp_path}/go' && exit 0; sleep 0.1; done; exit 1")
    wait_for(lambda: "spotter_gpu_memory_total_bytes" in received(wire, server), "the GPU")
    (tmp_path / "go").touch()
    assert child.wait(push_world.PATIENCE) == 0
    series = received(wire, server)
    labels, value, _ = series["spotter_gpu_memory_total_bytes"][0]
    assert labels["gpu"] == "0" and labels["gpu_uuid"].startswith("GPU-") and value == 80 << 30
    assert series["spotter_gpu_info"][0][0]["name"] == "NVIDIA H100 80GB HBM3"


def test_the_program_does_not_notice_that_nobody_is_there(spotter):
    held = Held()
    try:
        done = spotter("run", "--push", f"http://127.0.0.1:{held.port}/api/v1/write", "--push-flush", "60s", "--", "sh", "-c",
                       "echo out; exit 7")
    finally:
        held.release()
    assert done.code == 7 and done.out == "out\n"
    assert re.search(r"spotter: \d+ of \d+ samples were not pushed: http://127\.0\.0\.1:\d+/api/v1/write: ", done.err), done.err
    assert spotter.json("why")["run"]["exit"]["code"] == 7


@pytest.mark.parametrize("words, why", [
    (["--push", "http://127.0.0.1:9/"], "cannot tell from its end"),
    (["--push", "http://me:secret@h/v1/metrics"], "a user in it"),
    (["--push", "http://h/v1/metrics", "--push-token-file", "/nowhere/token"], "cannot read '/nowhere/token'"),
    (["--push", "http://h/v1/metrics", "--push-header", "Authorization: secret"], "not to be set by hand"),
])
def test_what_cannot_be_is_said_before_the_program_starts(spotter, tmp_path, words, why):
    done = spotter("run", *words, "--", "touch", tmp_path / "started")
    assert done.code == 125 and why in done.err and "secret" not in done.err.replace("Authorization: secret", "")
    assert not (tmp_path / "started").exists()


def test_kind_of_an_odd_address(spotter, server):
    spotter("run", "-q", "--push", server.url("/in"), "--push-as", "remote-write", "--push-flush", "60s", "--", "true",
            check=True)
    assert server.requests[-1][0] == "/in" and server.requests[-1][1]["Content-Encoding"] == "snappy"


class Agent:
    def __init__(self, spotter, *words):
        spotter.dir.mkdir(exist_ok=True)
        self.process = spotter.start("agent", "--listen", "127.0.0.1:0", "--records", spotter.dir, "--no-verdicts",
                                     "--push-every", "1s", *words, text=True)
        line = self.process.stderr.readline()
        found = re.search(r"http://\S+/metrics", line)
        assert found, line
        self.url = found[0]

    def metrics(self):
        """{(name, labels as text): value}"""
        rows = re.findall(r"^(\w+)(?:{(.*)})? (\S+)$", get_text(self.url) or "", re.M)
        return {(name, labels): float(value) for name, labels, value in rows}

    def pushed(self, name, **labels):
        for (family, text), value in self.metrics().items():
            if family == "spotter_push_" + name and all(f'{k}="{v}"' in text for k, v in labels.items()):
                return value
        return None

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, words = self.process.communicate(timeout=push_world.PATIENCE)
        assert self.process.returncode == 0
        return words


def test_an_agent_pushes_its_page(spotter, wire, server, tmp_path):
    collector = Server()
    agent = Agent(spotter, "--remote-write", server.url(), "--otlp", collector.url(""), "--push-queue", tmp_path / "queue",
                  "--node", "n7")
    try:
        wait_for(lambda: len(server.requests) > 1 and len(collector.requests) > 1, "two pushes")
        page = {name for name, _ in agent.metrics()}
        for protocol in ("remote_write", "otlp"):
            assert agent.pushed("sent_samples_total", protocol=protocol) > 0
            assert agent.pushed("dropped_samples_total", protocol=protocol, reason="refused") == 0
        if shutil.which("promtool"):
            lint = subprocess.run(["promtool", "check", "metrics"], input=get_text(agent.url), text=True, capture_output=True)
            assert lint.returncode == 0 and not lint.stderr, lint.stderr
        series = received(wire, server)
        assert {labels["node"] for rows in series.values() for labels, _, _ in rows} == {"n7"}
        assert {"spotter_build_info", "spotter_node_cpu_seconds_total", "spotter_push_sent_samples_total"} <= set(series)
        assert len(set(series) & page) > 20, "trainings of others come and go meanwhile"
        who, metrics = wire.read_otlp(collector.requests[-1][2])
        assert who["host.name"] == "n7" and "spotter.node_cpu" in metrics
        assert "push" not in agent.end()
        assert (tmp_path / "queue/remote-write").stat().st_mode & 0o777 == 0o700
    finally:
        collector.stop()


def test_an_agent_says_once_that_it_fails_and_once_that_it_works(spotter, server):
    server.plan[:] = [(503, {}, b"")] * 1000
    agent = Agent(spotter, "--remote-write", server.url())
    assert agent.process.stderr.readline() == f"spotter: cannot push: {server.url()}: HTTP status 503\n"
    assert agent.pushed("retries_total", protocol="remote_write") > 0
    server.plan.clear()
    assert agent.process.stderr.readline() == "spotter: pushing by remote-write works again\n"
    assert agent.pushed("sent_samples_total", protocol="remote_write") > 0
    assert "push" not in agent.end()


def test_wrong_addresses_of_an_agent(spotter):
    done = spotter("agent", "--remote-write", "prom:9090")
    assert done.code == 2 and "does not begin with http" in done.err
    done = spotter("agent", "--once", "--otlp", "http://h")
    assert done.code == 2 and "--once" in done.err


@pytest.mark.parametrize("kind", [Prometheus, VictoriaMetrics])
def test_a_run_in_a_real_engine(spotter, build, tmp_path, kind):
    folder = tmp_path / "engine"
    folder.mkdir()
    engine = kind(folder)
    try:
        engine.start()
        done = spotter("run", "-q", "--push", engine.write_url(), "--push-every", "1s", "--push-flush", "60s", "--",
                       build / "tests/programs/marks", "steps", "30", "50", check=True)
        assert "pushed" not in done.err, done.err
        run_id = spotter.json("why")["run"]["id"]
        rows = wait_for(lambda: (r := engine.points(f'spotter_steps_total{{run_id="{run_id}"}}')) and r[0][1][-1][1] == 30 and r,
                        "all steps")
        assert len(rows) == 1 and [v for _, v in rows[0][1]] == sorted(v for _, v in rows[0][1])
        assert engine.points(f'spotter_run_up{{run_id="{run_id}"}}')[0][1][-1][1] == 0
    finally:
        engine.done()
