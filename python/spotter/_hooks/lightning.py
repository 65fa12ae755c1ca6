# SPDX-License-Identifier: MIT
"""Lightning: every Trainer gets our callback, unless it has one. `module` is the callback connector of
`lightning.pytorch` or `pytorch_lightning`."""
import functools
from typing import Any

from .. import _callbacks


def install(module: Any) -> None:
    connector = getattr(module, "_CallbackConnector", None) or module.CallbackConnector
    original = connector.on_trainer_init

    @functools.wraps(original)
    def on_trainer_init(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        try:
            callbacks = self.trainer.callbacks
            if not any(getattr(c, "_spotter", False) for c in callbacks):
                # First: those that save checkpoints must stay last.
                self.trainer.callbacks = [_class(module)(), *callbacks]
        except Exception:
            pass
        return result

    connector.on_trainer_init = on_trainer_init


def _class(module: Any) -> type:
    """One for each of the two packages that a program may use."""
    name = "_LightningFor_" + module.__name__.partition(".")[0]
    found = getattr(module, name, None)
    if found is None:
        found = _callbacks._make("LightningCallback", module.Callback)
        setattr(module, name, found)
    return found
