# SPDX-License-Identifier: MIT
"""GPUs in the record: what the virtual driver's scenario says is what Spotter says, whatever the
driver does meanwhile; the recorder keeps its tick and nothing of the host is lost."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import BUILD
from test_failure import recorder_of
from virtual_gpu import PYTHON, vgpu  # noqa: F401 (fixture)

GB = 1 << 30

TRAIN = """
import sys, time, vgpu
gpu = vgpu.Device(0)
held = gpu.alloc(2 << 30)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    gpu.launch(ms=30, sm=0.8)
    gpu.synchronize()
    time.sleep(0.03)
"""


def rows(spotter, query, run="last"):
    return json.loads(spotter("sql", run, query, "--json", check=True).out)


def events(spotter, kind):
    return rows(spotter, f"SELECT t, name, value, text FROM events WHERE kind = '{kind}' ORDER BY t")


def ticks(spotter):
    return [r["t"] for r in rows(spotter, "SELECT DISTINCT t FROM samples WHERE metric = 'cpu.idle' ORDER BY t")]


def keeps_its_tick(spotter, seconds, pace):
    """Host samples all along, none late by half a second more than anything is on this machine now."""
    times = ticks(spotter)
    gaps = [b - a for a, b in zip(times, times[1:])]
    seen = f"{len(times)} samples in {seconds} s, the longest gap {max(gaps, default=0):.2f} s; " \
           f"a thread that slept was late by up to {pace.worst:.2f} s, {pace.lost:.2f} s in all"
    assert len(times) >= (seconds - 2 * pace.lost) * 10 * 0.8, seen
    assert max(gaps, default=0) < 0.5 + 3 * pace.worst, seen


def gpus(spotter, run="last"):
    return spotter.json("why", run)["usage"]["gpus"]


def helpers_below(recorder):
    """Processes that read GPUs for this recorder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        pid = int(entry.parent.name)
        if b"gpu-helper" in words and recorder in (parent(pid), parent(parent(pid))):
            found.append(pid)
    return found


# -- what is used --------------------------------------------------------------------------------

def test_a_training_on_one_gpu(spotter, vgpu):
    vgpu('gpu "NVIDIA H100 80GB HBM3"\n  memory 80G')
    done = spotter("run", "--", PYTHON, "-c", TRAIN, "5")
    assert done.code == 0, done.err
    (gpu,) = gpus(spotter)
    assert gpu["name"] == "NVIDIA H100 80GB HBM3" and gpu["vendor"] == "nvidia" and gpu["index"] == 0
    assert gpu["simulated"] is True
    assert gpu["memory_total_bytes"] == 80 * GB
    assert 0.35 <= gpu["busy"] <= 0.55  # 30 ms of every 60, starting up left out of it
    assert gpu["power_w"] > 0 and gpu["temperature_c"] > 0
    (process,) = gpu["processes"]
    assert process["memory_bytes"] >= 2 * GB
    main = rows(spotter, "SELECT pid FROM processes ORDER BY t LIMIT 1")[0]["pid"]
    assert process["pid"] == main
    assert 0.3 <= process["busy"] <= 0.6
    assert "simulated" in spotter("why", check=True).out


def test_without_a_gpu_nothing_is_said_of_gpus(spotter):
    spotter.env["SPOTTER_NVML"] = "/nonexistent/libnvidia-ml.so.1"
    assert spotter("run", "--", "sleep", "1").code == 0
    why = spotter.json("why")
    assert "gpus" not in why["usage"]
    assert "GPU" not in spotter("why", check=True).out
    assert not rows(spotter, "SELECT * FROM devices WHERE kind LIKE 'gpu%'")


def test_the_helper_is_not_part_of_the_job(spotter, vgpu):
    vgpu("one")
    assert spotter("run", "--", "sleep", "2").code == 0
    assert [r["name"] for r in rows(spotter, "SELECT name FROM processes")] == ["sleep"]
    last = rows(spotter, "SELECT max(value) AS n FROM samples WHERE metric = 'job.processes'")
    assert last[0]["n"] == 1


