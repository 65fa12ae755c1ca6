# SPDX-License-Identifier: MIT
"""Who wants to know when a module of a framework has been run. Called by _site/sitecustomize.py."""
import sys
from importlib import import_module
from typing import Any, Optional, Set

# module that was imported -> module of this package that looks at it
WATCHED = {
    "torch": "torch",
    "deepspeed.runtime.engine": "deepspeed",
    "lightning.pytorch.trainer.connectors.callback_connector": "lightning",
    "pytorch_lightning.trainer.connectors.callback_connector": "lightning",
    "transformers.trainer": "transformers",
    "keras.src.callbacks.callback_list": "keras",
    "keras.src.callbacks": "keras",
    "keras.callbacks": "keras",
    "tf_keras.src.callbacks": "keras",
    "tensorflow.python.keras.callbacks": "keras",
    "jax": "jax",
    "mxnet.gluon.trainer": "mxnet",
}

_finding: Set[str] = set()


def find(me: Any, name: str, path: Any, target: Any) -> Optional[Any]:
    """What the other finders of sys.meta_path find, with an ear at its loader. None: not watched."""
    if name not in WATCHED or name in _finding:
        return None
    _finding.add(name)
    try:
        for finder in list(sys.meta_path):
            look = getattr(finder, "find_spec", None)
            spec = look(name, path, target) if look and finder is not me else None
            if spec is not None:
                _listen(name, spec.loader)
                return spec
        return None
    finally:
        _finding.discard(name)


def _listen(name: str, loader: Any) -> None:
    """Shadows exec_module of this one loader (each spec has its own) until it is called, so that the module keeps
    the loader it would have had."""
    try:
        run = loader.exec_module

        def exec_module(module: Any) -> None:
            try:
                del loader.exec_module
            except Exception:
                pass
            run(module)
            imported(WATCHED[name], module)

        loader.exec_module = exec_module
    except Exception:
        pass  # a loader that cannot be shadowed: no hooks


_seen: Set[Any] = set()


def imported(which: str, module: Any) -> None:
    try:
        key = (which, module.__name__)
        if not _seen:
            import_module(".ending", __package__).install()
        if key not in _seen:
            _seen.add(key)
            import_module("." + which, __package__).install(module)
    except Exception:
        pass
