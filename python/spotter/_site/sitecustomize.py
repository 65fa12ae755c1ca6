# SPDX-License-Identifier: MIT
"""Runs at the start of every Python that `spotter run` started: waits for imports of frameworks.

The folder of this file is first in PYTHONPATH. Python imports the first `sitecustomize` it finds, so this
one takes its folder off sys.path (the environment keeps it: children need it, too) and then imports the
next one, as Python would have. Nothing more is read from disk until a framework is imported, and a failure of
ours is silent: a program must not notice. Short, because it may be compiled at every start.

Parses on any Python from 2.7 on; does nothing more than stand aside before 3.8.
"""
import os
import sys

FRAMEWORKS = {"torch", "deepspeed", "lightning", "pytorch_lightning", "transformers", "keras", "tf_keras", "tensorflow",
              "jax", "mxnet"}
PRIVATE = "_spotter_run"  # our package for our hooks: `spotter` may be something of the user's


class Finder(object):
    """On sys.meta_path, first for frameworks (_hooks/listen.py does the work), last for our own package: `import
    spotter` works under `spotter run` where it is not installed."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.names:
            return None
        try:
            if self.names is FRAMEWORKS:
                from _spotter_run._hooks import listen
                return listen.find(self, name, path, target)
            if path is None:
                from importlib.util import spec_from_file_location
                package = os.path.join(os.environ["SPOTTER_PYTHON"], "spotter")
                return spec_from_file_location(name, os.path.join(package, "__init__.py"),
                                               submodule_search_locations=[package])
        except Exception:
            pass
        return None


def stand_aside():
    """Takes our folder off sys.path and runs the next sitecustomize; what it raises is the user's."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if not p or os.path.abspath(p) != here]
    me = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401 the next one
    except ImportError as e:
        if getattr(e, "name", "sitecustomize") != "sitecustomize" or "sitecustomize" not in str(e):
            raise
        sys.modules["sitecustomize"] = me


if __name__ == "sitecustomize":
    if sys.version_info >= (3, 8) and os.environ.get("SPOTTER_PYTHON"):
        sys.meta_path.append(Finder({"spotter", PRIVATE}))
        if os.environ.get("SPOTTER_MARKS"):
            sys.meta_path.insert(0, Finder(FRAMEWORKS))
        if os.environ.get("SPOTTER_RECORDER"):  # started beside the program: it is no ancestor of ours
            try:
                from _spotter_run import _yama
                _yama.allow_named()
            except Exception:
                pass
    stand_aside()
