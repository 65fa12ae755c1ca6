# SPDX-License-Identifier: MIT
"""A JupyterHub of its own, in this folder: logs in by its page, starts a server, runs cells in a kernel by the
interface that a browser uses. `hub.py`: cells as JSON on standard input; run by a Python that has JupyterHub. Prints
JSON: "messages" of each cell, "pid" of the kernel, "version" of the hub. Nothing is left when it ends."""
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid

import requests
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

NAME = "ann"
CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{0}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{1}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{2}"
c.JupyterHub.authenticator_class = "jupyterhub.auth.DummyAuthenticator"
c.JupyterHub.spawner_class = "jupyterhub.spawner.SimpleLocalProcessSpawner"
c.SimpleLocalProcessSpawner.home_dir_template = "{3}/{{username}}"
c.Spawner.args = ["--allow-root"]
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.Spawner.environment = {4!r}
c.JupyterHub.db_url = "sqlite:///{3}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{3}/cookie"
c.ConfigurableHTTPProxy.pid_file = "{3}/proxy.pid"
"""
PASSED_ON = ("PYTHONPATH", "SPOTTER_EXE", "SPOTTER_DIR", "PYDEVD_DISABLE_FILE_VALIDATION")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def until(what, seconds, ask):
    end = time.monotonic() + seconds
    while True:
        try:
            answer = ask()
            if answer:
                return answer
        except requests.ConnectionError:
            pass
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.2)


class Browser:
    """A session with cookies, as a person's browser has one."""

    def __init__(self, base):
        self.base = base
        self.session = requests.Session()
        self.home = "%s/user/%s" % (base, NAME)

    def get(self, path):
        return self.session.get(self.base + path, timeout=60)

    def log_in(self):
        until("the hub", 120, lambda: self.get("/hub/login").ok)
        form = {"username": NAME, "password": "any", "_xsrf": self.session.cookies.get("_xsrf", "")}
        self.session.post(self.base + "/hub/login", data=form, timeout=60)  # which starts the server
        until("the server", 120, self.is_up)
        self.get("/user/%s/tree" % NAME)

    def is_up(self):
        self.get("/hub/spawn")  # leads to the server once it runs, and gets its cookie on the way
        answer = self.get("/user/%s/api/status" % NAME)
        return answer.ok and "json" in answer.headers.get("content-type", "")

    def start_kernel(self):
        token = next((c.value for c in self.session.cookies if c.name == "_xsrf"), "")
        answer = self.session.post(self.home + "/api/kernels", json={}, timeout=60,
                                   headers={"X-XSRFToken": token, "Referer": self.home + "/tree"})
        answer.raise_for_status()
        return answer.json()["id"]

    async def run(self, kernel, cells):
        cookies = "; ".join("%s=%s" % (c.name, c.value) for c in self.session.cookies
                            if ("/user/%s/" % NAME).startswith(c.path))
        address = "%s/api/kernels/%s/channels" % (self.home.replace("http", "ws", 1), kernel)
        channel = await websocket_connect(HTTPRequest(address, headers={"Cookie": cookies}))
        found = [await ask(channel, cell) for cell in cells]
        channel.close()
        return found


async def ask(channel, code):
    """What the kernel says to this cell."""
    number, found = uuid.uuid4().hex, []
    header = {"msg_id": number, "msg_type": "execute_request", "username": NAME, "session": "s", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    await channel.write_message(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content,
                                            "channel": "shell", "buffers": []}))
    while True:
        message = json.loads(await asyncio.wait_for(channel.read_message(), 120))
        if message["parent_header"].get("msg_id") != number:
            continue
        kind = message["msg_type"]
        found.append({"type": kind, "content": message["content"]})
        if kind == "status" and message["content"]["execution_state"] == "idle":
            return found


def main(cells):
    here = os.getcwd()
    ports = free_ports(3)
    with open("hub_config.py", "w") as f:
        f.write(CONFIG.format(*ports, here, {k: os.environ[k] for k in PASSED_ON if k in os.environ}))
    with open("hub.log", "w") as log:
        hub = subprocess.Popen(["jupyterhub", "-f", "hub_config.py"], stdout=log, stderr=log, start_new_session=True)
    try:
        browser = Browser("http://127.0.0.1:%d" % ports[0])
        browser.log_in()
        kernel = browser.start_kernel()
        messages = asyncio.run(browser.run(kernel, ["import os\nprint(os.getpid())", *cells]))
        pid = int(next(m["content"]["text"] for m in messages[0] if m["type"] == "stream"))
        return {"messages": messages[1:], "pid": pid, "version": browser.get("/hub/api/").json()["version"]}
    except Exception:
        with open("hub.log") as log:
            print(log.read()[-4000:], file=sys.stderr)
        raise
    finally:
        hub.send_signal(signal.SIGTERM)  # takes the servers and the proxy with it
        try:
            hub.wait(60)
        finally:
            if hub.poll() is None:
                os.killpg(hub.pid, signal.SIGKILL)


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
