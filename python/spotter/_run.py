# SPDX-License-Identifier: MIT
"""Records, read back: an SQLite file, and the program for the compressed series in it (docs/record.md)."""
import os
import sqlite3
from typing import Any, Dict, List, Optional, Union

from ._program import SpotterError, ask_json

Rows = List[Dict[str, Any]]


def _table(rows: Rows, columns: List[str], kind: str) -> Any:
    """Rows as a pandas.DataFrame, a dict of NumPy arrays, or a list of dicts: the first that is there, or
    what `kind` names ("pandas", "numpy", "list")."""
    if kind in ("auto", "pandas"):
        try:
            import pandas
            return pandas.DataFrame(rows, columns=columns)
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

    def _view(self, name: str, order: str, as_: str) -> Any:
        if not self._plain("SELECT 1 FROM sqlite_master WHERE name = %s" % _quoted(name)):
            return _table([], [], as_)  # a record of an older Spotter
        columns = [row["name"] for row in self._plain("PRAGMA table_info(%s)" % _quoted(name))]
        return _table(self._plain("SELECT * FROM %s ORDER BY %s" % (name, order)), columns, as_)

    def steps(self, as_: str = "auto") -> Any:
        """A row a step: rank, step, t, t_end, seconds, loss, data_wait, micro, pid, source."""
        return self._view("steps", "rank, t_end", as_)

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
