# SPDX-License-Identifier: MIT
"""Marks without ctypes in between: libspotter's own functions, as CPython's builtins are (src/mark/python.c).

Calls as the hooks of a training make them several times a step; by ctypes each would take most of a microsecond."""
import math
import sys
from typing import Any, Callable, NamedTuple, Optional

# struct python of src/mark/python.c, in that order; None's address ends it
FUNCTIONS = ("PyCFunction_NewEx", "PyLong_AsUnsignedLongLongMask", "PyFloat_AsDouble", "PyFloat_FromDouble",
             "PyBytes_AsString", "PyErr_Occurred", "Py_IncRef")


class Fast(NamedTuple):
    mark: Callable[[int, Optional[bytes], int, float, int], None]
    step: Callable[[int, float], None]
    waited: Callable[[int], None]
    float_at: Callable[[int], float]


def functions(library: Any) -> Optional[Fast]:
    """None: another Python than CPython, or an older library."""
    if sys.implementation.name != "cpython" or sys.version_info < (3, 7):
        return None
    try:
        import ctypes
        addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in FUNCTIONS]
        given = (ctypes.c_void_p * (len(addresses) + 1))(*addresses, id(None))
        make = ctypes.PyDLL(library._name).spotter_python
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        found = Fast(*(make(given, name.encode()) for name in Fast._fields))
        return found if None not in found and math.isnan(found.float_at(0)) else None
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
