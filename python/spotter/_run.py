# SPDX-License-Identifier: MIT
"""Records, read back: an SQLite file, and the program for the compressed series in it (docs/record.md)."""
import os
import sqlite3
from typing import Any, Dict, List, Literal, Optional, Sequence, TypedDict, Union, overload

from ._program import SpotterError, ask_json

Rows = List[Dict[str, Any]]

# What a step used: in the record as samples, so the program is asked (src/record/vtab_steps.c).
USAGE = ("cpu_cores", "memory", "gpu_busy", "gpu_memory", "gpu_power")
ENDS = "CAST(round(t_end * 1e9) AS INTEGER)"  # of a step, in ns: with its process it is that step


class Step(TypedDict):
    """A row of `Run.steps(as_="list")`. None: not known. Times are in seconds, `t` and `t_end` since the start of the
    run; memory is in bytes, power in W. The last five are known of a step that is longer than two samples."""
    rank: Optional[int]
    step: int
    t: Optional[float]
    t_end: float
    seconds: Optional[float]
    loss: Optional[float]
    data_wait: Optional[float]
    micro: Optional[int]
    pid: Optional[int]
    source: Optional[str]
    entity: int
    cpu_cores: Optional[float]   # of the job; of a rank: of its process and those it started
    memory: Optional[float]      # of the same
    gpu_busy: Optional[float]    # 0 to 1: mean of the GPUs that the process is on
    gpu_memory: Optional[float]  # sum over them: the devices', whoever else uses them
    gpu_power: Optional[float]


def _table(rows: Rows, columns: List[str], kind: str, numbers: Sequence[str] = ()) -> Any:
    """Rows as a pandas.DataFrame, a dict of NumPy arrays, or a list of dicts: the first that is there, or
    what `kind` names ("pandas", "numpy", "list"). numbers: columns that are, even if all of one is absent."""
    if kind in ("auto", "pandas"):
        try:
            import pandas
            return pandas.DataFrame(rows, columns=columns).astype({c: float for c in numbers})
        except ImportError:
            if kind == "pandas":
                raise
    if kind in ("auto", "numpy"):
        try:
            import numpy
        except ImportError:
            if kind == "numpy":
                raise
        else:
            return {c: numpy.array([_absent(r[c]) for r in rows]) for c in columns}
    if kind not in ("auto", "list"):
        raise ValueError("as_: 'auto', 'pandas', 'numpy' or 'list', not %r" % kind)
    return rows


