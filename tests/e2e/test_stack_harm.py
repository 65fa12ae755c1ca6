# SPDX-License-Identifier: MIT
"""Reading stacks does no harm, gives way step by step where it is not allowed to, says so, and misses no
worker, whoever starts it and however."""
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, TREE

PYTHON = "/usr/bin/python3"
REFUSE = BUILD / "tests/programs/refuse"
START_METHODS = TREE / "tests/programs/start_methods.py"

# Computes and sleeps for a while, in two threads; says something on both outputs; ends with 7.
PROGRAM = r'''
import sys, threading, time
def inner(end):
    while time.monotonic() < end:
        sum(range(2000))
        time.sleep(0.001)
def outer(seconds):
    inner(time.monotonic() + seconds)
t = threading.Thread(target=outer, args=(float(sys.argv[1]),))
t.start()
outer(float(sys.argv[1]))
t.join()
print("to the one", flush=True)
print("to the other", file=sys.stderr, flush=True)
sys.exit(7)
'''


def program(tmp_path):
    path = tmp_path / "calm.py"
    path.write_text(PROGRAM)
    return path


def refused(spotter, prefix, *args):
    done = subprocess.run([*map(str, prefix), str(spotter.binary), *map(str, args)], env=spotter.env,
                          capture_output=True, text=True, errors="replace", timeout=60)
    return done


def may_be_traced():
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


HARM = ("ptrace", "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
        "process_vm_writev", "setpriority", "sched_setaffinity", "sched_setscheduler", "prlimit64")


def harms(call, target):
    """kill(4711, SIGKILL): whom? Spotter may end processes of its own, and set limits of its own (0)."""
    m = re.match(r"(\w+)\((-?\d+)?", call)
    if not m or m[1] not in HARM:  # a line that strace has cut
        return False
    if m[1] in ("ptrace", "process_vm_writev", "pidfd_send_signal", "tkill"):
        return True
    whom = int(m[2]) if m[2] else None  # setpriority(PRIO_PROCESS, ...
    if m[1] in ("kill", "rt_sigqueueinfo", "tgkill", "rt_tgsigqueueinfo"):
        return whom in (target, -target, 0, -1, -os.getpgrp()) and not call.startswith(f"kill({target}, 0)")
    return whom != 0


def test_no_thread_is_stopped_written_to_or_signalled(spotter, tmp_path):
    """All system calls of the recorder and of what it watches, as the kernel saw them."""
    if not shutil.which("strace"):
        pytest.skip("no strace here")
    if not may_be_traced():
        pytest.skip("ptrace is not allowed here")
    log = tmp_path / "calls"
    seen = ",".join((*HARM, "process_vm_readv", "openat", "execve"))
    done = refused(spotter, ["strace", "-f", "-qq", "-o", log, "-e", "signal=none", "-e", f"trace={seen}"],
                   "run", "--quiet", "--out", tmp_path / "a.spot", "--", PYTHON, program(tmp_path), 2.5)
    assert done.returncode == 7, done.stderr
    rows = [line.split(None, 1) for line in log.read_text(errors="replace").splitlines()]
    calls = [call for _, call in rows]
    target = next(int(pid) for pid, call in rows if call.startswith(f'execve("{PYTHON}"'))
    bad = [c for c in calls if not c.startswith("<") and harms(c, target)]
    assert not bad, (target, bad[:5])
    # it was at work meanwhile
    looks = [c for c in calls if c.startswith(f"process_vm_readv({target}, ")]
    assert len(looks) > 50, len(looks)
    memory = [c for c in calls if c.startswith("openat(") and re.search(r'/mem", ', c)]
    assert all("O_RDONLY" in c for c in memory), memory
    assert spotter.json("why", tmp_path / "a.spot")["level"] in ("L2", "L3")


@pytest.mark.parametrize("prefix", [[], [REFUSE], [REFUSE, "--memory"]], ids=["free", "refused", "blind"])
def test_output_and_exit_code_are_the_programs(spotter, tmp_path, prefix):
    path = program(tmp_path)
    alone = subprocess.run([PYTHON, path, "0.1"], capture_output=True, text=True)
    done = refused(spotter, prefix, "run", "--quiet", "--out", tmp_path / "a.spot", "--", PYTHON, path, 1)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def verdict_under(spotter, tmp_path, prefix, seconds=3):
    """(the verdict, what `why` and `report` say)"""
    out = tmp_path / "a.spot"
    done = refused(spotter, prefix, "run", "--quiet", "--out", out, "--", PYTHON, program(tmp_path), seconds)
    assert done.returncode == 7, done.stderr
    return spotter.json("why", out), spotter("why", out).out + spotter("report", out).out


def has_stacks(verdict):
    states = {line["state"]: line["share"] for line in verdict["time"]["ledger"]}
    tops = [top["function"] for line in verdict["cpu"]["ledger"] for top in line.get("top", [])]
    # sum() and sleep() of inner(): on a CPU, queued for one, or asleep
    known = sum(states.get(s, 0) for s in ("python", "idle", "cpu_queue", "lock_wait"))
    assert known > 0.9, states
    assert "inner" in tops, tops


