# SPDX-License-Identifier: MIT
"""Hugging Face's Trainer: our callback is one of those every Trainer begins with."""
from typing import Any

from .. import _callbacks


def install(module: Any) -> None:
    """module: transformers.trainer"""
    known = module.DEFAULT_CALLBACKS
    if not any(getattr(c, "_spotter", False) for c in known):
        known.append(_callbacks._make("HFCallback", module.TrainerCallback))
