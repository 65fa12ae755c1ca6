# SPDX-License-Identifier: MIT
"""PyTorch, 1.13 and later: where the hooks go. What they mean is counted in torch_loop.py.

- The optimizer's step: `register_optimizer_step_post_hook` (torch >= 2.0). Before, `_optimizer_step_code`, an
  empty method that every step() calls at its end for the profiler, is replaced. (The profiler finds it by its
  code object and reads the local `self`: ours has one.)
- `Tensor.backward`: the loss, when it is in host memory.
- `DataLoader.__iter__` and `_BaseDataLoaderIter.__next__`: passes, and how long the loop waited.
- `torch.save`: a checkpoint. `GradScaler.update`: steps that were skipped.

Inside torch.compile every one of them is the original.
"""
import functools
import sys
from time import monotonic_ns
from typing import Any, Callable, Dict

from .. import _marks
from .torch_loop import Loop

NEAR = 10  # frames between a step() and the step() of its base class: decorators and the method


def install(torch: Any) -> None:
    compiling = _compiling(torch)
    read = _loss_reader(torch)
    loop = Loop(_marks.shared(), torch.Tensor, torch.is_grad_enabled, read)
    for hook in (_hook_optimizer, _hook_backward, _hook_loader, _hook_save, _hook_scaler):
        try:
            hook(torch, loop, compiling)
        except Exception:
            pass  # another torch than we know: the others may still work
    methods = [m for c in (Loop, _marks.Marks) for m in vars(c).values()]
    _leave_alone(torch, read, _is_inner, *methods)


def _leave_alone(torch: Any, *functions: Any) -> None:
    """Tells dynamo (2.0) not to compile our functions when a compiled program calls them between two graphs. By
    the C module: `torch._dynamo` itself takes a second to import."""
    try:
        skip = _skipper(torch)
        for function in functions:
            code = getattr(function, "__code__", None)
            if skip is not None and code is not None:
                skip(code)
    except Exception:
        pass


def _skipper(torch: Any) -> Any:
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    skip = getattr(frames, "skip_code", None)
    if skip is None and hasattr(frames, "set_code_exec_strategy"):  # 2.6
        action = frames._FrameAction
        strategy = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)
        return lambda code: frames.set_code_exec_strategy(code, strategy)
    return skip


def _compiling(torch: Any) -> Callable[[], bool]:
    """True while torch.compile traces. Dynamo knows these functions and folds them to a constant."""
    compiler = getattr(torch, "compiler", None)
    found = getattr(compiler, "is_compiling", None)  # 2.1
    return found or (lambda: False)


def _loss_reader(torch: Any) -> Callable[[Any], float]:
    """Reads a scalar from host memory by its address: no operator runs, so that no profiler, dispatch mode or
    autograd sees anything, and nothing can wait. NAN for whatever is not a plain tensor on the CPU."""
    import ctypes
    import struct
    plain = torch.Tensor
    kinds = {torch.float32: ctypes.c_float, torch.float64: ctypes.c_double}
    half, brain = torch.float16, torch.bfloat16

    def read(t: Any) -> float:
        if type(t) is not plain or not t.is_cpu or t.numel() != 1:
            return _marks.NAN
        dtype, address = t.dtype, t.data_ptr()
        kind = kinds.get(dtype)
        if not address:
            return _marks.NAN
        if kind is not None:
            return float(kind.from_address(address).value)
        if dtype is half or dtype is brain:
            raw = bytes((ctypes.c_char * 2).from_address(address))
            found = struct.unpack("<e", raw) if dtype is half else struct.unpack("<f", b"\0\0" + raw)
            return float(found[0])
        return _marks.NAN

    return read


_steps_of: Dict[type, int] = {}  # how many classes of its line have a step() of their own, but for torch's Optimizer


