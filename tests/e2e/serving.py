# SPDX-License-Identifier: MIT
"""`spotter serve` for tests: a server of the test's own world, asked over its socket."""
import http.client
import json
import re
import signal
import socket
import sys
import time

import pytest

PATIENCE = 120  # seconds, for anything: on a machine that has other things to do

# Works until a file is there.
BUSY = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        sum(range(500))
    time.sleep(0.02)
"""


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()
        self.text = self.body.decode(errors="replace")

    def json(self):
        def refuse(word):
            raise AssertionError(f"{word} in JSON")
        return json.loads(self.body.decode(), parse_constant=refuse)


class Events:
    """A stream of server-sent events. next(): (event, data, id), None at its end."""

    def __init__(self, server, path, last=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        headers = server.headers | ({"Last-Event-ID": last} if last else {})
        self.connection.request("GET", path, headers=headers)
        self.response = self.connection.getresponse()
        self.status, self.id = self.response.status, None

    def next(self):
        event, data = None, None
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            line = line.rstrip("\n")
            if not line and data is not None:
                return event, json.loads(data), self.id
            key, _, value = line.partition(": ")
            if key == "event":
                event = value
            elif key == "data":
                data = value
            elif key == "id":
                self.id = value

    def until(self, wanted):
        """The first whose (event, data) is wanted."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            got = self.next()
            assert got is not None, "the stream ended"
            if wanted(got[0], got[1]):
                return got
        raise AssertionError(f"not within {PATIENCE} s")

    def close(self):
        self.response.close()
        self.connection.close()


class Server:
    def __init__(self, spotter, *args):
        self.child = spotter.start("serve", "--port", "0", *args)
        self.url = self.child.stdout.readline().decode().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", self.url)
        if not found:
            words = self.child.stderr.read().decode()
            if "libmicrohttpd" in words:
                pytest.skip(words)
            raise AssertionError((self.url, words))
        self.port, self.token = int(found[1]), found[2]
        self.host = f"127.0.0.1:{self.port}"
        self.headers = {"Host": self.host, "Cookie": f"spotter-{self.port}={self.token}"}

    def ask(self, path, method="GET", **headers):
        """An answer; headers: given ones in place of the usual, None: left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        given = {key: value for key, value in (self.headers | headers).items() if value is not None}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for key, value in given.items():
                connection.putheader(key, value)
            connection.endheaders()
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def events(self, path, last=None):
        return Events(self, path, last)

    def raw(self, data=b""):
        """A connection of our own, which need not speak HTTP."""
        s = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        s.sendall(data)
        return s

    def end(self, number=signal.SIGINT):
        self.child.send_signal(number)
        _, err = self.child.communicate(timeout=PATIENCE)
        return self.child.returncode, err.decode()


@pytest.fixture
def serve(spotter):
    """serve(): the server of this test's world."""
    def start(*args):
        return Server(spotter, *args)
    return start


@pytest.fixture
def served(run, serve):
    """One that has a real run to show."""
    server = serve()
    server.run, = [r["id"] for r in run.json("runs")["runs"]]
    return server


@pytest.fixture
def going(spotter, tmp_path, wait_for):
    """A program that is being recorded: .id, .end()."""
    flag = tmp_path / "over"

    class Going:
        child = spotter.start("run", "--quiet", "--budget", "20%", "--name", "going <b>on</b>", "--", sys.executable, "-c", BUSY, flag)

        def end(self):
            flag.touch()
            assert self.child.wait(timeout=PATIENCE) == 0

    g = Going()
    listed = wait_for(lambda: [r for r in spotter.json("runs")["runs"] if "id" in r], "a run that goes on", timeout=PATIENCE)
    g.id = listed[0]["id"]
    yield g
    flag.touch()
    g.child.wait(timeout=PATIENCE)
