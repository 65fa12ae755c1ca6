# SPDX-License-Identifier: MIT
"""`spotter smi` against the virtual GPU: the fields, sick GPUs, loops, and the scripts people paste
with `nvidia-smi` replaced by it."""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}")

ONE = """
gpu "NVIDIA H100 80GB HBM3"
  memory 80G
  reserved 640M
  used 1G
  uuid GPU-11111111-2222-3333-4444-555555555555
  pci 0000:83:00.0
  serial 1650123000999
  process 4711 "python" memory 3G busy 0
"""

EIGHT = "".join(f'gpu "NVIDIA A100-SXM4-80GB"\n  memory 80G\n  reserved 640M\n  used {g}G\n'
                for g in (8, 7, 6, 1, 5, 4, 3, 2))

MIG = """
gpu "NVIDIA H100 80GB HBM3"
  memory 80G
  mig 3g.40gb 1g.10gb
  process 4711 "./train" memory 3G gi 1
"""


@pytest.fixture
def smi(spotter, build, tmp_path):
    """smi(scenario, *args): the answer of `spotter smi` on the machine the scenario tells of."""
    library = build / "sim" / "libnvidia-ml.so.1"
    if not library.exists():
        pytest.fail(f"{library} is not there: run make first")
    names = []

    def world(scenario):
        file = tmp_path / f"scenario{len(names)}"
        file.write_text(scenario)
        name = f"smi-{os.getpid()}-{tmp_path.name}-{len(names)}"
        names.append(name)
        spotter.env.update(SPOTTER_NVML=str(library), VGPU_SCENARIO=str(file), VGPU_STATE=name,
                           TZ="UTC")

    def ask(scenario, *args, **kwargs):
        if scenario is not None:
            world(scenario)
        return spotter("smi", *args, **kwargs)

    ask.world = world
    ask.spotter = spotter
    yield ask
    for name in names:
        try:
            os.unlink(f"/dev/shm/vgpu-{os.geteuid()}-{name}")
        except FileNotFoundError:
            pass


def query(smi, scenario, fields, *args):
    """One dict a GPU, by the names asked for."""
    fields = fields.split(",") if isinstance(fields, str) else fields
    done = smi(scenario, f"--query-gpu={','.join(fields)}", "--format=csv,noheader", *args)
    assert done.code == 0, done.out + done.err
    return [dict(zip(fields, line.split(", "))) for line in done.out.splitlines()]


