# SPDX-License-Identifier: MIT
"""A notebook in a real browser: Debian's Jupyter and Chromium, driven by Chromium's own protocol (with tornado,
which Jupyter needs anyway). Cells as JSON on standard input; prints JSON: "charts" (each different one that was
seen, as markup) and "text" of the page. Leaves live.png and end.png in the current folder."""
import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
from tornado.websocket import websocket_connect

CHART = "(document.querySelector('.output svg[aria-label^=spotter]') || {outerHTML: ''}).outerHTML"
READY = "typeof Jupyter !== 'undefined' && Jupyter.notebook.kernel && Jupyter.notebook.kernel.is_connected()"
TEXT = "document.querySelector('#notebook').innerText"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url, seconds=60):
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


class Page:
    def __init__(self, socket_):
        self.socket, self.count = socket_, 0

    async def call(self, method, **params):
        self.count += 1
        await self.socket.write_message(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            said = json.loads(await asyncio.wait_for(self.socket.read_message(), 60))
            if said.get("id") == self.count:
                return said["result"]

    async def js(self, code):
        return (await self.call("Runtime.evaluate", expression=code, returnByValue=True))["result"].get("value")

    async def until(self, code, seconds=60):
        end = time.monotonic() + seconds
        while not await self.js(code):
            if time.monotonic() > end:
                raise TimeoutError(code)
            await asyncio.sleep(0.2)

    async def shot(self, file):
        with open(file, "wb") as f:
            f.write(base64.b64decode((await self.call("Page.captureScreenshot"))["data"]))


async def watch(page):
    """Charts until the verdict is there."""
    charts, end = [], time.monotonic() + 60
    while time.monotonic() < end:
        chart = await page.js(CHART)
        if chart and chart not in charts:
            charts.append(chart)
            if len(charts) == 3:
                await page.shot("live.png")
        if await page.js("/^Record/m.test(%s)" % TEXT):
            break
        await asyncio.sleep(0.2)
    await page.shot("end.png")
    return {"charts": charts, "text": await page.js(TEXT)}


async def drive(jupyter, chromium):
    get("http://127.0.0.1:%d/api" % jupyter)
    pages = json.loads(get("http://127.0.0.1:%d/json" % chromium))
    address = next(p for p in pages if p["type"] == "page")["webSocketDebuggerUrl"]
    page = Page(await websocket_connect(address, max_message_size=1 << 28))
    await page.call("Page.enable")
    await page.call("Page.navigate", url="http://127.0.0.1:%d/notebooks/a.ipynb" % jupyter)
    await page.until(READY)
    await page.js("Jupyter.notebook.execute_all_cells()")
    return await watch(page)


def main(cells):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells]), "a.ipynb")
    jupyter, chromium = free_port(), free_port()
    commands = [
        [sys.executable, "-m", "notebook", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=%d" % jupyter,
         "--NotebookApp.token=", "--NotebookApp.password=", "--notebook-dir=."],
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--remote-debugging-port=%d" % chromium, "--user-data-dir=" + os.path.abspath("profile"),
         "--window-size=1100,1000", "about:blank"]]
    children = []
    try:
        for command in commands:
            children.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                             start_new_session=True))
        return asyncio.run(drive(jupyter, chromium))
    finally:
        for child in children:
            child.terminate()
        for child in children:
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)  # a session that we began
                child.wait()


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
