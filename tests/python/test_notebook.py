# SPDX-License-Identifier: MIT
"""Notebooks, executed by a real kernel, without a browser and in one. Needs Debian's python3-ipykernel and
python3-nbclient; for the browser, what `tools/setup browser` installs."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from programs import BUILD, PACKAGE, TREE, python_with

DRIVER = Path(__file__).with_name("kernel.py")

TRAIN = """%%spotter --name cell
import time, spotter
with spotter.phase("evaluate"):
    time.sleep(0.05)
end = time.monotonic() + 4
n = 0
while time.monotonic() < end:
    n += 1
    time.sleep(0.01)
    spotter.step(loss=1 / n)
n"""

FOREVER = """%%spotter --name forever
import os, time
from spotter import _recording
print(_recording._current.pid, os.environ["SPOTTER_MARKS"], "GO", flush=True)
while True:
    time.sleep(0.01)"""


def jupyter(*modules):
    """A Python with Jupyter; Debian's is not always the one that runs the tests."""
    wanted = ", ".join(("IPython", "ipykernel", "nbformat") + modules)
    for python in (sys.executable, "/usr/bin/python3"):
        if os.access(python, os.X_OK) and not subprocess.run([python, "-c", "import " + wanted],
                                                             capture_output=True).returncode:
            return python
    pytest.skip("needs Debian's python3-ipykernel and python3-%s" % " and python3-".join(modules))


@pytest.fixture
def notebook(world):
    python = jupyter("nbclient")

    def run(what, *cells, python=python, browser=(), **more):
        env = dict(world.base, PYTHONPATH=str(PACKAGE.parent), SPOTTER_EXE=str(BUILD / "spotter"),
                   PYDEVD_DISABLE_FILE_VALIDATION="1", **more)
        driver = DRIVER.with_name("browser.py") if browser else DRIVER
        done = subprocess.run([python, driver, what, *browser], input=json.dumps(cells), env=env, cwd=world.place,
                              capture_output=True, text=True, timeout=360 if browser else 170)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])
    return run


def data(outputs, kind):
    return [o["data"][kind] for o in outputs if kind in o.get("data", {})]


def text_of(markup):
    return "".join(ET.fromstring(markup).itertext())


def gone(pid, seconds=30):
    """Whether that process ends within so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


def sql(file, query):
    done = subprocess.run([BUILD / "spotter", "sql", file, "--json", query], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_cell_has_a_live_chart_and_a_verdict(notebook, world):
    said = notebook("nbclient", "%load_ext spotter", TRAIN, "import os\nos.environ.get('SPOTTER_MARKS')")
    cell = said["outputs"][1]
    assert not [o for o in cell if o["output_type"] in ("error", "stream")], cell
    steps = int(next(o["data"]["text/plain"] for o in cell if o["output_type"] == "execute_result"))
    chart, verdict = data(cell, "text/html")
    assert ET.fromstring(chart).find("{http://www.w3.org/2000/svg}svg") is not None
    for word in ("CPU", "memory", "steps", "loss", "cores", "ended"):
        assert word in text_of(chart), word
    assert "CPU" in data(cell, "text/plain")[0] and len(chart) < 50000
    assert f"{steps} steps" in text_of(verdict) and "Record" in text_of(verdict)
    assert "spotter: recording" not in text_of(verdict)
    drawings = [u for u in said["updates"] if u["type"] == "update_display_data"]
    assert len({u["id"] for u in drawings}) == 1 and len(drawings) >= 2  # of 4 s, on a machine under load
    assert len({u["data"]["text/html"] for u in drawings}) == len(drawings)
    record = next((world.place / "runs").glob("*.spot"))
    assert sql(record, "SELECT count(*) AS n, max(step) AS last FROM steps") == [{"n": steps, "last": steps}]
    assert sql(record, "SELECT name FROM phases") == [{"name": "evaluate"}]
    assert not said["outputs"][2]  # the environment is as it was


AWAIT = """%%spotter --name later
import asyncio, spotter
steps = 0
async def turn():
    await asyncio.sleep(0.01)
    spotter.step(loss=0.5)
for steps in range(1, 61):
    await turn()
