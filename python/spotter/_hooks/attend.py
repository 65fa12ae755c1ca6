# SPDX-License-Identifier: MIT
"""Hooks within a program that runs already: those for frameworks that are imported, at once; for others when they
are. They stay; without a recorder they do nothing."""
import sys
from typing import Any, Optional

from . import listen


class Finder:
    """As the one of _site/sitecustomize.py."""

    spotter = True  # how another copy of this package knows it

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[Any]:
        if name not in listen.WATCHED:
            return None
        try:
            return listen.find(self, name, path, target)
        except Exception:
            return None


def attend() -> None:
    for name, which in listen.WATCHED.items():
        module = sys.modules.get(name)
        # One that another thread imports at this moment is not complete.
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            listen.imported(which, module)
    if not any(getattr(finder, "spotter", False) is True for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
