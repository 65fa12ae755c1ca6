# SPDX-License-Identifier: MIT
"""`spotter agent`: what real programs did is what it says, to whoever asks over HTTP and to a real Prometheus."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

import pytest

from virtual_gpu import PYTHON, vgpu  # noqa: F401 (fixture)

OPEN = "application/openmetrics-text; version=1.0.0"
# A slow machine with all other tests beside it.
PATIENCE = 90

TRAIN = """
import os, sys, time
sys.path.insert(0, os.environ["SPOTTER_PYTHON"])
import spotter
for i in range(1, 61):
    time.sleep(0.05)
    spotter.step(loss=3.0 / i)
    end = time.monotonic() + 240
    while i == 40 and time.monotonic() < end and not os.path.exists(sys.argv[1]):
        time.sleep(0.05)  # until somebody has seen it run
"""

# Ends with the test, whatever becomes of that.
BURN = """
import os, sys, time
end = time.monotonic() + 300
while time.monotonic() < end and not os.path.exists(sys.argv[1]):
    x = sum(range(100000))
    time.sleep(0.01)
"""


def until(condition, what, instead=str):
    """Four times a second: a scrape costs both sides some milliseconds."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {PATIENCE} s in vain for {what} {instead()}"
        time.sleep(0.25)
    return value


class Metrics:
    """Samples by name, each with its labels."""
    LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
    LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

    def __init__(self, text):
        self.text = text
        self.rows = []
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, labels, value = self.LINE.match(line).groups()
                self.rows.append((name, dict(self.LABEL.findall(labels or "")), float(value)))

    def all(self, name, /, **labels):
        return [(has, value) for n, has, value in self.rows
                if n == name and all(has.get(k) == v for k, v in labels.items())]

    def one(self, name, /, **labels):
        found = self.all(name, **labels)
        assert len(found) <= 1, found
        return found[0][1] if found else None


def get(url, accept=None, host=None):
    request = urllib.request.Request(url, headers={k: v for k, v in (("Accept", accept), ("Host", host)) if v})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


@pytest.fixture
def agent(spotter):
    """Starts one that sees the records of this test only; gives its address."""
    def start(*options):
        spotter.dir.mkdir(exist_ok=True)
        child = spotter.start("agent", "--listen", "127.0.0.1:0", "--records", spotter.dir, "--node", "n12", *options)
        line = child.stderr.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line
        return child, found[0]
    return start


def scrape(base):
    return Metrics(get(base + "/metrics")[1])


def test_metrics_over_http(agent):
    child, base = agent()
    kind, text = get(base + "/metrics")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    m = Metrics(text)
    assert m.one("spotter_build_info", node="n12") == 1
    assert m.one("spotter_node_memory_total_bytes") == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert m.one("spotter_node_cpu_seconds_total", mode="user") > 0
    assert m.one("spotter_self_cpu_seconds_total") > 0
    assert all(labels["node"] == "n12" for _, labels, _ in m.rows)
    kind, text = get(base + "/metrics", accept=OPEN)
    assert kind == OPEN + "; charset=utf-8" and text.endswith("# EOF\n")
    assert "# TYPE spotter_build info\n" in text and "# UNIT spotter_self_cpu_seconds seconds\n" in text
    assert "/metrics" in get(base + "/")[1]
    assert "old" in get(base + "/healthz")[1]
    for path, host, code in (("/none", None, 404), ("/metrics", "evil.example", 403)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(base + path, host=host)
        assert refused.value.code == code
    if os.geteuid() != 0:  # the first process is not ours
        assert m.one("spotter_agent_unreadable_processes") >= 1
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=PATIENCE) == 0


def test_ends_well_at_once(agent):
    """As soon as it has said where it is."""
    for _ in range(5):
        child, _ = agent()
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=PATIENCE) == 0


def test_usage(spotter, agent, roots):
    taken = agent()[1].removeprefix("http://")
    done = spotter("agent", "--listen", taken)
    assert done.code == 1 and taken in done.err and "--listen" in done.err
    assert spotter("agent", "--listen", "here").code == 2
    assert spotter("agent", "--root", roots / "agent-jobs").code == 2
    assert spotter("agent", "--openmetrics").code == 2
    once = Metrics(spotter("agent", "--once", "--root", roots / "agent-jobs", check=True).out)
    # its last state: the torchrun ended more than a minute ago
    assert [x["run_id"] for x, _ in once.all("spotter_run_up")] == ["77.0"]


