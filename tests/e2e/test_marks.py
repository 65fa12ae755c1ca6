# SPDX-License-Identifier: MIT
"""What a program marks (steps, loss, phases) is in the record, exactly; what it takes for that is in its
environment and nowhere else; and nothing of it stays behind."""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import BUILD, TREE

MARKS = BUILD / "tests/programs/marks"
SHOW = "echo $SPOTTER_MARKS; "

pytestmark = pytest.mark.skipif(not MARKS.exists(), reason="tests/programs/marks was not built")


def loss_of(step):
    return 1 / (step + 1) if step % 7 else None


def rows(spotter, sql, run="last"):
    return spotter.json("sql", run, sql)


def run(spotter, *words, **kwargs):
    return spotter("run", "-q", "--", *words, **kwargs)


# -- what is recorded ------------------------------------------------------------------------------

def test_steps_losses_phases_and_scalars(spotter):
    done = run(spotter, MARKS, "steps", 45, 4)
    pid, count = map(int, done.out.split())
    steps = rows(spotter, "SELECT * FROM steps ORDER BY t_end")
    assert [s["step"] for s in steps] == list(range(1, count + 1))
    assert [s["loss"] for s in steps] == [loss_of(s["step"]) for s in steps]
    assert {s["pid"] for s in steps} == {pid} and {s["source"] for s in steps} == {"api"}
    assert {s["rank"] for s in steps} == {None}
    assert all(abs(s["data_wait"] - 0.00025) < 1e-9 for s in steps)
    # The evaluations are in no step.
    assert all(0.004 <= s["seconds"] for s in steps)
    assert sorted(s["seconds"] for s in steps)[40] < 0.02
    phases = rows(spotter, "SELECT * FROM phases ORDER BY t")
    assert [p["name"] for p in phases] == ["evaluate"] * 4
    assert all(0.02 <= p["seconds"] < 0.2 for p in phases)
    for phase, after in zip(phases, (10, 20, 30, 40)):
        assert steps[after - 1]["t_end"] <= phase["t"]
        assert phase["t_end"] <= steps[after]["t"] + 1e-9
    scalars = rows(spotter, "SELECT * FROM scalars ORDER BY t")
    assert [(s["name"], s["step"], s["value"]) for s in scalars] == [
        ("accuracy", n, n / 100) for n in (10, 20, 30, 40)]


def test_forked_ranks(spotter):
    done = run(spotter, MARKS, "fork", 3, 25, 5)
    pids = {int(line.split()[0]) for line in done.out.splitlines()}
    seen = rows(spotter, "SELECT rank, pid, count(*) AS n, max(step) AS last FROM steps GROUP BY rank, pid")
    assert [(s["rank"], s["n"], s["last"]) for s in seen] == [(0, 25, 25), (1, 25, 25), (2, 25, 25)]
    assert {s["pid"] for s in seen} == pids


def test_two_programs(spotter):
    done = run(spotter, "sh", "-c", f"'{MARKS}' steps 30 5 & '{MARKS}' steps 20 5; wait")
    told = {tuple(map(int, line.split())) for line in done.out.splitlines()}
    seen = rows(spotter, "SELECT pid, count(*) AS n FROM steps GROUP BY pid")
    assert {(s["pid"], s["n"]) for s in seen} == told and len(told) == 2


def test_a_process_that_execs_goes_on(spotter):
    run(spotter, MARKS, "exec", 20, 5)
    seen = rows(spotter, "SELECT count(*) AS n, count(DISTINCT pid) AS pids FROM steps")
    assert seen == [{"n": 40, "pids": 1}]


def test_killed_in_a_phase(spotter):
    done = run(spotter, MARKS, "die", 25, 5)
    assert done.code == -signal.SIGKILL
    assert rows(spotter, "SELECT count(*) AS n FROM steps") == [{"n": 25}]
    phase = rows(spotter, "SELECT * FROM phases WHERE name = 'never ended'")[0]
    assert 0.05 <= phase["seconds"] < 1


def test_what_is_lost_is_counted(spotter):
    count = 300000
    run(spotter, MARKS, "flood", count)
    n = rows(spotter, "SELECT count(*) AS n FROM steps")[0]["n"]
    told = rows(spotter, "SELECT max(value) AS lost FROM events WHERE text LIKE '%marks of this process were lost%'")
    # And one that says who marks.
    assert n + told[0]["lost"] == count + 1
    assert rows(spotter, "SELECT max(step) AS n FROM steps") == [{"n": count}]