# What the scenario says, and what the virtual driver says of an H100 that has had nothing to do: each of
# them is read from it, none is a word that stands for what nobody can know.
READ = {
    "driver_version": "590.48.01", "count": "1", "index": "0", "name": "NVIDIA H100 80GB HBM3",
    "serial": "1650123000999", "uuid": "GPU-11111111-2222-3333-4444-555555555555",
    "pci.bus_id": "00000000:83:00.0", "pci.domain": "0x0000", "pci.bus": "0x83",
    "pci.device": "0x00", "pci.baseClass": "0x3", "pci.subClass": "0x2",
    "pci.device_id": "0x233010DE", "pci.sub_device_id": "0x16C110DE",
    "pcie.link.gen.current": "1", "pcie.link.gen.gpucurrent": "1", "pcie.link.gen.max": "5",
    "pcie.link.gen.gpumax": "5", "pcie.link.width.current": "16", "pcie.link.width.max": "16",
    "display_attached": "No", "display_active": "Disabled", "persistence_mode": "Enabled",
    "addressing_mode": "None", "accounting.mode": "Disabled", "accounting.buffer_size": "4000",
    "vbios_version": "96.00.89.00.01", "inforom.img": "VGPU.0000.00.01", "inforom.oem": "2.1",
    "inforom.ecc": "7.16", "inforom.checksum_validation": "valid", "gpu_recovery_action": "None",
    "pstate": "P8", "clocks_event_reasons.supported": "0x00000000000001FF",
    "clocks_event_reasons.active": "0x0000000000000001",
    "clocks_event_reasons.gpu_idle": "Active",
    "clocks_event_reasons.applications_clocks_setting": "Not Active",
    "clocks_event_reasons.sw_power_cap": "Not Active",
    "clocks_event_reasons.hw_slowdown": "Not Active",
    "clocks_event_reasons.hw_thermal_slowdown": "Not Active",
    "clocks_event_reasons.hw_power_brake_slowdown": "Not Active",
    "clocks_event_reasons.sw_thermal_slowdown": "Not Active",
    "clocks_event_reasons.sync_boost": "Not Active",
    "clocks_event_reasons_counters.sw_power_cap": "0 us",
    "clocks_event_reasons_counters.hw_thermal_slowdown": "0 us",
    "memory.total": "81920 MiB", "memory.reserved": "640 MiB", "memory.used": "4096 MiB",
    "memory.free": "77184 MiB", "compute_mode": "Default", "compute_cap": "9.0",
    "utilization.gpu": "0 %", "utilization.memory": "0 %", "utilization.encoder": "0 %",
    "utilization.decoder": "0 %", "encoder.stats.sessionCount": "0",
    "ecc.mode.current": "Enabled", "ecc.mode.pending": "Enabled",
    "ecc.errors.corrected.volatile.total": "3", "ecc.errors.corrected.aggregate.total": "3",
    "ecc.errors.uncorrected.volatile.total": "1", "ecc.errors.uncorrected.aggregate.total": "1",
    "remapped_rows.histogram.max": "640", "remapped_rows.pending": "No",
    "temperature.gpu": "30", "temperature.gpu.tlimit": "58", "temperature.memory": "36",
    "power.draw": "70.00 W", "power.draw.average": "70.00 W", "power.draw.instant": "70.00 W",
    "power.limit": "600.00 W", "enforced.power.limit": "600.00 W",
    "power.default_limit": "700.00 W", "power.min_limit": "350.00 W",
    "power.max_limit": "700.00 W", "clocks.current.graphics": "345 MHz",
    "clocks.current.sm": "345 MHz", "clocks.current.memory": "654 MHz",
    "clocks.current.video": "345 MHz", "clocks.max.graphics": "1980 MHz",
    "clocks.max.sm": "1980 MHz", "clocks.max.memory": "2619 MHz",
    "mig.mode.current": "Disabled", "mig.mode.pending": "Disabled",
    "gsp.mode.current": "Enabled", "gsp.mode.default": "Enabled",
}

# What nobody here can know, and what this driver no longer says.
MISSING = {
    "vgpu_driver_capability.heterogenous_multivGPU": "[N/A]", "driver_model.current": "[N/A]",
    "gom.current": "[N/A]", "gom.pending": "[N/A]", "dramEncryption.mode.current": "[N/A]",
    "module.power.limit": "[N/A]", "power_smoothing.primary_power_floor": "[N/A]",
    "fabric.health.summary": "N/A", "platform.chassis_serial_number": "", "hostname": "[N/A]",
    "display_mode": "[Requested functionality has been deprecated]",
    "power.management": "[Requested functionality has been deprecated]",
}


def test_fields(smi):
    """More than sixty fields of one GPU with nothing to do, each with the value it must have."""
    assert len(READ) >= 60 and not {v for v in READ.values() if not v or "N/A" in v}
    row, = query(smi, ONE + "  ecc corrected 3 uncorrected 1\n  power idle 70 max 700 limit 600\n",
                 ["timestamp", *READ, *MISSING])
    assert STAMP.fullmatch(row.pop("timestamp"))
    assert row == {**READ, **MISSING}


def test_other_names_of_fields(smi):
    """The second name of a field gives the same."""
    names = {"gpu_name": "name", "gpu_serial": "serial", "gpu_uuid": "uuid",
             "gpu_bus_id": "pci.bus_id", "clocks.sm": "clocks.current.sm",
             "clocks_throttle_reasons.gpu_idle": "clocks_event_reasons.gpu_idle"}
    row, = query(smi, ONE, [*names, *names.values()])
    assert all(row[other] == row[name] for other, name in names.items())