def test_as_whoever_runs_this_it_is_level_two_at_least(spotter, tmp_path):
    verdict, text = verdict_under(spotter, tmp_path, [])
    assert verdict["level"] in ("L2", "L3"), verdict.get("level_why")
    has_stacks(verdict)
    assert verdict["overhead"]["stack_unproven"] <= 0.01 * verdict["overhead"]["stack_samples"]
    assert re.search(rf"\b{verdict['level']}\b", text)


def test_a_refused_process_vm_readv_is_no_loss_and_perf_is_said(spotter, tmp_path):
    """As in a container: memory is read through /proc/PID/mem, no native leaf of what runs."""
    verdict, text = verdict_under(spotter, tmp_path, [REFUSE])
    assert verdict["level"] == "L2"
    has_stacks(verdict)
    assert "perf_event" in verdict["level_why"], verdict["level_why"]
    assert "L2" in text and "perf_event" in text


def test_with_both_refused_it_is_level_one_and_says_so(spotter, tmp_path):
    verdict, text = verdict_under(spotter, tmp_path, [REFUSE, "--memory"])
    assert verdict["level"] == "L1", verdict.get("level_why")
    # in the words of the verdict, wherever lines are broken
    assert verdict["level_why"] and verdict["level_why"][:40] in " ".join(text.split()), text
    assert "L1" in text
    # CPU is charged by role all the same, and nothing about stacks is made up
    assert not [top for line in verdict["cpu"]["ledger"] for top in line.get("top", [])]
    assert sum(line["cores"] for line in verdict["cpu"]["ledger"]) > 0.02
    assert spotter("export", "--to", "collapsed", tmp_path / "a.spot").code != 0 or \
        "calm.py" not in spotter("export", "--to", "collapsed", tmp_path / "a.spot").out


def test_a_program_that_may_not_be_read_is_level_one(spotter, tmp_path):
    """A file that may be run and not read makes a process that nobody may look into, but for root."""
    python = tmp_path / "closed"
    shutil.copy(os.path.realpath(PYTHON), python)
    python.chmod(0o111)
    caps = ",".join(f"-{name}" for name in ("sys_ptrace", "dac_override", "dac_read_search"))
    prefix = ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}"] if os.geteuid() == 0 else []
    out = tmp_path / "closed.spot"
    done = refused(spotter, [*prefix, "env", "PYTHONHOME=/usr"], "run", "--quiet", "--out", out, "--",
                   python, program(tmp_path), 3)
    assert done.returncode == 7, done.stderr
    verdict = spotter.json("why", out)
    assert verdict["level"] == "L1" and verdict["level_why"], verdict.get("level_why")
    # such processes are root's in /proc; among root's own one cannot tell who shut the door
    if os.geteuid() != 0:
        assert "dump" in verdict["level_why"], verdict["level_why"]


@pytest.mark.alone
def test_workers_of_every_start_method_are_found_at_once(spotter, tmp_path):
    """Each lives for one second from the call that starts it: who comes later sees nothing of it."""
    out = tmp_path / "workers.spot"
    done = spotter("run", "--quiet", "--out", out, "--", PYTHON, START_METHODS)
    assert done.code == 0, done.err
    pids = json.loads(done.out.splitlines()[-1])
    text = spotter("export", "--to", "collapsed", out, check=True).out
    seen = {int(m[1]) for m in re.finditer(r"^[^;]*\((\d+)\);[^\n]*load_item \(start_methods\.py", text, re.M)}
    for method, some in pids.items():
        assert set(some) <= seen, (method, some, seen)
    roles = {line["role"]: line for line in spotter.json("why", out)["cpu"]["ledger"]}
    assert roles["loader_worker"]["processes"] == sum(map(len, pids.values())), roles
    assert roles["loader_worker"]["top"][0]["function"] == "load_item", roles


STILL = r'''
import os, time
def stands_still():
    time.sleep(2.5)
children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        stands_still()
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
print(*children)
'''


def test_processes_that_never_move_have_stacks_too(spotter, tmp_path):
    """Many at once, blocked before anybody could look: each is told by its line, not by libc's."""
    path, out = tmp_path / "still.py", tmp_path / "still.spot"
    path.write_text(STILL)
    done = spotter("run", "--quiet", "--out", out, "--", PYTHON, path)
    assert done.code == 0, done.err
    seen = {}
    for line in spotter("export", "--to", "collapsed", out, check=True).out.splitlines():
        m = re.match(r"[^;]*\((\d+)\);.*stands_still \(still\.py:4\).* (\d+)$", line)
        if m:
            seen[int(m[1])] = seen.get(int(m[1]), 0) + int(m[2]) / 1e6
    for pid in map(int, done.out.split()):
        assert seen.get(pid, 0) > 1.8, (pid, seen)