def test_a_killed_recorder_keeps_what_it_had(spotter, wait_for):
    child = spotter.start("run", "-q", "--", "sh", "-c", f"{SHOW} exec '{MARKS}' steps 400 10")
    folder = Path(child.stdout.readline().decode().strip())
    wait_for(spotter.records, "a record")

    def steps():
        try:
            return rows(spotter, "SELECT count(*) AS n FROM steps")[0]["n"]
        except AssertionError:
            return 0
    wait_for(lambda: steps() > 50, "steps in the record")
    recorder = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0]
    os.kill(int(recorder), signal.SIGKILL)
    assert child.wait(timeout=30) == 0  # the program did not notice
    assert 50 < steps() < 400
    assert not folder.exists()


# -- the environment -------------------------------------------------------------------------------

def environment(text):
    return dict(line.split("=", 1) for line in text.split("\0") if line)


def test_environment(spotter):
    spotter.env |= {"PYTHONPATH": "/old:/older", "ODD": "=x=", "NEWLINE": "a\nb"}
    bare = subprocess.run(["env", "-0"], env=spotter.env, capture_output=True, text=True, check=True).stdout
    assert run(spotter, "env", "-0").code == 0
    assert spotter("run", "-q", "--no-hooks", "--", "env", "-0").out == bare
    seen, before = environment(run(spotter, "env", "-0").out), environment(bare)
    record = spotter.records()[-1]
    changed = {name: value for name, value in seen.items() if before.get(name) != value}
    assert set(before) <= set(seen)
    assert changed.pop("SPOTTER_RUN") == record.stem
    assert changed.pop("SPOTTER_EXE") == str(spotter.binary)
    assert changed.pop("SPOTTER_LIB") == str(BUILD / "libspotter.so")
    folder = changed.pop("SPOTTER_MARKS")
    assert folder.startswith("/dev/shm/spotter-") and not Path(folder).exists()
    if BUILD.parent == TREE:
        assert changed.pop("SPOTTER_PYTHON") == str(TREE / "python")
        assert changed.pop("PYTHONPATH") == f"{TREE}/python/spotter/_site:/old:/older"
    assert not changed


def test_the_folder_is_the_users_alone(spotter):
    done = run(spotter, "sh", "-c", "stat -c '%a %u' $SPOTTER_MARKS; ls $SPOTTER_MARKS | wc -l")
    assert done.out.split() == ["700", str(os.geteuid()), "0"]


def test_a_program_of_its_own_without_library_or_package(spotter, tmp_path):
    alone = tmp_path / "bin" / "spotter"
    alone.parent.mkdir()
    shutil.copy(spotter.binary, alone)
    done = subprocess.run([alone, "run", "-q", "--", MARKS, "steps", "20", "5"], env=spotter.env,
                          capture_output=True, text=True, check=True)
    assert rows(spotter, "SELECT count(*) AS n FROM steps") == [{"n": int(done.stdout.split()[1])}]
    done = subprocess.run([alone, "run", "-q", "--", "env"], env=spotter.env, capture_output=True, text=True,
                          check=True)
    names = {line.split("=")[0] for line in done.stdout.splitlines()}
    assert {"SPOTTER_MARKS", "SPOTTER_RUN", "SPOTTER_EXE"} <= names
    assert not names & {"SPOTTER_LIB", "SPOTTER_PYTHON", "PYTHONPATH"}


def test_a_run_within_a_run(spotter, tmp_path):
    inner = tmp_path / "inner.spot"
    script = f"'{spotter.binary}' run -q --out '{inner}' -- sh -c \"'{MARKS}' steps 20 5; echo \\$PYTHONPATH\""
    done = run(spotter, "sh", "-c", script)
    assert rows(spotter, "SELECT count(*) AS n FROM steps", inner) == [{"n": 20}]
    assert rows(spotter, "SELECT count(*) AS n FROM steps") == [{"n": 0}]
    assert done.out.count("_site") <= 1


# -- what stays ------------------------------------------------------------------------------------

def test_leftovers_of_the_killed_are_swept(spotter):
    """Recorder and supervisor killed: the next run removes their folder, when it has been idle for a minute."""
    child = spotter.start("run", "-q", "--", "sh", "-c", f"{SHOW} exec '{MARKS}' steps 3 1000", start_new_session=True)
    folder = Path(child.stdout.readline().decode().strip())
    time.sleep(0.5)
    recorder = int(Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0])
    os.kill(child.pid, signal.SIGKILL)
    os.kill(recorder, signal.SIGKILL)
    child.wait()
    assert list(folder.glob("*.ring"))
    run(spotter, "true")
    assert folder.exists()  # too young to be sure
    os.utime(folder, (time.time() - 100, time.time() - 100))
    run(spotter, "true")
    assert not folder.exists()
    os.killpg(child.pid, signal.SIGKILL)