def test_a_program_that_uses_eight_gpus(spotter, vgpu):
    vgpu("eight")
    code = ("import vgpu, time\n"
            "all = [vgpu.Device(i) for i in range(8)]\n"
            "end = time.monotonic() + 4\n"
            "while time.monotonic() < end:\n"
            "    [g.launch(ms=20) for g in all]\n"
            "    [g.synchronize() for g in all]\n")
    assert spotter("run", "--", PYTHON, "-c", code).code == 0
    found = gpus(spotter)
    assert [g["index"] for g in found] == list(range(8))
    assert sum(g["busy"] for g in found) > 5
    assert "of 8 GPUs" in spotter("why", check=True).out


# -- what goes wrong -----------------------------------------------------------------------------

def test_a_gpu_that_hangs(spotter, vgpu, pace):
    vgpu('gpu "NVIDIA A100-SXM4-80GB" x 2\ngpu "NVIDIA A100-SXM4-80GB"\n  hang nvmlDeviceGetTemperature from 2s')
    done = spotter("run", "--", "sleep", "9")
    assert done.code == 0, done.err
    keeps_its_tick(spotter, 9, pace)
    told = events(spotter, "gpu_hang")
    assert "nvmlDeviceGetTemperature" in told[0]["text"] and "GPU 2" in told[0]["text"]
    assert "blocked" in told[0]["text"]
    # The others go on being read, and the hung one keeps its number.
    late = rows(spotter, "SELECT d.key FROM samples s JOIN devices d ON d.id = s.entity"
                         " WHERE s.metric = 'gpu.age' AND s.t > 7 GROUP BY d.key ORDER BY d.key")
    assert [r["key"] for r in late] == [0, 1]
    assert any(f["cause"] == "gpu_lost" for f in found_all(spotter))


def found_all(spotter):
    why = spotter.json("why")
    return why["findings"] + why["notes"]


def test_a_gpu_that_is_lost(spotter, vgpu, pace):
    vgpu('gpu "NVIDIA A100-SXM4-80GB"\ngpu "NVIDIA A100-SXM4-80GB"\n  lost from 2s')
    assert spotter("run", "--", "sleep", "6").code == 0
    keeps_its_tick(spotter, 6, pace)
    told = events(spotter, "gpu_lost")
    assert len(told) == 1 and "GPU 1" in told[0]["text"]
    late = rows(spotter, "SELECT d.key FROM samples s JOIN devices d ON d.id = s.entity"
                         " WHERE s.metric = 'gpu.age' AND s.t > 4.5 GROUP BY d.key")
    assert [r["key"] for r in late] == [0]
    assert any(f["cause"] == "gpu_lost" for f in found_all(spotter))


def test_a_call_that_returns_after_all(spotter, vgpu, pace):
    """The GPU is read again, and the stall is a note, not a loss."""
    vgpu('gpu "NVIDIA A100-SXM4-80GB"\n  hang nvmlDeviceGetTemperature from 2s for 4s')
    assert spotter("run", "--", PYTHON, "-c", TRAIN, "11").code == 0
    keeps_its_tick(spotter, 11, pace)
    told = events(spotter, "gpu_hang")
    assert 3.5 < max(e["value"] for e in told) < 5.5 + 3 * pace.worst, (told, pace.worst)
    assert rows(spotter, "SELECT count(*) AS n FROM samples WHERE metric = 'gpu.busy' AND t > 9")[0]["n"] > 0
    why = spotter.json("why")
    assert "gpu_lost" not in {f["cause"] for f in why["findings"]}
    (note,) = [f for f in why["notes"] if f["cause"] == "gpu_lost"]
    assert "nvmlDeviceGetTemperature" in note["title"] and "GPU 0" in note["title"]


