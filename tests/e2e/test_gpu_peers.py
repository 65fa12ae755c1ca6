# SPDX-License-Identifier: MIT
"""Other people's tools, unmodified, on the virtual driver: they must show what the scenario says.

`make peers` fetches them into build/peers ($SPOTTER_PEERS names another folder; nvtop also from PATH or
$SPOTTER_NVTOP). What is not there is skipped with that reason.
"""
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()
PEERS = Path(os.environ.get("SPOTTER_PEERS") or TREE / "build" / "peers")
GIB = 1 << 30

# Temperature and power do not depend on the load here, so that tools run one after another must agree.
TWO = """driver 590.48.01
pcie_read 1ms
gpu "NVIDIA A100-SXM4-80GB"
  memory 80G
  temperature idle 50 full 50 slowdown 90
  power idle 250 max 250 limit 250
  load 0.25
  process {first} "sleep" memory 3G busy 0.4
gpu "NVIDIA GeForce RTX 4090"
  memory 24G
  temperature idle 61 full 61 slowdown 90
  power idle 300 max 300 limit 300
  process {second} "sleep" memory 2G busy 0.1
  process {first} "sleep" memory 1G busy 0.2
"""


def venv(package):
    """The venv's python, where that package is installed."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{package} is not installed: make peers")
    found = subprocess.run([python, "-c", f"import {package}"], capture_output=True, timeout=60)
    if found.returncode:
        pytest.skip(f"{package} is not installed in {PEERS}: make peers")
    return str(python)


def nvtop_binary():
    for path in (os.environ.get("SPOTTER_NVTOP"), PEERS / "bin" / "nvtop", shutil.which("nvtop")):
        if path and os.access(path, os.X_OK):
            return str(path)
    pytest.skip("nvtop is not installed: NVTOP_SOURCE=... make peers, or SPOTTER_NVTOP=")


class Machine:
    """A virtual driver of this test's own, with two real processes to be listed on its GPUs."""

    def __init__(self, tmp_path):
        assert (BUILD / "sim" / "libnvidia-ml.so.1").exists(), f"no virtual driver in {BUILD}: run make"
        self.scenario = tmp_path / "scenario.vgpu"
        self.state = f"peers-{os.getpid()}-{time.monotonic_ns()}"
        self.children = [subprocess.Popen(["sleep", "300"]) for _ in range(2)]
        self.first, self.second = (c.pid for c in self.children)
        self.env = dict(os.environ, VGPU_SCENARIO=str(self.scenario), VGPU_STATE=self.state, HOME=str(tmp_path),
                        XDG_CONFIG_HOME=str(tmp_path), TERM="xterm", LC_ALL="C.UTF-8")
        self.env.pop("CUDA_VISIBLE_DEVICES", None)

    def begin(self, text, driver="", settle=1.3):
        self.scenario.write_text(text.format(first=self.first, second=self.second))
        self.env["LD_LIBRARY_PATH"] = str(BUILD / "sim" / driver)
        code = "import ctypes; assert ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2() == 0"
        subprocess.run(["python3", "-c", code], env=self.env, check=True, timeout=20)
        time.sleep(settle)  # utilisation is a mean over a second at most

    def run(self, *command, timeout=60):
        return subprocess.run([str(c) for c in command], env=self.env, capture_output=True, text=True,
                              errors="replace", timeout=timeout)

    def python(self, code, package="pynvml"):
        done = self.run(venv(package), "-c", code)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def end(self):
        for child in self.children:
            child.kill()
            child.wait()
        for left in Path("/dev/shm").glob(f"vgpu-*-{self.state}"):
            left.unlink()


@pytest.fixture
def machine(tmp_path):
    m = Machine(tmp_path)
    yield m
    m.end()


BINDINGS = """
import json, pynvml as n
n.nvmlInit()
def rows(h):
    return sorted([p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(h))
def one(i):
    h = n.nvmlDeviceGetHandleByIndex(i)
    v2 = n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2)
    return dict(name=n.nvmlDeviceGetName(h), total=v2.total, used=v2.used,
        v1=n.nvmlDeviceGetMemoryInfo(h).used - v2.reserved,
        gpu=n.nvmlDeviceGetUtilizationRates(h).gpu, temperature=n.nvmlDeviceGetTemperature(h, 0),
        celsius=n.nvmlDeviceGetTemperatureV(h, 0), power=n.nvmlDeviceGetPowerUsage(h),
        limit=n.nvmlDeviceGetEnforcedPowerLimit(h), rows=rows(h),
        usage=sorted([u.pid, u.smUtil] for u in n.nvmlDeviceGetProcessUtilization(h, 0)),
        average=n.nvmlDeviceGetFieldValues(h, [185])[0].value.uiVal,
        again=n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(h))),
        pci=n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(h).busId)))
print(json.dumps(dict(driver=n.nvmlSystemGetDriverVersion(), gpus=[one(i) for i in range(n.nvmlDeviceGetCount())])))
"""


