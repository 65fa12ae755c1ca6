# SPDX-License-Identifier: MIT
"""When things go wrong: a sentence, the right exit code, the program goes on, nothing is lost."""
import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from conftest import BUILD, TREE, cores_of

BURN = BUILD / "tests/programs/burn"


def recorder_of(supervisor):
    """R's pid: the supervisor's only child."""
    return int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])


def program_of(supervisor):
    r = recorder_of(supervisor)
    return int(Path(f"/proc/{r}/task/{r}/children").read_text().split()[0])


# -- where the record goes ---------------------------------------------------------------------

def test_an_explicit_file_that_cannot_be_written_is_said_before_anything_starts(spotter, tmp_path):
    mark = tmp_path / "started"
    done = spotter("run", "--out", tmp_path / "no/such/folder/x.spot", "--", "touch", mark)
    assert done.code == 125
    assert not mark.exists()
    assert "no/such/folder" in done.err and done.err.startswith("spotter: ")


def test_an_existing_file_is_not_overwritten(spotter, tmp_path):
    precious = tmp_path / "precious.spot"
    precious.write_text("not to be lost")
    done = spotter("run", "--out", precious, "--", "true")
    assert done.code == 125
    assert precious.read_text() == "not to be lost"


def test_a_home_that_cannot_be_written_falls_back_and_says_so(spotter, tmp_path):
    spotter.env.pop("SPOTTER_DIR")
    spotter.env["HOME"] = "/proc/nonexistent"
    spotter.env["TMPDIR"] = str(tmp_path)
    done = spotter("run", "--", "sh", "-c", "exit 3")
    assert done.code == 3
    assert "spotter:" in done.err
    assert list(tmp_path.rglob("*.spot")), done.err


def test_nowhere_to_write_at_all(spotter, tmp_path):
    spotter.env.pop("SPOTTER_DIR")
    spotter.env["HOME"] = "/proc/nonexistent"
    spotter.env["TMPDIR"] = "/proc/nonexistent"
    done = spotter("run", "--", "sh", "-c", "echo ran; exit 3")
    # either it found another place and ran, or it said why before it started
    assert (done.code == 3 and "ran" in done.out) or (done.code == 125 and done.err)


@pytest.mark.root
def test_a_disk_that_fills_up_never_stops_the_program(spotter, tmp_path):
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], check=True)
    try:
        filler = disk / "filler"
        out = disk / "full.spot"
        child = spotter.start("run", "--out", out, "--", BURN, "cpu=4")
        time.sleep(1.5)
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass
        code = child.wait(timeout=30)
        err = child.stderr.read().decode()
        assert code == 0, err
        assert "spotter:" in err and "space" in err, err
        # what was recorded stays readable
        copy = tmp_path / "copy.spot"
        for suffix in ("", "-wal", "-shm"):
            source = Path(str(out) + suffix)
            if source.exists():
                Path(str(copy) + suffix).write_bytes(source.read_bytes())
        verdict = spotter.json("why", copy)
        assert verdict["run"]["duration_s"] >= 0.5
    finally:
        subprocess.run(["umount", disk], check=True)


def test_the_run_file_is_deleted_while_recording(spotter, tmp_path):
    out = tmp_path / "gone.spot"
    child = spotter.start("run", "--out", out, "--", BURN, "cpu=2.5")
    time.sleep(1.2)
    for f in tmp_path.glob("gone.spot*"):
        f.unlink()
    assert child.wait(timeout=30) == 0
    assert "spotter:" in child.stderr.read().decode()


# -- the recorder dies -------------------------------------------------------------------------

def test_the_recorder_is_killed_and_the_program_runs_on(spotter, tmp_path, wait_for):
    out = tmp_path / "killed.spot"
    child = spotter.start("run", "--out", out, "--", "sh", "-c", "sleep 2.5; exit 7")
    time.sleep(1.4)
    os.kill(recorder_of(child.pid), signal.SIGKILL)
    assert child.wait(timeout=10) == 7
    err = child.stderr.read().decode()
    assert "spotter:" in err, "the user is told that the record is cut short"
    verdict = spotter.json("why", out)
    assert verdict["run"]["complete"] is False
    assert 0.2 <= verdict["run"]["duration_s"] <= 2.0


def test_killed_at_random_moments_every_file_opens_and_misses_at_most_a_second(spotter, tmp_path):
    chance = random.Random(7)
    runs = 25 if os.environ.get("SPOTTER_LONG") else 8
    running = []
    for i in range(runs):
        out = tmp_path / f"kill-{i}.spot"
        child = spotter.start("run", "--quiet", "--hz", "50", "--out", out, "--", "sleep", "5")
        running.append((chance.uniform(0.3, 4.0), child, out))
        if len(running) == 4 or i == runs - 1:
            begin = time.monotonic()
            for delay, child, out in sorted(running, key=lambda r: r[0]):
                time.sleep(max(0.0, begin + delay - time.monotonic()))
                recorder, program = recorder_of(child.pid), program_of(child.pid)
                os.kill(recorder, signal.SIGKILL)
                killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                os.kill(program, signal.SIGKILL)
                child.wait(timeout=10)
                if not out.exists():
                    assert delay < 1.0
                    continue
                rows = spotter("sql", "--json", out,
                               "SELECT max(t1_ns) AS last, (SELECT started_mono_ns FROM run) AS first FROM block")
                if rows.code != 0:
                    # killed before the first commit: said plainly
                    assert delay < 1.5 and rows.err.startswith("spotter:"), rows.err
                    continue
                row = json.loads(rows.out)[0]
                last = row["last"] or row["first"]
                assert killed - last < 1.6e9, (delay, (killed - last) / 1e9)
                assert sqlite3.connect(out).execute("PRAGMA integrity_check").fetchone() == ("ok",)
            running = []


