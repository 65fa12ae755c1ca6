# SPDX-License-Identifier: MIT
"""What the machine and this job use now, as `spotter top --json` says. A value that could not be read is None,
never 0."""
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type, TypeVar

from ._program import SpotterError, ask, environment, executable

T = TypeVar("T")


@dataclass(frozen=True)
class Cpu:
    """Of the machine, in cores: 1.0 is one CPU all of the time."""
    cores_used: Optional[float] = None
    cores_machine: Optional[float] = None
    cores_allowed: Optional[float] = None  # for the job: the least of affinity, quota and machine
    user_cores: Optional[float] = None
    kernel_cores: Optional[float] = None
    iowait_cores: Optional[float] = None
    steal_cores: Optional[float] = None
    pressure: Optional[float] = None       # share of time in which some task waited for a CPU


@dataclass(frozen=True)
class Memory:
    """Of the machine."""
    used_bytes: Optional[float] = None
    total_bytes: Optional[float] = None
    swap_used_bytes: Optional[float] = None
    pressure: Optional[float] = None


@dataclass(frozen=True)
class Job:
    """A process and its descendants."""
    cores_used: Optional[float] = None
    cores_allowed: Optional[float] = None
    rss_bytes: Optional[float] = None
    processes: Optional[float] = None
    threads: Optional[float] = None


@dataclass(frozen=True)
class Gpu:
    """busy: share of time in which some kernel ran. job_*: of it, this job's."""
    index: int = 0
    partition: Optional[int] = None
    name: str = ""
    simulated: bool = False
    busy: Optional[float] = None
    memory_used_bytes: Optional[float] = None
    memory_total_bytes: Optional[float] = None
    power_w: Optional[float] = None
    temperature_c: Optional[float] = None
    job_memory_bytes: Optional[float] = None
    job_busy: Optional[float] = None


@dataclass(frozen=True)
class Process:
    pid: int = 0
    name: str = ""
    command: str = ""
    cores: Optional[float] = None
    rss_bytes: Optional[float] = None
    pss_bytes: Optional[float] = None
    read_bytes_per_s: Optional[float] = None
    written_bytes_per_s: Optional[float] = None
    n_threads: Optional[int] = None
    state: str = ""


@dataclass(frozen=True)
class Snapshot:
    time: str  # UTC, ISO 8601
    interval_s: float
    cpu: Cpu
    memory: Memory
    gpus: List[Gpu]
    job: Optional[Job]
    processes: List[Process]
    raw: Dict[str, Any] = field(repr=False, compare=False)  # all that `spotter top --json` said

    def __str__(self) -> str:
        """One line."""
        parts = []
        if self.job and self.job.cores_used is not None:
            parts.append("job %.2f of %s cores" % (self.job.cores_used, _number(self.job.cores_allowed)))
            if self.job.rss_bytes is not None:
                parts.append("%.2f GB" % (self.job.rss_bytes / 1e9))
        if self.cpu.cores_used is not None:
            parts.append("machine %.2f of %s cores" % (self.cpu.cores_used, _number(self.cpu.cores_machine)))
        if self.memory.used_bytes is not None and self.memory.total_bytes:
            parts.append("%.1f of %.1f GB" % (self.memory.used_bytes / 1e9, self.memory.total_bytes / 1e9))
        for gpu in self.gpus:
            text = "GPU %d" % gpu.index
            if gpu.busy is not None:
                text += " %.0f %%" % (100 * gpu.busy)
            if gpu.memory_used_bytes is not None:
                text += " %.1f GB" % (gpu.memory_used_bytes / 1e9)
            parts.append(text)
        return ", ".join(parts)


def _number(value: Optional[float]) -> str:
    return "?" if value is None else "%g" % value


def _make(kind: Type[T], said: Dict[str, Any], **more: Any) -> T:
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    return kind(**{k: v for k, v in {**said, **more}.items() if k in known})


def _snapshot(said: Dict[str, Any]) -> Snapshot:
    machine, job = said.get("machine", {}), said.get("job")
    pressure = machine.get("pressure", {})
    return Snapshot(
        time=said.get("time", ""), interval_s=said.get("interval_s", 0.0),
        cpu=_make(Cpu, machine.get("cpu", {}), cores_allowed=(job or {}).get("cores_allowed"),
                  pressure=pressure.get("cpu")),
        memory=_make(Memory, machine.get("memory", {}), pressure=pressure.get("memory")),
        gpus=[_make(Gpu, g) for g in said.get("gpus", [])],
        job=_make(Job, job) if job else None,
        processes=[_make(Process, p) for p in said.get("processes", [])], raw=said)


def _arguments(seconds: float, pid: Optional[int], count: int) -> List[str]:
    arguments = ["top", "--json", "--every", "%dms" % max(1, round(seconds * 1000))]
    if count:
        arguments += ["--count", str(count)]
    pid = os.getpid() if pid is None else pid
    return arguments + ([str(pid)] if pid else [])


def snapshot(pid: Optional[int] = None, seconds: float = 0.5) -> Snapshot:
    """What is used now, measured over `seconds`: the machine, its GPUs, and the job: process `pid` (default:
    this one) with its descendants. pid=0: no job, and the busiest processes of the machine."""
    out = ask(*_arguments(seconds, pid, 1), timeout=seconds + 30)
    return _snapshot(json.loads(out))


class Watch:
    """A thread that looks every few seconds, until `stop()`; as a `with` block until its end."""

    def __init__(self, every: float, callback: Callable[[Snapshot], Any], pid: Optional[int]) -> None:
        self.last: Optional[Snapshot] = None
        self.error: Optional[BaseException] = None  # what the callback raised; the thread has ended then
        self._callback, self._stopping = callback, False
        self._child = subprocess.Popen([executable(), *_arguments(every, pid, 0)], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(),
                                       start_new_session=True)
        self._thread = threading.Thread(target=self._run, name="spotter-watch", daemon=True)
        self._thread.start()

    @property
    def active(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        assert self._child.stdout is not None
        try:
            for line in self._child.stdout:
                if self._stopping:
                    break
                self.last = _snapshot(json.loads(line.decode("utf-8", "replace")))
                self._callback(self.last)
        except BaseException as e:
            self.error = e
        finally:
            self._end()

    def _end(self) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()

    def stop(self) -> None:
        self._stopping = True
        self._end()
        if threading.current_thread() is not self._thread:
            self._thread.join(5)
            if self._child.stdout is not None and not self._thread.is_alive():
                self._child.stdout.close()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()


def _print(now: Snapshot) -> None:
    print("spotter:", now, file=sys.stdout, flush=True)


def watch(every: float = 5, callback: Optional[Callable[[Snapshot], Any]] = None,
          pid: Optional[int] = None) -> Watch:
    """Calls `callback(snapshot)` every so many seconds in a background thread; without one, prints a line."""
    if not every > 0:
        raise SpotterError("watch(every=%r): the time between two looks must be more than 0 s" % (every,))
    return Watch(every, callback or _print, pid)
