# SPDX-License-Identifier: MIT
"""`spotter serve` over its socket: who gets in, and what they get. That nobody can hold it up is test_serve_limits.py's, how
its pages look in a browser tests/web/test_dashboard.py's; the decision about a request alone is
tests/unit/web/test_serve_request.c's."""
import json
import os
import re
import shutil
import signal
import socket

import pytest

from serving import PATIENCE, going, serve, served  # noqa: F401 (fixtures)


# ---- the command

def test_begins_and_ends(serve):
    server = serve()
    assert server.ask("/").status == 200
    code, err = server.end()
    assert code == 0 and err == "spotter: open this address in a browser; Ctrl-C ends it\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_while_others_look(served, number):
    streams = [served.events("/events"), served.events("/events/" + served.run)]
    streams[0].until(lambda event, data: event == "runs")
    half = served.raw(b"GET /")
    assert served.end(number)[0] == 0
    while streams[0].next():  # what was on its way; then the end, which is no error
        pass
    half.close()


def test_says_where_it_is_as_json(spotter):
    child = spotter.start("serve", "--port", "0", "--json")
    lines = []
    while not lines or lines[-1].strip() != "}":
        lines.append(child.stdout.readline().decode())
        assert lines[-1], child.stderr.read()
    told = json.loads("".join(lines))
    assert told["schema"] == "spotter.serve/1" and told["loopback"] is True and told["address"] == "127.0.0.1"
    assert re.fullmatch(rf"http://127\.0\.0\.1:{told['port']}/\?token=[0-9a-f]{{32}}", told["url"])
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=PATIENCE) == 0


def test_a_port_that_is_taken(spotter, serve):
    server = serve()
    done = spotter("serve", "--port", server.port)
    assert done.code == 1 and done.out == ""
    assert f"port {server.port} of 127.0.0.1 is in use" in done.err and "--port 0" in done.err


def test_an_address_that_is_not_ours(spotter):
    done = spotter("serve", "--port", "0", "--listen", "192.0.2.1")
    assert done.code == 1 and done.out == "" and "cannot listen" in done.err


def test_beyond_this_machine_only_with_a_warning(serve):
    server = serve("--listen", "0.0.0.0")
    assert server.ask("/").status == 200
    assert server.ask("/", Host=f"10.9.8.7:{server.port}").status == 200  # a number leads nowhere else
    assert server.ask("/", Host=f"evil.example:{server.port}").status == 403
    _, err = server.end()
    assert "WARNING: other machines can reach 0.0.0.0" in err and "not encrypted" in err and "ssh -L" in err


def test_hears_only_this_machine(serve):
    server = serve()
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except OSError:
        found = []  # a machine that does not know its own name
    for address in {a[4][0] for a in found} - {"127.0.0.1"}:
        with pytest.raises(OSError):
            socket.create_connection((address, server.port), timeout=5)


# ---- who gets in

