# SPDX-License-Identifier: MIT
"""Spotter beside your training: steps, loss and phases in the record, and what the machine does now.

    import spotter

    for batch in spotter.steps(loader):          # or spotter.step(loss=...) at the end of your loop
        with spotter.phase("evaluate"): ...
        spotter.log(accuracy=0.93)

    print(spotter.snapshot().cpu.cores_used)     # no recording needed
    run = spotter.load("last"); run.steps(); run.plot(); spotter.verdict(run)

Under `spotter run -- python train.py` nothing of this is needed for PyTorch, Lightning, Hugging Face's Trainer
and Keras: their steps are seen. Without a recorder the marks do nothing. See docs/python.md.
"""
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from ._callbacks import HFCallback, KerasCallback, LightningCallback
    from ._now import Cpu, Gpu, Job, Memory, Process, Snapshot, Watch, snapshot, watch
    from ._program import SpotterError
    from ._recording import Recording, start, stop
    from ._run import Run, Step, load, verdict
    from ._training import active, log, phase, step, steps
    from .notebook import load_ipython_extension, unload_ipython_extension

__version__ = "0.1.0"

# Loaded when first used: `import spotter` costs a program nothing.
_HOME = {name: module for module, names in {
    "_training": ("step", "steps", "log", "phase", "active"),
    "_recording": ("start", "stop", "Recording"),
    "_now": ("snapshot", "watch", "Snapshot", "Watch", "Cpu", "Memory", "Job", "Gpu", "Process"),
    "_run": ("load", "verdict", "Run", "Step"),
    "_callbacks": ("LightningCallback", "HFCallback", "KerasCallback"),
    "_program": ("SpotterError",),
    "notebook": ("load_ipython_extension", "unload_ipython_extension"),  # %load_ext spotter
}.items() for name in names}

__all__ = [
    "Cpu", "Gpu", "HFCallback", "Job", "KerasCallback", "LightningCallback", "Memory", "Process", "Recording", "Run",
    "Snapshot", "SpotterError", "Step", "Watch", "active", "load", "log", "phase", "snapshot", "start", "step", "steps",
    "stop", "verdict", "watch",
]


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from importlib import import_module
    value = getattr(import_module("." + module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(__all__))