def test_every_field_has_a_column(smi):
    """A header and a value for each name of --help-query-gpu, whichever of its names is asked."""
    listed = smi(ONE, "--help-query-gpu").out
    names = re.findall(r'^"([^"]+)"(?: or "([^"]+)")?$', listed, re.M)
    assert len(names) >= 212
    done = smi(None, "--query-gpu=" + ",".join(a or n for n, a in names), "--format=csv")
    header, row = done.out.splitlines()
    assert [re.sub(r" \[.*\]$", "", h) for h in header.split(", ")] == [n for n, _ in names]
    assert len(row.split(", ")) == len(names)


def test_units(smi):
    fields = "memory.used,power.limit,clocks.max.sm,utilization.gpu,temperature.gpu,gpu_name"
    done = smi(ONE, f"--query-gpu={fields}", "--format=csv,nounits")
    assert done.out == ("memory.used [MiB], power.limit [W], clocks.max.sm [MHz], "
                        "utilization.gpu [%], temperature.gpu, name\n"
                        "4096, 700.00, 1980, 0, 30, NVIDIA H100 80GB HBM3\n")


def test_option_forms(smi):
    """As they are written in the wild."""
    want = "0, 4096\n"
    smi.world(ONE)
    for args in (["--query-gpu=index,memory.used", "--format=csv,noheader,nounits"],
                 ["--format=nounits,noheader,csv", "--query-gpu", "index, memory.used"],
                 ["--format", "csv, noheader, nounits", "--query-gpu=index,memory.used", "-i", "0"],
                 ["-i=0", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"],
                 ["--id=GPU-11111111", "--query-gpu=index,memory.used",
                  "--format=csv,noheader,nounits"],
                 ["--id=0000:83:00.0", "--query-gpu=index,memory.used",
                  "--format=csv,noheader,nounits"]):
        done = smi(None, *args)
        assert (done.code, done.out) == (0, want), args


def test_eight(smi):
    rows = query(smi, EIGHT, "index,memory.used,count")
    assert [r["index"] for r in rows] == [str(i) for i in range(8)]
    assert [r["memory.used"] for r in rows] == [f"{g * 1024} MiB" for g in (8, 7, 6, 1, 5, 4, 3, 2)]
    assert {r["count"] for r in rows} == {"8"}
    rows = query(smi, None, "index", "-i", "6,2")
    assert [r["index"] for r in rows] == ["2", "6"]
    done = smi(None, "-i", "8", "--query-gpu=index", "--format=csv")
    assert (done.code, done.out) == (6, "No devices were found\n")
    assert "'8'" in done.err


def test_list(smi):
    done = smi(MIG, "-L")
    assert done.code == 0
    gpu, *parts = done.out.splitlines()
    assert re.fullmatch(r"GPU 0: NVIDIA H100 80GB HBM3 \(UUID: GPU-[0-9a-f-]{36}\)", gpu)
    assert len(parts) == 2
    assert re.fullmatch(r"  MIG 3g\.40gb     Device  0: \(UUID: MIG-[0-9a-f-]{36}\)", parts[0])
    assert re.fullmatch(r"  MIG 1g\.10gb     Device  1: \(UUID: MIG-[0-9a-f-]{36}\)", parts[1])


def test_mig(smi):
    row, = query(smi, MIG, "uuid,mig.mode.current,utilization.gpu")
    assert row["mig.mode.current"] == "Enabled"
    assert row["utilization.gpu"] == "[N/A]"
    done = smi(None, "--query-compute-apps=gpu_uuid,pid,name,used_memory", "--format=csv")
    assert done.out == ("gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
                        f"{row['uuid']}, 4711, ./train, 3072 MiB\n")


def test_processes(smi):
    done = smi(ONE + '  process 4712 "Xorg" memory 10M busy 0 graphics\n',
               "--query-compute-apps=timestamp,gpu_name,gpu_bus_id,gpu_serial,gpu_uuid,pid,"
               "process_name,used_gpu_memory", "--format=csv,noheader")
    assert STAMP.sub("T", done.out) == (
        "T, NVIDIA H100 80GB HBM3, 00000000:83:00.0, 1650123000999, "
        "GPU-11111111-2222-3333-4444-555555555555, 4711, python, 3072 MiB\n")
    done = smi(None, "--query-accounted-apps=pid,gpu_util", "--format=csv")
    assert (done.code, done.out) == (0, "pid, gpu_utilization [%]\n")


def test_lost_gpu_spoils_no_other(smi):
    rows = query(smi, EIGHT + "  lost\n", "index,name,memory.used,pstate")
    assert [r["memory.used"] for r in rows[:7]] == [f"{g * 1024} MiB" for g in (8, 7, 6, 1, 5, 4, 3)]
    assert rows[7]["index"] == "7"
    assert rows[7]["memory.used"] == rows[7]["pstate"] == "[GPU is lost]"
    done = smi(None, "-i", "7", "--query-gpu=index,memory.used", "--format=csv,noheader")
    assert (done.code, done.out) == (15, "7, [GPU is lost]\n")


def test_hung_gpu_spoils_no_other(smi):
    start = time.monotonic()
    done = smi('gpu "NVIDIA A100" x 2\n  hang nvmlDeviceGetTemperature for 60s\n'
               'gpu "NVIDIA A100"\n  used 1G\n',
               "--query-gpu=index,memory.used,temperature.gpu", "--format=csv,noheader")
    assert time.monotonic() - start < 14
    assert done.code == 0, done.err
    rows = [line.split(", ") for line in done.out.splitlines()]
    assert [r[0] for r in rows] == ["0", "1", "2"]
    assert rows[0][1:] == ["[Unknown Error]"] * 2
    assert rows[2][1:] == ["1024 MiB", "30"]
    assert "nvmlDeviceGetTemperature" in done.err


HALF_HUNG = "".join(f'gpu "NVIDIA A100-SXM4-80GB"\n  uuid GPU-0000000{g}-0000-0000-0000-000000000000\n' +
                    ("  hang nvmlDeviceGetTemperature for 90s\n" if g % 2 else "") for g in range(8))


def test_half_of_eight_hang(smi):
    """All keep their names; those that answer are shown."""
    start = time.monotonic()
    done = smi(HALF_HUNG, "--query-gpu=index,name,uuid,utilization.gpu", "--format=csv,noheader",
               timeout=60)
    assert time.monotonic() - start < 34
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        f"{g}, NVIDIA A100-SXM4-80GB, GPU-0000000{g}-0000-0000-0000-000000000000, "
        + ("[Unknown Error]" if g % 2 else "0 %") for g in range(8)]


