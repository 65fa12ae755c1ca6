# SPDX-License-Identifier: MIT
"""remote_write into a real Prometheus and a real VictoriaMetrics, which are asked for it again: every value is there,
also of the time in which they were not. Skipped where they are not installed."""
import json
import os
import shutil
import subprocess
import time

import pytest

from push_world import Prometheus, Sender, VictoriaMetrics, now_ms, wait_for

pytestmark = pytest.mark.one_user


@pytest.fixture(params=[Prometheus, VictoriaMetrics])
def engine(request, tmp_path):
    folder = tmp_path / "engine"
    folder.mkdir()
    engine = request.param(folder)
    try:
        yield engine.start()
    finally:
        engine.done()


def times_of(engine, node="n1", series="0"):
    """{value: seconds} of one series, as the engine has it."""
    rows = engine.points(f'spotter_steps_total{{node="{node}",series="{series}"}}')
    return {value: t for _, points in rows for t, value in points}


def test_values_come_back_and_an_outage_costs_nothing(build, engine, tmp_path):
    sender = Sender(build, engine.write_url(), queue=tmp_path / "queue")
    begin = now_ms() - 30000
    try:
        sender.give(100, 1, begin)
        sender.until("the first", sent=100)
        rows = wait_for(lambda: len(r := engine.points("spotter_steps_total")) == 100 and r, "100 series")
        assert all(points == [(begin / 1000, 1)] for _, points in rows)
        assert {labels["series"] for labels, _ in rows} == {str(i) for i in range(100)}
        engine.stop()
        for k in range(2, 12):
            sender.give(100, k, begin + 1000 * k)
        wait_for(lambda: (s := sender.stats())["retries"] and s["queue_samples"] == 1000, "the queue")
        engine.start()
        sender.until("the rest", sent=1100, queue_samples=0)
        stats = sender.close()
        assert stats["refused"] == stats["queue_full"] == 0
        wanted = {1.0: begin / 1000, **{float(k): (begin + 1000 * k) / 1000 for k in range(2, 12)}}
        for series in ("0", "57", "99"):
            wait_for(lambda: times_of(engine, series=series) == wanted, f"all values of series {series}")
    finally:
        sender.kill()


def test_beyond_the_bound_the_oldest_are_dropped_and_counted(build, engine, tmp_path):
    sender = Sender(build, engine.write_url(), queue=tmp_path / "queue", size=1 << 20)
    begin = now_ms() - 120000
    try:
        engine.stop()
        for k in range(100):
            sender.give(3000, k + 0.123456789, begin + 1000 * k)
        wait_for(lambda: (s := sender.stats())["queue_samples"] + s["queue_full"] == 300000, "the queue")
        engine.start()
        stats = sender.until("what is left", queue_samples=0)
        lost = stats["queue_full"] // 3000
        assert lost > 0 and stats["sent"] + stats["queue_full"] == 300000 and stats["refused"] == 0
        wait_for(lambda: len(times_of(engine)) == 100 - lost, "what was left")
        assert {int(v) for v in times_of(engine)} == set(range(lost, 100))
    finally:
        sender.kill()


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts():
    """Three network namespaces and one for the engine, on one bridge; names are this test's own."""
    if not shutil.which("ip"):
        pytest.skip("iproute2 is not installed")
    tag = f"sp{os.getpid() % 100000}"
    names = [f"{tag}h{i}" for i in range(4)]
    made = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", names[0], "link", "add", "bridge", "type", "bridge")
        ip("-n", names[0], "addr", "add", "10.77.0.1/24", "dev", "bridge")
        ip("-n", names[0], "link", "set", "bridge", "up")
        for i, name in enumerate(names[1:], 1):
            ip("-n", names[0], "link", "add", f"port{i}", "type", "veth", "peer", "name", "net", "netns", name)
            ip("-n", names[0], "link", "set", f"port{i}", "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "net")
            ip("-n", name, "link", "set", "net", "up")
    except subprocess.CalledProcessError as e:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        pytest.skip(f"no network namespaces here: {e.stderr.decode()}")
    yield names
    for name in made:
        ip("netns", "del", name)


@pytest.mark.root
@pytest.mark.long
def test_a_host_that_is_cut_off_for_a_minute(build, hosts, tmp_path):
    """Three hosts push; one has no network for a minute. Nobody else notices, and it has no gap afterwards."""
    server, *others = hosts
    folder = tmp_path / "engine"
    folder.mkdir()
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed (tools/setup more)")

    def query(text):
        done = subprocess.run(["ip", "netns", "exec", server, "python3", "-c", QUERY, text], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else []

    (folder / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
    log = open(folder / "log", "w")
    engine = subprocess.Popen(["ip", "netns", "exec", server, "prometheus", "--config.file=prometheus.yml",
                               f"--storage.tsdb.path={folder / 'data'}", "--web.listen-address=0.0.0.0:9090",
                               "--web.enable-remote-write-receiver"], stdout=log, stderr=log, cwd=folder)
    senders = []
    try:
        wait_for(lambda: query("vector(1)"), "the engine")
        senders = [Sender(build, "http://10.77.0.1:9090/api/v1/write", prefix=("ip", "netns", "exec", name),
                          queue=tmp_path / name, node=name, timeout=2000, backoff=500) for name in others]
        given = 0
        for second in range(90):
            if second == 10:
                ip("-n", server, "link", "set", "port1", "down")
            if second == 70:
                ip("-n", server, "link", "set", "port1", "up")
            given += 1
            for sender in senders:
                sender.give(5, given)
            if second == 60:
                cut, *fine = [s.stats() for s in senders]
                assert cut["queue_samples"] > 150 and cut["problem"], cut
                assert all(s["sent"] >= 5 * (given - 10) and not s["problem"] for s in fine), fine
            time.sleep(1)
        for sender, name in zip(senders, others):
            stats = sender.close(120000)
            assert stats["sent"] == 5 * given and stats["refused"] == stats["queue_full"] == 0, stats
            rows = query(f'spotter_steps_total{{node="{name}",series="3"}}[1h]')
            assert sorted(rows) == list(range(1, given + 1)), name
    finally:
        for sender in senders:
            sender.kill()
        engine.terminate()
        engine.wait(60)
        log.close()


# Asks the engine within its namespace; prints the values.
QUERY = """
import json, sys, urllib.parse, urllib.request
query = urllib.parse.urlencode({"query": sys.argv[1]})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
data = json.load(opener.open("http://127.0.0.1:9090/api/v1/query?" + query, timeout=10))["data"]["result"]
print([int(float(v)) for row in data for t, v in row.get("values", [row.get("value")])])
"""
