# SPDX-License-Identifier: MIT
"""PyTorch, 1.13 and later: where the hooks go. What they mean is counted in torch_loop.py.

- The optimizer's step: `register_optimizer_step_post_hook` (torch >= 2.0). Before, `_optimizer_step_code`, an
  empty method that every step() calls at its end for the profiler, is replaced. (The profiler finds it by its
  code object and reads the local `self`: ours has one.)
- `Tensor.backward`: the loss, when it is in host memory.
- `DataLoader.__iter__` and `_BaseDataLoaderIter.__next__`: passes, and how long the loop waited.
- `torch.save`: a checkpoint. `GradScaler.update`: steps that were skipped.

Each of the three that a step meets first asks the quick way (torch_loop.py), one call of a builtin: in the middle of a
training none of this is in a cache, and each line of Python costs ten times what it costs in a loop of its own. Until
the quick way is known, `_never` answers.

Inside torch.compile every one of them is the original.
"""
import functools
import inspect
import sys
from time import monotonic_ns
from typing import Any, Callable, Dict, Optional

from .. import _marks
from .._fast import Lane
from .torch_loop import Loop

Compiling = Optional[Callable[[], bool]]  # None: there is no torch.compile

NEAR = 10  # frames between a step() and the step() of its base class: decorators and the method


def install(torch: Any) -> None:
    compiling = _compiling(torch)
    read = _marks.tensor_reader(torch)
    loop = Loop(_marks.shared(), torch.Tensor, torch.is_grad_enabled, read, _facts(torch))
    for hook in (_hook_optimizer, _hook_backward, _hook_loader, _hook_save, _hook_scaler):
        try:
            hook(torch, loop, compiling)
        except Exception:
            pass  # another torch than we know: the others may still work
    methods = [m for c in (Loop, _marks.Marks) for m in vars(c).values()]
    _leave_alone(torch, read, _never, _is_inner, _is_simple, *methods)


def _facts(torch: Any) -> Any:
    """For know() of src/mark/python.c."""
    try:
        return (torch.Tensor, torch.float32, torch.is_grad_enabled, torch._C._is_torch_function_mode_enabled,
                torch.Tensor.data_ptr, "is_cpu", "dtype")
    except AttributeError:
        return ()


def _never(_: Any) -> bool:
    return False


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