def test_ranks_without_a_record(agent, tmp_path):
    """Two ranks that were only given an environment, as torchrun does."""
    run, stop = uuid.uuid4().hex, tmp_path / "stop"
    ranks = [subprocess.Popen([sys.executable, "-c", BURN, stop], env=dict(
        os.environ, TORCHELASTIC_RUN_ID=run, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="2")) for r in range(2)]
    try:
        _, base = agent()
        m = until(lambda: (s := scrape(base)) and len(s.all("spotter_rank_info", run_id=run)) == 2 and s,
                     "both ranks")
        assert {x["rank"] for x, _ in m.all("spotter_rank_info", run_id=run)} == {"0", "1"}
        info, _ = m.all("spotter_run_info", run_id=run)[0]
        assert info["source"] == "torchelastic" and info["world_size"] == "2"
        # what cannot be known of it is not there
        assert m.all("spotter_steps_total", run_id=run) == [] and m.all("spotter_loss", run_id=run) == []
        cpu = ("spotter_process_cpu_seconds_total", {"run_id": run, "rank": "1", "role": "trainer", "mode": "user"})
        before = m.one(cpu[0], **cpu[1])
        until(lambda: scrape(base).one(cpu[0], **cpu[1]) > before, "CPU time to grow")
        stop.touch()
        for rank in ranks:
            assert rank.wait(timeout=PATIENCE) == 0
        until(lambda: scrape(base).one("spotter_run_up", run_id=run) == 0, "the run to be down")
        # its counters stay for a while, and do not go back
        assert scrape(base).one(cpu[0], **cpu[1]) >= before
    finally:
        stop.touch()
        for rank in ranks:
            rank.kill()
            rank.wait()


@pytest.mark.root
def test_two_users_with_one_id(agent):
    """Both said --rdzv-id, and the same: two runs of two ranks each, of which the later has its user in its id."""
    run, first, second = uuid.uuid4().hex, 65533, 65534
    _, base = agent()
    ranks = []

    def start(user):
        ranks.extend(subprocess.Popen([PYTHON, "-c", BURN, "/nonexistent/stop"], user=user, group=user, extra_groups=[],
                                      cwd="/", env={"PATH": os.environ["PATH"], "TORCHELASTIC_RUN_ID": run, "RANK": str(r),
                                                    "WORLD_SIZE": "2"}) for r in range(2))

    def found():
        rows = [x for x, _ in scrape(base).all("spotter_rank_info") if x["run_id"].startswith(run)]
        return sorted((x["run_id"], x["rank"]) for x in rows)

    def instead():
        return f"but found {found()}, processes ended with {[rank.poll() for rank in ranks]}"
    try:
        start(first)
        until(lambda: found() == [(run, "0"), (run, "1")], "the first user's run", instead)
        start(second)
        other = f"{run}~{second}"
        until(lambda: found() == [(run, "0"), (run, "1"), (other, "0"), (other, "1")], "the second user's", instead)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


RANKS = """
import os, subprocess, sys, time
if len(sys.argv) == 2:
    kids = [subprocess.Popen([sys.executable, __file__, sys.argv[1], "rank"],
                             env=dict(os.environ, RANK=str(r), WORLD_SIZE="2")) for r in range(2)]
    sys.exit(max(k.wait() for k in kids))
sys.path.insert(0, os.environ["SPOTTER_PYTHON"])
import spotter
for i in range(1, 26):
    spotter.step(loss=1 / i)
    time.sleep(0.01)
end = time.monotonic() + 300
while time.monotonic() < end and not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
spotter.step()
"""


def test_ranks_of_a_record(spotter, agent, tmp_path):
    """A launcher with two ranks in one record: each has its own steps, and the launcher is no rank."""
    (tmp_path / "train.py").write_text(RANKS)
    _, base = agent()
    seen = tmp_path / "seen"
    training = spotter.start("run", "--quiet", sys.executable, tmp_path / "train.py", seen)

    def steps(expected):
        found = scrape(base)
        rows = {x["rank"]: v for x, v in found.all("spotter_steps_total") if x.get("rank")}
        return rows == expected and found
    try:
        # a rank may be met, with its steps, before it is known whose record they are from
        m = until(lambda: (s := steps({"0": 25, "1": 25})) and s.all("spotter_run_info", source="spotter") and s,
                  "25 steps of each rank, of a run that is recorded")
        (info, _), = m.all("spotter_run_info", source="spotter")
        assert info["run_id"] == spotter.records()[0].stem and info["world_size"] == "2"
        assert {x.get("rank") for x, _ in m.all("spotter_rank_info", run_id=info["run_id"])} == {"0", "1"}
    finally:
        seen.touch()
    assert training.wait(timeout=PATIENCE) == 0
    until(lambda: steps({"0": 26, "1": 26}), "the last step of each")
    until(lambda: scrape(base).one("spotter_run_up", run_id=info["run_id"]) == 0, "the run to be down")