get_ipython().run_cell("within = steps");
%time pass
steps"""


FUTURE = '''%%spotter --name future
"""What is there must stay first."""

from __future__ import (
    annotations)
import asyncio
def f(x: Later): pass
await asyncio.sleep(0)
f.__annotations__["x"]'''


def test_a_cell_that_awaits(notebook, world):
    """Runs in the kernel's own event loop; what it raises is shown once, and ends the recording. A cell that it runs
    itself does not."""
    said = notebook("nbclient", "%load_ext spotter", AWAIT, "[within, steps]",
                    "%%spotter\nimport asyncio\nawait asyncio.sleep(0.1)\n1/0", "%%spotter on\nawait asyncio.sleep(0)",
                    "%spotter", "%reload_ext spotter", "%%spotter --name again\nawait asyncio.sleep(0, 7)", FUTURE)
    _, cell, after, failed, usage, idle, _, again, future = said["outputs"]
    assert not [o for o in cell if o["output_type"] == "error"], cell
    assert [o["data"]["text/plain"] for o in cell if o["output_type"] == "execute_result"] == ["60"]
    chart, verdict = data(cell, "text/html")
    assert "ended" in text_of(chart) and "60 steps" in text_of(verdict) and "later" in text_of(verdict)
    assert data(after, "text/plain") == ["[60, 60]"] and len(after) == 1
    assert [o["ename"] for o in failed if o["output_type"] == "error"] == ["ZeroDivisionError"]
    assert len(data(failed, "text/html")) == 2
    trace = "\n".join(next(o for o in failed if o["output_type"] == "error")["traceback"])
    assert "notebook.py" not in trace and "line 4" in re.sub("\\x1b[^m]*m", "", trace)
    assert "usage: %spotter on|off|why" in usage[0]["text"] and "not recording" in idle[0]["text"]
    assert "7" in data(again, "text/plain") and len(data(again, "text/html")) == 2
    assert "'Later'" in data(future, "text/plain") and len(data(future, "text/html")) == 2, future
    records = [sql(file, "SELECT name FROM run")[0]["name"] for file in (world.place / "runs").glob("*.spot")]
    assert sorted(records) == ["again", "future", "later", "notebook"]


def test_gpus_are_in_the_chart(notebook, world):
    """Two simulated ones, of which one works."""
    if not (BUILD / "sim/libnvidia-ml.so.1").exists():
        pytest.skip("the virtual GPU was not built")
    state = "test-" + uuid.uuid4().hex[:12]
    try:
        said = notebook("nbclient", "%load_ext spotter", """%%spotter
import sys, time
sys.path.insert(0, {!r})
import vgpu
gpu = vgpu.Device(0)
kept = gpu.alloc(8 << 30)
end = time.monotonic() + 4
while time.monotonic() < end:
    gpu.launch(20)
    gpu.synchronize()
