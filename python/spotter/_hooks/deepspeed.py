# SPDX-License-Identifier: MIT
"""DeepSpeed steps its optimizers once for each group of parameters, or not at all; its engine knows. It divides a loss
by the number of batches that make a step before it calls backward(): the loss is what the program gave it."""
import functools
from typing import Any

from .. import _marks


def install(module: Any) -> None:
    """module: deepspeed.runtime.engine"""
    marks = _marks.shared()
    engine = module.DeepSpeedEngine
    engine.step = _step(engine.step, marks)
    engine.backward = _backward(engine.backward, marks)


def _backward(original: Any, marks: _marks.Marks) -> Any:
    @functools.wraps(original)
    def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        read = None
        try:
            if marks.claim("deepspeed", _marks.ENGINE):
                read = _marks.reading(args[0] if args else kwargs.get("loss"))
        except Exception:
            pass
        result = original(self, *args, **kwargs)
        if read is not None:
            marks.loss = read  # and not what the hook of Tensor.backward() saw
        return result
    return backward


def _step(original: Any, marks: _marks.Marks) -> Any:
    told: Any = []  # gradient accumulation, once

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = getattr(self, "global_steps", None)
        skipped = getattr(self, "skipped_steps", 0)
        marks.claim("deepspeed", _marks.ENGINE)
        result = original(self, *args, **kwargs)
        try:
            if marks.claim("deepspeed", _marks.ENGINE):
                after = getattr(self, "global_steps", None)
                if after == before:
                    marks.put(_marks.MICRO_STEP)
                else:
                    marks.step(after, marks.loss)
                    if getattr(self, "skipped_steps", 0) != skipped:  # an overflow: a step all the same
                        marks.named(_marks.SCALAR, "amp.skipped_steps", float(self.skipped_steps))
                if not told:
                    told.append(True)
                    number = self.gradient_accumulation_steps()
                    if isinstance(number, int):
                        marks.named(_marks.SETTING, "trainer.accumulate_grad_batches", number)
        except Exception:
            pass
        return result
    return step