def _compiling(torch: Any) -> Compiling:
    """True while torch.compile traces. Dynamo knows these functions and folds them to a constant. The first asks for
    nothing else, and is the quicker one."""
    compiler = getattr(torch, "compiler", None)
    for name in ("is_dynamo_compiling", "is_compiling"):  # 2.1
        found: Any = getattr(compiler, name, None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    return None


_simple: Dict[type, bool] = {}


def _is_simple(optimizer: Any) -> bool:
    """Whether its class has one step() at most, but for torch's Optimizer: no other can be within it. (A step() that
    torch has wrapped for a subclass which inherits it, as AdamW does, is the same one.)"""
    kind = type(optimizer)
    found = _simple.get(kind)
    if found is None:
        steps = {inspect.unwrap(c.__dict__["step"]) for c in kind.__mro__
                 if "step" in c.__dict__ and c.__module__ != "torch.optim.optimizer"}
        found = _simple[kind] = len(steps) < 2
    return found


def _is_inner(optimizer: Any) -> bool:
    """Whether this end of step() is that of a base class, called by a step() that has not ended: a subclass
    that calls super().step() is hooked twice. Looking at frames takes microseconds: only where there may be one."""
    frame: Any = sys._getframe(3)  # behind stepped() and after(): torch's wrapper around step()
    code = frame.f_code
    for _ in range(NEAR):
        frame = frame.f_back
        if frame is None:
            return False
        if frame.f_code is code:
            args = frame.f_locals.get("args") or (None,)
            return args[0] is optimizer
    return False


def _hook_optimizer(torch: Any, loop: Loop, compiling: Compiling) -> None:
    module = sys.modules["torch.optim.optimizer"]
    register = getattr(module, "register_optimizer_step_post_hook", None)
    stepped: Callable[[Any], bool] = _never

    def learn(lane: Lane) -> None:
        nonlocal stepped
        stepped = lane.stepped

    def slowly(optimizer: Any) -> None:
        try:
            simple = _is_simple(optimizer)
            if simple or not _is_inner(optimizer):
                loop.optimizer_stepped(optimizer, simple)
        except Exception:
            pass

    def after(self: Any, args: Any = None, kwargs: Any = None) -> None:
        if not stepped(self):
            slowly(self)

    def after_unless_compiling(self: Any, args: Any, kwargs: Any) -> None:
        if not compiling() and not stepped(self):  # type: ignore[misc]
            slowly(self)

    loop.learners.append(learn)
    _leave_alone(torch, slowly, after, after_unless_compiling)
    if register is not None:
        register(after if compiling is None else after_unless_compiling)
    else:
        after.__name__ = after.__qualname__ = "_optimizer_step_code"
        after.__doc__ = module.Optimizer._optimizer_step_code.__doc__
        module.Optimizer._optimizer_step_code = after


def _hook_backward(torch: Any, loop: Loop, compiling: Compiling) -> None:
    original = torch.Tensor.backward
    graded: Callable[[Any], bool] = _never

    def learn(lane: Lane) -> None:
        nonlocal graded
        graded = lane.graded

    def slowly(loss: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            try:
                loop.backward(loss)
            except Exception:
                pass
            return original(loss, *args, **kwargs)
        finally:
            if loop.backward_open == id(loss):
                loop.backward_open = 0

    def failed(loss: Any) -> None:
        try:
            if loss.numel() != 1 and not loop.elsewhere():  # the quick way takes for granted that it is one number
                loop.no_loss()
        except Exception:
            pass

    @functools.wraps(original)
    def backward(self: Any, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False,
                 inputs: Any = None) -> Any:
        if gradient is not None or not graded(self):
            return slowly(self, gradient, retain_graph, create_graph, inputs)
        try:
            return original(self, gradient, retain_graph, create_graph, inputs)
        except BaseException:
            failed(self)
            raise

    @functools.wraps(original)
    def backward_unless_compiling(self: Any, gradient: Any = None, retain_graph: Any = None, create_graph: Any = False,
                                  inputs: Any = None) -> Any:
        if compiling():  # type: ignore[misc]
            return original(self, gradient, retain_graph, create_graph, inputs)
        if gradient is not None or not graded(self):
            return slowly(self, gradient, retain_graph, create_graph, inputs)
        try:
            return original(self, gradient, retain_graph, create_graph, inputs)
        except BaseException:
            failed(self)
            raise

    @functools.wraps(original)
    def any_backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling is not None and compiling():
            return original(self, *args, **kwargs)
        return slowly(self, *args, **kwargs)

    loop.learners.append(learn)
    if compiling is not None:
        backward = backward_unless_compiling
    if list(inspect.signature(original).parameters) != ["self", "gradient", "retain_graph", "create_graph", "inputs"]:
        backward = any_backward  # of a torch that we do not know
    _leave_alone(torch, slowly, failed, backward)
    torch.Tensor.backward = backward


def _hook_loader(torch: Any, loop: Loop, compiling: Compiling) -> None:
    module = sys.modules["torch.utils.data.dataloader"]
    make, advance = module.DataLoader.__iter__, module._BaseDataLoaderIter.__next__
    asked: Callable[[Any], bool] = _never
    came: Callable[[Any], bool] = _never

    def learn(lane: Lane) -> None:
        nonlocal asked, came
        asked, came = lane.asked, lane.came

    @functools.wraps(make)
    def __iter__(self: Any) -> Any:
        began = monotonic_ns()
        iterator = make(self)
        try:
            loop.pass_begins(self, iterator, began)
        except Exception:
            pass
        return iterator

    def wanted(iterator: Any) -> Any:
        try:
            return loop.batch_wanted(getattr(iterator, "_spotter_pass", None))
        except Exception:
            return None

    def over(one: Any, began: int, error: BaseException) -> None:
        try:
            loop.pass_ended(one, began, isinstance(error, StopIteration))
        except Exception:
            pass

    def slowly(iterator: Any) -> Any:
        one = wanted(iterator)
        if one is None:
            return advance(iterator)
        began = monotonic_ns()
        try:
            batch = advance(iterator)
        except BaseException as e:
            over(one, began, e)
            raise
        try:
            loop.batch_came(one, began)
        except Exception:
            pass
        return batch

    def ended(iterator: Any, error: Optional[BaseException]) -> None:
        """It came after all that was asked for on the quick way; error: it did not."""
        try:
            loop.leave_lane()
            one = iterator._spotter_pass
            if error is None:
                loop.batch_came(one, one.asked_ns)
            else:
                over(one, one.asked_ns, error)
        except Exception:
            pass

    @functools.wraps(advance)
    def __next__(self: Any) -> Any:
        quick = True  # until it says no: Ctrl-C may come before its answer is kept
        try:
            quick = asked(self)
            if quick:
                batch = advance(self)
        except BaseException as e:
            if quick:
                ended(self, e)
            raise
        if not quick:
            return slowly(self)
        if not came(self):  # something else has happened meanwhile
            ended(self, None)
        return batch

    loop.learners.append(learn)
    _leave_alone(torch, wanted, over, slowly, ended, __iter__, __next__)
    module.DataLoader.__iter__ = __iter__
    module._BaseDataLoaderIter.__next__ = __next__


def _hook_save(torch: Any, loop: Loop, compiling: Compiling) -> None:
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


def _hook_scaler(torch: Any, loop: Loop, compiling: Compiling) -> None:
    for name in ("torch.amp.grad_scaler", "torch.cuda.amp.grad_scaler"):  # 2.3; before
        scaler = getattr(sys.modules.get(name), "GradScaler", None)
        if scaler is None or "update" not in scaler.__dict__:
            continue  # the old name of the new one
        scaler.update = _scaler_update(scaler.update, loop, compiling)
        scaler.scale = _scaler_scale(scaler.scale, loop, compiling)
        _leave_alone(torch, scaler.update, scaler.scale)


def _scaler_update(original: Any, loop: Loop, compiling: Compiling) -> Any:
    @functools.wraps(original)
    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        try:
            if getattr(self, "_enabled", False) and (compiling is None or not compiling()):
                loop.scaler_updated()
        except Exception:
            pass
        return result
    return update


def _scaler_scale(original: Any, loop: Loop, compiling: Compiling) -> Any:
    @functools.wraps(original)
    def scale(self: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, outputs, *args, **kwargs)
        try:
            if result is not outputs and (compiling is None or not compiling()):
                loop.scaled(outputs, result)
        except Exception:
            pass
        return result
    return scale
