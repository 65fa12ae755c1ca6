# SPDX-License-Identifier: MIT
"""What ended the program: whether the exception nobody caught said that memory ran out, a device's or /dev/shm.

Python keeps that exception in `sys` for debuggers before it runs what is registered for its exit, so nothing of
the program's is changed: no excepthook. Only yes or no is said, and the line of the program it came from; no word of the
exception.
"""
import atexit
import sys
from typing import Any, Optional, Tuple

from .. import _marks

_CAUSES = 8  # of one exception that are looked at: raise ... from ...
_FRAMES = 2000
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "<frozen ")


def install() -> None:
    atexit.register(_tell)


def _text(value: BaseException) -> str:
    args = BaseException.args.__get__(value)  # type: ignore[attr-defined]
    return args[0][:4000].lower() if args and type(args[0]) is str else ""


def _says_memory(value: BaseException) -> bool:
    """torch.OutOfMemoryError, tensorflow's ResourceExhaustedError, "CUDA out of memory" as a RuntimeError,
    "RESOURCE_EXHAUSTED: Out of memory while trying to allocate ..." by XLA, CUBLAS_STATUS_ALLOC_FAILED."""
    if any(c.__name__ in ("OutOfMemoryError", "ResourceExhaustedError") for c in type(value).__mro__):
        return True
    if not isinstance(value, RuntimeError):
        return False
    text = _text(value)
    return "out of memory" in text or "status_alloc_failed" in text


def _says_shared(value: BaseException) -> bool:
    """"DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that dataloader's workers are
    out of shared memory", "unable to allocate shared memory(shm) for file </torch_...>: No space left on device"."""
    if not isinstance(value, (RuntimeError, OSError)):
        return False
    text = _text(value)
    return "killed by signal: bus error" in text or "unable to allocate shared memory" in text or (
        "unable to write to file </torch_" in text)


def _line(value: BaseException) -> Optional[Tuple[str, int]]:
    """File and line of the innermost frame that is the program's own."""
    found, frame = None, value.__traceback__
    for _ in range(_FRAMES):
        if frame is None:
            break
        file = frame.tb_frame.f_code.co_filename
        if not any(part in file for part in _LIBRARIES):
            found = (file.rsplit("/", 1)[-1], frame.tb_lineno)
        frame = frame.tb_next
    return found


def _tell() -> None:
    try:
        value: Optional[Any] = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if not isinstance(value, BaseException):
            return
        memory = shared = False
        line = None
        for _ in range(_CAUSES):
            if value is None:
                break
            memory = memory or _says_memory(value)
            shared = shared or _says_shared(value)
            line = _line(value) or line
            value = value.__cause__
        _marks.shared().named(_marks.SETTING, "exception.out_of_memory", 1.0 if memory else 0.0)
        _marks.shared().named(_marks.SETTING, "exception.shared_memory", 1.0 if shared else 0.0)
        if line:
            _marks.shared().named(_marks.SETTING, "exception.at." + line[0], float(line[1]))
    except Exception:
        pass
