# SPDX-License-Identifier: MIT
"""What the end of a process leaves on the virtual GPU: nothing, whatever it did and wherever it was."""
import os
import signal
import subprocess

import pytest
from vgpu_world import HEAD, STAY, USED, world  # noqa: F401 (fixture)


def test_a_killed_process_frees_its_memory(world, wait_for):
    child = world.start("gpu = vgpu.Device(0)\ngpu.alloc(5 << 30)\n" + STAY)
    assert world.value(USED) == [5 << 30, 1]
    child.send_signal(signal.SIGKILL)
    child.wait()
    wait_for(lambda: world.value(USED) == [0, 0], "its memory to be free")


def test_a_killed_process_leaves_no_work(world):
    child = world.start("gpu = vgpu.Device(0)\nfor i in range(500): gpu.launch(ms=1000)\n" + STAY)
    child.send_signal(signal.SIGKILL)
    child.wait()
    took = world.value("""
with vgpu.Device(0) as gpu:
    start = time.monotonic()
    gpu.launch(ms=10)
    gpu.synchronize()
    print(json.dumps(time.monotonic() - start))
""")
    assert took < 5


def test_killed_at_any_point(world):
    """Whatever a process was doing in the state when it was killed, the others go on."""
    for i in range(6):
        child = world.start("gpu = vgpu.Device(0)\nprint('go', flush=True)\n"
                            "while True:\n    gpu.launch(ms=0.001)\n    gpu.alloc(4096).free()\n")
        try:
            child.wait(timeout=0.05 + 0.013 * i)
        except subprocess.TimeoutExpired:
            pass
        child.kill()
        child.wait()
        assert world.value("with vgpu.Device(0) as gpu:\n    gpu.launch(ms=1)\n    gpu.synchronize()\n"
                           "    print(json.dumps(figure('processes')))\n") == 1
    assert world.value(USED) == [0, 0]


def test_a_forked_child_must_not(world):
    done = world.run("""
gpu = vgpu.Device(0)
pid = os.fork()
if pid == 0:
    try:
        gpu.launch(ms=1)
    except vgpu.Error as why:
        print(why.code, why, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
gpu.launch(ms=1)
gpu.synchronize()
""")
    assert done.code == 0, done.err
    assert done.out.startswith("3 ") and "CUDA_ERROR_NOT_INITIALIZED" in done.out and "spawn" in done.out


INNER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def nvml_pids(world):
    """What NVML lists on GPU 0, as seen from here."""
    return world.value("""
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
handle, n, rows = ctypes.c_void_p(), ctypes.c_uint(64), (ctypes.c_uint64 * (3 * 64))()
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(n), rows) == 0
print(json.dumps([rows[3 * i] & 0xffffffff for i in range(n.value)]))
""")


def outer_pid(child, tool):
    """The pid here of the Python that unshare has started."""
    children = open(f"/proc/{tool}/task/{tool}/children").read().split()
    assert child.poll() is None and len(children) == 1
    return int(children[0])


@pytest.mark.parametrize("pids", ["", "pids inner\n"])
def test_another_pid_namespace(world, wait_for, pids):
    """Seen by the number it has here, or by its own; and its death is seen from here."""
    if subprocess.run(INNER + ["true"], capture_output=True, check=False).returncode:
        pytest.skip("no pid namespaces of our own here (unshare --pid needs to be root)")
    world.scenario(pids + 'gpu "Tesla T4"\n')
    child = world.start("gpu = vgpu.Device(0)\ngpu.alloc(1 << 30)\nprint(os.getpid(), flush=True)\n"
                        "time.sleep(60)\n", INNER)
    outer = outer_pid(child, child.pid)
    assert nvml_pids(world) == [1 if pids else outer]
    assert world.value(USED) == [1 << 30, 1]
    os.kill(outer, signal.SIGKILL)
    child.wait()
    wait_for(lambda: world.value(USED) == [0, 0], "its memory to be free")


def test_exec_gives_back(world, wait_for):
    world.start("gpu = vgpu.Device(0)\ngpu.alloc(5 << 30)\nprint('ready', flush=True)\n"
                "os.execvp('sleep', ['sleep', '60'])\n")
    wait_for(lambda: world.value(USED) == [0, 0], "its memory to be free")


def test_a_forked_child_keeps_nothing(world, wait_for):
    """The child outlives its parent and has its descriptors, but not what it held."""
    child = world.start("gpu = vgpu.Device(0)\ngpu.alloc(5 << 30)\npid = os.fork()\n"
                        "if pid:\n    print(pid, flush=True)\ntime.sleep(60)\n")
    orphan = world.line
    assert world.value(USED) == [5 << 30, 1]
    child.kill()
    child.wait()
    try:
        wait_for(lambda: world.value(USED) == [0, 0], "its memory to be free")
    finally:
        os.kill(int(orphan), signal.SIGKILL)


def test_closed_descriptors(world):
    """A program that closes all it did not open gets errors, and does no harm to others."""
    child = world.start("gpu = vgpu.Device(0)\ngpu.alloc(1 << 30)\n" + STAY)
    seen, other, code = world.value("""
import subprocess
gpu = vgpu.Device(0)
os.closerange(3, 256)
null = [os.open("/dev/null", 0) for i in range(9)]
time.sleep(0.05)
seen = figure("processes")
other = json.loads(subprocess.check_output([sys.executable, "-c", OTHER]))
try:
    gpu.launch(ms=1)
except vgpu.Error as why:
    print(json.dumps([seen, other, why.code]))
""".replace("OTHER", repr(HEAD + USED)))
    assert (seen, other, code) == (2, [1 << 30, 1], 304)
    assert world.value(USED) == [1 << 30, 1]
    child.kill()
