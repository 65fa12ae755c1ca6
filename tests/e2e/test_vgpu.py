# SPDX-License-Identifier: MIT
"""The virtual GPU as programs use it: through sim/python, on libcuda.so.1 as it was built."""
import ast
import ctypes
import shutil
import subprocess

import pytest
from vgpu_world import STAY, world  # noqa: F401 (fixture)

CALLS = """cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetUuid
cuDeviceGetUuid_v2 cuDeviceTotalMem_v2 cuDeviceGetAttribute cuDeviceGetPCIBusId cuCtxCreate_v2
cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuCtxGetCurrent cuCtxDestroy_v2
cuCtxSynchronize cuCtxGetDevice cuMemAlloc_v2 cuMemFree_v2 cuMemGetInfo_v2 cuMemAllocHost_v2
cuMemHostAlloc cuMemFreeHost cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2
cuMemcpyDtoD_v2 cuMemcpyDtoDAsync_v2 cuMemcpyPeer cuMemcpyPeerAsync cuMemsetD8_v2 cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize cuStreamQuery cuStreamWaitEvent
cuEventCreate cuEventRecord cuEventSynchronize cuEventQuery cuEventElapsedTime cuEventDestroy_v2
cuModuleLoadData cuModuleGetFunction cuLaunchKernel cuGetErrorName cuGetErrorString cuGetProcAddress
cuGetProcAddress_v2""".split()


def test_half_of_the_time_busy(world):
    busy, wall, energy = world.value("""
with vgpu.Device(0) as gpu:
    busy, energy, start = figure("busy_s"), figure("energy_j"), time.monotonic()
    for i in range(20):
        gpu.launch(ms=30, sm=0.8)
        gpu.synchronize()
        time.sleep(max(0, start + (i + 1) * 0.060 - time.monotonic()))
    print(json.dumps([figure("busy_s") - busy, time.monotonic() - start, figure("energy_j") - energy]))
""")
    assert busy == pytest.approx(20 * 0.030, rel=0.02)
    assert wall >= 20 * 0.060 * 0.99
    assert energy > 70 * wall * 1.2  # an H100 idles at 70 W


def test_waiting_asleep_or_spinning(world):
    asleep, spinning, wall = world.value("""
with vgpu.Device(0) as gpu:
    took = []
    for spin in (False, True):
        cpu, start = time.process_time(), time.monotonic()
        gpu.launch(ms=400)
        gpu.synchronize(spin=spin)
        took.append(time.process_time() - cpu)
    print(json.dumps(took + [time.monotonic() - start]))
""")
    assert wall >= 0.4
    assert asleep < 0.05
    # On a busy machine it does not get a whole core.
    assert spinning > 0.02 and spinning > 4 * asleep, (spinning, asleep, wall)


def test_launch_returns_at_once_and_pending_tells(world):
    took, before, after, whole = world.value("""
with vgpu.Device(0) as gpu:
    start = time.monotonic()
    gpu.launch(ms=300)
    took, before = time.monotonic() - start, gpu.pending()
    gpu.synchronize()
    print(json.dumps([took, before, gpu.pending(), time.monotonic() - start]))
""")
    assert took < 0.2 and before and not after and whole >= 0.3


def test_a_full_queue_blocks(world):
    took, whole = world.value("""
with vgpu.Device(0) as gpu:
    start = time.monotonic()
    for i in range(1024 + 200):
        gpu.launch(ms=1)
    took = time.monotonic() - start
    gpu.synchronize()
    print(json.dumps([took, time.monotonic() - start]))
""")
    assert took >= 0.199 and whole >= 1.224


def test_copies(world):
    pageable, pinned, left, waited, received = world.value("""
with vgpu.Device(0) as gpu:
    took, n = [], 4 << 30
    for kind in (False, True):
        start = time.monotonic()
        gpu.copy(n, pinned=kind)
        took.append(time.monotonic() - start)
    left = gpu.pending()
    gpu.synchronize()
    print(json.dumps(took + [left, time.monotonic() - start, figure("rx_bytes") / n]))
""")
    # PCIe 5.0 x16: 50 GB/s from pinned memory in the model, a third of it from pageable.
    assert pageable >= 0.25
    assert pinned < 0.07 and left and 0.08 <= waited < pageable
    assert received == pytest.approx(2, rel=1e-6)