def test_the_token_leaves_the_address(serve):
    server = serve()
    answer = server.ask(f"/?token={server.token}", Cookie=None)
    assert (answer.status, answer.headers["Location"], answer.text) == (303, "/", "")
    cookie = answer.headers["Set-Cookie"]
    assert cookie == f"spotter-{server.port}={server.token}; Path=/; HttpOnly; SameSite=Strict"
    assert server.ask("/", Cookie=cookie.split(";")[0]).status == 200
    # by a link on a page from elsewhere: a redirect would come without the cookie
    linked = server.ask(f"/?token={server.token}", Cookie=None, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert linked.status == 200 and linked.headers["Set-Cookie"] == cookie and 'content="0; url=/"' in linked.text
    assert server.token not in linked.text


REFUSED = {
    "no token": ("/", {"Cookie": None}, 403),
    "another token": ("/?token=" + "0" * 32, {"Cookie": None}, 403),
    "a cookie of another server": ("/", {"Cookie": "spotter-1=x"}, 403),
    "data without token": ("/api/runs", {"Cookie": None}, 403),
    "events without token": ("/events", {"Cookie": None}, 403),
    "a script without token": ("/app.js", {"Cookie": None}, 403),
    "nothing there, without token": ("/nothing", {"Cookie": None}, 403),
    "another name": ("/", {"Host": "evil.example"}, 403),
    "another name with the port": ("/api/runs", {"Host": "evil.example:PORT"}, 403),
    "another port": ("/", {"Host": "127.0.0.1:1"}, 403),
    "another page": ("/api/runs", {"Origin": "http://evil.example"}, 403),
    "no page at all": ("/api/runs", {"Origin": "null"}, 403),
    "another site": ("/api/runs", {"Sec-Fetch-Site": "cross-site"}, 403),
    "another port of this machine": ("/api/runs", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
    "a folder above": ("/run/../../../etc/passwd", {}, 404),
    "a folder above, in other signs": ("/run/%2e%2e%2f%2e%2e%2fetc%2fpasswd", {}, 404),
    "a path as a run": ("/api/run//etc/passwd", {}, 404),
    "a file as a run": ("/api/run/x.spot", {}, 404),
    "a byte that ends it": ("/api/run/a%00b", {}, 404),
    "no such run": ("/api/run/20200101-000000-0000", {}, 404),
    "an address too long": ("/run/" + "a" * 300, {}, 414),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refuses(served, spotter, why):
    path, headers, status = REFUSED[why]
    answer = served.ask(path, **{k: v and v.replace("PORT", str(served.port)) for k, v in headers.items()})
    assert answer.status == status, answer.text
    assert answer.text.startswith("spotter: ") and answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    # whoever is refused learns nothing
    assert served.token not in str(answer.headers) + answer.text and str(spotter.dir) not in answer.text
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"])
def test_only_shows(served, method):
    answer = served.ask("/" if method != "CONNECT" else "127.0.0.1:1", method=method)
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD"


def test_two_hosts_are_none(served):
    s = served.raw(f"GET / HTTP/1.1\r\nHost: {served.host}\r\nHost: evil.example\r\nCookie: "
                   f"{served.headers['Cookie']}\r\nConnection: close\r\n\r\n".encode())
    assert s.recv(4096).startswith((b"HTTP/1.1 403", b"HTTP/1.1 400"))
    s.close()


def test_every_answer_is_dressed(served):
    """Also those that refuse."""
    for path, headers in (("/", {}), ("/app.js", {}), ("/serve.js", {}), ("/app.css", {}), ("/api/runs", {}),
                          ("/run/" + served.run, {}), ("/api/run/" + served.run, {}), ("/", {"Cookie": None}), ("/x", {}),
                          ("/?token=" + served.token, {"Cookie": None})):
        answer = served.ask(path, **headers)
        h = answer.headers
        assert h["Content-Security-Policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"), path
        assert (h["X-Content-Type-Options"], h["Referrer-Policy"], h["Cache-Control"], h["X-Frame-Options"]) == (
            "nosniff", "no-referrer", "no-store", "DENY"), path
        assert not [name for name in h if name.lower().startswith("access-control")], path


def test_head_is_without_a_body(served):
    answer = served.ask("/", method="HEAD")
    assert answer.status == 200 and answer.body == b"" and int(answer.headers["Content-Length"]) > 100
    assert served.ask("/events", method="HEAD").status == 405


# ---- what they get

def test_the_list(served, spotter):
    stream = served.events("/events")
    assert stream.response.headers["Content-Type"] == "text/event-stream"
    # at once, and then with the headline
    event, data, _ = stream.until(lambda event, data: "summary" in data["runs"][0])
    stream.close()
    assert event == "runs" and data["schema"] == "spotter.serve.runs/1" and data["count"] == 1
    run, = data["runs"]
    listed, = spotter.json("runs")["runs"]
    assert (run["id"], run["name"], run["state"], run["exit"]) == (served.run, "short", "ended", {"code": 0})
    assert run["started"] == listed["started"] and run["bytes"] == listed["bytes"] == data["bytes"]
    assert run["summary"]["verdict"]["findings"] == [] and {s["name"] for s in run["summary"]["sparks"]} <= {"CPU", "GPU"}
    assert served.ask("/api/runs").json()["runs"][0]["id"] == served.run


def test_the_story_is_the_reports(served, spotter):
    told = served.ask("/api/run/" + served.run).json()
    assert (told["live"], told["state"]) == (False, "ended") and told["bytes"] > 0
    page = spotter("report", "--html", "-", check=True).out
    story = json.loads(re.search(r'<script type="application/json" id="story">(.*?)</script>', page, re.S)[1])
    assert told["story"] == story
    assert story["verdict"] == spotter.json("why")


def test_a_run_that_is_over_is_told_once(served):
    stream = served.events("/events/" + served.run)
    event, data, number = stream.next()
    assert event == "run" and data["live"] is False and stream.next()[0] == "done" and stream.next() is None
    again = served.events("/events/" + served.run, last=number)  # as a browser comes back
    assert again.next()[:2] == ("done", {}) and again.next() is None
    other = served.events("/events/" + served.run, last="1")
    assert other.next()[2] == number


def test_a_run_while_it_goes_on(spotter, serve, going):
    server = serve()
    page = server.ask("/run/" + going.id)
    assert page.status == 200 and f'data-run="{going.id}"' in page.text and "going" not in page.text.split("<body")[0]
    stream = server.events("/events/" + going.id)
    _, first, number = stream.until(lambda event, data: event == "run" and data["live"])
    _, later, _ = stream.until(lambda event, data: event == "run" and
                               data["story"]["verdict"]["run"]["duration_s"] > first["story"]["verdict"]["run"]["duration_s"] + 1)
    assert int(stream.id) > int(number) and later["live"]
    assert later["story"]["verdict"]["run"]["name"] == "going <b>on</b>"
    listed, = server.ask("/api/runs").json()["runs"]
    assert listed["state"] == "going" and listed["id"] == going.id
    going.end()
    _, last, _ = stream.until(lambda event, data: event == "run" and not data["live"])
    assert last["state"] == "ended" and last["story"]["verdict"]["run"]["exit"] == {"code": 0}
    assert stream.next()[0] == "done" and stream.next() is None


def test_a_run_that_is_removed(served, spotter):
    spotter("rm", served.run, check=True)
    assert served.events("/events/" + served.run).next()[0] == "gone"
    assert served.ask("/api/run/" + served.run).status == 404
    assert served.ask("/api/runs").json()["runs"] == []


def test_no_runs_at_all(serve, spotter):
    server = serve()
    assert server.ask("/api/runs").json()["runs"] == [] and not spotter.dir.exists()


def test_files_that_are_no_runs(served, spotter):
    (spotter.dir / "20200101-000000-aaaa.spot").write_bytes(b"nonsense" * 100)
    (spotter.dir / "<b>.spot").write_bytes(b"")
    (spotter.dir / "notes.txt").write_text("secret")
    rows = served.ask("/api/runs").json()["runs"]
    assert len(rows) == 3 and sum("problem" in r for r in rows) == 2
    assert [r for r in rows if r["name"] == "<b>.spot" and "id" not in r]  # listed, and leads nowhere
    assert served.ask("/api/run/20200101-000000-aaaa").status == 500
    assert served.events("/events/20200101-000000-aaaa").next()[0] == "trouble"


def test_a_folder_that_is_closed(served, spotter):
    if os.geteuid() == 0:
        pytest.skip("root may read anything")
    spotter.dir.chmod(0)
    try:
        answer = served.ask("/api/runs")
        assert answer.status == 500 and "ermission denied" in answer.text
    finally:
        spotter.dir.chmod(0o700)
    assert served.ask("/api/run/" + served.run).status == 200


def test_only_reads(served, spotter, wait_for):
    """The folder is after a visit what it was before."""
    def state():
        return {p.name: (p.stat().st_mtime_ns, p.stat().st_size) for p in spotter.dir.iterdir()}
    before = state()
    shutil.copy(next(spotter.dir.glob("*.spot")), spotter.home / "copy")
    for path in ("/api/runs", "/api/run/" + served.run, "/api/runs"):
        assert served.ask(path).status == 200
    wait_for(lambda: state() == before, "a folder without files of a reader", timeout=PATIENCE)
    assert next(spotter.dir.glob("*.spot")).read_bytes() == (spotter.home / "copy").read_bytes()
