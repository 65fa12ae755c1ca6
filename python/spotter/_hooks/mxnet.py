# SPDX-License-Identifier: MIT
"""MXNet's Gluon: Trainer.step, and update() where a program does both halves of a step itself. Its losses live behind
an asynchronous engine and are not read."""
import functools
import weakref
from typing import Any

from .. import _marks


def install(module: Any) -> None:
    """module: mxnet.gluon.trainer"""
    marks = _marks.shared()
    clock: Any = [None]  # weak: the first Trainer that stepped; with several, it counts

    def counts(trainer: Any) -> bool:
        known = clock[0] and clock[0]()
        if known is None:
            clock[0] = weakref.ref(trainer)
        return known is None or known is trainer

    def hooked(original: Any) -> Any:
        @functools.wraps(original)
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            if marks.pending:
                marks.flush()
            result = original(self, *args, **kwargs)
            try:
                if counts(self) and marks.claim("mxnet", _marks.HOOK):
                    marks.step_unless_claimed()
            except Exception:
                pass
            return result
        return step

    for name in ("step", "update"):  # neither calls the other
        original = module.Trainer.__dict__.get(name)
        if original is not None:
            setattr(module.Trainer, name, hooked(original))
