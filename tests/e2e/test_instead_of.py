# SPDX-License-Identifier: MIT
"""The scripts people paste to watch a training, written with Spotter (examples/python/instead_of_*.py): as short, and
right where those are wrong: several GPUs, CPUs that are not ours, more than 100 %."""
import os
import re
import subprocess
import textwrap

import pytest

from virtual_gpu import PYTHON, vgpu  # noqa: F401 a fixture

# The first GPU is somebody else's and busy, the second is free, the third cannot tell how busy it is. CUDA counts the
# fastest first: its 0 is NVML's 1.
THREE = """gpu "NVIDIA A100-SXM4-80GB"
  process 4711 "python" memory 40G busy 0.6
gpu "NVIDIA H100 80GB HBM3"
gpu "NVIDIA H100 80GB HBM3"
  error nvmlDeviceGetUtilizationRates 3
"""


@pytest.fixture
def run(spotter, tree):
    """Runs a program that has the examples, and the package, at hand: what it printed, by line."""
    def run(code, *before, env=None):
        paths = [tree / "python", tree / "examples/python", spotter.env.get("PYTHONPATH")]
        done = subprocess.run([*before, PYTHON, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60,
                              env=dict(spotter.env, **(env or {}), SPOTTER_EXE=str(spotter.binary),
                                       PYTHONPATH=":".join(str(p) for p in paths if p)))
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
    return run


def lines_of(file):
    """(of the pasted script, of ours), blank ones left out; each with the line that imports."""
    text = file.read_text()
    pasted = text[text.index('"""\n#     '):text.index("\n#\n# What is wrong")]
    ours = re.search(r"# --8<--.*\n((?:.*\n)*?)    # -->8--", text)[1]
    return sum(1 for line in pasted.splitlines()[1:] if line.strip("# ")), 1 + sum(1 for s in ours.splitlines() if s.strip())


def test_no_longer_than_what_they_replace(tree):
    files = sorted((tree / "examples/python").glob("instead_of_*.py"))
    assert len(files) == 4
    for file in files:
        pasted, ours = lines_of(file)
        assert 0 < ours <= pasted, f"{file.name}: {ours} lines instead of {pasted}"


# Two workers that compute for three seconds of their own CPU time together, and how much that was.
WORK = """
import os, sys, time
from multiprocessing import Process

def spin(until):
    while time.monotonic() < until:
        pass

def train():
    until = time.monotonic() + 3.3
    workers = [Process(target=spin, args=(until,)) for _ in range(2)]
    for w in workers: w.start()
    for w in workers: w.join()
"""


@pytest.mark.alone
def test_psutil_thread(run):
    """One CPU allowed, two workers that want two: 1 of 1, where psutil says some share of the machine."""
    cpu = min(os.sched_getaffinity(0))
    lines = run(WORK + "import instead_of_psutil_thread as example\nexample.run(train)\n", "taskset", "-c", str(cpu))
    found = [re.fullmatch(r"CPU (\S+) of (\S+) cores, RAM (\S+) bytes", line) for line in lines]
    assert len(found) >= 2 and all(found), lines
    assert all(float(m[2]) <= 1 for m in found), lines
    # The first figure is a figure already; others may take a part of that CPU, never add to it.
    assert all(0.2 < float(m[1]) <= 1.1 for m in found[:2]), lines
    assert all(float(m[3]) > 10e6 for m in found), lines


def test_nvidia_smi(run, vgpu):  # noqa: F811
    vgpu(THREE)
    lines = run("import instead_of_nvidia_smi as example; example.report()")
    assert len(lines) == 3
    assert re.fullmatch(r"GPU 0 NVIDIA A100-SXM4-80GB: busy 0\.[56]\d*, 42949672960 bytes", lines[0])
    assert lines[1] == "GPU 1 NVIDIA H100 80GB HBM3: busy 0, 0 bytes"
    assert lines[2] == "GPU 2 NVIDIA H100 80GB HBM3: busy None, 0 bytes"


def test_the_pasted_nvidia_smi_fails_with_a_second_gpu(spotter, tree, tmp_path, vgpu):  # noqa: F811
    """As its example says. What it calls is `spotter smi`, which answers as nvidia-smi does."""
    vgpu(THREE)
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f'#!/bin/sh\nexec "{spotter.binary}" smi "$@"\n')
    smi.chmod(0o755)
    text = (tree / "examples/python/instead_of_nvidia_smi.py").read_text()
    code = "\n".join(line[6:] for line in text.partition("\n#\n# What is wrong")[0].splitlines() if line.startswith("#     "))
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, timeout=60,
                          env=dict(spotter.env, PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert done.returncode == 1 and "ValueError" in done.stderr, done.stdout + done.stderr


def test_psutil_and_gpustat(run, vgpu):  # noqa: F811
    """NVML's second GPU is this program's first: its own memory there, and nothing of NVML's first."""
    vgpu(THREE)
    lines = run(WORK + """
import vgpu
import instead_of_psutil_gpustat as example
worker = Process(target=spin, args=(time.monotonic() + 3,))
worker.start()
with vgpu.Device(0) as gpu:
    memory = gpu.alloc(2 << 30)
    example.report()
worker.kill()
worker.join()
""", env={"CUDA_VISIBLE_DEVICES": "0"})
    cpu = re.fullmatch(r"CPU (\S+) of (\S+) cores, RAM (\S+) bytes", lines[0])
    assert 0.1 < float(cpu[1]) <= float(cpu[2]) + 0.1 and float(cpu[2]) <= len(os.sched_getaffinity(0))
    assert lines[1:] == [f"GPU 1 busy 0 with {2 << 30} of {2 << 30} bytes"]


def test_gpu_loop(run, vgpu):  # noqa: F811
    """Each GPU by the machine's number; the one that cannot tell is not 0."""
    vgpu(THREE)
    lines = run("""
        import time, vgpu
        import instead_of_gpu_loop as example

        def train():
            end = time.monotonic() + 3.3
            with vgpu.Device(0) as gpu:
                while time.monotonic() < end:
                    gpu.launch(ms=50, sm=0.9)
                    gpu.synchronize()
        example.run(train)
        """, env={"CUDA_VISIBLE_DEVICES": "0"})
    means = {int(m[1]): float(m[2]) for m in (re.fullmatch(r"GPU (\d+) (\S+) %", line) for line in lines)}
    assert set(means) == {0, 1}, lines
    assert 50 <= means[0] <= 70 and means[1] > 70, lines
