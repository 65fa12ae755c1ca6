# SPDX-License-Identifier: MIT
"""What `spotter serve` bears: requests without end, many who ask, some who never finish; and what it costs the run that is
looked at."""
import re
import select
import signal
import subprocess
import time

import pytest

from conftest import cpu_seconds
from serving import PATIENCE, going, serve, served  # noqa: F401 (fixtures)


def empty_slots(server, n):
    """n connections on which a request was begun and not ended."""
    return [server.raw(b"GET / HTTP/1.1\r\nHost: ") for _ in range(n)]


def test_requests_without_end(served):
    """Lines and headers larger than anybody's: refused, or closed; in both cases the next one is served."""
    for data in (b"GET /" + b"a" * 200_000, b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"b" * 200_000,
                 b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(20_000)),
                 b"\x00" * 100_000, b"\x16\x03\x01\x02\x00\x01" * 20_000,
                 b"GET / HTTP/1.1\r\nHost: " + served.host.encode() + b"\r\nContent-Length: 99999999999999999999\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: " + served.host.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n" + b"c" * 9999):
        s = served.raw()
        try:
            s.sendall(data)
            answer = s.recv(4096)
        except (ConnectionError, BrokenPipeError):
            answer = b""
        assert not answer or re.match(rb"HTTP/1\.[01] (4\d\d|505)", answer), answer[:200]
        s.close()
        assert served.ask("/").status == 200


@pytest.mark.one_user
def test_those_who_ask_slowly(served):
    """A hundred who begin a request and send no more, or a letter now and then: after some seconds they are gone."""
    slow = empty_slots(served, 100)
    begin = time.monotonic()
    closed = set()
    while len(closed) < 64 and time.monotonic() - begin < PATIENCE:
        for s in slow[:20]:
            try:
                s.send(b"x")
            except OSError:
                pass
        ready = select.select([s for s in slow if s not in closed], [], [], 0.5)[0]
        closed |= set(ready)  # nothing was asked, so what comes is the end
    assert len(closed) >= 64, len(closed)
    assert served.ask("/").status == 200
    for s in slow:
        s.close()


@pytest.mark.one_user
def test_a_crowd_that_never_asks(served):
    """Nobody waits the 10 s of a slow request for a place: those who hold all of them and ask nothing have one. Such a second is
    long on a machine that does other things, so that one of some tries will do."""
    took = []
    while len(took) < 5 and not (took and took[-1] < 9):
        begin = time.monotonic()
        crowd = empty_slots(served, 64)
        assert served.ask("/").status == 200
        took.append(time.monotonic() - begin)
        for s in crowd:
            s.close()
    assert took[-1] < 9, took


def test_so_many_may_look(served, wait_for):
    """32 streams; the next is told so, and gets in when another one has gone."""
    streams = [served.events("/events") for _ in range(32)]
    assert all(s.status == 200 for s in streams)
    refused = served.ask("/events")
    assert refused.status == 503 and "too many viewers" in refused.text and refused.headers["Retry-After"]
    assert served.ask("/api/runs").status == 200  # others are served all the same
    assert streams[0].until(lambda event, data: event == "runs") and streams[31].until(lambda event, data: event == "runs")
    streams.pop().close()

    def free():
        stream = served.events("/events")
        stream.close()
        return stream.status == 200
    wait_for(free, "a place for a viewer", timeout=PATIENCE)


def test_a_viewer_who_does_not_read(served):
    """A stream whose reader has gone to sleep holds nobody up."""
    deaf = served.raw(f"GET /events/{served.run} HTTP/1.1\r\nHost: {served.host}\r\nCookie: {served.headers['Cookie']}\r\n\r\n".encode())
    for _ in range(20):
        assert served.ask("/api/run/" + served.run).status == 200
    deaf.close()


def ten_viewers(server, run):
    return [server.events("/events/" + run) for _ in range(5)] + [server.events("/events") for _ in range(5)]


def seen_by_all(streams):
    """What each is told next: {(event, id)}."""
    return {s.until(lambda event, data: event in ("run", "runs") and data)[::2] for s in streams}


def test_ten_viewers_never_hold_the_recorder_up(spotter, serve, going, wait_for):
    """Whatever the server does when it gets no CPU at all any more, the recorder goes on; it is made once for all of them."""
    server = serve()
    begin = time.monotonic()
    streams = ten_viewers(server, going.id)
    versions = seen_by_all(streams)

    def kept():
        rows = spotter.json("sql", going.id, "SELECT count(DISTINCT t) AS n FROM samples WHERE metric = 'cpu.idle'")
        return rows[0]["n"]
    for _ in range(2):
        server.child.send_signal(signal.SIGSTOP)
        try:
            before = kept()
            wait_for(lambda: kept() >= before + 5, "more samples while the server stands still", timeout=PATIENCE)
        finally:
            server.child.send_signal(signal.SIGCONT)
        versions |= seen_by_all(streams)
    took = time.monotonic() - begin
    assert len({number for event, number in versions if event == "run"}) <= took + 2, (versions, took)
    going.end()
    spotter.settled(going.id)


@pytest.mark.alone
@pytest.mark.long
def test_ten_viewers_leave_the_recorder_on_its_tick(spotter, serve, pace, going):
    """Ten who follow a run cost it no tick and the machine little."""
    server = serve()
    begin, used = time.monotonic(), cpu_seconds(server.child.pid)
    streams = ten_viewers(server, going.id)
    for _ in range(3):
        seen_by_all(streams)
    took, cost = time.monotonic() - begin, cpu_seconds(server.child.pid) - used
    going.end()
    spotter.settled(going.id)
    why = spotter.json("why", going.id)
    rows = spotter.json("sql", going.id, "SELECT DISTINCT t FROM samples WHERE metric = 'cpu.idle' ORDER BY t")
    times, seconds = [row["t"] for row in rows], why["run"]["duration_s"]
    gaps = [b - a for a, b in zip(times, times[1:])]
    seen = f"{why['overhead']}, {len(times)} samples in {seconds} s, the longest gap {max(gaps, default=0):.2f} s; a thread that " \
           f"slept was late by up to {pace.worst:.2f} s, {pace.lost:.2f} s in all"
    assert len(times) >= (seconds - 2 * pace.lost) * 10 * 0.7, seen
    assert max(gaps, default=0) < 0.7 + 3 * pace.worst, seen
    # A twentieth of a core for each of the two things looked at, and what answering costs.
    assert cost < 0.25 * took + 1, (cost, took)


@pytest.mark.long
def test_a_day(spotter, build, serve):
    """40 processes, 400 threads and 8 GPUs for 24 hours: its page is there after two seconds of CPU."""
    spotter.dir.mkdir()
    record = spotter.dir / "20261116-000000-0000.spot"
    subprocess.run([build / "bench/synth_day", "--keep", record], check=True, timeout=900, stdout=subprocess.DEVNULL)
    server = serve()
    listed, = spotter.json("runs")["runs"]
    begin = cpu_seconds(server.child.pid)
    told = server.ask("/api/run/" + listed["id"])
    cost = cpu_seconds(server.child.pid) - begin
    assert told.status == 200 and len(told.body) < 500_000
    assert cost < 2, cost
    tracks = told.json()["story"]["timeline"]["tracks"]
    assert [t["id"] for t in tracks[:8]] == [f"gpu{i}_busy" for i in range(8)]
    # and a second time for nothing
    server.ask("/api/run/" + listed["id"])
    assert cpu_seconds(server.child.pid) - begin < cost + 0.2
