# SPDX-License-Identifier: MIT
"""One run of a case in its world: data, virtual GPU, limits, neighbours; all of it is gone when it ends.

    with World(case, data_dir, seconds, cured=False, user=False) as world:
        code, output = world.run([world.spotter, "run", "--"])     # or world.run() without anything before it"""
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import kit
from cases import PROGRAMS
from injure import cgroup

ZOO = Path(__file__).resolve().parent
TREE = ZOO.parent
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()
PYTHON = os.environ.get("ZOO_PYTHON") or "/usr/bin/python3"
NOBODY = 65534
DATA_OF = {"photos.py": ["photos", "posters"], "volumes.py": ["volumes"], "sentences.py": ["sentences"],
           "speech.py": ["speech"], "table.py": ["table"], "digits.py": ["digits"], "charlm.py": ["sentences"],
           "citations.py": ["graph"], "shards.py": ["shards"], "tiles.py": ["tiles"], "sweep.py": ["sentences", "volumes"],
           "tf_photos.py": ["photos"], "tf_reviews.py": ["sentences"], "gluon_photos.py": ["photos"],
           "lightning_fit.py": ["photos"], "hf_trainer.py": ["sentences"]}


def prepared(data, made={}):
    """The kit of this folder of data, made once in a process."""
    if data not in made:
        made[data] = kit.make(TREE, BUILD, data)
    return made[data]


