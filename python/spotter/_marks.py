# SPDX-License-Identifier: MIT
"""Marks of this process, through libspotter into the ring the recorder reads.

Without a recorder ($SPOTTER_MARKS) or without the library every call does nothing. A mark takes 100 ns and what
Python does around it (_fast.py). It keeps the GIL (PyDLL), because giving it up for so little work could cost a
whole switch interval of another thread.

There is one `Marks` a process, even when this package is loaded twice (by the hooks of `spotter run` under a
private name, by the user as `spotter`): the first one is kept in `sys`.
"""
import atexit
import math
import os
import sys
from time import monotonic_ns
from typing import Any, Callable, Dict, Optional, Tuple

from . import _fast

# src/mark/ring.h, enum mark_kind
STEP, SCALAR, PHASE_BEGIN, PHASE_END, DATA_WAIT, MICRO_STEP, EPOCH, SETTING, SOURCE = range(1, 10)

NAN = math.nan
NAME_BYTES = 63
NAMES = 1000  # a process; the ring holds 1024

# Whoever knows best counts the steps: the user, then a trainer's callbacks (which know epochs and evaluations, too),
# then an engine that steps an optimizer for the program, then the optimizer's hook.
HOOK, ENGINE, FRAMEWORK, USER = 1, 2, 3, 4

_PLACE = "_spotter_marks_3"  # 3: what two copies of this file must agree on


def _library_file() -> Optional[str]:
    named = os.environ.get("SPOTTER_LIB")
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libspotter.so")
    for file in (named, beside):
        if file and os.path.isfile(file):
            return file
    return None


def _open_library() -> Tuple[Optional[_fast.Fast], Optional[Callable[[], int]]]:
    """(marks, spotter_active), or (None, None)."""
    if not os.environ.get("SPOTTER_MARKS"):
        return None, None
    try:
        import ctypes
        file = _library_file()
        if file is None:
            return None, None
        library = ctypes.PyDLL(file)
        mark, active = library.spotter_mark, library.spotter_active
        mark.restype = None
        mark.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_double, ctypes.c_int64]
        active.restype = ctypes.c_int
        active.argtypes = []
        return _fast.functions(library) or _fast.by_ctypes(mark), active
    except Exception:
        return None, None


