# SPDX-License-Identifier: MIT
"""Keras 3, and tf.keras before it: every list of callbacks gets ours.

It is added behind Keras' back, after the list was made: Keras 3 calls callbacks from other threads unless one
of those it was given needs to be in step, and ours must not change that."""
import functools
from typing import Any

from .. import _callbacks


def install(module: Any) -> None:
    """module: the one that has CallbackList, in whichever version."""
    listing = module.__dict__.get("CallbackList")
    base = module.__dict__.get("Callback")
    if listing is None or base is None or "_spotter" in listing.__dict__:
        return
    original = listing.__init__
    ours = _callbacks._make("KerasCallback", base)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        try:
            _add(self, ours)
        except Exception:
            pass

    listing.__init__ = __init__
    listing._spotter = True


def _add(listing: Any, ours: type) -> None:
    if any(getattr(c, "_spotter", False) for c in listing.callbacks):
        return
    callback = ours()
    model = getattr(listing, "model", None)
    if model is not None:
        callback.set_model(model)
    callback.set_params(getattr(listing, "params", None) or {})
    listing.callbacks.append(callback)
    if hasattr(listing, "_should_call_train_batch_hooks"):  # Keras 2
        listing._should_call_train_batch_hooks = True