def test_bindings(machine):
    """nvidia-ml-py, NVIDIA's own bindings."""
    machine.begin(TWO)
    said = machine.python(BINDINGS)
    a, b = machine.first, machine.second
    assert said["driver"] == "590.48.01"
    for gpu in said["gpus"]:  # a mean of many parts: a milliwatt may get lost
        gpu["power"], gpu["average"] = round(gpu["power"], -2), round(gpu["average"], -2)
    truth = [dict(average=250000, celsius=50, power=250000, limit=250000, temperature=50, total=80 * GIB,
                  used=3 * GIB, v1=3 * GIB, gpu=65, rows=[[a, 3 * GIB]], usage=[[a, 40]], again=0, pci=0,
                  name="NVIDIA A100-SXM4-80GB"),
             dict(average=300000, celsius=61, power=300000, limit=300000, temperature=61, total=24 * GIB,
                  used=3 * GIB, v1=3 * GIB, gpu=30, rows=sorted([[a, GIB], [b, 2 * GIB]]),
                  usage=sorted([[a, 20], [b, 10]]), again=1, pci=1, name="NVIDIA GeForce RTX 4090")]
    assert said["gpus"] == truth


def test_gpustat(machine):
    venv("gpustat")
    machine.begin(TWO)
    done = machine.run(PEERS / "bin" / "gpustat", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["driver_version"] == "590.48.01"
    first, second = said["gpus"]
    assert (first["name"], first["utilization.gpu"], first["temperature.gpu"]) == \
        ("NVIDIA A100-SXM4-80GB", 65, 50)
    assert first["power.draw"] == pytest.approx(250, abs=1)
    assert (first["memory.used"], first["memory.total"], first["enforced.power.limit"]) == (3072, 81920, 250)
    assert [(p["pid"], p["gpu_memory_usage"]) for p in first["processes"]] == [(machine.first, 3072)]
    assert second["utilization.gpu"] == 30
    assert sorted((p["pid"], p["gpu_memory_usage"]) for p in second["processes"]) == \
        sorted([(machine.first, 1024), (machine.second, 2048)])


def test_spotter_shows_the_same(machine):
    """The truth of the scenario, as `smi` and `smi --query-compute-apps` have it: what the peers above must show."""
    machine.begin(TWO)
    machine.env["SPOTTER_NVML"] = str(BUILD / "sim/libnvidia-ml.so.1")
    fields = "name,memory.used,memory.total,utilization.gpu,temperature.gpu,power.draw,enforced.power.limit"
    done = machine.run(BUILD / "spotter", "smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits")
    assert done.returncode == 0, done.stderr
    rows = [line.split(", ") for line in done.stdout.splitlines()]
    for row in rows:
        row[5] = str(round(float(row[5])))
    assert rows == [["NVIDIA A100-SXM4-80GB", "3072", "81920", "65", "50", "250", "250.00"],
                    ["NVIDIA GeForce RTX 4090", "3072", "24576", "30", "61", "300", "300.00"]]
    done = machine.run(BUILD / "spotter", "smi", "--query-compute-apps=gpu_name,pid,used_memory",
                       "--format=csv,noheader,nounits")
    assert sorted(line.split(", ") for line in done.stdout.splitlines()) == sorted([
        ["NVIDIA A100-SXM4-80GB", str(machine.first), "3072"],
        ["NVIDIA GeForce RTX 4090", str(machine.first), "1024"],
        ["NVIDIA GeForce RTX 4090", str(machine.second), "2048"]])


NVITOP = """
import json, nvitop
def one(d):
    with d.oneshot():
        return dict(name=d.name(), used=d.memory_used(), total=d.memory_total(), gpu=d.gpu_utilization(),
            temperature=d.temperature(), power=d.power_usage(), bar1=d.bar1_memory_total(),
            rows=sorted([p.pid, p.gpu_memory(), p.gpu_sm_utilization()] for p in d.processes().values()))
print(json.dumps([one(d) for d in nvitop.Device.all()]))
"""


def test_nvitop(machine):
    venv("nvitop")
    machine.begin(TWO)
    first, second = machine.python(NVITOP, "nvitop")
    a, b = machine.first, machine.second
    assert first.pop("power") == pytest.approx(250000, abs=100)
    assert first == dict(name="NVIDIA A100-SXM4-80GB", used=3 * GIB, total=80 * GIB, gpu=65, temperature=50,
                         bar1=128 * GIB, rows=[[a, 3 * GIB, 40]])
    assert second["rows"] == sorted([[a, GIB, 20], [b, 2 * GIB, 10]])
    shown = machine.run(PEERS / "bin" / "nvitop", "-1")
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"0 +A100-SXM4-80GB", shown.stdout), shown.stdout
    assert re.search(r"50C +P\d+ +(250|249)W / 250W .* 3072MiB / 80.00GiB .* 65%", shown.stdout), shown.stdout
    assert re.search(rf"0 +{a} C .* 3072MiB +40 ", shown.stdout), shown.stdout


