# SPDX-License-Identifier: MIT
"""The virtual GPU as the NVIDIA driver of one test: a scenario, a state of its own, removed at the end.

    def test_x(spotter, vgpu):
        vgpu('gpu "NVIDIA H100 80GB HBM3"')       # or vgpu("hang"): sim/scenarios/hang.vgpu
        spotter("run", "--", PYTHON, "-c", "import vgpu; ...")
"""
import os
import uuid
from pathlib import Path

import pytest

from conftest import BUILD, TREE

PYTHON = os.environ.get("PYTHON") or "/usr/bin/python3"
SIM = BUILD / "sim"


def environment(scenario, folder, name=None):
    """The variables that make this scenario the driver; text, or the name of one in sim/scenarios."""
    if "\n" in scenario or " " in scenario:
        file = Path(folder) / "scenario.vgpu"
        file.write_text(scenario + "\n")
    else:
        file = TREE / "sim/scenarios" / f"{scenario}.vgpu"
    return {"VGPU_SCENARIO": str(file), "VGPU_STATE": name or f"test-{uuid.uuid4().hex[:12]}",
            "SPOTTER_NVML": str(SIM / "libnvidia-ml.so.1"), "LD_LIBRARY_PATH": str(SIM),
            "PYTHONPATH": str(TREE / "sim/python"), "PYTHONDONTWRITEBYTECODE": "1"}


def remove(name):
    for file in Path("/dev/shm").glob(f"vgpu*{name}*"):
        file.unlink(missing_ok=True)


@pytest.fixture
def vgpu(spotter, tmp_path):
    if not (SIM / "libnvidia-ml.so.1").exists():
        pytest.fail(f"{SIM} has no virtual driver: run make first")
    states = []

    def use(scenario):
        env = environment(scenario, tmp_path)
        states.append(env["VGPU_STATE"])
        spotter.env.update(env)
        return env
    yield use
    for name in states:
        remove(name)
