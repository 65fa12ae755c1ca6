# SPDX-License-Identifier: MIT
"""src/push against servers of every mood: what arrives is what was given, retries follow the rules, what is dropped is
counted, credentials stay where they belong."""
import base64
import shutil
import ssl
import subprocess
import threading
import time

import pytest

import push_world
from push_world import Held, Sender, Server, now_ms, wait_for

pytestmark = pytest.mark.one_user


@pytest.fixture
def wire(tree, monkeypatch):
    monkeypatch.syspath_prepend(str(tree / "tests/unit/push"))
    import wire
    if not wire.available():
        pytest.skip("python3-protobuf is not installed")
    return wire


@pytest.fixture
def world(build):
    """world.server(plan...), world.sender(url, ...): both end with the test."""
    class World:
        ends = []

        def server(self, *plan, **kwargs):
            server = Server(*plan, **kwargs)
            self.ends.append(server.stop)
            return server

        def sender(self, url, **options):
            sender = Sender(build, url, **options)
            self.ends.append(sender.kill)
            return sender

        def held(self):
            held = Held()
            self.ends.append(held.release)
            return held

    world = World()
    world.ends = []
    yield world
    for end in reversed(world.ends):
        end()


def values(wire, server):
    """Of the requests that came, in order: {series: value} each."""
    return [{labels["series"]: value for labels, value, _ in wire.read_remote_write(r[2])} for r in server.requests]


def test_remote_write_arrives(world, wire):
    server = world.server()
    sender = world.sender(server.url("/api/v1/write?tenant=a"), header="X-Scope-OrgID: team")
    t = now_ms()
    sender.give(3, 1.5, t)
    stats = sender.close()
    (path, headers, body, _), = server.requests
    assert path == "/api/v1/write?tenant=a"
    assert headers["Content-Type"] == "application/x-protobuf" and headers["Content-Encoding"] == "snappy"
    assert headers["X-Prometheus-Remote-Write-Version"] == "0.1.0" and headers["X-Scope-OrgID"] == "team"
    assert headers["User-Agent"].startswith("spotter/") and not headers["Authorization"] and not headers["Expect"]
    assert wire.read_remote_write(body) == [({"__name__": "spotter_steps_total", "node": "n1", "series": str(i)}, 1.5, t)
                                            for i in range(3)]
    assert (stats["sent"], stats["requests"], stats["bytes"], stats["problem"]) == (3, 1, len(body), "")


def test_otlp_arrives(world, wire):
    server = world.server((200, {}, b""), (200, {}, b"\x0a\x02\x08\x01"))
    sender = world.sender(server.url(""), kind="otlp")
    sender.give(3, 7)
    sender.give(2, 8)
    stats = sender.close()
    assert [r[0] for r in server.requests] == ["/v1/metrics"] * 2
    assert not server.requests[0][1]["Content-Encoding"]
    who, metrics = wire.read_otlp(server.requests[0][2])
    assert who["host.name"] == "n1" and [p.as_double for p in metrics["spotter.steps"].sum.data_points] == [7] * 3
    assert (stats["sent"], stats["refused"]) == (4, 1), "of the second request a point was rejected"


def test_large_batches_are_cut(world, wire):
    server = world.server()
    sender = world.sender(server.url())
    sender.give(12000, 1)
    stats = sender.close()
    assert stats["sent"] == 12000 and stats["requests"] >= 3
    assert sorted(int(s) for v in values(wire, server) for s in v) == list(range(12000))
    assert all(len(wire.uncompress(r[2])) < 1100000 for r in server.requests)


def test_server_errors_are_tried_again_in_order(world, wire):
    server = world.server((500, {}, b"broken"), (503, {}, b""), (204, {}, b""), (502, {}, b""))
    sender = world.sender(server.url())
    sender.give(1, 1)
    sender.give(1, 2)
    stats = sender.until("both", sent=2)
    assert [v["0"] for v in values(wire, server)] == [1, 1, 1, 2, 2]
    assert (stats["sent"], stats["retries"], stats["refused"]) == (2, 3, 0)


def test_too_many_waits_as_told(world):
    server = world.server((429, {"Retry-After": "2"}, b"slow down"))
    sender = world.sender(server.url())
    sender.give(1, 1)
    stats = sender.until("it to arrive", sent=1)
    assert stats["retries"] == 1
    first, second = (r[3] for r in server.requests)
    assert second - first > 1.9


def test_refusals_are_dropped_and_counted(world, wire):
    server = world.server((400, {}, b"out of order\nsample"), (413, {}, b""), (404, {}, b""))
    sender = world.sender(server.url())
    sender.give(5, 1)
    stats = sender.until("the refusal", refused=5)
    assert stats["problem"] == f"{server.url()}: HTTP status 400: out of order"
    for value in (2, 3, 4):
        sender.give(1, value)
    stats = sender.close()
    assert (stats["sent"], stats["refused"], stats["retries"], stats["problem"]) == (1, 7, 0, "")
    assert len(server.requests) == 4 and values(wire, server)[3] == {"0": 4}


