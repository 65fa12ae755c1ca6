# SPDX-License-Identifier: MIT
"""A control group with limits, version 1 or 2, whichever this machine has. Needs root.

    with Group(cpu=0.5, memory=400 << 20, read_bps=20 << 20, read_iops=None, disk=path) as group:
        subprocess.run(group.entering(["python3", "train.py"]))"""
import os
import time
from pathlib import Path

TOP = Path("/sys/fs/cgroup")
PERIOD_US = 100000


def usable():
    """None, or why not."""
    if os.geteuid() != 0:
        return "needs root for control groups"
    if (TOP / "cgroup.controllers").exists() or (TOP / "cpu").exists():
        return None
    return "no control groups here"


def device_of(path):
    number = os.stat(path).st_dev
    return f"{os.major(number)}:{os.minor(number)}"


class Group:
    def __init__(self, cpu=None, memory=None, read_bps=None, read_iops=None, disk="/"):
        self.name = f"spotter-zoo-{os.getpid()}"
        self.cpu, self.memory, self.read_bps, self.read_iops, self.disk = cpu, memory, read_bps, read_iops, disk
        self.folders = []

    def settings(self):
        """(controller, file, text), for version 2 or 1."""
        rows, device = [], device_of(self.disk)
        if (TOP / "cgroup.controllers").exists():
            rows += [("cpu", "cpu.max", f"{int(self.cpu * PERIOD_US)} {PERIOD_US}")] if self.cpu else []
            rows += [("memory", "memory.max", str(self.memory))] if self.memory else []
            rows += [("io", "io.max", f"{device} rbps={self.read_bps}")] if self.read_bps else []
            rows += [("io", "io.max", f"{device} riops={self.read_iops}")] if self.read_iops else []
            return rows
        rows += [("cpu", "cpu.cfs_quota_us", str(int(self.cpu * PERIOD_US)))] if self.cpu else []
        rows += [("memory", "memory.limit_in_bytes", str(self.memory))] if self.memory else []
        rows += [("blkio", "blkio.throttle.read_bps_device", f"{device} {self.read_bps}")] if self.read_bps else []
        rows += [("blkio", "blkio.throttle.read_iops_device", f"{device} {self.read_iops}")] if self.read_iops else []
        return rows

    def __enter__(self):
        for controller, file, text in self.settings():
            unified = (TOP / "cgroup.controllers").exists()
            folder = TOP / self.name if unified else TOP / controller / self.name
            if unified:
                (TOP / "cgroup.subtree_control").write_text(f"+{controller}")
            if folder not in self.folders:
                folder.mkdir()
                self.folders.append(folder)
            (folder / file).write_text(text)
        return self

    def entering(self, command):
        """The command, inside. Everything it starts stays inside."""
        files = " ".join(str(f / "cgroup.procs") for f in self.folders)
        return ["/bin/sh", "-c", f'for f in {files}; do echo $$ > "$f" || exit 125; done; exec "$@"', "sh", *command]

    def __exit__(self, *why):
        for folder in self.folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)  # what was inside is still ending
