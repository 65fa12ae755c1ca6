# SPDX-License-Identifier: MIT
"""Callbacks for trainers: Trainer(callbacks=[spotter.LightningCallback()]) and the like.

Under `spotter run` they are added without a line (_hooks). Frameworks are imported when their callback is first
named, which is when the program has done so. Values are read where the trainer has read them already, or
where they are in host memory: see _marks.reading.
"""
import sys
import threading
from collections import deque
from importlib import import_module
from typing import TYPE_CHECKING, Any, Deque, Dict, Tuple

from . import _marks
from ._marks import EPOCH, FRAMEWORK, MICRO_STEP, NAN, SCALAR, SETTING, reading

_here = _marks.shared()


def _log(values: Any) -> None:
    for name, value in dict(values or {}).items():
        number = reading(value)
        if number is not None:
            _here.named(SCALAR, str(name), number)


def _loss(value: Any) -> float:
    number = reading(value) if value is not None else None
    return _here.loss if number is None else number  # else what a hook saw


class _Lightning:
    _spotter = True
    _steps = 0  # trainer.global_step when the last step was marked

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        _here.claim("lightning", FRAMEWORK)
        self._steps = trainer.global_step
        number = getattr(trainer, "accumulate_grad_batches", None)
        if isinstance(number, int):
            _here.named(SETTING, "trainer.accumulate_grad_batches", number)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        _here.release("lightning")

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        _here.put(EPOCH, None, trainer.current_epoch + 1)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int,
                           *unused: Any) -> None:
        if not _here.claim("lightning", FRAMEWORK):
            return
        done = trainer.global_step  # grows by one for each optimizer
        if done == self._steps:
            _here.put(MICRO_STEP)
            return
        self._steps = done
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        _here.step(done if len(trainer.optimizers) == 1 else None, _loss(loss))

    def on_train_epoch_end(self, trainer: Any, pl_module: Any, *unused: Any) -> None:
        _log(trainer.callback_metrics)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        _here.evaluate(True)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        _here.evaluate(False)
        _log(trainer.callback_metrics)

    on_test_start, on_test_end = on_validation_start, on_validation_end


class _HF:
    _spotter = True

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        _here.claim("transformers", FRAMEWORK)
        number = getattr(args, "gradient_accumulation_steps", None)
        if isinstance(number, int):
            _here.named(SETTING, "trainer.accumulate_grad_batches", number)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        _here.release("transformers")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        _here.put(EPOCH, None, int(state.epoch or 0) + 1)

    def on_substep_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if _here.claim("transformers", FRAMEWORK):
            _here.put(MICRO_STEP)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if _here.claim("transformers", FRAMEWORK):
            _here.step(state.global_step, _here.loss)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        _here.evaluate(True)

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        _here.evaluate(False)

    on_predict = on_evaluate

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        _log(logs)


class _Keras:
    """Keras may call on_train_batch_end from threads of its own, when the numbers have been read, and two of
    them in any order; on_train_batch_begin is in order. A batch is marked when those before it are."""
    _spotter = True
    _supports_tf_logs = True  # Keras 2: numbers stay where they are

    def on_train_begin(self, logs: Any = None) -> None:
        _here.claim("keras", FRAMEWORK)
        self._before = _here.number  # steps of epochs that have ended
        self._lock = threading.Lock()
        self._begun: Deque[int] = deque()
        self._ended: Dict[int, Tuple[float, Dict[str, Any]]] = {}

    def on_train_end(self, logs: Any = None) -> None:
        _here.release("keras")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._before = _here.number
        self._begun.clear()
        self._ended.clear()
        _here.put(EPOCH, None, epoch + 1)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        _log({k: v for k, v in (logs or {}).items() if k != "loss"})

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._begun.append(batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        loss = reading((logs or {}).get("loss"))
        with self._lock:
            self._ended[batch] = (NAN if loss is None else loss, {})
            while self._begun and self._ended:
                last = min(self._ended)  # of several batches that were one call
                if last < self._begun[0]:
                    self._ended.pop(last)
                    continue
                if len(self._begun) > 1 and last >= self._begun[1]:
                    break  # one before it has not ended
                self._begun.popleft()
                value, _ = self._ended.pop(last)
                if _here.claim("keras", FRAMEWORK):
                    _here.step(self._before + last + 1, value)

    def on_test_begin(self, logs: Any = None) -> None:
        _here.evaluate(True)

    def on_test_end(self, logs: Any = None) -> None:
        _here.evaluate(False)


# callback -> (what it does, where its base class may be)
_KNOWN = {
    "LightningCallback": (_Lightning, (("lightning.pytorch.callbacks", "Callback"),
                                       ("pytorch_lightning.callbacks", "Callback"))),
    "HFCallback": (_HF, (("transformers.trainer_callback", "TrainerCallback"),)),
    "KerasCallback": (_Keras, (("keras.callbacks", "Callback"), ("tensorflow.keras.callbacks", "Callback"))),
}


def _guarded(method: Any) -> Any:
    """No exception of ours ends a training."""
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception:
            pass
    run.__name__, run.__doc__ = method.__name__, method.__doc__
    return run


def _make(name: str, base: type) -> type:
    """The callback on this base class."""
    body = _KNOWN[name][0]
    members = {k: _guarded(v) if k.startswith("on_") else v for k, v in vars(body).items()
               if k not in ("__dict__", "__weakref__")}
    made = type(name, (base,), {**members, "__module__": __name__})
    globals()[name] = made
    return made


def _base(name: str) -> type:
    """The one that the program has imported, else the first that is installed."""
    places = _KNOWN[name][1]
    for place in sorted(places, key=lambda p: p[0].partition(".")[0] not in sys.modules):
        try:
            base: type = getattr(import_module(place[0]), place[1])
            return base
        except ImportError:
            pass
    raise ImportError("spotter.%s needs %s" % (name, " or ".join(p[0].partition(".")[0] for p in places)))


if TYPE_CHECKING:
    LightningCallback: Any
    HFCallback: Any
    KerasCallback: Any
else:
    def __getattr__(name: str) -> Any:
        if name not in _KNOWN:
            raise AttributeError("module %r has no attribute %r" % (__name__, name))
        return _make(name, _base(name))