def test_otlp_tries_only_what_it_may(world):
    server = world.server((500, {}, b""), (503, {}, b""))
    sender = world.sender(server.url(""), kind="otlp")
    sender.give(1, 1)
    sender.give(1, 2)
    stats = sender.until("the second", sent=1)
    assert (stats["refused"], stats["retries"]) == (1, 1)


def test_one_that_hangs(world):
    over = threading.Event()
    server = world.server(lambda request: over.wait(push_world.PATIENCE))
    sender = world.sender(server.url(), timeout=500)
    sender.give(1, 1)
    stats = sender.until("it to arrive", sent=1)
    over.set()
    assert stats["retries"] >= 1


def test_garbage(world):
    def raw(data):
        return lambda request: request.wfile.write(data)
    server = world.server(raw(b"\x00\xff\x1b[2Jnot http\r\n\r\n"), raw(b""), raw(b"HTTP/1.1 999999 what\r\n\r\n"),
                          raw(b"HTTP/1.1 204 fine\r\nX: " + b"y" * 500000 + b"\r\n\r\n"))
    sender = world.sender(server.url(), timeout=5000)
    sender.give(1, 1)
    stats = sender.until("it to arrive", sent=1)
    assert stats["retries"] >= 3, stats


def test_redirects_are_not_followed(world, tmp_path):
    """Credentials would go along."""
    elsewhere = world.server()
    server = world.server((302, {"Location": elsewhere.url()}, b""), (307, {"Location": elsewhere.url()}, b""))
    (tmp_path / "token").write_text("secret\n")
    sender = world.sender(server.url(), token=tmp_path / "token")
    sender.give(1, 1)
    stats = sender.until("it to arrive", sent=1)
    assert stats["retries"] == 2 and not elsewhere.requests


def test_nobody_there_then_somebody(world):
    held = world.held()
    sender = world.sender(f"http://127.0.0.1:{held.port}/api/v1/write")
    sender.give(4, 1)
    stats = wait_for(lambda: (s := sender.stats())["retries"] > 1 and s, "two tries")
    assert "connect" in stats["problem"].lower() and stats["queue_samples"] == 4
    server = world.server(port=held.port)
    stats = sender.until("it to arrive", sent=4)
    assert stats["problem"] == "" and stats["queue_samples"] == 0
    assert len(server.requests) == 1


def test_credentials(world, tmp_path):
    secret, user = tmp_path / "token", tmp_path / "user"
    secret.write_text("first-secret\n")
    server = world.server((401, {}, b"you sent: Bearer first-secret"), (401, {}, b"go away"))
    sender = world.sender(server.url(), token=secret)
    sender.give(1, 1)
    stats = sender.until("the refusal", refused=1)
    assert stats["problem"] == f"{server.url()}: HTTP status 401"
    secret.write_text("second-secret")  # rotated
    sender.give(1, 2)
    stats = sender.until("the second", refused=2)
    assert "secret" not in stats["problem"] and "go away" in stats["problem"]
    secret.write_text("two\nlines: x")
    sender.give(1, 3)
    stats = wait_for(lambda: (s := sender.stats())["retries"] and s, "a try without credentials")
    assert "no credentials" in stats["problem"] and "lines" not in stats["problem"]
    assert [r[1]["Authorization"] for r in server.requests] == ["Bearer first-secret", "Bearer second-secret"]
    command = open(f"/proc/{sender.process.pid}/cmdline").read()
    assert "first-secret" not in command
    sender.close(100)
    user.write_text("me:pass:word\n")
    sender = world.sender(server.url(), user=user)
    sender.give(1, 1)
    assert sender.close()["sent"] == 1
    assert base64.b64decode(server.requests[-1][1]["Authorization"].split()[1]) == b"me:pass:word"


def test_killed_with_a_queue_on_disk(world, wire, tmp_path):
    held = world.held()
    url = f"http://127.0.0.1:{held.port}/api/v1/write"
    sender = world.sender(url, queue=tmp_path / "queue")
    for value in range(1, 6):
        sender.give(2, value)
    sender.until("the queue", queue_samples=10)
    second = world.sender(url, queue=tmp_path / "queue")
    assert second.process.wait(push_world.PATIENCE) == 1 and "in use" in second.process.stderr.read()
    sender.kill()
    assert (tmp_path / "queue").stat().st_mode & 0o777 == 0o700
    server = world.server(port=held.port)
    sender = world.sender(url, queue=tmp_path / "queue")
    sender.give(2, 6)
    stats = sender.close()
    assert stats["sent"] == 12 and stats["damaged"] == 0
    assert [v["0"] for v in values(wire, server)] == [1, 2, 3, 4, 5, 6]
    assert not list((tmp_path / "queue").glob("*/*.queue"))