def test_the_supervisor_is_killed_and_the_record_is_finished(spotter, tmp_path, wait_for):
    out = tmp_path / "orphaned.spot"
    mark = tmp_path / "done"
    child = spotter.start("run", "--out", out, "--", "sh", "-c", f"sleep 1.5; touch {mark}")
    time.sleep(0.6)
    child.kill()
    child.wait()
    wait_for(mark.exists, "the program to end on its own")
    wait_for(lambda: spotter.json("why", out)["run"].get("complete"), "the record to be finished")


# -- what is given as RUN or PID ---------------------------------------------------------------

@pytest.mark.parametrize("name, content", [
    ("empty", b""),
    ("text", b"hello, this is not a database\n" * 40),
    ("zeros", b"\0" * 8192),
    ("header", b"SQLite format 3\0" + b"\xff" * 4080),
])
@pytest.mark.parametrize("command", [["why"], ["report"], ["sql"], ["export", "--to", "csv"], ["top", "--once"]])
def test_a_file_that_is_no_record(spotter, tmp_path, name, content, command):
    file = tmp_path / f"{name}.spot"
    file.write_bytes(content)
    extra = ["SELECT 1"] if command == ["sql"] else []
    done = spotter(*command, file, *extra)
    assert done.code == 1, (done.out, done.err)
    assert done.err.startswith("spotter: ") and str(file.name) in done.err
    assert done.out == ""
    assert file.read_bytes() == content


def test_a_foreign_database(spotter, tmp_path):
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE t (x)")
    done = spotter("why", file)
    assert done.code == 1 and "other.db" in done.err


def test_a_record_with_its_end_cut_off(spotter, tmp_path):
    out = tmp_path / "cut.spot"
    spotter("run", "--quiet", "--out", out, "--", "sleep", "0.5", check=True)
    out.write_bytes(out.read_bytes()[:-9000])
    for command in (["why", out], ["sql", out, "SELECT count(*) FROM samples"], ["export", out, "--to", "jsonl"]):
        done = spotter(*command)
        assert done.code in (0, 1), done.err
        if done.code:
            assert done.err.startswith("spotter: ")


def test_bits_flipped_in_a_record(spotter, tmp_path):
    out = tmp_path / "good.spot"
    spotter("run", "--quiet", "--out", out, "--", "sleep", "0.4", check=True)
    good = out.read_bytes()
    chance = random.Random(11)
    for i in range(40):
        bad = bytearray(good)
        for _ in range(chance.choice((1, 5, 50))):
            bad[chance.randrange(100, len(bad))] ^= 1 << chance.randrange(8)
        file = tmp_path / "bad.spot"
        file.write_bytes(bad)
        done = spotter("why", "--json", file)
        assert done.code in (0, 1), (i, done.code, done.err)
        if done.code:
            assert done.err.startswith("spotter: ")


def test_a_pid_that_does_not_exist(spotter):
    done = spotter("attach", "4194000")
    assert done.code == 1 and "no process" in done.err
    assert spotter("attach", "0").code in (1, 2)
    assert spotter("attach", "-5").code in (1, 2)
    assert spotter("attach", "pigeon").code in (1, 2)


def test_attach_leaves_it_running(spotter, tmp_path):
    target = subprocess.Popen([BURN, "cpu=30"], stdout=subprocess.DEVNULL)
    out = tmp_path / "attached.spot"
    with cores_of(target.pid) as truth:
        done = spotter("attach", target.pid, "--for", "1.5s", "--out", out)
    assert done.code == 0, done.err
    assert target.poll() is None
    target.kill()
    target.wait()
    verdict = spotter.json("why", out)
    assert abs(verdict["usage"]["cpu"]["cores_used"] - truth.cores) < 0.35, (verdict["usage"], truth)
    assert "exit" not in verdict["run"]


def test_attach_ends_with_the_process_and_with_ctrl_c(spotter, tmp_path):
    target = subprocess.Popen(["sleep", "1"])
    assert spotter("attach", target.pid, "--quiet", "--out", tmp_path / "a.spot", timeout=20).code == 0
    target.wait()
    target = subprocess.Popen(["sleep", "30"])
    child = spotter.start("attach", target.pid, "--out", tmp_path / "b.spot")
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=10) == 0
    assert target.poll() is None
    target.kill()
    target.wait()
    assert spotter.json("why", tmp_path / "b.spot")["run"]["complete"] in (True, False)


