# SPDX-License-Identifier: MIT
"""Three hosts with an agent each, in network namespaces of their own, push to a real Prometheus in a fourth. One is cut off and
comes back: nobody else notices, and afterwards every sample it took meanwhile is in the engine. Skipped where there are no
namespaces, no ip, no Prometheus."""
import ctypes
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from push_world import DIRECT, get_json, get_text, need_libcurl, wait_for

pytestmark = pytest.mark.root

ENGINE = "http://10.77.0.1:9090"
PATIENCE = 120  # requests time out after 10 s, and are tried again after up to as long
CLONE_NEWNET = 0x40000000


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts():
    """The engine's and three others, on one bridge; names are this test's own."""
    if not shutil.which("ip"):
        pytest.skip("iproute2 is not installed")
    tag = f"sp{os.getpid()}"
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


def inside(name, function, *args, **kwargs):
    """Calls it in a thread that is in this network namespace, as are the sockets it makes."""
    result = []

    def enter():
        fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET) == 0:
                result.append(function(*args, **kwargs))
        finally:
            os.close(fd)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert result, f"cannot enter {name}"
    return result[0]


class Engine:
    def __init__(self, name, folder):
        if not shutil.which("prometheus"):
            pytest.skip("prometheus is not installed (make setup)")
        self.name, self.folder = name, folder
        folder.mkdir()
        (folder / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
        with open(folder / "log", "w") as log:
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{name}", "prometheus", "--config.file=prometheus.yml",
                 f"--storage.tsdb.path={folder / 'data'}", "--web.listen-address=0.0.0.0:9090",
                 "--web.enable-remote-write-receiver"],
                stdout=log, stderr=log, cwd=folder)
        try:
            wait_for(self.ready, "Prometheus", PATIENCE)
        except BaseException:
            self.end()
            raise

    def ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        return inside(self.name, get_text, ENGINE + "/-/ready")

    def ask(self, query):
        answer = wait_for(lambda: inside(self.name, get_json, ENGINE + "/api/v1/query", query=query, time=time.time() + 60),
                          f"an answer to {query}", PATIENCE)
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def samples(self, node):
        """How many it has of all series of a host."""
        return sum(len(row["values"]) for row in self.ask(f'{{node="{node}"}}[1h]'))

    def points(self, series):
        """[(seconds, value)]"""
        rows = self.ask(series + "[1h]")
        assert len(rows) <= 1, rows
        return [(float(t), float(v)) for row in rows for t, v in row["values"]]

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()


class Agent:
    def __init__(self, spotter, name, folder):
        self.name, self.folder = name, folder
        spotter.dir.mkdir(exist_ok=True)
        # by a file, as nobody reads it meanwhile
        with open(folder / f"{name}.log", "w") as log:
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{name}", spotter.binary, "agent", "--listen", "127.0.0.1:9815", "--records",
                 spotter.dir, "--no-verdicts", "--node", name, "--push-every", "1s", "--remote-write",
                 ENGINE + "/api/v1/write", "--push-queue", folder / f"{name}.queue"],
                stdout=log, stderr=log, env={**spotter.env, **DIRECT})

    def figure(self, name, **labels):
        """Of its own page; of several series the sum."""
        text = wait_for(lambda: inside(self.name, get_text, "http://127.0.0.1:9815/metrics"), f"the page of {self.name}", PATIENCE)
        rows = re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.M)
        found = [float(value) for has, value in rows if all(f'{k}="{v}"' in has for k, v in labels.items())]
        return sum(found) if found else None

    def sent(self):
        return self.figure("spotter_push_sent_samples_total") or 0

    def has_sent_more_than(self, before, what):
        wait_for(lambda: self.sent() > before, what, PATIENCE)

    def words(self):
        return (self.folder / f"{self.name}.log").read_text()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()


def all_there(engine, agent):
    """What was taken of this agent is there, all of it and no more: with figures of a moment in which nothing is on its way."""
    def same():
        before = agent.sent()
        there = engine.samples(agent.name)
        return before and before == there == agent.sent()
    wait_for(same, f"all samples of {agent.name} in the engine", PATIENCE)


@pytest.mark.parametrize("seconds", [pytest.param(9, id="short"), pytest.param(60, id="minute", marks=pytest.mark.long)])
def test_a_host_that_is_cut_off(spotter, hosts, tmp_path, seconds):
    need_libcurl()
    server, *others = hosts
    engine, agents = Engine(server, tmp_path / "engine"), []
    try:
        agents = [Agent(spotter, name, tmp_path) for name in others]
        cut, *fine = agents
        for agent in agents:
            agent.has_sent_more_than(0, f"the first samples of {agent.name}")
        ip("-n", server, "link", "set", "port1", "down")
        down, before = time.time(), [agent.sent() for agent in agents]
        ticks = cut.figure("spotter_self_ticks_total")
        wait_for(lambda: cut.figure("spotter_push_retries_total") and cut.figure("spotter_self_ticks_total") > ticks + 8
                 and time.time() > down + seconds, "a queue of some seconds", PATIENCE + seconds)
        wait_for(lambda: "cannot push" in cut.words(), "that it is said", PATIENCE)
        there = engine.samples(cut.name)
        for agent, sent in zip(fine, before[1:]):
            agent.has_sent_more_than(sent, f"{agent.name}, which has a network, to go on")
        held = cut.figure("spotter_push_queue_samples")
        assert held > 0 and engine.samples(cut.name) == there, "it is cut off"
        up = time.time()
        ip("-n", server, "link", "set", "port1", "up")
        cut.has_sent_more_than(before[0] + held, "what was held back")
        wait_for(lambda: "works again" in cut.words(), "that it is said", PATIENCE)
        for agent in agents:
            all_there(engine, agent)
            assert agent.figure("spotter_push_dropped_samples_total") == 0
        points = engine.points(f'spotter_self_ticks_total{{node="{cut.name}"}}')
        assert len([t for t, _ in points if down < t < up]) >= 3, (down, up, points)
        assert [v for _, v in points] == sorted({v for _, v in points})
        for agent in agents:
            assert agent.end() == 0, agent.words()
    finally:
        for agent in agents:
            agent.process.kill()
            agent.process.wait()
        engine.end()