def test_memory(world):
    values = world.value("""
with vgpu.Device(0) as gpu:
    free, total = gpu.memory_info()
    memory = gpu.alloc(1 << 30)
    kept = gpu.alloc(2 << 30)
    seen = [figure("memory_used"), free - gpu.memory_info()[0]]
    try:
        gpu.alloc(total)
    except vgpu.OutOfMemory as why:
        seen.append([str(why), why.code, isinstance(why, MemoryError)])
    memory.free()
    memory.free()
    seen.append(figure("memory_used"))
print(json.dumps(seen + [figure("memory_used"), figure("processes")]))
""")
    assert values[:2] == [3 << 30, 3 << 30]
    words, code, is_memory_error = values[2]
    assert "CUDA_ERROR_OUT_OF_MEMORY (2)" in words and code == 2 and is_memory_error
    assert values[3:] == [2 << 30, 0, 0]


def test_two_processes_queue_on_one_device(world):
    child = world.start("gpu = vgpu.Device(0)\ngpu.launch(ms=1500)\n" + STAY)
    took = world.value("""
with vgpu.Device(0) as gpu:
    start = time.monotonic()
    gpu.launch(ms=1)
    gpu.synchronize()
    print(json.dumps([time.monotonic() - start, figure("processes")]))
""")
    assert took[1] == 2
    child.kill()


def test_threads_share_a_device(world):
    assert world.value("""
with vgpu.Device(0) as gpu:
    before = figure("busy_s")
    def work():
        for i in range(50):
            gpu.launch(ms=0.5)
            gpu.alloc(1 << 20).free()
    threads = [threading.Thread(target=work) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    gpu.synchronize()
    print(json.dumps([figure("busy_s") - before, figure("memory_used")]))
""") == [pytest.approx(0.1, rel=1e-6), 0]


def test_visible_devices(world):
    world.scenario('gpu "NVIDIA H100 80GB HBM3"\ngpu "Tesla T4"\n  uuid GPU-beef0001\n')
    names = ("import ctypes\nn = ctypes.c_int()\nd = vgpu.driver.load()\n"
             "d.cuDeviceGetCount(ctypes.byref(n))\n"
             "print(json.dumps([vgpu.Device(i).name for i in range(n.value)]))\n")
    assert world.value(names) == ["NVIDIA H100 80GB HBM3", "Tesla T4"]
    assert world.value(names, CUDA_VISIBLE_DEVICES="1") == ["Tesla T4"]
    assert world.value(names, CUDA_VISIBLE_DEVICES="GPU-beef,0") == ["Tesla T4", "NVIDIA H100 80GB HBM3"]
    for none in ("", "-1", "7"):
        assert "CUDA_ERROR_NO_DEVICE (100)" in world.run(names, CUDA_VISIBLE_DEVICES=none).err


def test_exclusive_process(world):
    world.scenario('gpu "NVIDIA A100-SXM4-80GB"\n  compute_mode exclusive_process\n')
    child = world.start("gpu = vgpu.Device(0)\n" + STAY)
    assert "CUDA_ERROR_DEVICE_UNAVAILABLE (46)" in world.run("vgpu.Device(0)").err
    child.kill()
    child.wait()
    assert world.run("vgpu.Device(0)").code == 0


def test_a_slow_clock_makes_kernels_longer(world):
    world.scenario('gpu "NVIDIA A100-SXM4-80GB"\n  clocks sm 1400\n  slow power clock 700\n')
    took, clock = world.value("""
with vgpu.Device(0) as gpu:
    start = time.monotonic()
    gpu.launch(ms=100)
    gpu.synchronize()
    print(json.dumps([time.monotonic() - start, figure("clock_sm")]))
""")
    assert took >= 0.2 and clock == 700


def test_a_lost_device_fails(world):
    world.scenario('gpu "NVIDIA A100-SXM4-80GB"\n  lost\n')
    assert "CUDA_ERROR_LAUNCH_FAILED (719)" in world.run("vgpu.Device(0).launch(ms=1)").err


