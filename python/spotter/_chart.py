# SPDX-License-Identifier: MIT
"""A recording while it goes on, as a small chart: SVG in HTML without a script, and a line of text.

Series keep at most POINTS points however long the recording is: seconds become pairs of seconds, and so on."""
import math
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from xml.sax.saxutils import escape

Point = Tuple[float, float]

POINTS = 160      # of a line
LINES = 8         # of a panel: GPUs beyond that have no line of their own
QUIET_S = 5.0     # without a step for longer than that, the rate is not shown as that of now

WIDTH, HEIGHT, GAP, ROW_GAP = 240, 92, 20, 8  # of a panel
LEFT, TOP, BOTTOM = 2, 22, 14    # around its lines
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf")


class Line:
    """A series by time. how: "mean" or "max" of what falls into one slot, or "last" (of a counter)."""

    def __init__(self, how: str = "mean") -> None:
        self.how, self.width = how, 0.5
        self._slots: Dict[int, List[float]] = {}  # slot -> [time of its last value, value, count]

    def add(self, t: float, value: Optional[float]) -> None:
        if value is None or not math.isfinite(value) or not math.isfinite(t):
            return
        self._put(int(t // self.width), t, value, 1)
        while len(self._slots) > POINTS:
            old, self._slots, self.width = self._slots, {}, self.width * 2
            for slot, (at, kept, count) in sorted(old.items()):
                self._put(slot // 2, at, kept, count)

    def _put(self, slot: int, t: float, value: float, count: float) -> None:
        there = self._slots.get(slot)
        if there is None:
            self._slots[slot] = [t, value, count]
            return
        if self.how == "mean":
            there[1] += (value - there[1]) * count / (there[2] + count)
        elif self.how == "max":
            there[1] = max(there[1], value)
        elif t >= there[0]:
            there[1] = value
        there[0] = max(there[0], t)
        there[2] += count

    def points(self) -> List[Point]:
        return [(t, value) for _, (t, value, _count) in sorted(self._slots.items())]

    def rates(self) -> List[Point]:
        """Growth a second of a counter between its points; the time is that of the later one. The first is there at
        the beginning, too. A slot that has just begun is left out: so short a time says little."""
        rates: List[Point] = []
        before: Optional[Point] = None
        for point in self.points():
            if before is not None and point[0] - before[0] < self.width / 2:
                continue
            if before is not None and point[1] >= before[1]:
                rate = (point[1] - before[1]) / (point[0] - before[0])
                rates += [(point[0], rate)] if rates else [(before[0], rate), (point[0], rate)]
            before = point
        return rates


class Gpu:
    def __init__(self) -> None:
        self.busy = Line()
        self.used: Optional[float] = None
        self.total: Optional[float] = None


class State:
    """What is known of a recording so far. Absent is None, never 0."""

    def __init__(self) -> None:
        self.begin: Optional[float] = None
        self.now = 0.0
        self.cpu, self.memory = Line("last"), Line("max")
        self.cores: Optional[float] = None   # the job may use
        self.limits: Dict[str, float] = {}   # of memory, bytes
        self.gpus: Dict[int, Gpu] = {}
        self.steps: Dict[int, Line] = {}     # by process: steps so far
        self.losses: Dict[int, Line] = {}

    def see(self, t: float) -> None:
        self.begin = t if self.begin is None else min(self.begin, t)
        self.now = max(self.now, t)

    def sample(self, metric: str, key: Optional[int], t: float, value: float) -> None:
        self.see(t)
        if metric == "job.cpu":
            self.cpu.add(t, value)
        elif metric == "job.rss":
            self.memory.add(t, value)
        elif metric == "job.cores_allowed":
            self.cores = value
        elif metric in ("mem.total", "cgroup.memory_limit"):
            self.limits[metric] = value
        elif metric.startswith("gpu."):
            gpu = self.gpus.setdefault(key or 0, Gpu())
            if metric == "gpu.busy":
                gpu.busy.add(t, value)
            elif metric == "gpu.memory_used":
                gpu.used = value
            elif metric == "gpu.memory_total":
                gpu.total = value

    def step(self, process: int, t: float, steps: int, loss: Optional[float]) -> None:
        """So many more steps of that process, the last of them ended at t."""
        self.see(t)
        so_far = self.steps.setdefault(process, Line("last"))
        points = so_far.points()
        so_far.add(t, (points[-1][1] if points else 0) + steps)
        self.losses.setdefault(process, Line()).add(t, loss)

    def trainer(self) -> Optional[int]:
        """The process whose steps are shown: the one with the most of them, then the first."""
        most: List[Tuple[float, int]] = [(line.points()[-1][1], -process) for process, line in self.steps.items()]
        return -max(most)[1] if most else None

    def cores_used(self) -> List[Point]:
        """A job that does nothing has no new rows: that is 0 cores, and not the end of the line."""
        rates, points = self.cpu.rates(), self.cpu.points()
        if points and self.now - points[-1][0] > 1.5:
            rates += [(points[-1][0] + 0.1, 0.0), (self.now, 0.0)]
        return rates

    def memory_points(self) -> List[Point]:
        points = self.memory.points()
        return points + [(self.now, points[-1][1])] if points and points[-1][0] < self.now else points


class Panel(NamedTuple):
    title: str
    says: str                       # the value of now
    lines: Sequence[Sequence[Point]]
    limit: Optional[float] = None   # a dashed line, and the top of the scale
    zero: bool = True               # the scale begins at 0
    scale: Callable[[float], str] = lambda v: "%.3g" % v


def size(value: float) -> str:
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if value >= scale:
            return "%.3g %s" % (value / scale, unit)
    return "%.0f kB" % (value / 1e3) if value > 0 else "0"


def _gpu_panel(state: State) -> Optional[Panel]:
    shown = [(key, gpu) for key, gpu in sorted(state.gpus.items()) if gpu.busy.points()]
    if not shown:
        return None
    last = [gpu.busy.points()[-1][1] for _, gpu in shown]
    says = ("%.0f %%" if len(last) == 1 else "mean %.0f %%") % (100 * sum(last) / len(last))
    used = [gpu.used for _, gpu in shown if gpu.used is not None]
    total = [gpu.total for _, gpu in shown if gpu.total is not None]
    if used and len(used) == len(total) == len(shown):
        says += ", %s of %s" % (size(sum(used)), size(sum(total)))
    title = "GPU" if len(shown) == 1 else "%d GPUs" % len(shown)
    lines = [[(t, 100 * v) for t, v in gpu.busy.points()] for _, gpu in shown[:LINES]]
    return Panel(title, says, lines, limit=100)


def _steps_panel(state: State, process: int) -> Panel:
    points, rates = state.steps[process].points(), state.steps[process].rates()
    ago = state.now - points[-1][0]
    says = "%d so far" % points[-1][1]
    if rates and ago > max(QUIET_S, 3 / rates[-1][1] if rates[-1][1] else 0):
        says = "none for %.0f s" % ago
    elif rates:
        says = "%.3g a second" % rates[-1][1]
    return Panel("steps", says, [rates])


def panels(state: State) -> List[Panel]:
    found = [_gpu_panel(state)]
    cores = state.cores_used()
    says = "%.2f" % cores[-1][1] if cores else "not known yet"
    if cores and state.cores is not None:
        says += " of %g cores" % state.cores
    elif cores:
        says += " cores"
    found.append(Panel("CPU", says, [cores], limit=state.cores))
    memory = state.memory_points()
    says = size(memory[-1][1]) if memory else "not known yet"
    limit = min(state.limits.values(), default=None)
    if memory and limit is not None:
        says += " of " + size(limit)
    found.append(Panel("memory", says, [memory], scale=size))
    process = state.trainer()
    if process is not None:
        found.append(_steps_panel(state, process))
        losses = state.losses[process].points()
        if losses:
            found.append(Panel("loss", "%.4g" % losses[-1][1], [losses], zero=False))
    return [panel for panel in found if panel is not None]


def _clean(text: str) -> str:
    """For XML: what would be markup, and what must not be there at all."""
    return escape("".join(c if c >= " " and c not in "\x7f\ufffe\uffff" and not "\ud800" <= c <= "\udfff" else "?"
                          for c in text), {'"': "&quot;"})


def _scale(panel: Panel) -> Tuple[float, float]:
    values = [v for line in panel.lines for _, v in line]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if panel.zero:
        low = min(0.0, low)
        high = max(high, panel.limit or 0.0) * (1.0 if panel.limit else 1.1)
    if high <= low:
        high = low + (abs(low) or 1.0)
    return low, high


def _number(value: float) -> str:
    return "%g" % round(value, 1)


def _path(line: Sequence[Point], begin: float, end: float, low: float, high: float) -> str:
    wide, tall = WIDTH - 2 * LEFT, HEIGHT - TOP - BOTTOM
    seconds = end - begin if end > begin else 1.0
    return " ".join("%s,%s" % (_number(LEFT + (t - begin) / seconds * wide),
                               _number(TOP + (high - v) / (high - low) * tall)) for t, v in line)


def _draw(panel: Panel, x: int, y: int, begin: float, end: float) -> Iterable[str]:
    low, high = _scale(panel)
    base = HEIGHT - BOTTOM
    yield '<g transform="translate(%d %d)">' % (x, y)
    yield '<text x="%d" y="13" font-weight="bold">%s</text>' % (LEFT, _clean(panel.title))
    yield '<text x="%d" y="13" text-anchor="end">%s</text>' % (WIDTH - LEFT, _clean(panel.says))
    yield '<path d="M%d %dH%d" stroke="currentColor" stroke-opacity=".35"/>' % (LEFT, base, WIDTH - LEFT)
    if panel.limit is not None:
        yield ('<path d="M%d %dH%d" stroke="currentColor" stroke-opacity=".5" stroke-dasharray="4 3"/>'
               % (LEFT, TOP, WIDTH - LEFT))
    for line, colour in zip(panel.lines, COLOURS):
        if len(line) == 1:
            at = _path(line, begin, end, low, high).split(",")
            yield '<circle cx="%s" cy="%s" r="1.5" fill="%s"/>' % (at[0], at[1], colour)
        elif line:
            yield ('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-linejoin="round"/>'
                   % (_path(line, begin, end, low, high), colour))
    yield ('<text x="%d" y="%d" font-size="9" opacity=".7">%s to %s</text>'
           % (LEFT, HEIGHT - 3, _clean(panel.scale(low)), _clean(panel.scale(high))))
    yield ('<text x="%d" y="%d" font-size="9" opacity=".7" text-anchor="end">%s</text></g>'
           % (WIDTH - LEFT, HEIGHT - 3, _clean(_clock(end - begin))))


def _clock(seconds: float) -> str:
    s = int(seconds)
    return "%d s" % s if s < 60 else "%d:%02d min" % (s // 60, s % 60) if s < 3600 else "%d:%02d h" % (
        s // 3600, s // 60 % 60)


def text(state: State, status: str = "") -> str:
    """One line, for where HTML is not shown."""
    parts = ["%s %s" % (panel.title, panel.says) for panel in panels(state)] if state.begin is not None else []
    return "spotter: " + ", ".join(([status] if status else []) + parts)


def html(state: State, status: str = "") -> str:
    if state.begin is None:
        return "<div>spotter: %s</div>" % _clean(status or "no samples yet")
    shown = panels(state)
    columns = 2 if len(shown) == 4 else min(3, len(shown))
    rows = -(-len(shown) // columns)
    wide, tall = columns * (WIDTH + GAP) - GAP, rows * (HEIGHT + ROW_GAP) + 6
    out = ['<div style="max-width:%dpx"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="100%%" '
           'role="img" aria-label="%s" font-family="sans-serif" font-size="11" fill="currentColor">'
           % (wide, wide, tall, _clean(text(state, status)))]
    for i, panel in enumerate(shown):
        out += _draw(panel, i % columns * (WIDTH + GAP), i // columns * (HEIGHT + ROW_GAP), state.begin, state.now)
    out.append('<text x="%d" y="%d" font-size="9" opacity=".7">spotter%s</text></svg></div>'
               % (LEFT, tall - 2, _clean(": " + status if status else "")))
    return "".join(out)


LABEL = 8  # columns of the word that a line of a verdict begins with; lines that go on are indented by as many


def _entries(words: str) -> List[str]:
    """A verdict without the breaks that were made for a terminal: each line begins with its word."""
    found: List[str] = []
    for line in words.splitlines():
        if found and line.startswith(" " * LABEL) and line[LABEL:LABEL + 1].strip():
            found[-1] += " " + line[LABEL:]
        else:
            found.append(line)
    return found


def verdict_html(words: str) -> str:
    """As wide as the notebook is: nothing is cut off, and what goes on in a next line stands below its beginning."""
    return ('<div style="font-family:monospace;font-size:12px;line-height:1.35;white-space:pre-wrap;'
            'overflow-wrap:anywhere">%s</div>' % "".join(
                '<div style="padding-left:%dch;text-indent:-%dch">%s</div>' % (LABEL, LABEL, _clean(entry))
                for entry in _entries(words)))


def bundle(state: State, status: str = "") -> Mapping[str, str]:
    return {"text/html": html(state, status), "text/plain": text(state, status)}
