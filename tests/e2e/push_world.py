# SPDX-License-Identifier: MIT
"""What tests of pushing need: push_as (src/push behind a pipe), a small HTTP server that answers as it is told, and real
engines from Debian's packages on ports of the kernel's choice."""
import ctypes
import errno
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

PATIENCE = 60  # seconds, for a machine that does other things
DIRECT = {"no_proxy": "*", "NO_PROXY": "*"}
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def wait_for(condition, what, timeout=PATIENCE):
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited {timeout:g} s in vain for {what}"
        time.sleep(0.05)


class Sender:
    """push_as send, told by lines."""

    def __init__(self, build, url, kind="remote-write", prefix=(), env=None, **options):
        need_libcurl()
        # patient: a request that is given up after the 10 s of the program comes twice, and tests count them
        options = {"backoff": 50, "timeout": PATIENCE * 1000, **options}
        words = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen([*prefix, build / "tests/unit/push/push_as", "send", kind, url, *words], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=env or {**os.environ, **DIRECT})

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def give(self, n, value, time_ms=None):
        self.say(f"give {n} {value} {now_ms() if time_ms is None else time_ms}")

    def stats(self):
        self.say("stats")
        return json.loads(self.process.stdout.readline())

    def close(self, flush_ms=PATIENCE * 1000):
        """The last figures."""
        self.say(f"close {flush_ms}")
        stats = json.loads(self.process.stdout.readline())
        _, words = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, words
        return stats

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def until(self, what, **wanted):
        """Waits for these figures."""
        def there():
            s = self.stats()
            return s if all(s[name] == value for name, value in wanted.items()) else None
        return wait_for(there, what)


class Server(http.server.ThreadingHTTPServer):
    """Answers POST by `plan`, one (status, headers, body) or function after another, then 204. Keeps what came."""
    daemon_threads = True

    def __init__(self, *plan, port=0):
        self.plan, self.requests, self.lock = list(plan), [], threading.Lock()
        super().__init__(("127.0.0.1", port), Handler, bind_and_activate=False)
        wait_for(self.bound, f"port {port}")
        self.server_activate()
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def bound(self):
        try:
            self.server_bind()
        except OSError as e:
            if e.errno != errno.EADDRINUSE:
                raise
            return False
        return True

    def url(self, path="/api/v1/write", scheme="http"):
        return f"{scheme}://127.0.0.1:{self.server_port}{path}"

    def stop(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, address):
        pass  # they hang up on us in some tests


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.requests.append((self.path, self.headers, body, time.monotonic()))
            step = self.server.plan.pop(0) if self.server.plan else (204, {}, b"")
        if callable(step):
            step(self)
            self.close_connection = True
            return
        status, headers, text = step
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def need_libcurl():
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"):
        try:
            ctypes.CDLL(name)
            return
        except OSError:
            pass
    pytest.skip("libcurl is not installed")


def now_ms():
    return int(time.time() * 1000)


def get_json(url, **query):
    """None while nobody answers."""
    try:
        with OPENER.open(url + "?" + urllib.parse.urlencode(query), timeout=10) as answer:
            return json.load(answer)
    except (urllib.error.URLError, OSError, ValueError):
        return None


class Held:
    """A port that nobody else gets: held till the end of the test. Whoever is told it may listen at it all the same, as Linux lets
    sockets with SO_REUSEADDR share a port of which one at most listens; port 0 and connect() do not choose it."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def release(self):
        self.socket.close()


class Engine:
    """A real one with storage of its own. Stopped and started again it has the same port."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        if not shutil.which(self.program):
            pytest.skip(f"{self.program} is not installed (make setup)")
        self.held = Held()
        self.port = self.held.port

    def launch(self):
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(self.command(self.port), stdout=log, stderr=log, cwd=self.folder)

    def start(self):
        self.launch()

        def up():
            if self.process.poll() is not None:
                words = (self.folder / "log").read_text()
                assert "address already in use" in words, words[-2000:]
                time.sleep(0.5)
                self.launch()
            return get_text(self.url(self.ready))
        wait_for(up, self.program)
        return self

    def stop(self):
        if not self.process or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def done(self):
        self.stop()
        self.held.release()

    def url(self, path=""):
        return f"http://127.0.0.1:{self.port}{path}"

    def write_url(self):
        return self.url("/api/v1/write")

    def points(self, query):
        """[(labels, [(seconds, value)])] of the last hour, raw."""
        answer = get_json(self.url("/api/v1/query"), query=f"{query}[1h]", time=time.time() + 60)
        if not answer or answer["status"] != "success":
            return []
        return [(row["metric"], [(float(t), float(v)) for t, v in row["values"]]) for row in answer["data"]["result"]]


def get_text(url):
    try:
        with OPENER.open(url, timeout=10) as answer:
            return answer.read().decode(errors="replace") or "yes"
    except (urllib.error.URLError, OSError):
        return None


class Prometheus(Engine):
    program, ready = "prometheus", "/-/ready"

    def command(self, port):
        (self.folder / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
        return ["prometheus", "--config.file=prometheus.yml", f"--storage.tsdb.path={self.folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver"]


class VictoriaMetrics(Engine):
    program, ready = "victoria-metrics", "/health"

    def command(self, port):
        # it keeps the last 30 s to itself otherwise
        return ["victoria-metrics", f"-httpListenAddr=127.0.0.1:{port}", f"-storageDataPath={self.folder / 'data'}",
                "-search.latencyOffset=0s", "-memory.allowedBytes=64MB", "-http.maxGracefulShutdownDuration=1s"]

    def points(self, query):
        get_text(self.url("/internal/force_flush"))  # new series are found after some seconds otherwise
        return super().points(query)


def value_in(text, name):
    """Of a page of metrics."""
    found = re.search(rf"^{re.escape(name)} ([-+.\deE]+)", text, re.M)
    return float(found[1]) if found else None