def importable(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


def lacking(case, known={}):
    """Why this case cannot be run here; None when it can."""
    checks = {"root-cgroup": cgroup.usable,
              "fuse": lambda: None if os.geteuid() == 0 and os.path.exists("/dev/fuse") else "needs root and /dev/fuse",
              "shm": lambda: None if os.geteuid() == 0 else "needs root for a /dev/shm of its own",
              "gpu": lambda: None if (BUILD / "sim/libcuda.so.1").exists() else "no virtual GPU in the build folder"}
    wants = case.requirements() + (["gpu"] if case.scenario != "none" else [])
    wants += [] if case.program == "digits.py" else ["torch"]
    for need in wants:
        if need not in known:
            known[need] = checks[need]() if need in checks else None if importable(need) else f"{need} cannot be imported"
        if known[need]:
            return known[need]
    return None


def stop(child):
    """Ends what we started, with its group."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGTERM)
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


class World:
    def __init__(self, case, data_dir, seconds, cured=False, user=False):
        self.case, self.data, self.seconds, self.user = case, Path(data_dir), seconds, user
        self.injure = {} if cured and case.heal else case.injure
        self.scenario = "" if cured and case.heal and case.scenario != "none" else case.scenario
        self.flags = case.fix if cured and case.fix is not None else case.flags
        self.state = f"zoo-{os.getpid()}-{time.monotonic_ns() % 10**9}"
        self.wrap, self.kit = [], None

    @property
    def spotter(self):
        return self.kit / "bin/spotter"

    def __enter__(self):
        self.stack = ExitStack()
        try:
            self.prepare()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *why):
        self.stack.close()

    def prepare(self):
        self.data.mkdir(parents=True, exist_ok=True)
        self.kit = prepared(self.data)
        self.folder = Path(tempfile.mkdtemp(prefix="zoo-", dir="/var/tmp"))
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        if self.user:
            os.chown(self.folder, NOBODY, NOBODY)
        for name in DATA_OF.get(self.case.program, []):
            subprocess.run([PYTHON, PROGRAMS / "data.py", self.data, name], check=True, stdout=subprocess.DEVNULL)
        self.env = self.environment()
        self.stack.callback(self.forget_gpu)
        self.apply()

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("VGPU_", "SPOTTER_", "OMP_", "CUDA_"))}
        env.update(HOME=str(self.folder), XDG_CACHE_HOME=str(self.folder), SPOTTER_DIR=str(self.folder / "runs"), NO_COLOR="1",
                   PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(self.kit / "sim/site-packages"))
        if self.scenario != "none":
            file = self.folder / "gpu.vgpu"
            file.write_text((self.scenario or 'gpu "NVIDIA H100 80GB HBM3"') + "\n")
            env.update(VGPU_SCENARIO=str(file), VGPU_STATE=self.state, LD_LIBRARY_PATH=str(self.kit / "sim"),
                       SPOTTER_NVML=str(self.kit / "sim/libnvidia-ml.so.1"))
        env.update(self.case.env)
        return env

    def forget_gpu(self):
        for file in Path("/dev/shm").glob(f"vgpu-*-{self.state}"):
            file.unlink(missing_ok=True)

    def beside(self, script, *args, until=None):
        """A process beside the program, as the same user."""
        line = [PYTHON, str(ZOO / "injure" / script), *map(str, args)]
        line = self.as_user(line) if script == "other_job.py" else line
        child = subprocess.Popen(line, env=self.env, start_new_session=True, text=True,
                                 stdout=subprocess.PIPE if until else subprocess.DEVNULL)
        self.stack.callback(stop, child)
        if until and until not in (child.stdout.readline() or ""):
            raise RuntimeError(f"{script} did not start")

    def apply(self):
        hurt, where = self.injure, self.data / self.case.data
        limits = {k: hurt[k] for k in ("cpu", "memory", "read_bps", "read_iops") if k in hurt}
        if limits:
            group = self.stack.enter_context(cgroup.Group(disk=self.data, **limits))
            self.wrap.append(group.entering)
        if "forget" in hurt:
            subprocess.run([PYTHON, ZOO / "injure/evict.py", where, "0"], check=True)
        if "evict" in hurt:
            self.beside("evict.py", where, hurt["evict"])
        if "burn" in hurt:
            self.beside("burn.py", *hurt["burn"].split())
        if "other_job" in hurt:
            self.beside("other_job.py", *hurt["other_job"].split())
        if "far_ms" in hurt:
            mount = self.folder / "store"
            mount.mkdir()
            self.beside("slowfs.py", where, mount, hurt["far_ms"], until="mounted")
            self.flags += f" folder={mount}" if self.case.program == "speech.py" else f" --folder {mount}"
        if "shm" in hurt:
            own = f'mount -t tmpfs -o size={hurt["shm"]},mode=1777 tmpfs /dev/shm && exec "$@"'
            self.wrap.append(lambda line: ["unshare", "-m", "/bin/sh", "-c", own, "sh", *line])

    def as_user(self, line):
        if not self.user:
            return line
        return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *line]

    def program(self):
        """The program's own line."""
        plain = [PYTHON, str(self.kit / "zoo" / self.case.program)]
        if self.case.program == "speech.py":
            return plain + [f"data={self.data}", f"seconds={self.seconds}", *self.flags.split()]
        return plain + ["--data", str(self.data), "--seconds", str(self.seconds), *self.flags.split()]

    def command(self, before=()):
        line = self.as_user([*before, *self.program()])
        for wrap in self.wrap:
            line = wrap(line)
        return line

    def run(self, before=(), patience=60):
        """(exit code, output). A program that does not end is ended."""
        child = subprocess.Popen([str(w) for w in self.command(before)], env=self.env, cwd=self.folder, start_new_session=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        try:
            out, _ = child.communicate(timeout=self.seconds * 2 + patience)
        except subprocess.TimeoutExpired:
            stop(child)
            out, _ = child.communicate()
            out += "\n[did not end]"
        except BaseException:  # we are to end: so is what we started
            stop(child)
            raise
        return child.returncode, out


def default_data(user):
    """Where the data is kept: somewhere an ordinary user can read it when we record as one."""
    if user or "XDG_CACHE_HOME" not in os.environ and os.geteuid() == 0:
        return Path("/var/tmp/spotter-zoo")
    sys.path.insert(0, str(PROGRAMS))
    spec = importlib.util.spec_from_file_location("zoo_data", PROGRAMS / "data.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.home()
