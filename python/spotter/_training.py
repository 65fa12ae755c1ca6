# SPDX-License-Identifier: MIT
"""What a training says of itself: steps, losses, phases. Nothing here waits, fails or talks to a device."""
import functools
import inspect
from time import monotonic_ns
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, Optional, Type, TypeVar, cast

from . import _marks
from ._marks import NAN, PHASE_BEGIN, PHASE_END, SCALAR, USER, reading

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

API = "api"  # as a source of steps

_here = _marks.shared()


def active() -> bool:
    """Whether a recorder listens to the marks of this process."""
    return _here.active()


def step(loss: Any = None, *, number: Optional[int] = None, **metrics: Any) -> None:
    """A step of the training has ended.

    loss and metrics are numbers or tensors. A tensor on a GPU is left out, never waited for: pass
    `loss.item()` where your loop reads it anyway. number: of a run that was resumed, say; else counted from 1.
    From the first call on, steps that hooks see are not counted any more: yours are.
    """
    if _here.fast is None and not _here.open():
        return
    if _here.source != API:
        _here.claim(API, USER)
    value = NAN if loss is None else reading(loss)
    if value is None:  # a hook may have seen it in host memory
        value = _here.seen_loss()
    try:
        _here.step(number, value)
    except Exception:
        pass
    if metrics:
        log(**metrics)


def log(**scalars: Any) -> None:
    """Numbers that are not of one step: an accuracy, a learning rate. Tensors as in `step()`."""
    if not _here.open():
        return
    for name, value in scalars.items():
        number = reading(value)
        if number is not None:
            _here.named(SCALAR, name, number)


class phase:
    """What the program does for a while: `with spotter.phase("evaluate"): ...`, or a decorator. May nest."""

    def __init__(self, name: str) -> None:
        self.name = str(name)

    def __enter__(self) -> "phase":
        if self.name == "evaluate":
            _here.evaluate(True)
        else:
            _here.named(PHASE_BEGIN, self.name)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self.name == "evaluate":
            _here.evaluate(False)
        else:
            _here.named(PHASE_END, self.name)

    def __call__(self, function: F) -> F:
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)
            return cast(F, run_async)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return cast(F, run)


class steps(Iterable[T]):
    """Each turn of a loop is a step: `for batch in spotter.steps(loader):`. The time until `loader` gave the
    batch is marked as wait for data. A call of `spotter.step(loss=...)` in the turn ends the step instead."""

    def __init__(self, iterable: Iterable[T]) -> None:
        self._iterable = iterable

    def __len__(self) -> int:
        return len(cast(Any, self._iterable))

    def __iter__(self) -> Iterator[T]:
        if not _here.open():
            yield from self._iterable
            return
        source = iter(self._iterable)
        while True:
            waits, began = _here.seen_waits(), monotonic_ns()
            try:
                item = next(source)
            except StopIteration:
                return
            if _here.seen_waits() == waits:  # else a hook has marked it
                _here.waited(began)
            if _here.source != API:
                _here.claim(API, USER)
            before = _here.number
            yield item
            if _here.number == before:
                _here.step(None, _here.seen_loss())