def _is_inner(optimizer: Any) -> bool:
    """Whether this end of step() is that of a base class, called by a step() that has not ended: a subclass
    that calls super().step() is hooked twice. Looking at frames takes microseconds: only where there may be one."""
    kind = type(optimizer)
    steps = _steps_of.get(kind)
    if steps is None:
        steps = _steps_of[kind] = sum("step" in c.__dict__ for c in kind.__mro__ if c.__module__ != "torch.optim.optimizer")
    if steps < 2:
        return False
    frame: Any = sys._getframe(2)  # torch's wrapper around step()
    code = frame.f_code
    for _ in range(NEAR):
        frame = frame.f_back
        if frame is None:
            return False
        if frame.f_code is code:
            args = frame.f_locals.get("args") or (None,)
            return args[0] is optimizer
    return False


def _hook_optimizer(torch: Any, loop: Loop, compiling: Callable[[], bool]) -> None:
    module = sys.modules["torch.optim.optimizer"]
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            if compiling():
                return
            try:
                if not _is_inner(optimizer):
                    loop.optimizer_stepped(optimizer)
            except Exception:
                pass

        _leave_alone(torch, after)
        register(after)
        return

    def _optimizer_step_code(self: Any) -> None:
        try:
            if not _is_inner(self):
                loop.optimizer_stepped(self)
        except Exception:
            pass

    _optimizer_step_code.__doc__ = module.Optimizer._optimizer_step_code.__doc__
    module.Optimizer._optimizer_step_code = _optimizer_step_code


def _hook_backward(torch: Any, loop: Loop, compiling: Callable[[], bool]) -> None:
    original = torch.Tensor.backward

    @functools.wraps(original)
    def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not compiling():
            try:
                loop.backward(self)
            except Exception:
                pass
        return original(self, *args, **kwargs)

    _leave_alone(torch, backward)
    torch.Tensor.backward = backward


def _hook_loader(torch: Any, loop: Loop, compiling: Callable[[], bool]) -> None:
    module = sys.modules["torch.utils.data.dataloader"]
    make, advance = module.DataLoader.__iter__, module._BaseDataLoaderIter.__next__

    @functools.wraps(make)
    def __iter__(self: Any) -> Any:
        began = monotonic_ns()
        iterator = make(self)
        try:
            loop.pass_begins(self, iterator, began)
        except Exception:
            pass
        return iterator

    @functools.wraps(advance)
    def __next__(self: Any) -> Any:
        try:
            one = loop.batch_wanted(self)
        except Exception:
            one = None
        if one is None:
            return advance(self)
        began = monotonic_ns()
        try:
            batch = advance(self)
        except BaseException as e:
            loop.pass_ended(one, began, isinstance(e, StopIteration))
            raise
        try:
            loop.batch_came(one, began)
        except Exception:
            pass
        return batch

    _leave_alone(torch, __iter__, __next__)
    module.DataLoader.__iter__ = __iter__
    module._BaseDataLoaderIter.__next__ = __next__


def _hook_save(torch: Any, loop: Loop, compiling: Callable[[], bool]) -> None:
    original = torch.save

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        outermost = loop.save_begins()
        try:
            return original(*args, **kwargs)
        finally:
            if outermost:
                loop.save_ended()

    _leave_alone(torch, save)
    # Both, so that a pickled reference to it still means the same object.
    torch.save = torch.serialization.save = save


def _hook_scaler(torch: Any, loop: Loop, compiling: Callable[[], bool]) -> None:
    for name in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):  # 2.3; before
        scaler = getattr(sys.modules.get(name), "GradScaler", None)
        if scaler is None or "update" not in scaler.__dict__:
            continue  # the old name of the new one
        scaler.update = _scaler_update(scaler.update, loop, compiling)
        scaler.scale = _scaler_scale(scaler.scale, loop, compiling)
        _leave_alone(torch, scaler.update, scaler.scale)


def _scaler_update(original: Any, loop: Loop, compiling: Callable[[], bool]) -> Any:
    @functools.wraps(original)
    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        try:
            if getattr(self, "_enabled", False) and not compiling():
                loop.scaler_updated()
        except Exception:
            pass
        return result
    return update


def _scaler_scale(original: Any, loop: Loop, compiling: Callable[[], bool]) -> Any:
    @functools.wraps(original)
    def scale(self: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, outputs, *args, **kwargs)
        try:
            if result is not outputs and not compiling():
                loop.scaled(outputs, result)
        except Exception:
            pass
        return result
    return scale
