# SPDX-License-Identifier: MIT
"""The recipes of docs/ where their programs are installed: a Slurm cluster of one node (Debian's slurmctld, slurmd,
slurm-client, munge) and Docker (docker.io), each with daemons of its own that end with the test."""
import io
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import BUILD, TREE

pytestmark = [pytest.mark.long, pytest.mark.root]

TRAIN = """
import sys, time, spotter
for i in range(int(sys.argv[1])):
    time.sleep(0.02)
    spotter.step(loss=1 / (i + 1))
sys.exit(int(sys.argv[2]))
"""
FOREVER = "import sys, time\nprint('GO', flush=True)\nwhile True: sum(range(1000))\n"


def programs(*names):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name in names if not found[name]]
    if missing:
        pytest.skip("not installed: " + ", ".join(missing))
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def daemons(log):
    """daemon(command...): started now, ended at the end, the last one first."""
    running = []

    def daemon(*command, **kwargs):
        with open(log, "ab") as out:
            running.append(subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            start_new_session=True, **kwargs))
        return running[-1]
    try:
        yield daemon
    finally:
        for child in reversed(running):
            child.terminate()
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def ready(condition, seconds, child):
    """Whether it comes true; not when the daemon has ended meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and child.poll() is None:
        if condition():
            return True
        time.sleep(0.1)
    return False


def said(env, *command, timeout=120):
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=timeout)
    return done.stdout if done.returncode == 0 else ""


# -- Slurm ----------------------------------------------------------------------------------------

SLURM = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SwitchType=switch/none
KillWait=20
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture
def slurm(spotter, tmp_path):
    """The environment of a user of a cluster that is this machine."""
    of = programs("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "sinfo")
    if (os.cpu_count() or 1) < 2:
        pytest.skip("two tasks need two CPUs")
    place = tmp_path / "slurm"
    for folder in (place, place / "state", place / "spool"):
        folder.mkdir(mode=0o755)
    key = place / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    conf = place / "slurm.conf"
    conf.write_text(SLURM.format(place=place, port=free_port(), node_port=free_port()))
    log = place / "log"
    env = dict(spotter.env, SLURM_CONF=str(conf), PATH=f"{BUILD}:{os.environ['PATH']}:/usr/sbin")
    with daemons(log) as daemon:
        auth = daemon(of["munged"], "--foreground", "--force", "--key-file", key, "--socket", place / "munge",
                      "--pid-file", place / "munged.pid", "--seed-file", place / "seed",
                      "--log-file", place / "munged.log")
        if not ready((place / "munge").exists, 60, auth):
            pytest.skip("munged does not start here: " + log.read_text()[-400:])
        control = daemon(of["slurmctld"], "-D", "-c", "-f", conf, env=env)
        node = daemon(of["slurmd"], "-D", "-N", "localhost", "-f", conf, env=env)
        if not ready(lambda: "idle" in said(env, of["sinfo"], "-h", "-o", "%t") and control.poll() is None, 60, node):
            pytest.skip("Slurm does not start here: " + log.read_text()[-400:])
        yield env


def submit(env, place, script, *options):
    job = place / "job.sh"
    job.write_text("#!/bin/bash\n" + script)
    return subprocess.run(["sbatch", "--parsable", "--output", str(place / "out"), *options, str(job)], env=env,
                          cwd=place, capture_output=True, text=True, timeout=180)


def test_slurm_starts_the_ranks(spotter, slurm, tmp_path):
    """A record a task, each with its rank; the verdict is that of the first."""
    (tmp_path / "train.py").write_text(TRAIN)
    done = submit(slurm, tmp_path, "srun bash -c 'spotter run --name \"job-$SLURM_JOB_ID-$SLURM_PROCID\" -- "
                  "/usr/bin/python3 train.py 60 0'\n", "--wait", "--ntasks=2")
    words = (tmp_path / "out").read_text()
    assert done.returncode == 0, done.stderr + words
    number = done.stdout.strip()
    for rank in (0, 1):
        name = f"job-{number}-{rank}"
        spotter.settled(name)
        rows = spotter.json("sql", name, "SELECT rank, count(*) AS n FROM steps GROUP BY rank")
        assert rows == [{"rank": rank, "n": 60}], rows
    assert f"job-{number}-0:" in words and f"job-{number}-1:" not in words


def test_slurm_cancels(spotter, slurm, tmp_path, wait_for):
    (tmp_path / "train.py").write_text(FOREVER)
    done = submit(slurm, tmp_path, 'srun spotter run --name "job-$SLURM_JOB_ID" -- /usr/bin/python3 train.py\n',
                  "--ntasks=1")
    assert done.returncode == 0, done.stderr
    number = done.stdout.strip()
    out = tmp_path / "out"
    try:
        wait_for(lambda: out.exists() and "GO" in out.read_text(), "the job", 60)
    finally:
        subprocess.run(["scancel", number], env=slurm, timeout=60)
    wait_for(lambda: number not in said(slurm, "squeue", "-h", "-o", "%i").split(), "the end of the job", 60)
    spotter.settled(f"job-{number}")
    assert spotter.json("why", f"job-{number}")["run"]["exit"] == {"signal": signal.SIGTERM}


# -- Docker ---------------------------------------------------------------------------------------

def empty_root(file):
    """An image with the folders only; what is in them comes from this machine."""
    with tarfile.open(file, "w") as tar:
        for name in ("usr", "tmp", "proc", "sys", "dev", "etc", "run", "runs"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name in ("tmp", "runs") else 0o755
            tar.addfile(entry)
        for name in ("bin", "sbin", "lib", "lib64"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, "usr/" + name
            tar.addfile(entry)
        tar.addfile(tarfile.TarInfo("etc/passwd"), io.BytesIO())


@pytest.fixture
def docker(spotter):
    """docker(arguments...) of a daemon of the test's own; .run(options, *command) in a container that has `spotter`."""
    of = programs("dockerd", "docker", "containerd", "runc")
    place = Path(tempfile.mkdtemp())  # not the test's own folder: a name of a socket has 107 bytes at most
    log = place / "log"
    here = dict(os.environ, DOCKER_HOST=f"unix://{place}/socket", DOCKER_CONFIG=str(place))

    def call(*arguments, timeout=120):
        return subprocess.run([of["docker"], *map(str, arguments)], env=here, capture_output=True, text=True,
                              timeout=timeout)

    def run(*options, command, timeout=120):
        mounts = [x for path in ("/usr", str(TREE), str(BUILD)) for x in ("-v", f"{path}:{path}:ro")]
        return call("run", "--network", "none", "-e", "SPOTTER_DIR=/runs", "-v", f"{spotter.dir}:/runs", *mounts,
                    *options, "empty", BUILD / "spotter", "run", "--", *command, timeout=timeout)

    call.run = run
    spotter.dir.mkdir()
    spotter.dir.chmod(0o777)
    try:
        yield from docker_daemon(of["dockerd"], place, log, here, call)
    finally:
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):  # dockerd leaves its own folder mounted
            if line.split()[1].startswith(str(place) + "/"):
                subprocess.run(["umount", line.split()[1]], timeout=60)
        shutil.rmtree(place, ignore_errors=True)