STAGES = """
import os, sys, time
sys.path.insert(0, os.environ["SPOTTER_PYTHON"])
import spotter
print(os.getpid(), os.environ["SPOTTER_MARKS"], flush=True)
end = time.monotonic() + 300
for stage in range(3):
    for i in range(20):
        spotter.step()
        time.sleep(0.005)
    while time.monotonic() < end and not os.path.exists(f"{sys.argv[1]}{stage}"):
        time.sleep(0.02)
"""


@pytest.mark.one_user
def test_somebody_attaches_to_a_run(spotter, agent, tmp_path):
    """A second recorder has all steps of its time, too: each is counted once, also when it has gone, and the run stays the same."""
    (tmp_path / "train.py").write_text(STAGES)
    go = tmp_path / "go"
    _, base = agent("--no-verdicts")
    training = spotter.start("run", "--quiet", sys.executable, tmp_path / "train.py", go)
    seen = []

    def steps(n, records):
        m = scrape(base)
        rows = [(x["run_id"], value) for x, value in m.all("spotter_steps_total")]
        assert len(rows) <= 1, rows
        seen.extend(rows)
        return rows and rows[0][1] == n and m.one("spotter_agent_records") == records
    try:
        pid, marks = training.stdout.readline().decode().split()
        until(lambda: steps(20, 1), "the first stage")
        other = spotter.start("attach", pid, "--marks", marks)
        until(lambda: steps(20, 2), "the second recorder")
        Path(f"{go}0").touch()
        until(lambda: steps(40, 2), "the second stage")
        other.send_signal(signal.SIGINT)
        assert other.wait(timeout=PATIENCE) == 0
        until(lambda: scrape(base).one("spotter_agent_records") == 1, "its end")  # by now it has told all
        assert steps(40, 1)
        Path(f"{go}1").touch()
        until(lambda: steps(60, 1), "the third stage")
    finally:
        for stage in range(3):
            Path(f"{go}{stage}").touch()
    assert training.wait(timeout=PATIENCE) == 0
    assert len({run for run, _ in seen}) == 1 and [n for _, n in seen] == sorted(n for _, n in seen)


def test_a_gpu_and_who_is_on_it(spotter, vgpu, agent, tmp_path):  # noqa: F811
    vgpu('gpu "NVIDIA H100 80GB HBM3"\n  memory 80G')
    program = "import os, sys, time, vgpu\ngpu = vgpu.Device(0)\nheld = gpu.alloc(2 << 30)\n" \
              "end = time.monotonic() + 300\n" \
              "while time.monotonic() < end and not os.path.exists(sys.argv[1]):\n" \
              "    gpu.launch(ms=30, sm=0.8)\n    gpu.synchronize()\n"
    stop, run = tmp_path / "stop", uuid.uuid4().hex
    child = subprocess.Popen([PYTHON, "-c", program, stop], env=dict(spotter.env, SPOTTER_RUN_ID=run))
    try:
        _, base = agent()
        m = until(lambda: (s := scrape(base)) and s.all("spotter_rank_gpu_memory_bytes", run_id=run) and s,
                     "the process on the GPU")
        (labels, held), = m.all("spotter_rank_gpu_memory_bytes", run_id=run)
        assert held >= 2 << 30 and labels["gpu"] == "0" and labels["gpu_uuid"]
        assert m.one("spotter_gpu_memory_total_bytes", gpu_uuid=labels["gpu_uuid"]) == 80 << 30
        assert m.one("spotter_gpu_info", name="NVIDIA H100 80GB HBM3", simulated="true") == 1
        assert {x["clock"] for x, _ in m.all("spotter_gpu_clock_hertz")} == {"sm", "memory"}
        until(lambda: (scrape(base).one("spotter_gpu_utilization_ratio", gpu="0") or 0) > 0.3, "a busy GPU")
    finally:
        stop.touch()
        child.wait(timeout=PATIENCE)


# -- a real Prometheus -----------------------------------------------------------------------------

