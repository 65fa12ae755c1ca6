# SPDX-License-Identifier: MIT
"""Runs a notebook in a real kernel: `kernel.py nbclient|kill|interrupt`, cells as JSON on standard input. Run by
a Python that has Jupyter; prints JSON.

nbclient: executes all cells; "outputs" (of each cell, as a notebook has them) and "updates" (of displays).
kill, interrupt: the last cell prints "GO" when it is time; "messages" of that cell, "pid" of the kernel."""
import json
import os
import queue
import signal
import sys
import time


def nbclient_run(cells):
    import nbformat
    from nbclient import NotebookClient
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    updates = []

    class Client(NotebookClient):
        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] in ("display_data", "update_display_data"):
                content = msg["content"]
                updates.append({"cell": cell_index, "type": msg["msg_type"], "data": content["data"],
                                "id": content.get("transient", {}).get("display_id")})
            return super().process_message(msg, cell, cell_index)

    Client(book, timeout=100, allow_errors=True, kernel_name="python3").execute()
    return {"outputs": [c.outputs for c in book.cells], "updates": updates}


def listen(client, request, until, seconds=60):
    """Messages of that request until one of them is what `until` waits for."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            msg = client.get_iopub_msg(timeout=1)
        except queue.Empty:
            continue
        if msg["parent_header"].get("msg_id") != request:
            continue
        found.append({"type": msg["msg_type"], "content": msg["content"]})
        if until(msg["msg_type"], msg["content"]):
            return found
    raise TimeoutError(str(found)[-2000:])


def is_idle(kind, content):
    return kind == "status" and content["execution_state"] == "idle"


def kernel_run(what, cells):
    from jupyter_client.manager import KernelManager
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        for cell in cells[:-1]:
            listen(client, client.execute(cell), is_idle)
        request = client.execute("import os\nprint(os.getpid())")
        pid = next(int(m["content"]["text"]) for m in listen(client, request, is_idle) if m["type"] == "stream")
        request = client.execute(cells[-1])
        messages = listen(client, request, lambda kind, content: kind == "stream" and "GO" in content["text"])
        messages += listen(client, request, lambda kind, content: kind == "update_display_data")
        if what == "kill":
            os.kill(pid, signal.SIGKILL)
            return {"pid": pid, "messages": messages}
        manager.interrupt_kernel()
        messages += listen(client, request, is_idle)
        request = client.execute("import spotter\nprint('alive', spotter.active())")
        return {"pid": pid, "messages": messages, "after": listen(client, request, is_idle)}
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    answer = nbclient_run(given) if sys.argv[1] == "nbclient" else kernel_run(sys.argv[1], given)
    print(json.dumps(answer, default=str))
