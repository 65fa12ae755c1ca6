# SPDX-License-Identifier: MIT
"""spotter fleet: over a real Prometheus and a real VictoriaMetrics that hold 64 nodes with 8 ranks each, once from views made by
hand (tests/programs/fleet_feed.c says what is planted) and once from records that agents followed (fleet_replay.c); and over things
that are no engine at all."""
import base64
import http.server
import json
import re
import shutil
import subprocess
import threading
import time
import uuid
from contextlib import contextmanager

import pytest

from conftest import BUILD
from fleet_world import pour, put, settle
from push_world import DIRECT, Held, Prometheus, VictoriaMetrics, need_libcurl, wait_for

EVERY, LENGTH = 30, 360  # seconds: of samples, and how far back they go
NODES = 64


@pytest.fixture
def ask(spotter):
    need_libcurl()
    spotter.env.update(DIRECT)
    for name in ("SPOTTER_PROMETHEUS", "SPOTTER_PROMETHEUS_TOKEN", "SPOTTER_PROMETHEUS_USER"):
        spotter.env.pop(name, None)
    return spotter


# --- a real engine

@pytest.fixture(scope="module", params=[Prometheus, VictoriaMetrics])
def fleet(request, tmp_path_factory):
    need_libcurl()
    engine = request.param(tmp_path_factory.mktemp("engine"))
    try:
        engine.start()
        # A little ago: an engine may keep what is new to itself for a while.
        engine.end = int(time.time()) - 60
        # What any machine has, once: twenty times as much to write, and nothing of it is asked for.
        how = "full" if request.param is Prometheus else "lean"
        assert pour(engine, "fleet_feed", engine.end - LENGTH, engine.end, EVERY, how) == NODES * (LENGTH // EVERY + 1)
        settle(engine, 'count(spotter_run_up{node=~"node-.*"})', NODES + 1, engine.end)
        yield engine
    finally:
        engine.done()


@pytest.mark.one_user
class TestRealEngine:
    def look(self, ask, fleet, *more):
        return ask.json("fleet", "--prometheus", fleet.url(), "--at", fleet.end, "--since", "5m", *more)

    def test_all_that_is_planted_is_named(self, ask, fleet):
        told = self.look(ask, fleet)
        assert told["schema"] == "spotter.fleet/1" and told["window_s"] == 300
        runs = {run["id"]: run for run in told["runs"]}
        assert set(runs) == {"7001.0", "7002.0", "7003.0", "7004.0", "7005.0"}
        assert told["totals"]["ranks"] == NODES * 8 + 1 and told["totals"]["nodes"] == NODES
        assert told["totals"]["gpus_held"] == NODES * 8 + 2
        print(f"{fleet.program}: {told['asked']}")
        assert told["asked"]["series_odd"] == 0 and told["asked"]["seconds"] < 20

        hot = runs["7001.0"]["straggler"]
        assert [(s["node"], s["ranks"], s["cause"]) for s in hot["suspects"]] == [("node-17", [137], "gpu_throttled")]
        assert hot["suspects"][0]["gpu"]["index"] == "1"
        says = " ".join(e["text"] for e in hot["suspects"][0]["evidence"])
        assert "temperature" in says and "MHz" in says
        # 0.62 s of own work against 0.404 s, in a step of 0.63 s; 256 GPUs for five minutes
        assert hot["cost"] == pytest.approx((0.62 - 0.404) / 0.63, rel=0.05)
        assert hot["gpu_hours"] == pytest.approx(hot["cost"] * 256 * 300 / 3600, rel=1e-6)
        assert runs["7001.0"]["steps"]["mean_s"] == pytest.approx(0.63, rel=0.01)

        disk = runs["7002.0"]["straggler"]["suspects"]
        assert [(s["node"], s["ranks"], s["cause"]) for s in disk] == [("node-39", list(range(56, 64)), "slow_storage")]

        stuck = runs["7003.0"]
        assert stuck["state"] == "hung" and stuck["hung"]["seconds"] == pytest.approx(200, abs=2)
        assert [(s["node"], s["ranks"]) for s in stuck["hung"]["suspects"]] == [("node-50", [21])]
        assert any("in io" in e["text"] for e in stuck["hung"]["suspects"][0]["evidence"])

        well = runs["7004.0"]
        assert well["state"] == "running" and "straggler" not in well and well["ranks_known"] == 64
        idle = [(gpu["run"], gpu["node"], gpu["index"]) for gpu in told["idle_gpus"]]
        assert idle == [("7005.0", "node-63", "8"), ("7005.0", "node-63", "9")]
        costs = {v["cause"]: v["gpu_hours"] for v in told["verdicts"]}
        assert costs == {"sync_points": pytest.approx(0.12 * 64 * 300 / 3600),
                         "slow_storage": pytest.approx(0.36 * 8 * 300 / 3600)}
        lost = told["totals"]["lost_gpu_hours"]
        assert lost["idle"] == pytest.approx(2 * 300 / 3600) and lost["hung"] == pytest.approx(64 * 200 / 3600, rel=0.02)

    def test_for_people(self, ask, fleet):
        told = ask("fleet", "--prometheus", fleet.url(), "--at", fleet.end, "--since", "5m", check=True)
        print(told.out)
        assert max(map(len, told.out.splitlines())) <= 80 and len(told.out.splitlines()) < 60
        for words in ("rank 137 on node-17, GPU 1", "gpu_throttled", "ranks 56-63 on node-39", "slow_storage",
                      "rank 21 on node-50", "node-63, GPU 8", "sync_points"):
            assert words in " ".join(told.out.split())
        assert told.err == ""

    def test_one_run(self, ask, fleet):
        told = self.look(ask, fleet, "--run", "7001.0")
        assert [run["id"] for run in told["runs"]] == ["7001.0"] and told["totals"]["nodes"] == 32
        assert told["runs"][0]["straggler"]["suspects"][0]["cause"] == "gpu_throttled"
        assert len(told["runs"][0]["rank_list"]) == 256 and not told["idle_gpus"]
        text = ask("fleet", "--prometheus", fleet.url(), "--at", fleet.end, "--since", "5m", "--run", "7001.0",
                   check=True).out
        rows = text.splitlines()
        first = rows[[i for i, row in enumerate(rows) if row.startswith("Ranks")][0] + 1]
        assert first.split()[:3] == ["137", "node-17", "1"]  # who has most work of its own

    def test_a_run_that_is_not_there(self, ask, fleet):
        told = ask("fleet", "--prometheus", fleet.url(), "--run", 'x"}) or vector(1) #')
        assert told.code == 1 and "there is no run" in told.err and told.out == ""

    def test_a_time_that_makes_no_sense(self, ask, fleet):
        told = ask("fleet", "--prometheus", fleet.url(), "--at", "yesterday")
        assert told.code == 1 and told.out == "" and "status 4" in told.err

    def test_before_there_was_anything(self, ask, fleet):
        told = ask("fleet", "--prometheus", fleet.url(), "--at", fleet.end - 86400, check=True)
        assert "knows of no run" in told.err and "0 runs on 0 nodes" in told.out


def replay(folder, *more):
    """What agents told that followed the records of tests/programs/fleet_replay.c: a file, and the time of its end."""
    end = int(time.time()) - 60
    records = folder / "records"
    records.mkdir()
    with open(folder / "told", "wb") as out:
        subprocess.run([BUILD / "tests/programs/fleet_replay", records, str(end), *more], stdout=out, check=True)
    shutil.rmtree(records)  # a hundred megabytes
    return folder / "told", end


@pytest.fixture(scope="module")
def told_of(tmp_path_factory):
    if not (BUILD / "tests/programs/fleet_replay").exists():
        pytest.skip("fleet_replay is not built: no cmocka")
    return replay(tmp_path_factory.mktemp("replay"))


@pytest.fixture(scope="module")
def told_of_all(tmp_path_factory):
    return replay(tmp_path_factory.mktemp("replay"), "all")


@pytest.fixture(params=[Prometheus, VictoriaMetrics])
def engine(request, tmp_path):
    need_libcurl()
    folder = tmp_path / "engine"
    folder.mkdir()
    engine = request.param(folder)
    try:
        yield engine.start()
    finally:
        engine.done()


@pytest.mark.one_user
class TestReplay:
    def look(self, ask, engine, file, end):
        engine.end = end
        with open(file, "rb") as stream:
            assert put(engine, stream) == NODES * 11
        settle(engine, 'count(spotter_run_up{node=~"node-.*"})', NODES + 1, engine.end)
        told = ask.json("fleet", "--prometheus", engine.url(), "--at", engine.end, "--since", "4m")
        print(engine.program, told["asked"], [(v["cause"], v["gpu_hours"]) for v in told["verdicts"]])
        # a second is what it should take; this machine may have other things to do
        assert told["asked"]["series_odd"] == 0 and told["asked"]["seconds"] < 20
        runs = {run["id"]: run for run in told["runs"]}
        assert set(runs) == {"7001.0", "7002.0", "7003.0", "7004.0", "7005.0"}
        assert told["totals"]["ranks"] == NODES * 8 + 1 and told["totals"]["nodes"] == NODES
        assert told["totals"]["gpus_held"] == NODES * 8 + 2
        return told, runs

    def named(self, told, runs):
        hot, = runs["7001.0"]["straggler"]["suspects"]
        assert (hot["node"], hot["ranks"], hot["cause"], hot["gpu"]["index"]) == ("node-17", [137], "gpu_throttled", "1")
        says = " ".join(e["text"] for e in hot["evidence"])
        assert "temperature" in says and "1200 MHz" in says and "gpu_wait" in says
        # by its stacks 98 % of a step is its own, of the others' 63.5 %
        assert hot["own_work_s"] == pytest.approx(0.98 * 0.63, rel=0.05)
        assert hot["others_own_work_s"] == pytest.approx(0.635 * 0.63, rel=0.05)

        disk, = runs["7002.0"]["straggler"]["suspects"]
        assert (disk["node"], disk["ranks"], disk["cause"]) == ("node-39", list(range(56, 64)), "slow_storage")
        assert any("the verdict on its node: slow_storage" in e["text"] for e in disk["evidence"])

        stuck = runs["7003.0"]
        assert stuck["state"] == "hung" and stuck["hung"]["seconds"] == pytest.approx(150, abs=2)
        assert [(s["node"], s["ranks"]) for s in stuck["hung"]["suspects"]] == [("node-50", [21])]
        says = " ".join(e["text"] for e in stuck["hung"]["suspects"][0]["evidence"])
        assert "it has done 289 steps, others 290" in says and "it is in io" in says

        well = runs["7004.0"]
        assert well["state"] == "running" and "straggler" not in well and well["ranks_known"] == 64
        idle = [(gpu["run"], gpu["node"], gpu["index"]) for gpu in told["idle_gpus"]]
        assert idle == [("7005.0", "node-63", "8"), ("7005.0", "node-63", "9")]
        # What the records' own verdicts say, and of whom.
        nodes = {v["cause"]: v["nodes"] for v in told["verdicts"]}
        assert nodes == {"gpu_throttled": 1, "slow_storage": 1, "checkpoint_stall": 1, "sync_points": 8}

    def test_all_that_is_planted_is_named(self, ask, engine, told_of):
        self.named(*self.look(ask, engine, *told_of))

    @pytest.mark.long
    def test_with_an_agent_on_every_node(self, ask, engine, told_of_all):
        self.named(*self.look(ask, engine, *told_of_all))


TWO_RANKS = """
import os, sys, time
import torch, torch.distributed as dist
import spotter
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(os.environ["RANK"]), world_size=2)
matrix, over, late = torch.randn(100, 100), torch.zeros(1), time.monotonic() + 300
while not over[0]:
    busy = time.monotonic() + 0.02
    while time.monotonic() < busy:
        matrix @ matrix
    if os.environ["RANK"] == "1":
        time.sleep(0.1)
    over[0] = float(os.path.exists(sys.argv[2]) or time.monotonic() > late)
    dist.all_reduce(over)
    spotter.step()
"""


@pytest.mark.long
@pytest.mark.one_user
def test_a_real_straggler(ask, tmp_path):
    """Two ranks that wait for each other, recorded; a real agent, a real engine: the one that sleeps is named."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("no torch (tools/setup zoo)")
    folder, program, run = tmp_path / "engine", tmp_path / "train.py", uuid.uuid4().hex
    folder.mkdir()
    program.write_text(TWO_RANKS)
    engine = Prometheus(folder)
    try:
        engine.start()
        ask.start("agent", "--listen", "127.0.0.1:0", "--records", ask.dir, "--verdict-every", "5s",
                  "--remote-write", engine.write_url(), "--push-every", "2s", stderr=subprocess.DEVNULL)
        ranks = [ask.start("run", "--quiet", "--", "/usr/bin/python3", program, tmp_path / "meet", tmp_path / "stop",
                           stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           env={**ask.env, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                                "SPOTTER_RUN_ID": run, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"})
                 for rank in (0, 1)]

        def named():
            told = ask("fleet", "--prometheus", engine.url(), "--since", "40s", "--run", run, "--json")
            suspects = [s for r in json.loads(told.out)["runs"] for s in r.get("straggler", {}).get("suspects", ())] \
                if told.code == 0 else []
            return [s["ranks"] for s in suspects] == [[1]] and suspects
        suspect = wait_for(named, "the straggler", 200)[0]
        assert suspect["own_work_s"] > 2 * suspect["others_own_work_s"]
        (tmp_path / "stop").touch()
        assert [child.wait(100) for child in ranks] == [0, 0]
    finally:
        engine.done()


def test_what_a_node_costs_is_as_the_page_says(build, tree):
    """The count of series, within a metric or two, and what follows from it for 10,000 nodes."""
    shown = subprocess.run([build / "tests/programs/fleet_feed", "text", "5", "1763280000"], capture_output=True, text=True, check=True)
    series = sum(not line.startswith("#") for line in shown.stdout.splitlines())
    page = " ".join((tree / "docs/fleet.md").read_text().split())
    said = int(re.search(r"two disks and two network interfaces is (\d+) series", page)[1])
    assert said == pytest.approx(series, rel=0.02)
    quick, slow = said * 10000 / 15, said * 10000 / 60
    assert f"| series | {said / 100:.2f} million |" in page
    assert f"| samples a second | {round(quick, -3):,.0f} | {round(slow, -3):,.0f} |" in page
    for name, a_sample in (("Prometheus", 2.6), ("VictoriaMetrics", 0.86)):
        assert f"| disk a day, {name} ({a_sample} bytes) | {quick * 86400 * a_sample / 1e9:.0f} GB |" in page
    assert f"| network, pushed (13.5 bytes) | {quick * 13.5 / 1e6:.1f} MB/s | {slow * 13.5 / 1e6:.1f} MB/s |" in page


def test_every_series_that_is_asked_for_exists(tree):
    asked = set(re.findall(r"spotter_\w+", (tree / "src/fleet/query.c").read_text()))
    told = set(re.findall(r'"(spotter_\w+)"', (tree / "src/agent/families.def").read_text() +
                          (tree / "src/model/metrics.def").read_text()))
    assert len(asked) > 20
    assert {re.sub("(?<=duration_seconds)_(sum|count)$", "", name) for name in asked} <= told


# --- something else

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append((self.path, self.headers))
        status, headers, body, length = self.server.plan(self.path)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        if length is not None:
            self.close_connection = True

    def log_message(self, *args):
        pass


@contextmanager
def serving(status=200, body=b"", headers=None, length=None, plan=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    server.handle_error = lambda *args: None
    server.asked = []
    server.plan = plan or (lambda path: (status, headers or {}, body, length))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vector(*rows):
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": metric, "value": [1763280000, value]} for metric, value in rows]}}).encode()


NOTHING = vector(({}, "1763280000"))

WRONG = {
    "401": (dict(status=401, body=b"Unauthorized"), "status 401", "--token-file"),
    "403": (dict(status=403), "status 403", "--token-file"),
    "404": (dict(status=404, body=b"404 page not found"), "status 404", "/api/v1/query"),
    "503": (dict(status=503, body=b'{"status":"error","errorType":"unavailable","error":"starting"}'),
            "unavailable: starting", "try again"),
    "422": (dict(status=422, body=b'{"status":"error","errorType":"bad_data","error":"no \x1b[31msuch function"}'),
            "status 422", "does not understand"),
    "redirect": (dict(status=302, headers={"Location": "https://other/api/v1/query?query=1&key=secret"}),
                 "status 302", "https://other"),
    "login": (dict(body=b"<!DOCTYPE html>\n<title>Log in</title>"), "begins '<!DOCTYPE html>'", "credentials"),
    "empty": (dict(body=b""), "is empty", ""),
    "cut": (dict(body=NOTHING[:40], length=len(NOTHING)), "cannot ask", "is the address right"),
    "half": (dict(body=NOTHING[:40]), "not what a Prometheus API says", ""),
    "error": (dict(body=b'{"status":"error","errorType":"execution","error":"too many samples"}'),
              "the engine says: execution: too many samples", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_engine(ask, name):
    how, says, hint = WRONG[name]
    with serving(**how) as server:
        told = ask("fleet", "--prometheus", server.url)
    assert told.code == 1 and told.out == ""
    assert says in told.err and hint in told.err and "secret" not in told.err and "\x1b" not in told.err
    assert len(server.asked) == 1  # no second try, and nobody is followed


def test_nobody_there(ask):
    port = Held()
    told = ask("fleet", "--prometheus", f"http://127.0.0.1:{port.port}/")
    port.release()
    assert told.code == 1 and f"cannot ask http://127.0.0.1:{port.port}: " in told.err and "curl" in told.err


def test_nobody_answers(ask):
    def late(path):
        time.sleep(5)
        return 200, {}, NOTHING, None
    with serving(plan=late) as server:
        told = ask("fleet", "--prometheus", server.url, "--timeout", "1s")
    assert told.code == 1 and "timed out" in told.err.lower()


@pytest.mark.parametrize("words, says", [
    ([], "--prometheus is missing"),
    (["--prometheus", "prom:9090"], "does not begin with http"),
    (["--prometheus", "http://me:secret@prom"], "has a user in it"),
    (["--prometheus", "http://prom", "--header", "Authorization: Bearer secret"], "no credentials there"),
    (["--prometheus", "http://prom", "--header", "nonsense"], "Name: value"),
    (["--prometheus", "http://prom", "--since", "1s"], "since"),
])
def test_wrong_usage(ask, words, says):
    told = ask("fleet", *words)
    assert told.code == 2 and says in told.err and "secret" not in told.err


def test_credentials_are_sent_and_never_shown(ask, tmp_path):
    token, user = tmp_path / "token", tmp_path / "user"
    token.write_text("s3cret\n")
    user.write_text("me:pa55\n")
    basic = "Basic " + base64.b64encode(b"me:pa55").decode()
    env = dict(ask.env)
    for words, more, wanted in (
            (["--token-file", token], {}, "Bearer s3cret"),
            (["--user-file", user], {}, basic),
            ([], {"SPOTTER_PROMETHEUS_TOKEN": "s3cret"}, "Bearer s3cret"),
            ([], {"SPOTTER_PROMETHEUS_USER": "me:pa55"}, basic),
            (["--token-file", token], {"SPOTTER_PROMETHEUS_USER": "other:one"}, "Bearer s3cret")):
        for status in (200, 401):
            with serving(status=status, body=NOTHING) as server:
                told = ask("fleet", "--prometheus", server.url, "--header", "X-Scope-OrgID: team", *words,
                           env={**env, **more})
            assert told.code == (0 if status == 200 else 1)
            assert all(h["Authorization"] == wanted and h["X-Scope-OrgID"] == "team" for _, h in server.asked)
            assert "s3cret" not in told.out + told.err and "pa55" not in told.out + told.err
    for words in (["--token-file", token, "--user-file", user], ["--token-file", tmp_path / "none"]):
        with serving(body=NOTHING) as server:
            told = ask("fleet", "--prometheus", server.url, *words)
        assert told.code != 0 and not server.asked


def test_hostile_series_are_passed_over(ask):
    rows = vector(({"run_id": "7", "node": "a\x1b[31m", "rank": "x"}, "1"), ({"run_id": "7", "rank": "1"}, "NaN"),
                  ({"node": "b"}, "+Inf"), ({"run_id": "\x1b]0;title\x07", "node": "\u202e", "rank": "0"}, "1"))
    with serving(plan=lambda path: (200, {}, NOTHING if "time%28%29" in path else rows, None)) as server:
        told = ask("fleet", "--prometheus", server.url, check=True)
        plain = ask.json("fleet", "--prometheus", server.url)
    assert "\x1b" not in told.out + told.err and "passed over" in told.err
    assert plain["asked"]["series_odd"] > 0


def test_a_warning_of_the_engine_is_passed_on(ask):
    body = json.loads(NOTHING)
    body["warnings"] = ["store n3 did not answer"]
    with serving(body=json.dumps(body).encode()) as server:
        told = ask("fleet", "--prometheus", server.url, check=True)
    assert "the engine warns: store n3 did not answer" in told.err
