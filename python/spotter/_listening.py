# SPDX-License-Identifier: MIT
"""What makes this process, and those it starts, tell a recorder that was started beside it of their steps: what
`spotter run` does before a program starts, done within one that runs. All of it is undone at the end."""
import glob
import os
import random
import shutil
import string
import tempfile
from typing import Dict, List, Optional

from . import _marks, _yama
from ._program import executable

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_SITE = os.path.join(_PACKAGE, "_site")


def make_folder() -> Optional[str]:
    """For the rings: in memory, else among temporary files. None: nowhere, and then there are no marks.

    Named as the program names them ("spotter-a1B2c3"), so that a later recorder clears away what a killed one left."""
    letters = string.ascii_letters + string.digits
    choose = random.SystemRandom().choice
    for parent in ("/dev/shm", tempfile.gettempdir()):
        for _ in range(20):
            path = os.path.join(parent, "spotter-" + "".join(choose(letters) for _ in range(6)))
            try:
                os.mkdir(path, 0o700)
                os.chmod(path, 0o700)  # whatever the umask is
                return path
            except FileExistsError:
                continue
            except OSError:
                break
    return None


def library() -> Optional[str]:
    """libspotter: the one of this package, else the one that belongs to the program."""
    beside = os.path.dirname(os.path.realpath(executable()))
    places = [_PACKAGE, beside, os.path.join(beside, "..", "lib"), os.path.join(beside, "..", "lib64"),
              *sorted(glob.glob(os.path.join(glob.escape(beside), "..", "lib", "*-linux-*")))]
    named = os.environ.get("SPOTTER_LIB")
    found = [named] if named else []
    found += [os.path.join(place, name) for place in places for name in ("libspotter.so", "libspotter.so.0")]
    return next((os.path.realpath(file) for file in found if os.path.isfile(file)), None)


class Listening:
    """The folder of marks and the environment that names it. Without a library there are no marks."""

    def __init__(self) -> None:
        self.library = library()
        self.folder = make_folder() if self.library else None
        self._set: Dict[str, str] = {}
        self._before: Dict[str, Optional[str]] = {}

    def arguments(self) -> List[str]:
        return ["--marks", self.folder] if self.folder else []

    def begin(self, recorder: int) -> None:
        """The recorder is there: marks may come."""
        self._variable(_yama.RECORDER, str(recorder))
        self._variable("SPOTTER_PYTHON", os.path.dirname(_PACKAGE))
        others = os.environ.get("PYTHONPATH")
        if ":" not in _SITE:  # Pythons that are started allow the recorder to look, marks or none
            self._variable("PYTHONPATH", _SITE + (":" + others if others else ""))
        if self.folder is None or self.library is None:
            return
        self._variable("SPOTTER_MARKS", self.folder)
        self._variable("SPOTTER_LIB", self.library)
        self._variable("SPOTTER_EXE", executable())
        self._look_again()
        try:
            from ._hooks import attend
            attend.attend()
        except Exception:
            pass  # steps that the program marks itself are seen all the same

    def end(self) -> None:
        for name, value in self._set.items():
            self._restore(name, value, self._before[name])
        self._set.clear()
        if self.folder is not None:
            self._look_again()
            shutil.rmtree(self.folder, ignore_errors=True)  # the recorder did, unless it was killed
            self.folder = None

    def _variable(self, name: str, value: str) -> None:
        self._before[name] = os.environ.get(name)
        self._set[name] = os.environ[name] = value

    @staticmethod
    def _restore(name: str, ours: str, before: Optional[str]) -> None:
        now = os.environ.get(name)
        if now is not None and now != ours:  # the program's own doing; only what we put in front is ours
            if name == "PYTHONPATH" and now.startswith(_SITE + ":"):
                os.environ[name] = now[len(_SITE) + 1:]
        elif before is not None:
            os.environ[name] = before
        else:
            os.environ.pop(name, None)

    def _look_again(self) -> None:
        """The library and our own marks look at $SPOTTER_MARKS anew."""
        try:
            import ctypes
            ctypes.PyDLL(self.library).spotter_reset()
        except Exception:
            pass
        _marks.shared().reset()