def test_hung_gpu_is_found_by_uuid(smi):
    one = 'gpu "NVIDIA A100"\n  uuid GPU-0000000%d-0000-0000-0000-000000000000\n'
    done = smi(one % 0 + one % 1 + "  hang nvmlDeviceGetTemperature for 30s\n",
               "-i", "GPU-00000001-0000-0000-0000-000000000000",
               "--query-gpu=index,name,temperature.gpu", "--format=csv,noheader")
    assert (done.code, done.out) == (15, "1, NVIDIA A100, [Unknown Error]\n")


def test_gpu_lost_while_watched(smi):
    """It keeps its row, with what was known of it."""
    smi.world('gpu "NVIDIA A100"\n  lost from 1s\ngpu "NVIDIA A100"\n')
    child = smi.spotter.start("smi", "--query-gpu=index,uuid,pstate", "--format=csv,noheader",
                              "--loop-ms=200", text=True)
    rounds = []
    for _ in range(30):
        rounds.append([child.stdout.readline().strip().split(", ") for _ in range(2)])
        if rounds[-1][0][2] == "[GPU is lost]":
            break
    child.terminate()
    _, err = child.communicate(timeout=10)
    first, last = rounds[0], rounds[-1]
    assert re.fullmatch(r"P\d+", first[0][2]) and first[0][1].startswith("GPU-")
    assert last[0] == ["0", first[0][1], "[GPU is lost]"]
    assert last[1] == first[1]
    assert "GPU 0" in err and "lost" in err


