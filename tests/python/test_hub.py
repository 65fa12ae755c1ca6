# SPDX-License-Identifier: MIT
"""The recipe for JupyterHub, with a hub of the test's own: Debian's jupyterhub and node-configurable-http-proxy."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from programs import BUILD, PACKAGE
from test_notebook import TRAIN, data, gone, jupyter, sql, text_of


@pytest.mark.skipif(not os.environ.get("SPOTTER_LONG"), reason="long: run by make check-all")
def test_in_a_hub(world):
    """Logged in, a server and a kernel started, %%spotter in a cell; nothing is left when the hub is gone."""
    for program in ("jupyterhub", "configurable-http-proxy"):
        if not shutil.which(program):
            pytest.skip(f"needs Debian's jupyterhub: no {program}")
    python = jupyter("jupyterhub", "notebook", "requests")
    # Debian's modules for Node, where node is not Debian's
    env = dict(world.base, PYTHONPATH=str(PACKAGE.parent), SPOTTER_EXE=str(BUILD / "spotter"),
               PYDEVD_DISABLE_FILE_VALIDATION="1", NODE_PATH=os.environ.get("NODE_PATH") or "/usr/share/nodejs")
    done = subprocess.run([python, Path(__file__).with_name("hub.py")], input=json.dumps(["%load_ext spotter", TRAIN]),
                          env=env, cwd=world.place, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    cell = said["messages"][1]
    assert not [m for m in cell if m["type"] in ("error", "stream")], cell
    shown = [m["content"] for m in cell if m["type"] in ("display_data", "update_display_data")]
    steps = int(next(m["content"]["data"]["text/plain"] for m in cell if m["type"] == "execute_result"))
    assert "recording" in shown[0]["data"]["text/plain"] and "ended" in shown[-2]["data"]["text/plain"]
    assert len({m["data"]["text/html"] for m in shown}) == len(shown) >= 4  # of 4 s, on a machine under load
    assert f"{steps} steps" in text_of(data(shown, "text/html")[-1])
    record = next((world.place / "runs").glob("*.spot"))
    assert sql(record, "SELECT count(*) AS n, max(step) AS last FROM steps") == [{"n": steps, "last": steps}]
    assert gone(said["pid"])
