# SPDX-License-Identifier: MIT
"""DeepSpeed steps its optimizers once for each group of parameters, or not at all; its engine knows."""
import functools
from typing import Any

from .. import _marks


def install(module: Any) -> None:
    """module: deepspeed.runtime.engine"""
    marks = _marks.shared()
    original = module.DeepSpeedEngine.step

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = getattr(self, "global_steps", None)
        marks.claim("deepspeed", _marks.FRAMEWORK)
        result = original(self, *args, **kwargs)
        try:
            if marks.claim("deepspeed", _marks.FRAMEWORK):
                after = getattr(self, "global_steps", None)
                if after != before:
                    marks.step(after, marks.loss)
                else:
                    marks.put(_marks.MICRO_STEP)
        except Exception:
            pass
        return result

    module.DeepSpeedEngine.step = step
