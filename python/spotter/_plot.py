# SPDX-License-Identifier: MIT
"""A run as a figure of Matplotlib."""
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

if TYPE_CHECKING:
    from ._run import Run

Points = Tuple[List[float], List[float]]


def _series(run: "Run", metric: str) -> Dict[str, Points]:
    found: Dict[str, Points] = {}
    for row in run.samples(metric, as_="list"):
        xs, ys = found.setdefault("%s %s" % (row["kind"], row["key"]), ([], []))
        xs.append(row["t"])
        ys.append(row["value"])
    return found


def _rate(points: Points, period: float = 1.0) -> Points:
    """Growth a second of a counter, over at least `period` seconds."""
    xs: List[float] = []
    ys: List[float] = []
    last = None
    for t, value in zip(*points):
        if last is None:
            last = (t, value)
        elif t - last[0] >= period:
            xs.append(t)
            ys.append((value - last[1]) / (t - last[0]))
            last = (t, value)
    return xs, ys


def figure(run: "Run") -> Any:
    import matplotlib.pyplot as plt
    panels: List[Tuple[str, Dict[str, Points]]] = []
    cores = {"used": _rate(p) for p in _series(run, "job.cpu").values()}
    cores.update({"allowed": p for p in _series(run, "job.cores_allowed").values()})
    panels.append(("CPU, cores", cores))
    memory = {"resident": p for p in _series(run, "job.rss").values()}
    panels.append(("memory, GB", {k: (x, [v / 1e9 for v in y]) for k, (x, y) in memory.items()}))
    busy = _series(run, "gpu.busy")
    if busy:
        panels.append(("GPU busy, %", {k: (x, [100 * v for v in y]) for k, (x, y) in busy.items()}))
    losses: Dict[str, Points] = {}
    for row in run.steps(as_="list"):
        rank, loss = row["rank"], row["loss"]
        if loss is not None:
            xs, ys = losses.setdefault("loss" if rank is None or rank < 0 else "rank %d" % rank, ([], []))
            xs.append(row["t_end"])
            ys.append(loss)
    if losses:
        panels.append(("loss", losses))
    made, axes = plt.subplots(len(panels), 1, sharex=True, squeeze=False, figsize=(9, 2 * len(panels) + 1))
    for (title, lines), axis in zip(panels, axes[:, 0]):
        for label, (xs, ys) in lines.items():
            axis.plot(xs, ys, label=label, linewidth=1.2)
        axis.set_ylabel(title)
        if title != "loss":
            axis.set_ylim(bottom=0)
        if len(lines) > 1:
            axis.legend(loc="upper right", fontsize="small")
        for row in run.phases(as_="list"):
            axis.axvspan(row["t"], row["t_end"], alpha=0.12, color="tab:orange")
    axes[-1, 0].set_xlabel("seconds since the start")
    made.suptitle(run.name)
    made.tight_layout()
    return made