def test_a_hang_is_seen_at_a_low_rate_too(spotter, vgpu):
    vgpu('gpu "NVIDIA A100-SXM4-80GB"\ngpu "NVIDIA A100-SXM4-80GB"\n  hang nvmlDeviceGetTemperature from 2s')
    assert spotter("run", "--hz", "0.5", "--", "sleep", "15").code == 0
    assert "GPU 1" in events(spotter, "gpu_hang")[0]["text"]
    late = rows(spotter, "SELECT d.key FROM samples s JOIN devices d ON d.id = s.entity"
                         " WHERE s.metric = 'gpu.age' AND s.t > 11 GROUP BY d.key")
    assert [r["key"] for r in late] == [0]


def test_four_of_eight_hang(spotter, vgpu, pace):
    good, bad = 'gpu "NVIDIA A100-SXM4-80GB"\n', '  hang nvmlDeviceGetTemperature from 2s\n'
    vgpu("".join(good + (bad if i % 2 else "") for i in range(8)))
    assert spotter("run", "--", "sleep", "15").code == 0
    keeps_its_tick(spotter, 15, pace)
    late = rows(spotter, "SELECT d.key FROM samples s JOIN devices d ON d.id = s.entity"
                         " WHERE s.metric = 'gpu.age' AND s.t > 12.5 GROUP BY d.key ORDER BY d.key")
    assert [r["key"] for r in late] == [0, 2, 4, 6]


@pytest.mark.parametrize("driver", ["driver440", "driver470", "driver535"])
def test_libraries_of_old_drivers(spotter, vgpu, driver):
    layout = {"driver440": 1, "driver470": 2, "driver535": 535}[driver]
    version = {"driver440": "440.118.02", "driver470": "470.256.02", "driver535": "535.54.03"}[driver]
    vgpu(f'driver {version}\nprocess_layout {layout}\ngpu "Tesla T4"\n  process {os.getpid()} "python" memory 3G busy 0.4')
    spotter.env["SPOTTER_NVML"] = str(BUILD / "sim" / driver / "libnvidia-ml.so.1")
    assert spotter("run", "--", "sleep", "3").code == 0
    (gpu,) = gpus(spotter)
    assert [(p["pid"], p["memory_bytes"]) for p in gpu["processes"]] == [(os.getpid(), 3 * GB)]


def test_many_processes_are_all_listed(spotter, vgpu):
    vgpu("many")
    assert spotter("run", "--", "sleep", "3").code == 0
    assert rows(spotter, "SELECT max(value) AS n FROM samples WHERE metric = 'gpu.processes'")[0]["n"] >= 300
    assert rows(spotter, "SELECT count(*) AS n FROM devices WHERE kind = 'gpu_process'")[0]["n"] >= 300


def test_pcie_is_read_though_it_takes_its_time(spotter, vgpu):
    vgpu("pcie20")
    code = ("import sys, time, vgpu\n"
            "gpu = vgpu.Device(0)\n"
            "end = time.monotonic() + 4\n"
            "while time.monotonic() < end: gpu.copy(64 << 20)\n")
    assert spotter("run", "--", PYTHON, "-c", code).code == 0
    assert rows(spotter, "SELECT max(value) AS v FROM samples WHERE metric = 'gpu.pcie_rx'")[0]["v"] > 1e8


@pytest.mark.parametrize("scenario", ["mig", "unified", "old535", "old1", "strict", "many", "container", "pcie20"])
def test_scenarios_keep_the_tick(spotter, vgpu, scenario, pace):
    vgpu(scenario)
    assert spotter("run", "--", "sleep", "3").code == 0
    keeps_its_tick(spotter, 3, pace)
    assert gpus(spotter)
    assert not events(spotter, "gpu_hang") and not events(spotter, "gpu_helper")


def test_unified_memory_is_absent_not_zero(spotter, vgpu):
    vgpu("unified")
    assert spotter("run", "--", "sleep", "2").code == 0
    (gpu,) = gpus(spotter)
    assert "memory_total_bytes" not in gpu and "memory_used_bytes" not in gpu


def test_mig_partitions(spotter, vgpu):
    vgpu("mig")
    assert spotter("run", "--", "sleep", "2").code == 0
    found = gpus(spotter)
    assert any(g.get("profile") for g in found)
    assert all("busy" not in g for g in found if g["index"] == 0)