def nvtop_snapshot(machine, nvtop):
    """nvtop looks twice within 100 ms; between two samples of the driver (1/6 s) it has no usage by process."""
    for _ in range(12):
        done = machine.run(nvtop, "-s")
        assert done.returncode == 0, done.stderr
        gpus = json.loads(done.stdout)
        if all(p["gpu_usage"] for g in gpus for p in g["processes"]):
            return gpus
    raise AssertionError("never a usage by process: " + done.stdout)


def test_nvtop(machine):
    nvtop = nvtop_binary()
    machine.begin(TWO)
    first, second = nvtop_snapshot(machine, nvtop)
    assert (first["device_name"], first["gpu_util"], first["temp"]) == ("NVIDIA A100-SXM4-80GB", "65%", "50C")
    assert first["power_draw"] in ("250W", "249W")
    assert (first["mem_total"], first["mem_used"]) == (str(80 * GIB), str(3 * GIB))
    assert [(p["pid"], p["gpu_mem_bytes_alloc"], p["gpu_usage"]) for p in first["processes"]] == \
        [(str(machine.first), str(3 * GIB), "40%")]
    assert sorted((int(p["pid"]), p["gpu_usage"]) for p in second["processes"]) == \
        sorted([(machine.first, "20%"), (machine.second, "10%")])


def test_nvtop_falls_back_from_a_strict_driver(machine):
    """nvtop gives version 2 instead of the size and version: refused, it asks the old call."""
    nvtop = nvtop_binary()
    machine.begin("strict_versions\n" + TWO, settle=0)
    first = json.loads(machine.run(nvtop, "-s").stdout)[0]
    assert first["mem_total"] == str(80 * GIB) and int(first["mem_used"]) > 3 * GIB  # reserved counts


OLD = """driver {{version}}
process_layout {{layout}}
gpu "NVIDIA A100-SXM4-80GB"
  process {first} "sleep" memory 3G busy 0.4
  process {second} "sleep" memory 2G busy 0.1
"""


@pytest.mark.parametrize("driver, version, layout", [("driver535", "535.54.03", "535"),
                                                     ("driver470", "470.82.01", "2"),
                                                     ("driver440", "440.33.01", "1")])
def test_old_process_layouts(machine, driver, version, layout):
    """The library without the names that driver lacked: nvitop picks the layout by them."""
    venv("nvitop")
    machine.begin(OLD.replace("{{version}}", version).replace("{{layout}}", layout), driver, settle=0)
    rows = machine.python("import json, nvitop; print(json.dumps(sorted([p.pid, p.gpu_memory()] "
                          "for p in nvitop.Device(0).processes().values())))", "nvitop")
    assert rows == sorted([[machine.first, 3 * GIB], [machine.second, 2 * GIB]])


def test_mig_instances(machine):
    venv("nvitop")
    machine.begin('gpu "NVIDIA H100 80GB HBM3"\n  mig 3g.40gb 2g.20gb\n'
                  '  process {first} "sleep" memory 3G busy 0.4 gi 1\n', settle=0)
    code = """
import json, nvitop
d = nvitop.Device(0)
print(json.dumps(dict(mig=d.is_mig_mode_enabled(), names=[m.name() for m in d.mig_devices()],
    used=[m.memory_used() for m in d.mig_devices()],
    gpu=str(d.gpu_utilization()), rows=[[p.pid, p.gpu_memory()] for p in d.processes().values()])))
"""
    said = machine.python(code, "nvitop")
    assert said["mig"] is True and said["gpu"] == "N/A"
    assert said["names"] == ["NVIDIA H100 80GB HBM3 MIG 3g.40gb", "NVIDIA H100 80GB HBM3 MIG 2g.20gb"]
    assert said["used"] == [3 * GIB, 0]
    assert said["rows"] == [[machine.first, 3 * GIB]]


def declared():
    """{vendor's name: size} as src/gpu/nvml_abi.h asserts them."""
    text = (TREE / "src/gpu/nvml_abi.h").read_text()
    vendor = dict(re.findall(r"struct (nvml_\w+) \{\s*/\* (nvml\w+_t)", text))
    sizes = dict(re.findall(r"NVML_LAYOUT\(struct (nvml_\w+), (\d+)\)", text))
    return {vendor[ours]: int(size) for ours, size in sizes.items() if ours in vendor}


def test_layouts_agree_with_the_bindings(machine):
    """A second opinion on struct sizes: the ctypes declarations of nvidia-ml-py."""
    ours = declared()
    assert len(ours) > 15
    code = f"""
import ctypes, json, pynvml
names = {sorted(ours)!r}
def size(name):
    for c in (getattr(pynvml, p + name, None) for p in ("c_", "")):
        if isinstance(c, type) and issubclass(c, (ctypes.Structure, ctypes.Union)):
            return ctypes.sizeof(c)
print(json.dumps({{n: size(n) for n in names}}))
"""
    theirs = {name: size for name, size in machine.python(code).items() if size is not None}
    assert len(theirs) > 12, theirs
    assert {name: ours[name] for name in theirs} == theirs