class Marks:
    """Puts marks, and remembers who counts the steps of this process."""

    def __init__(self) -> None:
        self._mark: Optional[Callable[..., Any]] = None
        self.fast: Optional[_fast.Fast] = None  # not None: the ring is open, or was tried to be
        self._active: Optional[Callable[[], int]] = None
        self._opened = self._registered = False
        self._names: Dict[str, bytes] = {}
        self.lane: Any = None  # the loop that has a quick way (_hooks/torch_loop.py)
        self.forget()

    def forget(self) -> None:
        """A new process after a fork has said nothing yet."""
        self.source = ""
        self.priority = 0
        self.told = ""    # the source that the ring knows of
        self.number = 0   # of the last step
        self.loss = NAN   # last one a hook saw, until a step takes it
        self.waits = 0    # data waits that were marked, but for those of the quick way
        self.evaluating = False
        self.pending: Optional[Tuple[int, float, int]] = None

    def open(self) -> bool:
        """Whether there is anybody to tell."""
        if not self._opened:
            self._opened = True
            self.fast, self._active = _open_library()
            self._mark = self.fast and self.fast.mark
            if self._mark is not None and not self._registered:
                self._registered = True
                atexit.register(self.flush)
        return self._mark is not None

    def reset(self) -> None:
        """$SPOTTER_MARKS has changed: looks at it again with the next mark."""
        self.interrupt()
        self._mark = self._active = self.fast = None
        self.forget()
        self._opened = False

    def interrupt(self) -> None:
        """Something changes that the quick way through the hooks takes for granted. From then on the numbers are here
        again, until it is entered anew."""
        if self.lane is not None:
            self.lane.leave_lane()

    def seen_loss(self) -> float:
        """The last one a hook saw, until a step takes it."""
        return self.loss if self.lane is None else float(self.lane.seen_loss())

    def seen_waits(self) -> int:
        """How many waits for data were marked."""
        lane = self.fast.lane if self.fast is not None else None
        return self.waits + (lane.waits_seen() if lane is not None else 0)

    def active(self) -> bool:
        """Whether a recorder listens: there is a ring."""
        if not self.open() or self._active is None:
            return False
        return bool(self._active())

    def name(self, text: str) -> Optional[bytes]:
        """A name as the ring holds it. None: too many names."""
        known = self._names.get(text)
        if known is None:
            if len(self._names) >= NAMES:
                return None
            raw = text.replace("\0", " ").encode("utf-8", "replace")[:NAME_BYTES]
            known = raw.decode("utf-8", "ignore").encode()
            self._names[text] = known
        return known

    def put(self, kind: int, name: Optional[bytes] = None, number: int = 0, value: float = NAN) -> None:
        if self._mark is not None:
            self._mark(kind, name, number, value, 0)  # 0: now
        elif not self._opened and self.open():
            self.put(kind, name, number, value)

    def named(self, kind: int, text: str, value: float = NAN) -> None:
        if self._opened and self._mark is None:
            return
        name = self.name(text)
        if name:
            self.put(kind, name, 0, value)

    def wait(self, ns: int) -> None:
        """The loop waited for data, until now."""
        self.waits += 1
        if self._mark is not None:
            self._mark(DATA_WAIT, None, ns if ns > 0 else 0, NAN, 0)
        elif not self._opened and self.open():
            self.put(DATA_WAIT, None, ns if ns > 0 else 0)

    def waited(self, since_ns: int) -> None:
        """The same, from then on."""
        if self.fast is not None:
            self.waits += 1
            self.fast.waited(since_ns)
        else:  # opening the library takes milliseconds that are none of it
            self.wait(monotonic_ns() - since_ns)

    def evaluate(self, on: bool) -> None:
        """The phase "evaluate" begins or ends, once, whoever says so."""
        if on != self.evaluating:
            self.interrupt()
            self.evaluating = on
            self.named(PHASE_BEGIN if on else PHASE_END, "evaluate")

    def claim(self, source: str, priority: int) -> bool:
        """Whether this source counts the steps. A better one takes over from a worse one."""
        if self.source == source:
            return True
        if priority <= self.priority:
            return False
        self.interrupt()
        self.pending = None  # the same step, seen by two: the better one counts it
        self.source, self.priority = source, priority
        return True

    def release(self, source: str) -> None:
        if self.source == source:
            self.interrupt()
            self.source, self.priority = "", 0

    def step(self, number: Optional[int] = None, loss: float = NAN) -> None:
        self.number = self.number + 1 if number is None else number
        self.loss = NAN
        if self.told != self.source:
            self.tell_source()
        if self.fast is not None:
            self.fast.step(self.number, loss)
        else:
            self.put(STEP, None, self.number, loss)

    def tell_source(self) -> None:
        """With the first step, and not with the claim: the one who claimed may never come to a step."""
        self.told = self.source
        if self.pending:
            self._at(SOURCE, self.name(self.source), 0, NAN, self.pending[2])
        else:
            self.named(SOURCE, self.source)

    def step_unless_claimed(self, loss: float = NAN) -> None:
        """The first step of a hook waits until the loop goes on: `spotter.step()`, which may come after the
        optimizer's, then counts from its first on, and no step is there twice."""
        if self.number or self.pending:
            if self.pending:
                self.flush()
            self.step(None, loss)
        elif self.open():  # and be called at exit
            self.loss = NAN
            self.pending = (1, loss, monotonic_ns())

    def flush(self) -> None:
        if self.pending is None:
            return
        if self.told != self.source:
            self.tell_source()
        pending, self.pending = self.pending, None
        self.number = pending[0]
        self._at(STEP, None, *pending)

    def _at(self, kind: int, name: Optional[bytes], number: int, value: float, t_ns: int) -> None:
        if self.open() and self._mark is not None:
            self._mark(kind, name, number, value, t_ns)