@pytest.mark.parametrize("name, rows, listed", [("one", 1, 1), ("eight", 8, 8), ("mig", 2, 5),
                                                ("mixed", 3, 3), ("unified", 1, 1),
                                                ("strict", 1, 1), ("old1", 1, 1)])
def test_scenarios(smi, tree, name, rows, listed):
    """The scenarios that come with the virtual GPU, in a few words."""
    text = (tree / "sim" / "scenarios" / f"{name}.vgpu").read_text()
    got = query(smi, text, "index,name,uuid,memory.total,pstate,count")
    assert [r["index"] for r in got] == [str(i) for i in range(rows)]
    assert len({r["uuid"] for r in got}) == rows
    assert {r["count"] for r in got} == {str(rows)}
    assert all(re.fullmatch(r"\[N/A\]" if name == "unified" else r"\d+ MiB", r["memory.total"])
               for r in got)
    assert len(smi(None, "-L").out.splitlines()) == listed


def test_unified_memory_is_not_zero(smi):
    row, = query(smi, 'gpu "NVIDIA GB10"\n  unified\n', "memory.total,memory.used,memory.free")
    assert set(row.values()) == {"[N/A]"}
    assert "unified memory, simulated" in smi(None).out


def test_driver_not_loaded(smi):
    done = smi('init_error 9\ngpu "NVIDIA A100"\n', "--query-gpu=index", "--format=csv")
    assert done.code == 9
    assert done.out.startswith("NVIDIA-SMI has failed because it couldn't communicate")
    assert "driver" in done.err


@pytest.mark.parametrize("code, status, says", [
    (4, 4, "Failed to initialize NVML: Insufficient Permissions"),
    (18, 18, "Failed to initialize NVML: Driver/library version mismatch"),
    (999, 255, "Failed to initialize NVML: Unknown Error")])
def test_driver_refuses(smi, code, status, says):
    done = smi(f'init_error {code}\ngpu "NVIDIA A100"\n', "-L")
    assert (done.code, done.out) == (status, says + "\n")
    assert "nvidia" in done.err


@pytest.mark.parametrize("code, status, says", [
    (1, 255, "Failed to initialize NVML: Unknown Error\n"),
    (9, 9, "NVIDIA-SMI has failed because it couldn't communicate")])
def test_driver_that_takes_no_calls(smi, code, status, says):
    """Initialised, and then every call fails: that is not "no GPU"."""
    done = smi(f'gpu "NVIDIA A100"\n  error any {code}\n', "-L")
    assert done.code == status and done.out.startswith(says)
    assert "the NVIDIA driver" in done.err
    done = smi.spotter("doctor")
    line, = [line for line in done.out.splitlines() if "no GPU can be read" in line]
    assert "missing" in line


