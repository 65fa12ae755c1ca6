# SPDX-License-Identifier: MIT
"""In a notebook: `%load_ext spotter`, then `%%spotter` on top of a cell, or `%spotter on`, `off`, `why`.

A recorder, a process of its own, watches the kernel from outside while the cell runs; a chart below the cell is
redrawn once a second, and at the end there is the verdict. See docs/notebook.md."""
import argparse
import ast
import os
import re
import shlex
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import _chart
from ._live import Live
from ._program import SpotterError, ask
from ._recording import Recording, start, stop

try:
    from IPython.core.error import UsageError
    from IPython.core.magic import Magics, line_cell_magic, magics_class
    from IPython.display import display
except ImportError as e:
    raise ImportError("spotter.notebook needs IPython (pip install ipykernel); "
                      "in a script use spotter.start() and spotter.stop()") from e

USAGE = "%spotter on|off|why, or %%spotter [--name NAME] [--out FILE] [--hz N] on top of a cell"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError("%s; usage: %s" % (message, USAGE))


def _arguments(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%spotter", add_help=False)
    parser.add_argument("word", nargs="?", choices=["on", "off", "why"])
    parser.add_argument("--name", "-n")
    parser.add_argument("--out", "-o")
    parser.add_argument("--hz", type=float)
    try:
        return parser.parse_args(shlex.split(line))
    except ValueError as e:  # a quote that is not closed
        raise UsageError("%s; usage: %s" % (e, USAGE)) from None


def _show(data: Mapping[str, str], display_id: Optional[str] = None, update: bool = False) -> None:
    if display_id is None:
        display(dict(data), raw=True)
    else:
        display(dict(data), raw=True, display_id=display_id, update=update)


def _words(said: str) -> str:
    """What the recorder said, without that it began."""
    return "\n".join(line for line in said.splitlines() if not line.startswith("spotter: recording "))


class Session:
    """A recording with its chart, from `on` to `off` or as long as a cell runs."""

    def __init__(self, **options: Any) -> None:
        try:
            self.recording: Recording = start(**options)
        except SpotterError as e:
            raise UsageError(str(e)) from None  # shown as a line, not as a traceback
        self.display_id = "spotter-" + uuid.uuid4().hex
        self.shown: Dict[str, str] = {}
        self.live: Optional[Live] = None
        try:
            self._begin()
        except BaseException:
            self.end(quiet=True)
            raise

    @property
    def run(self) -> Optional[str]:
        """The record; under `spotter run` the run the kernel is in."""
        return self.recording.path or os.environ.get("SPOTTER_RUN")

    def _begin(self) -> None:
        _show(_chart.bundle(_chart.State(), "recording"), self.display_id)
        if self.run:
            self.live = Live(self.run, self._update, after=self._joined())

    def _joined(self) -> float:
        """When this began, in seconds of a run that others had begun before."""
        if self.recording.pid is not None:
            return -1.0
        try:
            from ._run import load
            began = float(load(self.run).info["started_mono_ns"])
            return (time.monotonic_ns() - began) / 1e9
        except (SpotterError, LookupError, TypeError, ValueError):
            return -1.0

    def _update(self, state: _chart.State, status: str = "recording") -> None:
        data = dict(_chart.bundle(state, status))
        if data != self.shown:
            self.shown = data
            _show(data, self.display_id, update=True)

    def end(self, quiet: bool = False) -> None:
        """Ends it whatever happens: an interrupt, too, leaves no process behind."""
        try:
            if self.live:
                self.live.stop()
        finally:
            if self.recording.pid is not None:
                stop()
        if quiet:
            return
        if self.live:
            self._update(self.live.finish(), "ended")
        _say(self.verdict())

    def verdict(self) -> str:
        if self.recording.pid is not None and not self.recording.active:
            return _words(self.recording.verdict)
        return why(self.run)


def why(run: Optional[str]) -> str:
    """Never an error: one of ours must not hide that of the cell."""
    try:
        return ask("why", *([run] if run else []), "--color", "never").rstrip()
    except SpotterError as e:
        return str(e)


def _say(words: str) -> None:
    words = words.replace(", still running when the recording ended", "", 1)  # as kernels are at the end of a cell
    _show({"text/html": _chart.verdict_html(words), "text/plain": words})


def _name(shell: Any) -> Optional[str]:
    """Of the notebook, where the kernel is told: by Jupyter Server 2 and by VS Code. Else it is named for what it is,
    and not for its program (ipykernel_launcher)."""
    file = os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get("__vsc_ipynb_file__")
    return isinstance(file, str) and os.path.basename(file) or ("notebook" if hasattr(shell, "kernel") else None)


def _run_cell(shell: Any, cell: str) -> None:
    """Runs it as IPython would. What it raises is raised again, and shown once, as without us."""
    kept: List[List[str]] = []
    shown: Callable[..., Any] = lambda _kind, _error, lines: kept.append(lines)
    before = shell.__dict__.get("_showtraceback")
    shell._showtraceback = shown
    try:
        result = shell.run_cell(cell, store_history=False)
    finally:
        if before is None:
            del shell._showtraceback
        else:
            shell._showtraceback = before
    error = result.error_before_exec or result.error_in_exec
    if error is None:
        return
    if kept:
        lines = kept[-1]
        try:
            error._render_traceback_ = lambda *_: lines  # what IPython asks an exception for first
        except AttributeError:
            pass
    raise error


def _futures(lines: List[str]) -> int:
    """How many of these lines there are up to the end of the last `from __future__ import`; 0: there is none."""
    found = 0
    if not any(line.startswith("from __future__") for line in lines):
        return found
    for count in range(1, len(lines) + 1):
        try:
            body = ast.parse("".join(lines[:count])).body
        except SyntaxError:
            continue  # in the middle of a statement, or one of IPython's own
        for statement in body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                found = statement.end_lineno or found
            elif not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
                return found  # no docstring: from here on there can be none
    return found


@magics_class
class SpotterMagics(Magics):  # type: ignore[misc]
    """%spotter and %%spotter."""

    session: Optional[Session] = None

    @line_cell_magic
    def spotter(self, line: str = "", cell: Optional[str] = None) -> None:
        """%spotter on|off|why: records from now on, ends it, says why it is slow.
        %%spotter: records while this cell runs."""
        if cell is not None:
            self._cell(cell, line)
            return
        o = _arguments(line)
        options = self._options(o)
        if o.word == "on":
            self._on(options)
        elif o.word == "off":
            self._off()
        elif o.word == "why":
            _say(self.session.verdict() if self.session else why(None))
        else:
            print("spotter: %s; usage: %s" % ("recording" if self.session else "not recording", USAGE))

    def _options(self, o: argparse.Namespace) -> Dict[str, Any]:
        return {"name": o.name or _name(self.shell), "out": o.out, "hz": o.hz}

    def _session(self, line: str) -> Optional[Session]:
        """For a cell; None: `on` records already."""
        o = _arguments(line)
        if o.word:
            raise UsageError("%%%%spotter takes no '%s'; usage: %s" % (o.word, USAGE))
        if self.session is not None:
            print("spotter: %spotter on records already, and goes on after this cell")
            return None
        return Session(**self._options(o))

    def _cell(self, cell: str, line: str) -> None:
        session = self._session(line)
        try:
            _run_cell(self.shell, cell)
        finally:
            if session is not None:
                session.end()

    def awaiting(self, lines: List[str]) -> List[str]:
        """A transformer of input: `%%spotter` on top of a cell that awaits becomes a call in its first line (behind
        what is imported from __future__, which wants to be first), and the shell runs the rest as it runs any such
        cell. (A magic is called from within the event loop, and cannot wait for what needs that loop.) Asked more than
        once for a cell."""
        try:
            if not lines or not re.match("%%spotter( |$)", lines[0].rstrip()):
                return lines
            call = "get_ipython().magics_manager.registry['%s'].begin_cell(%r)\n" % (
                type(self).__name__, lines[0].rstrip()[len("%%spotter"):])
            first = 1 + _futures(lines[1:])
            changed = [*lines[1:first], call, *lines[first:]]  # all behind it keep their numbers
            whole = "".join(changed)
            awaits = self.shell.should_run_async(whole, transformed_cell=self.shell.transform_cell(whole))
            return changed if awaits else lines
        except Exception:
            return lines

    def begin_cell(self, line: str) -> None:
        """Records until the cell that calls this has ended."""
        session = self._session(line)
        if session is not None:
            self._end_with_cell(session)

    def _end_with_cell(self, session: Session) -> None:
        events = self.shell.events
        within = [0]  # cells that the cell itself runs

        def begins(info: Any) -> None:
            within[0] += 1

        def ended(result: Any) -> None:
            within[0] -= 1
            if within[0] < 0:
                events.unregister("pre_run_cell", begins)
                events.unregister("post_run_cell", ended)
                session.end()

        events.register("pre_run_cell", begins)
        events.register("post_run_cell", ended)

    def _on(self, options: Dict[str, Any]) -> None:
        if self.session is not None and self.session.recording.active:
            print("spotter: recording already; %spotter off ends it")
            return
        self.session = Session(**options)

    def _off(self) -> None:
        session, self.session = self.session, None
        if session is None:
            print("spotter: nothing is recorded; begin with %spotter on")
        else:
            session.end()


# Not to be asked whether a cell is complete: of a cell magic a blank line says so.
setattr(SpotterMagics.awaiting, "has_side_effects", True)


def _magics(ipython: Any) -> Optional[SpotterMagics]:
    found: Optional[SpotterMagics] = ipython.magics_manager.registry.get("SpotterMagics")
    return found


def load_ipython_extension(ipython: Any) -> None:
    unload_ipython_extension(ipython)
    ipython.register_magics(SpotterMagics)
    magics = _magics(ipython)
    if magics is not None:
        ipython.input_transformers_cleanup.append(magics.awaiting)


def unload_ipython_extension(ipython: Any) -> None:
    """%unload_ext spotter: ends a recording. (IPython cannot take magics back.)"""
    magics = _magics(ipython)
    if magics is None:
        return
    if magics.awaiting in ipython.input_transformers_cleanup:
        ipython.input_transformers_cleanup.remove(magics.awaiting)
    if magics.session is not None:
        magics._off()