def shared() -> Marks:
    """The one of this process."""
    marks = getattr(sys, _PLACE, None)
    if marks is None:
        marks = Marks()
        setattr(sys, _PLACE, marks)
        os.register_at_fork(after_in_child=marks.forget)
    return marks


def reading(value: Any) -> Optional[float]:
    """A number out of what people call a loss; None when that would make a device, or us, wait."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    try:
        reader = _readers.get(kind)
        if reader is not None:
            return reader(value)
        if kind is int or kind is bool:
            return float(value)
        return _reading(value, kind.__module__.partition(".")[0])
    except Exception:
        return None


_readers: Dict[type, Callable[[Any], Optional[float]]] = {}


def tensor_reader(torch: Any) -> Callable[[Any], Optional[float]]:
    """Reads a scalar from host memory by its address: no operator runs, so that no profiler, dispatch mode or
    autograd sees anything, and nothing can wait. None for whatever is not a plain tensor on the CPU.

    A function mode (torch.set_default_device() is one, too) is asked what the address is, and may answer what it
    likes: it is put aside meanwhile (torch >= 2.0), or nothing is read."""
    import ctypes
    import struct
    plain, single, double = torch.Tensor, torch.float32, torch.float64
    half, brain = torch.float16, torch.bfloat16
    float_at: Any = None
    core = getattr(torch, "_C", None)
    mode_enabled: Any = getattr(core, "_is_torch_function_mode_enabled", None)
    put_aside: Any = getattr(core, "DisableTorchFunction", None)  # before 2.0 not for modes
    if mode_enabled is None and not hasattr(getattr(torch, "overrides", None), "TorchFunctionMode"):
        mode_enabled = bool  # before 1.12 there are none

    def read(t: Any) -> Optional[float]:
        nonlocal float_at
        if type(t) is not plain or mode_enabled is None:
            return None
        if mode_enabled():
            if put_aside is None:
                return None
            with put_aside():
                return None if mode_enabled() else read(t)
        if not t.is_cpu or t.numel() != 1:
            return None
        try:
            dtype, address = t.dtype, t.data_ptr()
        except Exception:
            return None  # has no storage
        if dtype is single:
            if float_at is None:
                marks = shared()
                float_at = marks.fast.float_at if marks.open() and marks.fast else _fast.float_by_ctypes
            return float_at(address)  # type: ignore[no-any-return]
        if not address:
            return None
        if dtype is double:
            return float(ctypes.c_double.from_address(address).value)
        if dtype is half or dtype is brain:
            raw = bytes((ctypes.c_char * 2).from_address(address))
            found = struct.unpack("<e", raw) if dtype is half else struct.unpack("<f", b"\0\0" + raw)
            return float(found[0])
        return None

    return read


def _reading(value: Any, library: str) -> Optional[float]:
    if library == "torch":
        torch = sys.modules["torch"]
        if type(value) is torch.Tensor:
            read = _readers[type(value)] = _tensor_reading(torch)
            return read(value)
        if value.is_cpu and value.numel() == 1:
            return float(value.detach())
    elif library in ("jaxlib", "jax"):
        if value.size == 1 and value.is_ready() and all(d.platform == "cpu" for d in value.devices()):
            return float(value)
    elif library == "tensorflow":
        if "CPU" in value.device:
            return float(value)
    elif library in ("numpy", "builtins", "decimal", "fractions"):
        return None if isinstance(value, (str, bytes)) else float(value)
    return None


def _tensor_reading(torch: Any) -> Callable[[Any], Optional[float]]:
    """The quick one where it can, else by torch: numbers of other types, of which people log some."""
    quick = tensor_reader(torch)

    def read(t: Any) -> Optional[float]:
        found = quick(t)
        if found is None and t.is_cpu and t.numel() == 1:
            return float(t.detach())
        return found

    return read
