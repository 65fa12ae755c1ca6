# SPDX-License-Identifier: MIT
"""Records of other users: root opens them without writing beside them, mapping what they can cut short, waiting for their pipes
or following their links; an ordinary user sees what is in the file, and is told what that leaves out."""
import os
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from serving import Server

PATIENCE = 120
OWNER, READER = 65533, 65534  # two users without rights

pytestmark = pytest.mark.root


@pytest.fixture
def logged(short_runs, tmp_path):
    """logged(folder): a record there with a log beside it, as a recorder leaves it. In the file its run is called short, in the
    log late."""
    def make(folder, name="run.spot"):
        source = tmp_path / "source.spot"
        shutil.copy(next(short_runs.glob("*.spot")), source)
        db = sqlite3.connect(source)
        assert db.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("UPDATE run SET id = ?", (name.removesuffix(".spot"),))  # each is a run of its own
        db.commit()
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        db.execute("UPDATE run SET name = 'late'")
        db.commit()
        for ending in ("", "-wal", "-shm"):
            shutil.copy(f"{source}{ending}", folder / f"{name}{ending}")
        db.close()
        for ending in ("", "-wal", "-shm"):
            Path(f"{source}{ending}").unlink(missing_ok=True)
        return folder / name
    return make


@pytest.fixture
def folder():
    """One that anybody can reach, which that of pytest is not."""
    path = Path(tempfile.mkdtemp(prefix="spotter-others-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def give(path, user):
    for at in (path, *path.rglob("*")):
        os.lchown(at, user, user)


def state_of(folder):
    return {f.name: (s.st_size, s.st_mtime_ns, s.st_ino, s.st_uid, stat.S_IFMT(s.st_mode))
            for f in folder.iterdir() for s in [f.lstat()]}


def commands(record, other, out):
    """All that open a record, with what they must do with one that cannot be read with its log."""
    return [("why", record), ("why", "--json", record), ("report", record), ("report", "--html", out / "page.html", record),
            ("export", "--to", "csv", record), ("sql", record, "SELECT name FROM run"), ("compare", record, other),
            ("merge", "--force", "--out", out / "merged.spot", record, other), ("runs",)]


def test_nothing_is_written_beside_it(spotter, logged, folder, tmp_path):
    """The file as it is, by every command; the log that its owner could change at any moment is not touched."""
    one, two = logged(folder, "one.spot"), logged(folder, "two.spot")
    give(folder, OWNER)
    before = state_of(folder)
    spotter.env["SPOTTER_DIR"] = str(folder)
    for command in commands(one, two, tmp_path):
        done = spotter(*command)
        assert done.code == 0, (command, done.err)
        assert "late" not in done.out, command
        if command != ("runs",):
            assert "was left out" in done.err and str(one) in done.err, command
    assert state_of(folder) == before
    server = Server(spotter)
    runs = server.ask("/api/runs").json()["runs"]
    assert [r["name"] for r in runs] == ["short", "short"]
    story = server.ask(f"/api/run/{runs[0]['id']}").json()
    assert "was left out" in story["remark"]
    server.end()
    assert state_of(folder) == before


def test_one_of_our_own_has_its_log(spotter, logged, folder):
    record = logged(folder)
    give(folder, 0)
    done = spotter("sql", record, "SELECT name FROM run", check=True)
    assert "late" in done.out and not done.err
    assert not Path(f"{record}-wal").exists(), "whose recorder has gone is closed"


def test_cut_short_meanwhile(spotter, logged, folder, tmp_path):
    """Its owner shortens what lies beside it again and again: whoever had that mapped would be killed."""
    one, two = logged(folder, "one.spot"), logged(folder, "two.spot")
    whole = Path(f"{one}-shm").read_bytes()
    give(folder, OWNER)
    over = threading.Event()

    def shorten():
        while not over.is_set():
            for record in (one, two):
                shm = Path(f"{record}-shm")
                shm.write_bytes(whole)
                os.truncate(shm, 0)
            over.wait(0.002)
    thread = threading.Thread(target=shorten)
    thread.start()
    try:
        for command in commands(one, two, tmp_path)[:3]:
            done = spotter(*command)
            assert done.code == 0, (command, done.code, done.err)
    finally:
        over.set()
        thread.join()


def test_links_of_others(spotter, logged, run, folder):
    """A user who has root look into a folder of theirs cannot have it read what is root's."""
    mine, = run.records()
    link = folder / "link.spot"
    link.symlink_to(mine)
    give(folder, OWNER)
    spotter.env["SPOTTER_DIR"] = str(folder)
    done = spotter("why", link)
    assert done.code == 1 and "link of another user" in done.err
    listed, = spotter.json("runs")["runs"]
    assert "link of another user" in listed["problem"]
    own = mine.parent / "own.spot"
    own.symlink_to(mine.name)
    assert spotter("why", own).code == 0


def test_pipes(spotter, logged, folder):
    """Nobody waits for one, whether it is in the place of the record or of its log."""
    os.mkfifo(folder / "pipe.spot")
    record = logged(folder)
    for ending in ("-wal", "-shm", "-journal"):
        Path(f"{record}{ending}").unlink(missing_ok=True)
        os.mkfifo(f"{record}{ending}")
    give(folder, OWNER)
    spotter.env["SPOTTER_DIR"] = str(folder)
    done = spotter("why", folder / "pipe.spot", timeout=PATIENCE)
    assert done.code == 1 and "not a file" in done.err
    assert spotter("why", record, timeout=PATIENCE).code == 0
    assert len(spotter.json("runs", timeout=PATIENCE)["runs"]) == 2


def test_root_of_a_container_of_ones_own(spotter, logged, folder):
    """Without rights a user can be root of a namespace, in which the folders above belong to nobody: what is theirs is theirs."""
    own = folder / "own"
    own.mkdir(mode=0o700)
    record = logged(own)
    give(own, READER)
    binary = Path(shutil.copy(spotter.binary, folder))
    binary.chmod(0o755)

    def ask(*args):
        return subprocess.run(["unshare", "--user", "--map-root-user", *args], user=READER, group=READER, extra_groups=[], cwd="/",
                              text=True, capture_output=True, env={"HOME": str(own), "PATH": os.environ["PATH"]}, timeout=PATIENCE)
    if ask("true").returncode != 0:
        pytest.skip("no user namespaces for an ordinary user here")
    assert ask("stat", "-c", "%u", "/").stdout.strip() == str(READER)
    done = ask(binary, "sql", record, "SELECT name FROM run")
    assert done.returncode == 0 and "late" in done.stdout and not done.stderr, done.stderr
    link = own / "link.spot"
    link.symlink_to(record)
    os.lchown(link, READER, READER)
    assert ask(binary, "why", link).returncode == 0


def test_an_ordinary_user_reads_anothers(spotter, logged, folder):
    """Which may be read, in a folder that may not be written: what is in the file, and a word on what is not."""
    record = logged(folder)
    Path(f"{record}-shm").unlink()
    for name in folder.iterdir():
        name.chmod(0o644)
    give(folder, OWNER)
    binary = Path(shutil.copy(spotter.binary, folder))
    binary.chmod(0o755)
    before = state_of(folder)

    def ask(*args):
        return subprocess.run([binary, *args], user=READER, group=READER, extra_groups=[], cwd="/", text=True,
                              capture_output=True, env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]}, timeout=PATIENCE)
    done = ask("sql", record, "SELECT name FROM run")
    assert done.returncode == 0 and "short" in done.stdout, done.stderr
    assert "was left out" in done.stderr
    done = ask("why", record)
    assert done.returncode == 0 and "was left out" in done.stderr, done.stderr
    record.chmod(0o600)
    done = ask("why", record)
    assert done.returncode == 1 and "permission denied" in done.stderr
    record.chmod(0o644)
    assert state_of(folder) == before