def test_what_is_left_at_the_end_stays_on_disk(world, tmp_path):
    held = world.held()
    url = f"http://127.0.0.1:{held.port}/api/v1/write"
    sender = world.sender(url, queue=tmp_path / "queue")
    sender.give(3, 1)
    stats = sender.close(200)
    assert stats["queue_samples"] == 3 and stats["end"] == 0
    server = world.server(port=held.port)
    assert world.sender(url, queue=tmp_path / "queue").until("the rest", sent=3) and len(server.requests) == 1


@pytest.mark.parametrize("on_disk", [True, False], ids=["disk", "memory"])
def test_bounded(world, wire, tmp_path, on_disk):
    """Nobody takes anything: the oldest are dropped and counted, the newest are there when somebody does."""
    held = world.held()
    folder = tmp_path / "queue"
    options = {"queue": folder} if on_disk else {}
    sender = world.sender(f"http://127.0.0.1:{held.port}/api/v1/write", size=1 << 20, **options)
    for value in range(150):
        sender.give(3000, value + 0.123456789)
    wait_for(lambda: (s := sender.stats())["queue_samples"] + s["queue_full"] == 450000, "all of it in the queue")
    stats = sender.stats()
    assert stats["queue_full"] > 0 and stats["queue_bytes"] <= 1 << 20 and stats["disk"] == stats["busy"] == 0
    if on_disk:
        assert sum(f.stat().st_size for f in folder.glob("*/*.queue")) <= 1 << 20
    server = world.server(port=held.port)
    stats = sender.until("all that is left", queue_samples=0)
    assert stats["sent"] + stats["queue_full"] == 450000 and stats["end"] == stats["refused"] == 0
    first = stats["queue_full"] // 3000
    assert len(server.requests) == 150 - first
    server.requests[1:-1] = []
    assert [int(v["2999"]) for v in values(wire, server)] == [first, 149]


def test_end_is_bounded(world):
    over = threading.Event()
    server = world.server(*[lambda request: over.wait(push_world.PATIENCE)] * 3)
    sender = world.sender(server.url())
    sender.give(2, 1)
    wait_for(lambda: server.requests, "the request")
    begin = time.monotonic()
    stats = sender.close(300)
    over.set()
    assert time.monotonic() - begin < 30
    assert (stats["sent"], stats["end"]) == (0, 2)


def test_certificates_are_checked(world, tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=spotter-test", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                    "-keyout", "key.pem", "-out", "cert.pem"], cwd=tmp_path, check=True, capture_output=True)
    server = Server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    world.ends.append(server.stop)
    stranger = world.sender(server.url(scheme="https"))
    stranger.give(1, 1)
    stats = wait_for(lambda: (s := stranger.stats())["retries"] and s, "a try")
    assert "certificate" in stats["problem"] and stats["sent"] == 0
    friend = world.sender(server.url(scheme="https"), ca=tmp_path / "cert.pem")
    friend.give(1, 1)
    assert friend.close()["sent"] == 1
    assert len(server.requests) == 1


def test_proxy_of_the_environment(world, build, spotter):
    proxy = world.server()
    env = dict(spotter.env, http_proxy=proxy.url(""), no_proxy="", NO_PROXY="")
    sender = Sender(build, "http://engine.invalid/api/v1/write", env=env)
    world.ends.append(sender.kill)
    sender.give(1, 1)
    assert sender.close()["sent"] == 1
    assert proxy.requests[0][0] == "http://engine.invalid/api/v1/write"


def test_without_libcurl(world, build, spotter, tmp_path):
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"):
        (tmp_path / name).write_text("not a library")
    sender = Sender(build, "http://127.0.0.1:9/api/v1/write", env=dict(spotter.env, LD_LIBRARY_PATH=str(tmp_path)))
    world.ends.append(sender.kill)
    sender.give(1, 1)
    stats = wait_for(lambda: (s := sender.stats())["retries"] and s, "a try")
    assert "libcurl is not installed" in stats["problem"]
    assert sender.close(100)["end"] == 1


@pytest.mark.parametrize("url, why", [("http://me:secret@h/", "a user in it"), ("ftp://h/", "does not begin with http"),
                                      ("http://h/a b", "blank")])
def test_addresses_that_cannot_be(world, url, why):
    sender = world.sender(url)
    _, words = sender.process.communicate(timeout=push_world.PATIENCE)
    assert sender.process.returncode == 1 and why in words and "secret" not in words