def test_mig_instances_are_devices(world):
    world.scenario('gpu "NVIDIA A100-SXM4-80GB"\n  mig 3g.40gb 1g.10gb\n')
    name, total, code = world.value("""
gpu = vgpu.Device(0)
try:
    gpu.alloc(41 << 30)
except vgpu.OutOfMemory as why:
    print(json.dumps([gpu.name, gpu.memory_info()[1], why.code]))
""")
    assert name.endswith("MIG 3g.40gb") and total == 40 << 30 and code == 2


def test_memory_of_an_instance_counts_once(world):
    """What a process holds in a MIG instance, as NVML in the same process has it."""
    world.scenario('gpu "NVIDIA A100-SXM4-80GB"\n  mig 3g.40gb 1g.10gb\n')
    assert world.value("""
import ctypes
gpu = vgpu.Device(0)
gpu.alloc(3 << 30)
nvml, gpu0, used = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), []
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu0)) == 0
for i in (0, 1):
    part, memory = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
    assert nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu0, i, ctypes.byref(part)) == 0
    assert nvml.nvmlDeviceGetMemoryInfo(part, memory) == 0
    used.append(memory[2])
assert nvml.nvmlShutdown() == 0
print(json.dumps(used + [figure("processes")]))
""") == [3 << 30, 0, 1]


def test_events_measure(world):
    assert world.value("""
from ctypes import byref, c_float, c_void_p
gpu = vgpu.Device(0)
cu, events = gpu._driver.library, []
for i in range(2):
    event = c_void_p()
    assert cu.cuEventCreate(byref(event), 0) == 0
    assert cu.cuEventRecord(event, gpu._stream) == 0
    events.append(event)
    gpu.launch(ms=50)
ms = c_float()
early = cu.cuEventElapsedTime(byref(ms), events[0], events[1])
assert cu.cuEventSynchronize(events[1]) == 0
late = cu.cuEventElapsedTime(byref(ms), events[0], events[1])
print(json.dumps([early, late, ms.value]))
""") == [600, 0, pytest.approx(50, rel=0.02)]


def test_wrong_scenarios_say_where(world):
    world.scenario('gpu "X"\n  lode 0.5\n')
    assert "scenario.vgpu: line 2: no such statement about a GPU: 'lode'" in world.run("vgpu.Device(0)").err
    world.scenario('gpu "Tesla T4"\n')
    assert world.run("vgpu.Device(0)").code == 0
    world.scenario('gpu "Tesla T4" x 2\n')
    other = world.run("vgpu.Device(0)")
    assert other.code == 1 and "was made from another scenario" in other.err and "VGPU_STATE" in other.err


def test_without_the_driver(world):
    """Where no libcuda.so.1 is to be found, the words say what to set."""
    done = world.run("vgpu.Device(0)", VGPU_CUDA="/nowhere/libcuda.so.1")
    assert "cannot load the virtual GPU's driver" in done.err and "LD_LIBRARY_PATH=build/sim" in done.err


def test_exports(world):
    """The vendor's names, both file names, and nothing of ours beside them."""
    library = ctypes.CDLL(str(world.library))
    missing = [name for name in CALLS if not hasattr(library, name)]
    assert not missing
    assert (world.library.parent / "libcuda.so").exists()
    found = ctypes.c_void_p()
    assert library.cuGetProcAddress_v2(b"cuMemAlloc", ctypes.byref(found), 13010, ctypes.c_uint64(0), None) == 0
    assert found.value == ctypes.cast(library.cuMemAlloc_v2, ctypes.c_void_p).value
    assert library.cuGetProcAddress_v2(b"cuNothing", ctypes.byref(found), 13010, ctypes.c_uint64(0), None) == 500
    if shutil.which("nm"):
        out = subprocess.run(["nm", "-D", "--defined-only", world.library], capture_output=True, text=True)
        names = {line.split()[-1] for line in out.stdout.splitlines()}
        ours = {n for n in names if not n.startswith(("cu", "vgpuFigure", "__", "_init", "_fini"))}
        assert not ours


