# SPDX-License-Identifier: MIT
"""Marks without ctypes in between: libspotter's own functions, as CPython's builtins are (src/mark/python.c).

Calls as the hooks of a training make them several times a step; by ctypes each would take most of a microsecond."""
import math
import sys
from typing import Any, Callable, NamedTuple, Optional, Tuple

# struct python of src/mark/python.c, in that order; None's address ends it
FUNCTIONS = ("PyCFunction_NewEx", "PyLong_AsUnsignedLongLongMask", "PyFloat_AsDouble", "PyFloat_FromDouble",
             "PyBytes_AsString", "PyErr_Occurred", "Py_IncRef")
# struct python_more, behind it; the addresses of True, False and Exception end it
LANE_FUNCTIONS = ("Py_DecRef", "PyObject_GetAttr", "PyObject_CallFunctionObjArgs", "PyObject_Type", "Py_BuildValue",
                  "PyErr_Clear", "PyErr_ExceptionMatches")


class Lane(NamedTuple):
    """The quick way through the hooks of PyTorch (_hooks/torch_loop.py); as named and explained in python.c."""
    know: Callable[..., None]
    enter: Callable[[int, int, bool, bool, int, int, int, float], None]
    leave: Callable[[], Tuple[int, int, float, int, int, int, float]]
    asked: Callable[[Any], bool]
    came: Callable[[Any], bool]
    graded: Callable[[Any], bool]
    stepped: Callable[[Any], bool]
    scaled: Callable[[Any, float], None]
    updated: Callable[[], bool]
    loss_seen: Callable[[], float]
    waits_seen: Callable[[], int]


class Fast(NamedTuple):
    mark: Callable[[int, Optional[bytes], int, float, int], None]
    step: Callable[[int, float], None]
    waited: Callable[[int], None]
    float_at: Callable[[int], float]
    lane: Optional[Lane] = None


def functions(library: Any) -> Optional[Fast]:
    """None: another Python than CPython, or an older library."""
    if sys.implementation.name != "cpython" or sys.version_info < (3, 7):
        return None
    try:
        import ctypes
        addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
                     for name in FUNCTIONS + LANE_FUNCTIONS]
        count = len(FUNCTIONS)
        given = (ctypes.c_void_p * (len(addresses) + 4))(*addresses[:count], id(None), *addresses[count:],
                                                         id(True), id(False), id(Exception))
        make = ctypes.PyDLL(library._name).spotter_python
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        found = Fast(*(make(given, name.encode()) for name in Fast._fields[:-1]))
        if None in found[:-1] or not math.isnan(found.float_at(0)):
            return None
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
            return found  # several threads at once: the lane has no lock of its own
        lane = Lane(*(make(given, name.encode()) for name in Lane._fields))
        return found if None in lane else found._replace(lane=lane)
    except Exception:
        return None


def float_by_ctypes(address: int) -> float:
    import ctypes
    return ctypes.c_float.from_address(address).value if address else math.nan


def by_ctypes(mark: Callable[..., Any]) -> Fast:
    """The same by the function that ctypes knows."""
    from time import monotonic_ns
    nan, step_kind, wait_kind = math.nan, 1, 5  # SPOTTER_STEP, SPOTTER_DATA_WAIT

    def step(number: int, loss: float) -> None:
        mark(step_kind, None, number, loss, 0)

    def waited(since: int) -> None:
        now = monotonic_ns()
        mark(wait_kind, None, max(now - since, 0), nan, now)

    return Fast(mark, step, waited, float_by_ctypes)