""".format(str(TREE / "sim/python")), VGPU_SCENARIO=str(TREE / "sim/scenarios/idle2.vgpu"), VGPU_STATE=state,
                        SPOTTER_NVML=str(BUILD / "sim/libnvidia-ml.so.1"), LD_LIBRARY_PATH=str(BUILD / "sim"))
    finally:
        for file in Path("/dev/shm").glob(f"vgpu*{state}*"):
            file.unlink()
    lines = [u["data"]["text/plain"] for u in said["updates"]]
    assert any(re.search(r"2 GPUs mean [2-5]\d %, (8|9)(\.\d+)? GB of 172 GB", line) for line in lines), lines
    assert "2 GPUs" in text_of(data(said["outputs"][1], "text/html")[0])


def test_errors_are_shown_once_and_end_the_recording(notebook):
    said = notebook("nbclient", "%load_ext spotter", "%%spotter\nprint(1)\n1/0", "%%spotter\nprint(2", "%spotter",
                    "%spotter sideways", "%%spotter on\n1")
    for outputs, error in ((said["outputs"][1], "ZeroDivisionError"), (said["outputs"][2], "SyntaxError")):
        errors = [o for o in outputs if o["output_type"] == "error"]
        assert [e["ename"] for e in errors] == [error]
        chart, verdict = data(outputs, "text/html")  # all the same
        assert "notebook:" in text_of(verdict)  # not "ipykernel_launcher"
    trace = "\n".join(next(o for o in said["outputs"][1] if o["output_type"] == "error")["traceback"])
    assert "notebook.py" not in trace and "1" in trace
    assert "not recording" in said["outputs"][3][0]["text"]
    assert all("usage: %spotter on|off|why" in o[0]["text"] for o in said["outputs"][4:])


def test_what_cannot_be_recorded_is_one_line(notebook):
    said = notebook("nbclient", "%load_ext spotter", "%%spotter --out /nonexistent/a.spot\nprint('ran')", "%spotter")
    assert [o["output_type"] for o in said["outputs"][1]] == ["stream"]
    assert "/nonexistent" in said["outputs"][1][0]["text"] and "not recording" in said["outputs"][2][0]["text"]


def test_on_off_why(notebook):
    said = notebook("nbclient", "%load_ext spotter", "%spotter off", "%spotter on --name two", "%spotter on",
                    "import time\ntime.sleep(2.5)", "%spotter why", "%%spotter\n40 + 2", "%spotter off", "%spotter why")
    _, early, on, again, _, during, within, off, after = said["outputs"]
    assert "nothing is recorded" in early[0]["text"] and "already" in again[0]["text"]
    assert "ended" in text_of(data(on, "text/html")[0])  # the chart stays where it began
    assert "two" in text_of(data(during, "text/html")[0])
    assert "goes on" in within[0]["text"] and "42" in data(within, "text/plain")
    assert "two" in text_of(data(off, "text/html")[-1]) and "two" in text_of(data(after, "text/html")[0])
    assert "still running" not in text_of(data(after, "text/html")[0])  # the kernel: no news


def spoken(messages):
    """pid of the recorder and the folder of marks, which the cell printed."""
    words = next(m["content"]["text"] for m in messages if m["type"] == "stream").split()
    return int(words[0]), Path(words[1])


@pytest.mark.parametrize("sleep,raised", [
    ("time.sleep", "KeyboardInterrupt"),
    pytest.param("await __import__('asyncio').sleep", "CancelledError",  # by ipykernel
                 marks=pytest.mark.skipif(not os.environ.get("SPOTTER_LONG"), reason="long: run by make check-all"))],
    ids=["plain", "awaiting"])
def test_an_interrupt_ends_the_cell_and_the_recorder(notebook, sleep, raised):
    said = notebook("interrupt", "%load_ext spotter", FOREVER.replace("time.sleep", sleep))
    pid, folder = spoken(said["messages"])
    assert [m["content"]["ename"] for m in said["messages"] if m["type"] == "error"] == [raised]
    last = [m["content"]["data"]["text/html"] for m in said["messages"] if m["type"] == "display_data"][-1]
    assert "forever" in text_of(last)
    assert "alive False" in "".join(m["content"]["text"] for m in said["after"] if m["type"] == "stream")
    assert gone(pid, 1) and not folder.exists()


def test_a_killed_kernel_leaves_nothing_behind(notebook, world):
    said = notebook("kill", "%load_ext spotter", FOREVER)
    pid, folder = spoken(said["messages"])
    assert gone(pid)
    assert gone(said["pid"]) and not folder.exists()
    record = next((world.place / "runs").glob("*.spot"))
    assert sql(record, "SELECT name, state FROM run") == [{"name": "forever", "state": "ended"}]


def playwright():
    """Where node finds playwright-core; `tools/setup browser` puts it into the build folder."""
    for modules in [str(BUILD / "npm/node_modules"), *os.environ.get("NODE_PATH", "").split(":")]:
        if modules and (Path(modules) / "playwright-core").is_dir():
            return modules
    pytest.skip("needs Playwright: tools/setup browser")


@pytest.mark.skipif(not os.environ.get("SPOTTER_LONG"), reason="long: run by make check-all")
@pytest.mark.parametrize("interface", ["notebook", "lab"])
def test_in_a_browser(notebook, world, interface):
    """As a person: runs the cells, looks at the drawings, saves, comes back. Screenshots: the folder of the test."""
    modules = playwright()
    chromium = shutil.which("chromium") or pytest.skip("needs Debian's chromium")
    python = jupyter("notebook") if interface == "notebook" else python_with("jupyterlab", "ipykernel")
    said = notebook(interface, "%load_ext spotter", TRAIN.replace("+ 4", "+ 10"), python=python,
                    browser=(modules, chromium))
    charts, verdict = said["charts"], said["verdict"]
    assert len(charts) >= 3 and len({c["pixels"] for c in charts}) == len(charts)  # of 10 s, on a machine under load
    assert not said["errors"] and said["again"] == 1
    for word in ("CPU", "memory", "steps", "loss", "ended"):
        assert word in text_of(said["ended"]), word
    steps = sql(next((world.place / "runs").glob("*.spot")), "SELECT count(*) AS n FROM steps")[0]["n"]
    assert f"Steps   {steps} steps" in verdict and re.search("^(Verdict|Finding) ", verdict, re.M)
    assert "Record" in verdict and "still running" not in verdict
    assert all((world.place / name).stat().st_size > 10000 for name in ("live.png", "end.png", "again.png"))


def test_without_ipython_the_message_says_what_to_do(world):
    done = world.plain("""
        import json, sys
        sys.modules["IPython"] = None
        import spotter
        try:
            spotter.load_ipython_extension
        except ImportError as e:
            print(json.dumps([str(e)]))
    """)
    assert "needs IPython" in done.said[0][0] and "spotter.start()" in done.said[0][0]