def test_python_is_for_3_8(tree):
    for file in sorted((tree / "sim/python/vgpu").glob("*.py")):
        ast.parse(file.read_text(), str(file), feature_version=(3, 8))


ACROSS = """
from ctypes import byref, c_uint64
a, b = vgpu.Device(0), vgpu.Device(1)
cu, n, at = a._driver.library, 1 << 30, []
for gpu in (a, b):
    at.append(gpu.alloc(n).address)
for f in (cu.cuMemcpyDtoDAsync_v2, cu.cuMemcpyDtoD_v2):
    f.argtypes = [c_uint64, c_uint64, ctypes.c_size_t] + ([ctypes.c_void_p] if "Async" in f.__name__ else [])
a._enter()
start = time.monotonic()
codes = [cu.cuMemcpyDtoDAsync_v2(at[1], at[0], n, a._stream), cu.cuMemcpyDtoDAsync_v2(at[0], at[1], n // 4, a._stream),
         cu.cuMemcpyDtoDAsync_v2(at[1], at[0], n + 1, a._stream)]
a.synchronize()
names = ["link_tx_kib", "link_rx_kib", "tx_bytes", "rx_bytes"]
print(json.dumps([codes, [[figure(name, i) for name in names] for i in (0, 1)], time.monotonic() - start]))
"""


def test_copies_between_devices(world):
    kib, whole = 1 << 20, 1 << 30
    world.scenario('gpu "NVIDIA A100-SXM4-80GB" x 2\n  nvlinks 2\n')
    codes, figures, took = world.value("import ctypes" + ACROSS)
    assert codes == [0, 0, 1] and took >= 1.25 * whole / 50e9
    assert figures[0] == pytest.approx([kib, kib / 4, 0, 0], abs=1)
    assert figures[1] == pytest.approx([kib / 4, kib, 0, 0], abs=1)


def test_copies_between_devices_without_nvlink(world):
    whole = 1 << 30
    world.scenario('gpu "Tesla T4" x 2\n  nvlinks 0\n')
    figures = world.value("import ctypes" + ACROSS)[1]
    assert figures[0] == pytest.approx([0, 0, whole, whole / 4], abs=1024)
    assert figures[1] == pytest.approx([0, 0, whole / 4, whole], abs=1024)


def test_torch_tensors_wait_in_the_driver(world):
    if world.run("import torch").code:
        pytest.skip("torch is not installed")
    took, value, fast = world.value("""
import torch, vgpu.torch
vgpu.torch.enable()
x = torch.ones(8, 8).to("vgpu")
vgpu.torch.device().launch(ms=300)
start = time.monotonic()
y = (x @ x).sum()
fast = time.monotonic() - start
value = y.item()
print(json.dumps([time.monotonic() - start, value, fast]))
""")
    assert value == 512 and took >= 0.25 and fast < 0.2


TRAIN = """
import torch, vgpu.torch
vgpu.torch.enable()
def train(where):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(where)
    best, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    x, y = torch.randn(64, 16), torch.randn(64, 1)
    for i in range(20):
        loss = torch.nn.functional.mse_loss(model(x.to(where)), y.to(where, non_blocking=True))
        best.zero_grad()
        loss.backward()
        best.step()
        losses.append(loss.item())
    return losses
host, before = train("cpu"), time.monotonic()
busy, device = figure("busy_s"), train("vgpu")
x = torch.ones(4).to("vgpu", torch.float64)
print(json.dumps([host == device, host[0] > host[-1], figure("busy_s") - busy, figure("rx_bytes"),
                  figure("memory_used"), str(x.dtype), f"{x.sum():.1f}", str(x.to("cpu", torch.int64).dtype)]))
"""


def test_torch_trains(world):
    """A real loop: the losses are those of the host, the work and the bytes are on the device."""
    if world.run("import torch").code:
        pytest.skip("torch is not installed")
    same, falls, busy, received, held, kind, text, back = world.value(TRAIN)
    assert same and falls and busy > 20 * 5 * 5e-6
    assert received >= 20 * (64 * 16 + 64) * 4 and held >= (16 * 32 + 32 + 32 + 1) * 4
    assert (kind, text, back) == ("torch.float64", "4.0", "torch.int64")
