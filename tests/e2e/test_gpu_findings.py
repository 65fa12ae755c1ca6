# SPDX-License-Identifier: MIT
"""GPU findings, end to end on real programs: each ailment is named, and a sound training has none."""
import os
import subprocess

import pytest

from test_gpu import TRAIN, found_all
from virtual_gpu import PYTHON, vgpu  # noqa: F401 (fixture)

GPU_CAUSES = {"gpu_lost", "gpu_throttled", "gpu_shared", "gpu_memory_full", "gpu_ghost_memory", "idle_gpus", "not_on_gpu"}


def causes(spotter):
    return {f["cause"]: f for f in found_all(spotter)}


def train(spotter, seconds=7, code=TRAIN):
    done = spotter("run", "--", PYTHON, "-c", code, str(seconds))
    assert done.code == 0, done.err
    return done


def test_a_sound_training_has_none(spotter, vgpu):
    vgpu("one")
    train(spotter)
    assert not GPU_CAUSES & set(causes(spotter))


def test_throttled(spotter, vgpu):
    vgpu('gpu "NVIDIA A100-SXM4-80GB"\n  slow hw_thermal clock 510')
    train(spotter)
    finding = causes(spotter)["gpu_throttled"]
    assert "510" in finding["title"]
    assert finding["gain"]["low"] <= finding["gain"]["speedup"] <= finding["gain"]["high"]
    assert finding["gain"]["speedup"] > 1.1


def test_the_gain_of_not_being_throttled_is_real(spotter, vgpu):
    """What it promises, the same program does when nothing holds the GPU back."""
    counted = TRAIN.replace("while time", "n = 0\nwhile time").replace("time.sleep(0.03)", "time.sleep(0.03); n += 1") \
        + "print(n / float(sys.argv[1]))\n"
    rates = []
    for line in ("  slow hw_thermal clock 705", ""):
        vgpu(f'gpu "NVIDIA A100-SXM4-80GB"\n{line}')
        rates.append(float(train(spotter, code=counted).out))
        if line:
            gain = causes(spotter)["gpu_throttled"]["gain"]
    # 5 %: of some 80 steps, and the two halves see different neighbours.
    assert gain["low"] * 0.95 <= rates[1] / rates[0] <= gain["high"] * 1.05, (rates, gain)


def test_shared_with_another_program(spotter, vgpu):
    env = vgpu("one")
    other = subprocess.Popen([PYTHON, "-c", TRAIN, "30"], env=dict(os.environ, **env))
    try:
        train(spotter)
    finally:
        other.kill()
        other.wait()
    finding = causes(spotter)["gpu_shared"]
    assert str(other.pid) in str(finding["evidence"]) + finding["title"]


def test_two_trainings_of_one_job_share(spotter, vgpu):
    """Both are the job's: no other program is blamed."""
    vgpu("one")
    done = spotter("run", "--", "sh", "-c", f'"{PYTHON}" -c "$0" 8 & "{PYTHON}" -c "$0" 8; wait', TRAIN)
    assert done.code == 0, done.err
    finding = causes(spotter).get("gpu_shared")
    assert not finding or "2 trainings of this job" in finding["title"]
    if spotter.json("why")["level"] not in ("L0", "L1"):  # stacks say which processes train
        assert finding


def test_ghost_memory(spotter, vgpu):
    vgpu('gpu "NVIDIA A100-SXM4-80GB"\n  used 6G')
    train(spotter)
    assert "gpu_ghost_memory" in causes(spotter)


def test_memory_nearly_full(spotter, vgpu):
    vgpu('gpu "Tesla T4"\n  memory 16G')
    code = ("import sys, time, vgpu\n"
            "gpu = vgpu.Device(0)\n"
            "free = 16 << 30\n"
            "held = [gpu.alloc(int(free * 0.3))]\n"
            "end = time.monotonic() + float(sys.argv[1])\n"
            "while time.monotonic() < end:\n"
            "    gpu.launch(ms=30); gpu.synchronize()\n"
            "    if len(held) < 12 and time.monotonic() > end - float(sys.argv[1]) + len(held) * 0.5:\n"
            "        try:\n"
            "            held.append(gpu.alloc(int(free * 0.06)))\n"
            "        except vgpu.OutOfMemory:\n"
            "            pass\n")
    train(spotter, code=code, seconds=10)
    assert "gpu_memory_full" in causes(spotter)


@pytest.mark.one_user
def test_idle_gpus(spotter, vgpu):
    vgpu("eight")
    spotter.env["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"
    train(spotter, seconds=22)
    finding = causes(spotter)["idle_gpus"]
    assert "3 of" in finding["title"]


@pytest.mark.one_user
def test_not_on_the_gpu(spotter, vgpu):
    """The runtime is loaded, the CPU burns, and the environment hides the GPU."""
    vgpu("one")
    spotter.env["CUDA_VISIBLE_DEVICES"] = ""
    code = ("import ctypes, sys, time\n"
            "ctypes.CDLL('libcuda.so.1').cuInit(0)\n"
            "end = time.monotonic() + float(sys.argv[1])\n"
            "while time.monotonic() < end: sum(range(10000))\n")
    train(spotter, code=code, seconds=23)
    usage = spotter.json("why")["usage"]
    if usage["cpu"]["cores_used"] < 0.6:  # the rule wants 0.5
        pytest.skip(f"this machine gave it {usage['cpu']['cores_used']:.2f} cores only")
    finding = causes(spotter)["not_on_gpu"]
    assert "CUDA_VISIBLE_DEVICES" in str(finding)


def test_another_gpu_is_lost_is_a_note_at_most(spotter, vgpu):
    vgpu('gpu "NVIDIA A100-SXM4-80GB"\ngpu "NVIDIA A100-SXM4-80GB"\n  lost from 3s')
    train(spotter)
    why = spotter.json("why")
    assert "gpu_lost" not in {f["cause"] for f in why["findings"]}
    assert "gpu_lost" in {f["cause"] for f in why["notes"]}


def test_the_gpu_of_the_job_is_lost(spotter, vgpu):
    vgpu('gpu "NVIDIA A100-SXM4-80GB"\n  lost from 5s\n  xid 79 from 5s')
    code = TRAIN.replace("    gpu.synchronize()\n", "    try: gpu.synchronize()\n    except Exception: pass\n") \
                .replace("    gpu.launch(ms=30, sm=0.8)\n", "    try: gpu.launch(ms=30, sm=0.8)\n    except Exception: pass\n")
    train(spotter, code=code)
    finding = {f["cause"]: f for f in spotter.json("why")["findings"]}["gpu_lost"]
    assert "79" in str(finding)