def test_driver_that_does_not_count(smi, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "nvml.c", tmp_path / "libnvidia-ml.so.1"
    source.write_text("int nvmlInit_v2(void) { return 0; }\n"
                      "int nvmlDeviceGetCount_v2(unsigned *n) { *n = 0; return 999; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    done = smi(ONE, "-L", "--nvml", library)
    assert (done.code, done.out) == (255, "Failed to initialize NVML: Unknown Error\n")
    assert "does not count its GPUs: error 999" in done.err


@pytest.mark.parametrize("scenario, args, status, message", [
    ("", [], 6, "No devices were found"),
    ("init_error 18\n" + ONE, [], 18, "Failed to initialize NVML: Driver/library version mismatch"),
    (ONE, ["-i", "7"], 6, "No devices were found"),
    (ONE, ["-L"], 2, "Invalid combination of input arguments. "
                     "Please run 'nvidia-smi -h' for help.")])
def test_failure_as_json(smi, scenario, args, status, message):
    done = smi(scenario, "--json", *args)
    assert done.code == status
    assert json.loads(done.out) == {"schema": "spotter.smi/1", "gpus": [],
                                    "error": {"status": status, "message": message}}
    assert message in done.err


def test_doctor_waits_for_three_that_hang(smi):
    smi.world('gpu "NVIDIA A100" x 3\n  hang nvmlDeviceGetTemperature for 60s\ngpu "NVIDIA A100"\n')
    done = smi.spotter("doctor", timeout=60)
    line, = [line for line in done.out.splitlines() if "A100" in line]
    assert "4 x NVIDIA A100" in line and "limited" in line, done.out
    assert "does not answer within" not in done.out


def test_library_missing(smi, tmp_path):
    done = smi(ONE, "-L", "--nvml", tmp_path / "none.so")
    assert done.code == 12
    assert "couldn't find libnvidia-ml.so" in done.out
    assert "none.so" in done.err


def test_table_and_json(smi):
    done = smi(MIG, timeout=30)
    assert done.code == 0
    assert all(len(line) <= 100 for line in done.out.splitlines()), done.out
    for word in ("CUDA Version: 13.1", "Driver Version: 590.48.01", "MIG 3g.40gb", "simulated",
                 "4711"):
        assert word in done.out
    seen = smi.spotter.json("smi")
    assert seen["schema"] == "spotter.smi/1"
    whole, first, second = seen["gpus"]
    assert whole["metrics"]["gpu.memory_total"] == 80 << 30
    assert (first["partition"], second["partition"]) == (0, 1)
    assert seen["processes"][0]["memory_bytes"] == 3 << 30


def test_loop_to_a_reader_that_leaves(smi):
    smi.world(ONE)
    child = smi.spotter.start("smi", "--query-gpu=timestamp,index", "--format=csv", "-lms", "100",
                              text=True)
    lines = [child.stdout.readline() for _ in range(5)]
    child.stdout.close()
    assert child.wait(timeout=10) == -signal.SIGPIPE
    assert lines[0] == "timestamp, index\n"
    stamps = [line.split(", ")[0] for line in lines[1:]]
    assert all(map(STAMP.fullmatch, stamps))
    assert len(set(stamps)) == 4, "a timestamp was used again"
    child.stderr.close()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_loop_ends_on_a_signal(smi, sig):
    smi.world(ONE)
    child = smi.spotter.start("smi", "--query-gpu=index", "--format=csv,noheader", "-l", "1",
                              text=True)
    assert child.stdout.readline() == "0\n"
    child.send_signal(sig)
    out, err = child.communicate(timeout=10)
    assert (child.returncode, err) == (0, "")
    assert set(out.split()) <= {"0"}


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_loop_ends_while_the_driver_hangs(smi, sig):
    smi.world(ONE + "  hang any from 1s for 60s\n")
    child = smi.spotter.start("smi", "--query-gpu=index", "--format=csv,noheader", "-lms", "200",
                              text=True)
    assert child.stdout.readline() == "0\n"
    time.sleep(1.8)  # by now a call hangs, and nobody knows yet
    start = time.monotonic()
    child.send_signal(sig)
    _, err = child.communicate(timeout=40)
    assert time.monotonic() - start < 1, "it waited for the driver"
    assert (child.returncode, err) == (0, "")


def test_unwritable_file(smi, tmp_path):
    done = smi(ONE, "--query-gpu=index", "--format=csv", "-f", tmp_path / "no" / "log.csv")
    assert done.code == 1 and "cannot write" in done.err and not done.out


# --- the scripts people paste, with nvidia-smi replaced

PYTHON = """
import subprocess
result = subprocess.check_output(
    ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,nounits,noheader"], encoding="utf-8")
gpu_memory = [int(x) for x in result.strip().split("\\n")]
print(dict(zip(range(len(gpu_memory)), gpu_memory)))
"""

FREEST = """
nvidia-smi --query-gpu=index,memory.free --format=csv,noheader,nounits |
    sort -t, -k2 -n -r | head -n 1 | cut -d, -f1
"""

EACH = """
n=$(nvidia-smi -L | grep -c '^GPU')
for i in $(seq 0 $((n - 1))); do
    used=$(nvidia-smi -i $i --query-gpu=memory.used --format=csv,noheader,nounits)
    total=$(nvidia-smi -i $i --query-gpu=memory.total --format=csv,noheader,nounits)
    echo "gpu$i $((used * 100 / total))%"
done
"""

NONE = ""
SCENARIOS = {0: NONE, 1: ONE, 8: EIGHT}


@pytest.fixture
def paste(smi, tmp_path):
    """paste(gpus, argv): runs a script on a machine with that many GPUs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    wrapper = folder / "nvidia-smi"
    wrapper.write_text(f'#!/bin/sh\nexec {smi.spotter.binary} smi "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)

    def run(gpus, *argv):
        smi.world(SCENARIOS[gpus])
        env = dict(smi.spotter.env, PATH=f"{folder}:{os.environ['PATH']}")
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60,
                              cwd=tmp_path)

    return run


@pytest.mark.parametrize("gpus, want", [
    (1, "{0: 4096}\n"),
    (8, "{0: 8192, 1: 7168, 2: 6144, 3: 1024, 4: 5120, 5: 4096, 6: 3072, 7: 2048}\n")])
def test_script_memory_in_python(paste, gpus, want):
    done = paste(gpus, "python3", "-c", PYTHON)
    assert (done.stdout, done.returncode) == (want, 0), done.stderr


def test_script_memory_in_python_without_gpu(paste):
    done = paste(0, "python3", "-c", PYTHON)
    assert done.returncode == 1
    assert "returned non-zero exit status 6" in done.stderr


@pytest.mark.parametrize("gpus, want", [(0, "No devices were found\n"), (1, "0\n"), (8, "3\n")])
def test_script_freest_gpu(paste, gpus, want):
    assert paste(gpus, "sh", "-c", FREEST).stdout == want


@pytest.mark.parametrize("gpus, want", [
    (0, ""), (1, "gpu0 5%\n"),
    (8, "gpu0 10%\ngpu1 8%\ngpu2 7%\ngpu3 1%\ngpu4 6%\ngpu5 5%\ngpu6 3%\ngpu7 2%\n")])
def test_script_each_gpu(paste, gpus, want):
    assert paste(gpus, "sh", "-c", EACH).stdout == want


LOGGER = """
nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used --format=csv -l 1 -f log.csv &
pid=$!
for i in $(seq 100); do
    [ "$(wc -l 2>/dev/null < log.csv || echo 0)" -ge $1 ] && break
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill $pid 2>/dev/null
wait $pid
"""


@pytest.mark.parametrize("gpus, used", [(1, ["4096 MiB"]),
                                        (8, [f"{g * 1024} MiB" for g in (8, 7, 6, 1, 5, 4, 3, 2)])])
def test_script_logger(paste, tmp_path, gpus, used):
    done = paste(gpus, "sh", "-c", LOGGER, "sh", str(1 + 2 * gpus))
    assert done.returncode == 0, done.stderr
    header, *rows = (tmp_path / "log.csv").read_text().splitlines()
    assert header == "timestamp, index, utilization.gpu [%], memory.used [MiB]"
    assert len(rows) >= 2 * gpus and len(rows) % gpus == 0
    rows = [row.split(", ") for row in rows]
    assert all(STAMP.fullmatch(row[0]) for row in rows)
    assert [row[3] for row in rows[:gpus]] == used == [row[3] for row in rows[gpus:2 * gpus]]
    assert rows[0][0] != rows[gpus][0]


def test_script_logger_without_gpu(paste, tmp_path):
    done = paste(0, "sh", "-c", LOGGER, "sh", "1")
    assert done.returncode == 6
    assert done.stdout == "No devices were found\n"
    assert (tmp_path / "log.csv").read_text() == ""
