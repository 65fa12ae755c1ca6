# SPDX-License-Identifier: MIT
"""A virtual GPU of a test's own, and Python programs that use it through sim/python."""
import json
import os
import subprocess
import sys
import uuid
from types import SimpleNamespace

import pytest

# What programs start with, how they stay, and what they say of memory held and processes.
HEAD = "import json, os, sys, threading, time\nimport vgpu\nfrom vgpu.driver import figure\n"
STAY = "print('ready', flush=True)\ntime.sleep(60)\n"
USED = "vgpu.driver.load()\nprint(json.dumps([figure('memory_used'), figure('processes')]))\n"


class World:
    """A state of its own, and programs in it."""

    def __init__(self, tree, build, tmp_path):
        self.tree, self.tmp = tree, tmp_path
        self.library = build / "sim" / "libcuda.so.1"
        self.name = "test-" + uuid.uuid4().hex[:12]
        self.env = dict(os.environ, VGPU_STATE=self.name, LD_LIBRARY_PATH=str(build / "sim"),
                        PYTHONPATH=str(tree / "sim/python"), PYTHONDONTWRITEBYTECODE="1")
        for name in ("VGPU_SCENARIO", "VGPU_CUDA", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
            self.env.pop(name, None)
        self.started, self.line = [], ""

    def scenario(self, text):
        path = self.tmp / "scenario.vgpu"
        path.write_text(text)
        self.env["VGPU_SCENARIO"] = str(path)

    def run(self, text, **env):
        """Runs Python text; .out (JSON of its last line if it is that), .err, .code."""
        done = subprocess.run([sys.executable, "-c", HEAD + text], env=dict(self.env, **env),
                              capture_output=True, text=True, timeout=60)
        last = (done.stdout.splitlines() or [""])[-1]
        try:
            value = json.loads(last)
        except ValueError:
            value = None
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr, value=value)

    def value(self, text, **env):
        done = self.run(text, **env)
        assert done.code == 0, done.err
        return done.value

    def start(self, text, before=()):
        """Runs it until it has printed a line (.line), and leaves it running."""
        child = subprocess.Popen([*before, sys.executable, "-c", HEAD + text], env=self.env, text=True,
                                 stdout=subprocess.PIPE)
        self.started.append(child)
        self.line = child.stdout.readline()
        assert self.line
        return child

    def done(self):
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.wait()
            child.stdout.close()
        path = f"/dev/shm/vgpu-{os.geteuid()}-{self.name}"
        if os.path.exists(path):
            os.unlink(path)


@pytest.fixture
def world(tree, build, tmp_path):
    if not (build / "sim/libcuda.so.1").exists():
        pytest.fail(f"{build / 'sim/libcuda.so.1'} is not there: run make first")
    w = World(tree, build, tmp_path)
    yield w
    w.done()