@pytest.mark.root
def test_somebody_elses_process_is_read_as_far_as_allowed(spotter, tmp_path):
    """As an ordinary user, on a process of root's: CPU and memory yes, disk no and said."""
    target = subprocess.Popen([BURN, "cpu=30"], stdout=subprocess.DEVNULL)
    folder = tmp_path / "theirs"
    folder.mkdir()
    for p in (tmp_path, *tmp_path.parents):
        if p.owner() == "root" and str(p).startswith("/tmp/"):
            p.chmod(p.stat().st_mode | 0o055)
    os.chown(folder, 65534, 65534)
    out = folder / "theirs.spot"
    with cores_of(target.pid) as truth:
        done = spotter("attach", target.pid, "--for", "1.5s", "--out", out, user=65534, group=65534, extra_groups=[])
    target.kill()
    target.wait()
    assert done.code == 0, done.err
    rows = spotter.json("sql", out, "SELECT metric, why FROM gap WHERE metric LIKE 'proc.%' OR metric IN "
                        "(SELECT id FROM metric WHERE name LIKE 'proc.%')")
    assert any("permission" in r["why"] for r in rows), rows
    verdict = spotter.json("why", out)
    assert verdict["usage"]["cpu"]["cores_used"] > 0.5 * truth.cores - 0.1, (verdict["usage"], truth)


# -- the clock, the kernel ---------------------------------------------------------------------

ROOTS = sorted(p for p in (TREE / "tests/roots").iterdir() if p.is_dir())


@pytest.mark.parametrize("root", ROOTS, ids=lambda p: p.name)
def test_every_fixture_machine_is_read_by_the_shipped_program(spotter, root):
    """Odd machines (tests/roots/*/README.md): never a crash, never a number that cannot be."""
    top = json.loads(spotter("top", "--once", "--json", "--root", root, check=True).out)
    cpu = top["machine"].get("cpu", {})
    if "cores_used" in cpu and "cores_machine" in cpu:
        for key, value in cpu.items():
            assert 0 <= value <= cpu["cores_machine"] * 1.02, (key, value)
    for process in top["processes"]:
        assert process["pid"] > 0
        assert "\x1b" not in json.dumps(process)
    doctor = spotter.json("doctor", "--root", root)
    assert doctor


def test_a_counter_that_slips_back_is_no_growth(spotter, roots):
    done = spotter("top", "--once", "--root", roots / "cpu-iowait-back", check=True)
    top = json.loads(spotter("top", "--once", "--json", "--root", roots / "cpu-iowait-back", check=True).out)
    assert top["machine"]["cpu"]["iowait_cores"] < 0.5, done.out


def test_a_machine_without_pressure(spotter, roots):
    top = json.loads(spotter("top", "--once", "--json", "--root", roots / "no-psi", check=True).out)
    assert "pressure" not in top["machine"] or not top["machine"]["pressure"]


# -- what must not be lost or believed ----------------------------------------------------------

def test_an_empty_name_is_no_run(spotter):
    spotter.dir.mkdir()
    (spotter.dir / "broken.spot").write_text("x")
    for command in (["rm", ""], ["why", ""], ["sql", "", "SELECT 1"]):
        assert spotter(*command).code in (1, 2)
    assert (spotter.dir / "broken.spot").exists()


def test_rm_keeps_what_is_no_run(spotter, tmp_path):
    other = tmp_path / "other.spot"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
    fifo = tmp_path / "fifo.spot"
    os.mkfifo(fifo)
    for path in (other, fifo, "/etc/hostname"):
        assert spotter("rm", path).code == 1
        assert Path(path).exists()


def test_an_export_does_not_replace_its_own_record(spotter, tmp_path):
    out = tmp_path / "mine.spot"
    spotter("run", "--quiet", "--out", out, "--", "true", check=True)
    spotter.settled(out)
    before = out.read_bytes()
    assert spotter("export", out, "--to", "csv", "--force", "--out", out).code == 1
    assert out.read_bytes() == before


def test_a_fifo_in_a_fixture_does_not_hang(spotter, tmp_path):
    (tmp_path / "proc").mkdir()
    os.mkfifo(tmp_path / "proc/stat")
    assert spotter("top", "--once", "--root", tmp_path, timeout=20).code in (0, 1)


def test_names_cannot_reach_the_terminal(spotter, tmp_path):
    done = spotter("run", "--out", tmp_path / "x\x1b[31m\x07.spot", "--", "true")
    assert done.code == 0 and "\x1b" not in done.err and "\x07" not in done.err


def test_attach_to_a_thread_or_a_zombie_says_so(spotter):
    import threading
    ids = []
    stop = threading.Event()
    t = threading.Thread(target=lambda: (ids.append(threading.get_native_id()), stop.wait()))
    t.start()
    while not ids:
        time.sleep(0.01)
    done = spotter("attach", ids[0])
    stop.set()
    t.join()
    assert done.code == 1 and "thread" in done.err
    child = subprocess.Popen(["true"])
    time.sleep(0.3)
    done = spotter("attach", child.pid)
    child.wait()
    assert done.code == 1 and "ended" in done.err