def test_pids_of_a_container_are_not_guessed(spotter, vgpu):
    vgpu("container")
    code = "import vgpu, time; g = vgpu.Device(0); g.alloc(1 << 30); time.sleep(4)"
    assert spotter("run", "--", PYTHON, "-c", code).code == 0
    listed = [p for gpu in gpus(spotter) for p in gpu["processes"]]
    assert listed
    assert not any(p.get("job") for p in listed), listed


def test_the_helper_ends_with_a_killed_recorder(spotter, vgpu, wait_for):
    vgpu("one")
    child = spotter.start("run", "--", "sleep", "20")
    r = wait_for(lambda: recorder(child.pid), "the recorder")
    mine = wait_for(lambda: helpers_below(r), "the helper")
    os.kill(r, signal.SIGKILL)
    wait_for(lambda: not any(Path(f"/proc/{p}").exists() and not gone(p) for p in mine), "the helper's end")
    assert child.poll() is None  # the program goes on
    child.terminate()
    child.wait()


def recorder(supervisor):
    try:
        return recorder_of(supervisor)
    except (OSError, IndexError):
        return None


def parent(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def test_a_killed_helper_is_replaced(spotter, vgpu, wait_for, pace):
    vgpu("one")
    child = spotter.start("run", "--", "sleep", "6")
    r = wait_for(lambda: recorder(child.pid), "the recorder")
    (mine,) = wait_for(lambda: helpers_below(r), "the helper")
    time.sleep(1.5)
    os.kill(mine, signal.SIGKILL)
    assert child.wait() == 0
    keeps_its_tick(spotter, 6, pace)
    assert events(spotter, "gpu_helper")
    assert rows(spotter, "SELECT count(*) AS n FROM samples WHERE metric = 'gpu.age' AND t > 4")[0]["n"] > 0


# -- which of them are the job's -----------------------------------------------------------------

def test_visible_devices_are_recorded(spotter, vgpu):
    vgpu("eight")
    spotter.env["CUDA_VISIBLE_DEVICES"] = "1,3"
    code = "import vgpu, time; g = vgpu.Device(0); g.alloc(1 << 30); time.sleep(5)"
    assert spotter("run", "--", PYTHON, "-c", code).code == 0
    assert "2 of 8 GPUs" in events(spotter, "limit")[0]["text"]
    found = gpus(spotter)
    assert {g["index"] for g in found if g.get("allowed")} == {1, 3}
    assert [g["index"] for g in found if any(p.get("job") for p in g["processes"])] == [1]


def test_top_and_doctor_show_them(spotter, vgpu):
    vgpu("eight")
    screen = spotter("top", "--once", check=True).out
    assert "GPU 0" in screen and "GPU 7" in screen and "simulated" in screen
    assert len(spotter.json("top", "--once")["gpus"]) == 8
    checks = {c["id"]: c for c in spotter.json("doctor")["checks"]}
    assert checks["gpus"]["status"] == "ok" and "8 x" in checks["gpus"]["value"]
    assert "simulated" in checks["gpus"]["value"]


@pytest.mark.root
@pytest.mark.parametrize("pids", ["", "pids inner\n"], ids=["outer", "inner"])
def test_a_job_in_a_container_of_its_own(spotter, vgpu, pids):
    """Process ids of another namespace, seen from outside: NSpid tells whose they are."""
    vgpu(f'{pids}gpu "Tesla T4"')
    # The second process there: the one of that number here is a kernel thread, whose memory can be looked at.
    done = spotter("run", "--", "unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", '"$@"; true', "sh",
                   PYTHON, "-c", TRAIN, "4")
    if "unshare failed" in done.err or "Operation not permitted" in done.err:
        pytest.skip("no pid namespaces of our own here")
    (gpu,) = gpus(spotter)
    (process,) = gpu["processes"]
    assert process["job"] is True and process["name"].startswith("python")
