# SPDX-License-Identifier: MIT
"""What can be seen here and what not: doctor, tried for real, as root and as others, filtered and not."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

CONTAINER = "SYS_PTRACE"


def test_doctor_captures_a_machine(spotter, tmp_path):
    shot = tmp_path / "shot"
    done = spotter("doctor", "--capture", shot, check=True)
    assert done.out == "" and "--root" in done.err
    for state in ("t0", "t1"):
        for name in ("clock", "proc/stat", "proc/meminfo", "proc/self/mountinfo"):
            assert (shot / state / name).stat().st_size > 0
    data = spotter.json("top", "--root", shot)
    assert 0.9 < data["interval_s"] < 10
    assert data["machine"]["memory"]["total_bytes"] > 0
    live = {c["id"]: c for c in spotter.json("doctor")["checks"]}
    seen = {c["id"]: c for c in spotter.json("doctor", "--root", shot)["checks"]}
    for name in ("cpus", "memory", "cgroup", "psi", "schedstat", "yama"):
        assert seen[name]["value"] == live[name]["value"]
    again = spotter("doctor", "--capture", shot)
    assert again.code == 1 and "is not empty" in again.err


def test_a_capture_holds_no_names(spotter, tmp_path):
    secret = tmp_path / "verysecretname"
    secret.symlink_to("/bin/sleep")
    child = subprocess.Popen([secret, "30"], cwd=tmp_path)
    spotter.started.append(child)
    spotter("doctor", "--capture", tmp_path / "shot", check=True)
    texts = {p: p.read_text(errors="replace") for p in (tmp_path / "shot").rglob("*") if p.is_file()}
    assert len(texts) > 20
    for path, text in texts.items():
        assert "verysecret" not in text, path
        assert str(tmp_path) not in text, path
        assert path.name not in ("cmdline", "environ")
    assert (tmp_path / "shot/t0/proc/sys/kernel/hostname").read_text() == "host\n"


def rows(data):
    return {c["id"]: c for c in data["checks"]}


def doctor(spotter, *before, code=0, **kwargs):
    """`doctor --json` behind another program's line."""
    done = subprocess.run([*before, spotter.binary, "doctor", "--json"], capture_output=True, text=True,
                          timeout=30, **{"env": spotter.env, **kwargs})
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


# setpriv keeps capabilities until it has started something: that is env.
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env"]
NOBODYS = {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"}


def perf_works(data):
    return rows(data)["perf"]["status"] == "ok"


def test_doctor_tells_the_levels(spotter):
    """What it says of the level follows from what it says of the single rights."""
    data = spotter.json("doctor")
    checks = rows(data)
    memory = "ok" in (checks["process_vm_readv"]["status"], checks["proc_mem"]["status"])
    assert data["level"] == ("L1" if not memory else "L3" if perf_works(data) else "L2")
    assert data["attach"]["level"] <= data["level"]
    for at in (data, data["attach"]):
        assert at["level_why"]
        assert ("level_unlock" in at) == (at["level"] != "L3")
    if checks["yama"]["value"].startswith(("no Yama", "ptrace_scope 0")):
        assert data["attach"]["level"] == data["level"]
    text = spotter("doctor", check=True).out
    assert f"L{data['level'][1]}: {data['level_why'][:20]}" in text.replace("\n", " ")


@pytest.mark.root
def test_doctor_as_nobody(spotter):
    """Stacks are for ordinary users: what takes them away has a name, and none of that is here."""
    if subprocess.run([*NOBODY, "test", "-x", spotter.binary]).returncode:
        pytest.skip("nobody may not reach the build folder")
    data = doctor(spotter, *NOBODY, cwd="/", env=NOBODYS)
    checks = rows(data)
    if checks["yama"]["value"].startswith(("no Yama", "ptrace_scope 0", "ptrace_scope 1")):
        assert data["level"] >= "L2", data["level_why"]
        assert checks["process_vm_readv"]["status"] == checks["proc_mem"]["status"] == "ok"
        assert checks["waits"]["status"] == "ok"
    runs = checks["runs"]
    assert runs["status"] == "missing" and "SPOTTER_DIR" in runs["unlock"]


@pytest.mark.root
def test_a_program_file_that_cannot_be_read_takes_nothing_away(spotter):
    """Such a program is not dumpable itself; what it starts is."""
    folder = tempfile.mkdtemp(dir="/tmp")
    try:
        os.chmod(folder, 0o755)
        spotter.binary = shutil.copy(spotter.binary, folder)
        os.chmod(spotter.binary, 0o711)
        data = doctor(spotter, *NOBODY, cwd="/", env=NOBODYS)
    finally:
        shutil.rmtree(folder)
    checks = rows(data)
    assert checks["dumpable"]["value"].startswith("this process is not")
    if not checks["yama"]["value"].startswith(("ptrace_scope 2", "ptrace_scope 3")):
        assert data["level"] >= "L2", data["level_why"]


def test_doctor_where_calls_are_refused(spotter, build):
    """As in a container: no process_vm_readv, no perf_event_open. The file is left, and said."""
    data = doctor(spotter, build / "tests/programs/refuse")
    checks = rows(data)
    assert checks["process_vm_readv"]["status"] == "limited"
    assert CONTAINER in checks["process_vm_readv"]["unlock"]
    assert checks["seccomp"]["status"] == "limited"
    assert checks["perf"]["status"] == "limited" and checks["perf"]["unlock"]
    if checks["proc_mem"]["status"] == "ok":
        assert "/proc/PID/mem" in checks["process_vm_readv"]["effect"]
        assert data["level"] == "L2" and data["level_unlock"] == checks["perf"]["unlock"]
    else:
        assert data["level"] == "L1"


@pytest.mark.parametrize("scope, status, command", [
    (0, "ok", None),
    (1, "limited", "sudo sysctl kernel.yama.ptrace_scope=0 (or start the program with 'spotter run')"),
    (2, "limited", "sudo sysctl kernel.yama.ptrace_scope=1 (for 'run'; 0 for 'attach' too)"),
    (3, "limited", "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d, then boot"),
])
def test_what_yama_means(spotter, tmp_path, scope, status, command):
    yama = tmp_path / "proc/sys/kernel/yama"
    yama.mkdir(parents=True)
    (yama / "ptrace_scope").write_text(f"{scope}\n")
    row = rows(spotter.json("doctor", "--root", tmp_path))["yama"]
    assert row["value"].startswith(f"ptrace_scope {scope}: ")
    assert row["status"] == status and row.get("unlock") == command


@pytest.mark.parametrize("paranoid, status", [("-1", "ok"), ("2", "ok"), ("3", "limited"), ("4", "limited")])
def test_what_paranoid_means(spotter, tmp_path, paranoid, status):
    kernel = tmp_path / "proc/sys/kernel"
    kernel.mkdir(parents=True)
    (kernel / "perf_event_paranoid").write_text(f"{paranoid}\n")
    row = rows(spotter.json("doctor", "--root", tmp_path))["perf"]
    assert row["status"] == status
    assert row.get("unlock") == (None if status == "ok" else "sudo sysctl kernel.perf_event_paranoid=2")


def test_a_captured_machine_has_no_rights_to_try(spotter, roots):
    data = spotter.json("doctor", "--root", next(p for p in sorted(roots.iterdir()) if p.is_dir()))
    assert data["level"] in ("L0", "L1")
    assert not {"process_vm_readv", "proc_mem", "seccomp", "dumpable"} & set(rows(data))
