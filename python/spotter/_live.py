# SPDX-License-Identifier: MIT
"""Follows a recording while it is written, for the chart of a notebook.

Once a second `spotter sql` is asked for what is new since the last time: 10 ms of CPU in a process of its own, so
that the training's interpreter is not held up. Where it takes longer, it is asked less often."""
import contextvars
import json
import subprocess
import threading
import time
from typing import Any, Callable, List, Optional

from ._chart import State
from ._program import environment, executable

EVERY_S = 1.0
SHARE = 10       # at least that many times as long as an answer took passes until the next question
PATIENCE_S = 20  # for one answer
STEPS_MAX = 200000  # of them in one answer

METRICS = ("job.cpu", "job.rss", "job.cores_allowed", "mem.total", "cgroup.memory_limit", "gpu.busy",
           "gpu.memory_used", "gpu.memory_total")


def _query(after: float, row: int) -> str:
    """Samples after that time; steps after that row, those of a process in half a second as one."""
    metrics = ", ".join("'%s'" % m for m in METRICS)
    steps = ("SELECT rowid AS row, entity, (end_ns - (SELECT started_mono_ns FROM run)) / 1e9 AS t, loss FROM step "
             "WHERE rowid > %d ORDER BY rowid LIMIT %d" % (row, STEPS_MAX))
    return ("SELECT metric, key, t, value, NULL AS steps, NULL AS row FROM samples "
            "WHERE metric IN (%s) AND t > %.6f UNION ALL "
            "SELECT 'step', entity, max(t), avg(loss), count(*), max(row) FROM (%s) "
            "GROUP BY entity, CAST(2 * t AS INTEGER)" % (metrics, after, steps))


class Follower:
    """Asks for what is new, and puts it into a State."""

    def __init__(self, run: str, after: float = -1.0) -> None:
        self.run, self.state = run, State()
        self._after, self._first, self._row = after, after, 0

    def _ask(self) -> List[Any]:
        command = [executable(), "sql", "--json", self.run, _query(self._after, self._row)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=environment(), start_new_session=True, timeout=PATIENCE_S)
        return list(json.loads(done.stdout.decode("utf-8", "replace"))) if done.returncode == 0 else []

    def look(self) -> bool:
        """False: no answer this time (no record yet, a machine under load)."""
        try:
            rows = self._ask()
        except (OSError, RuntimeError, ValueError, subprocess.SubprocessError):
            return False
        newest = self._after
        for row in sorted(rows, key=lambda r: float(r["t"])):
            t = float(row["t"])
            if row["metric"] == "step":
                self._row = max(self._row, int(row["row"]))
                if t >= self._first:
                    self.state.step(int(row["key"] or 0), t, int(row["steps"]), row["value"])
            elif row["value"] is not None:
                newest = max(newest, t)
                self.state.sample(str(row["metric"]), row["key"], t, float(row["value"]))
        self._after = newest
        return bool(rows)


class Live:
    """A thread that looks about once a second and calls `show(state)`, until `stop()`."""

    def __init__(self, run: str, show: Callable[[State], Any], after: float = -1.0) -> None:
        self.follower, self._show = Follower(run, after), show
        self._ended = threading.Event()
        # In the context of the cell: what is shown belongs to it, and not to one that runs later.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._follow,), name="spotter-live", daemon=True)
        self._thread.start()

    @property
    def state(self) -> State:
        return self.follower.state

    def _follow(self) -> None:
        pause = EVERY_S / 2  # something to see soon
        while not self._ended.wait(pause):
            began = time.monotonic()
            if self.follower.look() and not self._ended.is_set():
                try:
                    self._show(self.state)
                except Exception:
                    return  # the notebook is gone, or takes no output any more
            took = time.monotonic() - began
            pause = max(EVERY_S - took, SHARE * took if took > EVERY_S / SHARE else 0.0, 0.1)

    def stop(self, timeout: Optional[float] = PATIENCE_S + 5) -> None:
        """No more calls of `show`. The last state stays."""
        self._ended.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def finish(self) -> State:
        """After stop(): with what was written since."""
        if not self._thread.is_alive():
            self.follower.look()
        return self.state
