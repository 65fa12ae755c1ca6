# SPDX-License-Identifier: MIT
"""A notebook in a real browser: Jupyter on the loopback interface, Chromium driven by Playwright (browser.js).

    browser.py notebook|lab NODE_MODULES CHROMIUM     cells as JSON on standard input

Run by a Python that has Jupyter. Prints JSON: "charts", the different ones that were seen while the last cell ran, each
with its "markup" and its "pixels" (a PNG, base64); "ended", the markup of the one that stayed; the "verdict"; "again",
how many charts there are when the saved notebook is loaded anew; "errors", of the page and on its console. Leaves
screenshots in the current folder."""
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat

SECONDS = 280  # of the browser, all in all; it takes 20 where nothing else runs


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(url, server, seconds=60):
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read()
        except OSError:
            if time.monotonic() > end or server.poll() is not None:
                raise
            time.sleep(0.1)


def serve(interface, port, token):
    app = {"notebook": "NotebookApp", "lab": "ServerApp"}[interface]
    module = {"notebook": "notebook", "lab": "jupyterlab"}[interface]
    with open("jupyter.log", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=%d" % port,
             "--%s.port_retries=0" % app, "--%s.token=%s" % (app, token), "--%s.%s=%s" % (
                 app, {"notebook": "notebook_dir", "lab": "root_dir"}[interface], os.getcwd())],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def stop(child):
    """Jupyter ends its kernels first; what does not end in time is ended with all it started."""
    child.terminate()
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # a session that we began
        child.wait()


def drive(url, count, modules, chromium):
    child = subprocess.Popen(["node", Path(__file__).with_suffix(".js"), url, str(count)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True, start_new_session=True,
                             env=dict(os.environ, NODE_PATH=modules, CHROMIUM=chromium))
    try:
        said, _ = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise SystemExit("the browser did not end within %d s" % SECONDS)
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)  # whatever of it is left
        except ProcessLookupError:
            pass
    if child.returncode:
        raise SystemExit("browser.js ended with %d" % child.returncode)
    return json.loads(said)


def main(interface, modules, chromium, cells):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells],
                                            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3",
                                                                     "language": "python"}}), "a.ipynb")
    port, token = free_port(), secrets.token_hex(16)
    server = serve(interface, port, token)
    try:
        at = "http://127.0.0.1:%d/" % port
        wait_for(at + "api?token=" + token, server)
        return drive(at + {"notebook": "notebooks", "lab": "lab/tree"}[interface] + "/a.ipynb?token=" + token,
                     len(cells), modules, chromium)
    finally:
        stop(server)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:], json.load(sys.stdin))))