def promtool(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and not done.stderr.strip() and not done.stdout.strip(), done.stdout + done.stderr


needs_prometheus = pytest.mark.skipif(not shutil.which("prometheus") or not shutil.which("promtool"),
                                      reason="no Prometheus here (make setup)")


def port_of(pid):
    """The port a process listens on, by the kernel's own table: it was asked for any free one."""
    try:
        sockets = {os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:
        return None
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
            return int(words[1].rsplit(":", 1)[1], 16)
    return None


class Prometheus:
    def __init__(self, target, folder):
        folder.mkdir()
        (folder / "config.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
            f"scrape_configs: [{{job_name: spotter, static_configs: [{{targets: ['{target}']}}]}}]\n")
        self.log = folder / "log"
        self.child = subprocess.Popen(
            ["prometheus", f"--config.file={folder / 'config.yml'}", f"--storage.tsdb.path={folder / 'data'}",
             "--web.listen-address=127.0.0.1:0", "--log.level=warn"],
            stdout=subprocess.DEVNULL, stderr=self.log.open("wb"), cwd=folder)
        self.base = None
        try:
            until(self.ready, "Prometheus")
        except BaseException:
            self.end()
            raise

    def end(self):
        self.child.terminate()
        try:
            self.child.wait(timeout=PATIENCE)
        finally:
            self.child.kill()

    def ready(self):
        assert self.child.poll() is None, self.log.read_text()
        port = port_of(self.child.pid)
        if not port:
            return False
        self.base = f"http://127.0.0.1:{port}"
        try:
            return "Ready" in get(self.base + "/-/ready")[1]
        except OSError:
            return False

    def query(self, expression):
        answer = json.loads(get(self.base + "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))[1])
        assert answer["status"] == "success", answer
        return [(r["metric"], float(r["value"][1])) for r in answer["data"]["result"]]

    def one(self, expression):
        found = self.query(expression)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def last(self, selector):
        """Also where the newest scrape took too long: then nothing is there at this moment."""
        return self.one(f"last_over_time({selector}[10m])")


@needs_prometheus
@pytest.mark.one_user
def test_prometheus_scrapes_a_training(spotter, agent, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    run, seen = uuid.uuid4().hex, tmp_path / "seen"
    spotter.env["SPOTTER_RUN_ID"] = run
    child, base = agent("--verdict-every", "2s")
    engine = Prometheus(base.removeprefix("http://"), tmp_path / "engine")
    try:
        training = spotter.start("run", "--quiet", "--name", "small", sys.executable, tmp_path / "train.py", seen)
        until(lambda: engine.last(f'spotter_steps_total{{run_id="{run}"}}') == 40, "40 steps in Prometheus")
        assert engine.last(f'spotter_run_up{{run_id="{run}"}}') == 1
        until(lambda: engine.one('up{job="spotter"}') == 1, "a scrape that went well")
        m = scrape(base)
        promtool(m.text)
        assert m.one("spotter_agent_records") == 1
        # judged while it runs: where its CPU time went
        until(lambda: engine.query(f'spotter_ledger_seconds_total{{run_id="{run}",ledger="cpu"}}'), "its ledger")
        seen.touch()
        assert training.wait(timeout=PATIENCE) == 0
        until(lambda: engine.last(f'spotter_steps_total{{run_id="{run}"}}') == 60, "all 60 steps")
        until(lambda: engine.last(f'spotter_run_up{{run_id="{run}"}}') == 0, "the run to be down")
        assert engine.last(f'spotter_loss{{run_id="{run}"}}') == 3.0 / 60
        # the first has no known beginning; a histogram over the network is still one
        timed = engine.last(f'spotter_step_duration_seconds_count{{run_id="{run}"}}')
        assert timed in (59, 60)
        assert engine.last(f'spotter_step_duration_seconds_bucket{{run_id="{run}",le="+Inf"}}') == timed
        assert engine.last(f'spotter_step_duration_seconds_bucket{{run_id="{run}",le="0.025"}}') == 0
        assert abs(time.time() - engine.last(f'spotter_run_last_step_timestamp_seconds{{run_id="{run}"}}')) < 600
        assert engine.one(f'resets(spotter_steps_total{{run_id="{run}"}}[10m])') == 0
        metric, = (m for m, _ in engine.query(f'last_over_time(spotter_run_info{{run_id="{run}"}}[10m])'))
        assert (metric["source"], metric["node"], metric["name"]) == ("given", "n12", "train.py")
    finally:
        seen.touch()
        engine.end()
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=PATIENCE) == 0


@needs_prometheus
def test_promtool_has_nothing_to_say(spotter, roots):
    spotter.dir.mkdir()
    promtool(spotter("agent", "--once", "--records", spotter.dir, check=True).out)
    for machine in ("agent-jobs", "host-plain", "gpu-amd-mi300", "gpu-intel-xe", "net-unplug"):
        promtool(spotter("agent", "--once", "--root", roots / machine, check=True).out)