def _absent(value: Any) -> Any:
    return float("nan") if value is None else value


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Run:
    """One recorded run. Tables are pandas DataFrames where pandas is installed, else dicts of NumPy arrays, else
    lists of dicts; `as_="list"` asks for one of them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.info: Dict[str, Any] = self._plain("SELECT * FROM run")[0]

    @property
    def id(self) -> str:
        return str(self.info["id"])

    @property
    def name(self) -> str:
        return str(self.info["name"])

    def __repr__(self) -> str:
        return "<spotter.Run %s %s>" % (self.id, self.name)

    def _plain(self, query: str) -> Rows:
        """What needs no table of the program's own. Read-only, and one short transaction."""
        from urllib.parse import quote
        try:
            db = sqlite3.connect("file:%s?mode=ro" % quote(os.path.abspath(self.path)), uri=True, timeout=5)
            try:
                db.row_factory = sqlite3.Row
                return [dict(row) for row in db.execute(query)]
            finally:
                db.close()
        except sqlite3.Error as e:
            raise SpotterError("%s cannot be read: %s" % (self.path, e)) from e

    def sql(self, query: str, as_: str = "auto") -> Any:
        """Any query over the record, `samples` and the other tables of docs/record.md included."""
        rows = ask_json("sql", self.path, query)
        return _table(rows, list(rows[0]) if rows else [], as_)

    def samples(self, metric: str, as_: str = "auto") -> Any:
        """A series (`spotter metrics` lists them): t (seconds since the start), entity, kind, key, name, value."""
        columns = ["t", "entity", "kind", "key", "name", "value"]
        rows = ask_json("sql", self.path, "SELECT %s FROM samples WHERE metric = %s ORDER BY t"
                        % (", ".join(columns), _quoted(metric)))
        return _table(rows, columns, as_)

    def _columns(self, name: str) -> List[str]:
        """Of a view; none: a record of an older Spotter."""
        if not self._plain("SELECT 1 FROM sqlite_master WHERE name = %s" % _quoted(name)):
            return []
        return [row["name"] for row in self._plain("PRAGMA table_info(%s)" % _quoted(name))]

    def _view(self, name: str, order: str, as_: str) -> Any:
        columns = self._columns(name)
        rows = self._plain("SELECT * FROM %s ORDER BY %s" % (name, order)) if columns else []
        return _table(rows, columns, as_)

    def _usage(self) -> Dict[Any, Dict[str, Any]]:
        """What steps used, by process and end in ns; of those only that are long enough. Nothing without the program:
        the rest of a step needs none."""
        known = " OR ".join("%s IS NOT NULL" % c for c in USAGE)
        query = "SELECT entity, %s AS ends, %s FROM steps WHERE %s" % (ENDS, ", ".join(USAGE), known)
        try:
            rows = ask_json("sql", self.path, query)
        except SpotterError:
            return {}
        return {(row["entity"], row["ends"]): row for row in rows}

    @overload
    def steps(self, as_: Literal["list"]) -> List[Step]: ...

    @overload
    def steps(self, as_: str = "auto") -> Any: ...

    def steps(self, as_: str = "auto") -> Any:
        """A row a step: rank, step, t, t_end, seconds, loss, data_wait, micro, pid, source, entity, and what it used:
        cpu_cores, memory, gpu_busy, gpu_memory, gpu_power (see `Step`)."""
        columns = self._columns("steps")
        if not columns:
            return _table([], [], as_)
        rows = self._plain("SELECT *, %s AS ends FROM steps ORDER BY rank, t_end" % ENDS)
        usage = self._usage() if rows else {}
        for row in rows:
            used = usage.get((row["entity"], row.pop("ends")), {})
            for column in USAGE:
                row[column] = used.get(column)
        return _table(rows, columns + list(USAGE), as_, numbers=USAGE)

    def scalars(self, as_: str = "auto") -> Any:
        """What was logged: rank, step, t, name, value."""
        return self._view("scalars", "t", as_)

    def phases(self, as_: str = "auto") -> Any:
        """Evaluations, checkpoints, and phases of your own: name, t, t_end, seconds."""
        return self._view("phases", "t", as_)

    def settings(self, as_: str = "auto") -> Any:
        """What the program set: dataloader.num_workers, ..."""
        return self._view("settings", "t", as_)

    def verdict(self) -> Dict[str, Any]:
        """What held it back, as `spotter why --json` says."""
        return dict(ask_json("why", self.path))

    def plot(self) -> Any:
        """A Matplotlib figure: CPU cores and memory of the job, GPUs, loss. Needs Matplotlib."""
        from ._plot import figure
        return figure(self)


def _path(run: str) -> str:
    if os.path.isfile(run):
        return run
    wanted = ask_json("sql", run, "SELECT id FROM run")[0]["id"]
    for one in ask_json("runs")["runs"]:
        if one.get("id") == wanted:
            return str(one["path"])
    raise SpotterError("the record of run %s was not found" % wanted)


def load(run: Union[str, "os.PathLike[str]", None] = "last") -> Run:
    """A run by its file, name, id, or "last"."""
    return Run(_path(os.fspath(run) if run is not None else "last"))


def verdict(run: Union[str, "os.PathLike[str]", Run, None] = "last") -> Dict[str, Any]:
    """What held a run back, as `spotter why --json` says: a dict with stable keys."""
    if isinstance(run, Run):
        return run.verdict()
    return dict(ask_json("why", os.fspath(run) if run is not None else "last"))