def docker_daemon(dockerd, place, log, here, call):
    with daemons(log) as daemon:
        child = daemon(dockerd, "--data-root", place / "data", "--exec-root", place / "exec", "-p", place / "pid",
                       "-H", here["DOCKER_HOST"], "--bridge", "none", "--iptables=false",
                       env=dict(here, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin"))
        if not ready(lambda: call("info").returncode == 0, 60, child):
            pytest.skip("dockerd does not start here: " + log.read_text()[-400:])
        empty_root(place / "empty.tar")
        done = call("import", place / "empty.tar", "empty")
        assert done.returncode == 0, done.stderr
        yield call


def work(tmp_path, code):
    """A folder that every user may enter, with the program."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(code)
    folder.chmod(0o755)
    return "-v", f"{folder}:/job:ro"


def test_docker_limits_and_exit_status(spotter, docker, tmp_path):
    done = docker.run("--rm", "--cpus", "0.5", "--memory", "300m", "--user", "1000:1000", *work(tmp_path, TRAIN),
                      command=["/usr/bin/python3", "/job/train.py", "60", "3"])
    if done.returncode in (125, 126, 127):
        pytest.skip("containers do not start here: " + done.stderr[-400:])
    assert done.returncode == 3, done.stderr
    usage = spotter.json("why")["usage"]
    assert (usage["cpu"]["cores_allowed"], usage["cpu"]["limit"]) == (0.5, "quota"), usage
    assert (usage["memory"]["allowed_bytes"], usage["memory"]["limit"]) == (300 << 20, "cgroup"), usage
    assert spotter.json("sql", "last", "SELECT count(*) AS n FROM steps") == [{"n": 60}]


def test_docker_stop_reaches_the_program(spotter, docker, tmp_path, wait_for):
    """`spotter run` is the first process there, to which a signal does nothing unless it is handled."""
    code = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n" + FOREVER
    done = docker.run("-d", "--name", "job", *work(tmp_path, code), command=["/usr/bin/python3", "/job/train.py"])
    if done.returncode:
        pytest.skip("containers do not start here: " + done.stderr[-400:])
    try:
        wait_for(lambda: "GO" in docker("logs", "job").stdout, "the program", 60)
        assert docker("stop", "-t", "60", "job").returncode == 0
        assert docker("inspect", "-f", "{{.State.ExitCode}}", "job").stdout.strip() == "7"
    finally:
        docker("rm", "-f", "job")
    spotter.settled()
    assert spotter.json("why")["run"]["exit"] == {"code": 7}
