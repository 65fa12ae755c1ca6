# SPDX-License-Identifier: MIT
"""What a PyTorch loop is doing, from the few calls of it that are hooked.

A step is an end of step() of the first optimizer that was seen: with several (a GAN, an optimizer for each
parameter) one is the clock. A batch whose backward() no optimizer followed is a micro step (gradient
accumulation). A pass over a DataLoader in which backward() is called is an epoch; one without gradients, or
without backward() in a program that has trained, is an evaluation. Only the thread that trains counts.

Nearly all steps of nearly all programs are a batch, a backward() and a step of the clock, and then it begins again. For
those there is a quick way through the hooks, in C (src/mark/python.c): it knows what came last, and answers whether
what comes now is what is next. This class lets a loop into it. Whatever else happens is this class's, which first leaves
the quick way and takes over what was counted there.
"""
import os
import sys
import weakref
from threading import get_ident
from time import monotonic_ns
from typing import Any, Callable, Dict, List, Optional, Tuple

from .. import _marks
from .._fast import Lane

# Another optimizer that stepped this often since the clock did has taken over (a second stage of a training).
# More than the critic's steps of a GAN.
TAKEN_OVER = 20
MICRO_MOST = 1000  # marks for one step

TORCH = "torch"  # as a source of steps
CHECKPOINT = "checkpoint"

# Not on the quick way; on it, and what came last (enum place in python.c)
OUT, STEPPED, ASKED, FETCHED, GRADED = range(5)


class Pass:
    """One walk over a DataLoader."""
    __slots__ = ("loader", "iterator", "began_ns", "asked_ns", "batches", "trained", "ended", "waiting")

    def __init__(self, loader: Any, iterator: Any, began_ns: int) -> None:
        self.loader = weakref.ref(loader)
        self.iterator = iterator  # weak, too
        self.began_ns = began_ns  # 0 once the first batch came
        self.asked_ns = 0         # for a batch, when it was on the quick way
        self.batches = 0
        self.trained = False
        self.ended = False
        self.waiting = 0  # the thread that does; 0: none


class Loop:
    def __init__(self, marks: _marks.Marks, plain: type, grad_enabled: Callable[[], bool],
                 read_loss: Callable[[Any], Optional[float]], facts: Tuple[Any, ...] = ()) -> None:
        self.marks = marks
        self.plain = plain  # torch.Tensor
        self.grad_enabled = grad_enabled
        self.read_loss = read_loss
        self.facts = facts  # of torch, that the quick way needs: see know() in python.c
        self.learners: List[Callable[[Lane], None]] = []  # hooks that use it
        self.learned: Optional[Lane] = None
        self.lane: Optional[Lane] = None  # while on it, as far as known here
        self.saving = False
        os.register_at_fork(after_in_child=self.forget)
        self.forget()

    def forget(self) -> None:
        """The state of a process that has done nothing yet."""
        if self.learned is not None:
            self.learned.leave()
        self.lane = None
        self.thread = 0                   # that trains; 0: not known yet
        self.clock: Optional[int] = None  # id of the optimizer whose steps count
        self.clock_ref: Any = None
        self.others: Dict[int, int] = {}  # id of another -> its steps since the clock's last
        self.several = False
        self.backwards = 0                # since an optimizer stepped or a batch was asked for
        self.backward_open = 0            # id of the tensor whose backward() runs, but for those on the quick way
        self.fed = False                  # batches come from a DataLoader
        self.steps = 0
        self.skipped = 0
        self.scaled_loss: Optional[Tuple[Any, Optional[float]]] = None  # weak: the tensor; what it was before
        self.lane_scaled: Any = None      # weak: the one that the quick way knows
        self.since_update = False         # the clock stepped since GradScaler.update
        self.current: Optional[Pass] = None
        self.evaluating: Optional[Pass] = None
        self.told: Dict[str, float] = {}  # settings
        self.epoch = 0
        self.epoch_loader: Any = None     # weak: the one whose passes are epochs
        self.epoch_pass: Optional[Pass] = None
        self.lane_begins = OUT
        self.lane_pass: Optional[Pass] = None
        self.lane_waits = 0               # how many had been marked there before

    # -- the quick way

    def leave_lane(self) -> int:
        """Takes over what was done there, before anything else is: what came last. OUT: was not on it."""
        lane = self.learned  # and not self.lane: Ctrl-C or another thread may come between any two lines
        if lane is None:
            return OUT
        self.lane = None
        marks, one = self.marks, self.lane_pass
        at, number, loss, began_ns, since_update, scaled, scaled_loss = lane.leave()
        if scaled and self.lane_scaled is not None:
            self.scaled_loss = (self.lane_scaled, scaled_loss)
        if at == OUT:
            return OUT
        marks.loss = loss
        if marks.source == TORCH:
            marks.number = number
        self.since_update = bool(since_update)
        if at == GRADED:
            self.backwards = 1
        elif at == ASKED and one is not None:
            one.waiting, one.asked_ns = self.thread, began_ns
        if one is not None:
            one.batches += lane.waits_seen() - self.lane_waits
        return at

    def enter_lane(self) -> None:
        """The clock has stepped, and all is as it will be most of the time."""
        marks, one = self.marks, self.current
        if (marks.fast is None or marks.fast.lane is None or not self.facts or marks.pending
                or marks.told != marks.source or marks.priority in (_marks.ENGINE, _marks.FRAMEWORK) or marks.evaluating
                or self.evaluating or self.others or self.scaled_loss):
            return
        if one is None:
            if self.fed:
                return
            self.lane_begins = FETCHED  # no loader: backward() is what comes next
        else:
            if not one.trained or one.waiting:
                return
            self.lane_begins = STEPPED
        self.lane_pass = one
        self.go_on(self.lane_begins)

    def go_on(self, at: int) -> None:
        """On the quick way, from this place on."""
        marks, one = self.marks, self.lane_pass
        lane = marks.fast.lane if marks.fast is not None else None
        iterator = one.iterator() if one is not None else None
        if lane is None or self.clock is None or (one is not None and iterator is None):
            return
        if lane is not self.learned:
            lane.know(*self.facts)
            for learn in self.learners:
                learn(lane)
            self.learned = lane
        self.lane_waits = lane.waits_seen()
        self.lane, marks.lane = lane, self  # before it is so: what is not entered may be left, too
        lane.enter(at, self.lane_begins, marks.source == TORCH, self.since_update, marks.number,
                   0 if iterator is None else id(iterator), self.clock, marks.loss)

    def seen_loss(self) -> float:
        return self.lane.loss_seen() if self.lane is not None else self.marks.loss

    def iterator_gone(self, gone: Any) -> None:
        """Another one may have its address next."""
        try:
            if self.lane is not None and self.lane_pass is not None and self.lane_pass.iterator is gone:
                self.leave_lane()
        except Exception:
            pass

    # -- who counts

    def counts(self) -> bool:
        """Whether phases and epochs are ours to tell: a trainer's own callbacks know them better."""
        return self.marks.priority != _marks.FRAMEWORK

    def elsewhere(self) -> bool:
        """Whether this is another thread than the one that trains: one that fetches ahead, say."""
        return self.steps > 0 and get_ident() != self.thread

    # -- steps

    def optimizer_stepped(self, optimizer: Any, simple: bool) -> None:
        """simple: no step() of a base class may follow."""
        self.leave_lane()
        me = id(optimizer)
        backwards, self.backwards = self.backwards, 0
        if me != self.clock and not self.becomes_clock(optimizer, me):
            return
        if self.others:
            self.others.clear()
        self.thread = get_ident()
        if self.evaluating:
            self.end_evaluation()
        self.steps += 1
        self.since_update = True
        marks = self.marks
        if marks.claim(TORCH, _marks.HOOK):
            if backwards > 1 and not self.fed and not self.several and type(optimizer).__name__ != "LBFGS":
                for _ in range(min(backwards - 1, MICRO_MOST)):
                    marks.put(_marks.MICRO_STEP)
            marks.step_unless_claimed(marks.loss)
        if simple:
            self.enter_lane()

    def becomes_clock(self, optimizer: Any, me: int) -> bool:
        if self.clock is not None:
            self.several = True
            count = self.others[me] = self.others.get(me, 0) + 1
            if count < TAKEN_OVER:
                return False
        self.clock = me

        def gone(_: Any, me: int = me) -> None:
            if self.clock == me:
                self.leave_lane()
                self.clock = None

        self.clock_ref = weakref.ref(optimizer, gone)
        return True

    def backward(self, loss: Any) -> None:
        if self.elsewhere() or self.backward_open == id(loss):
            return  # the second: a function mode or a subclass hands it on to Tensor.backward, which comes here again
        self.backward_open = id(loss)  # until the hook takes it back
        came_last = self.leave_lane()
        marks = self.marks
        if marks.pending:
            marks.flush()
        if type(loss) is self.plain:
            self.backwards += 1
        else:
            self.backwards = 1  # a subclass may come here as another object for one call
        scaled, self.scaled_loss = self.scaled_loss, None
        read = scaled[1] if scaled and scaled[0]() is loss else self.read_loss(loss)
        marks.loss = _marks.NAN if read is None else read
        if self.evaluating:
            self.end_evaluation()
        one = self.current
        if one is not None and not one.trained:
            one.trained = self.fed = True
            self.training_pass(one)
        if came_last == FETCHED:  # only the loss was another than most: of 64 bits, say
            self.backwards = 0    # as on the quick way
            self.go_on(GRADED)

    def no_loss(self) -> None:
        """backward() was called on a tensor of many numbers, and failed."""
        self.leave_lane()
        self.marks.loss = _marks.NAN

    def scaled(self, loss: Any, result: Any) -> None:
        """backward() will be called on what AMP multiplied; the loss is what it was before."""
        read = self.read_loss(loss)
        known = weakref.ref(result)  # weak: another tensor may have its address when it is gone
        if self.lane is not None:
            self.lane_scaled = known
            self.lane.scaled(result, _marks.NAN if read is None else read)
        else:
            self.scaled_loss = (known, read)

    def scaler_updated(self) -> None:
        """Once an iteration with AMP. A step that found infinities was left out, but it was an iteration."""
        if self.lane is not None and self.lane.updated():
            return
        self.leave_lane()
        stepped, self.since_update = self.since_update, False
        if stepped or not self.backwards or not self.steps:
            return
        self.backwards = 0
        self.skipped += 1
        if self.marks.claim(TORCH, _marks.HOOK):
            self.marks.step_unless_claimed(self.marks.loss)
            self.marks.named(_marks.SCALAR, "amp.skipped_steps", self.skipped)

    # -- data

    def pass_begins(self, loader: Any, iterator: Any, began_ns: int) -> None:
        if self.elsewhere() or _is_worker():
            return
        made_ns = monotonic_ns()
        self.leave_lane()
        one = Pass(loader, weakref.ref(iterator, self.iterator_gone), began_ns)
        iterator._spotter_pass = one
        known = self.epoch_loader and self.epoch_loader()
        if known is None or known is loader:
            self.settings(loader)
        if known is loader and self.counts() and self.grad_enabled() and not self.marks.evaluating:
            one.trained = True
            self.training_pass(one)
        one.began_ns += monotonic_ns() - made_ns  # ours: opening the library takes milliseconds

    def settings(self, loader: Any) -> None:
        for name in ("num_workers", "prefetch_factor", "pin_memory", "batch_size", "persistent_workers"):
            value = getattr(loader, name, None)
            if isinstance(value, (int, float)) and self.told.get(name) != value:  # None: does not apply
                self.told[name] = value
                self.marks.named(_marks.SETTING, "dataloader." + name, float(value))

    def training_pass(self, one: Pass) -> None:
        """It is known that this pass trains: an epoch, when it is of the loader whose passes are."""
        known = self.epoch_loader and self.epoch_loader()
        loader = one.loader()
        if known is None and loader is not None:
            self.epoch_loader = one.loader
        elif known is not loader:
            return
        last, self.epoch_pass = self.epoch_pass, one
        if last is not None and not last.ended and last.batches <= 1:
            return  # next(iter(loader)) for every batch
        self.epoch += 1
        if self.counts():
            self.marks.put(_marks.EPOCH, None, self.epoch)

    def batch_wanted(self, one: Optional[Pass]) -> Optional[Pass]:
        """The pass it belongs to; None: not of the training loop."""
        if one is None or self.elsewhere():
            return None
        self.leave_lane()
        me = get_ident()
        if one.waiting and one.waiting != me:  # our own is over: Ctrl-C came before that was seen
            return None
        marks = self.marks
        if marks.pending:
            marks.flush()
        if self.backwards:
            self.backwards = 0
            if marks.priority <= _marks.HOOK:
                marks.put(_marks.MICRO_STEP)
        if self.is_evaluation(one):
            self.begin_evaluation(one)
        elif self.evaluating and self.evaluating is not one:
            self.end_evaluation()
        one.waiting = me
        return one

    def batch_came(self, one: Pass, began_ns: int) -> None:
        one.waiting = 0
        one.batches += 1
        began, one.began_ns = one.began_ns or began_ns, 0  # of the first one: with the start of the workers
        self.current = one
        marks = self.marks
        if not marks.evaluating and (marks.priority != _marks.FRAMEWORK or not self.is_other(one)):
            marks.waited(began)

    def is_other(self, one: Pass) -> bool:
        """A trainer evaluates: it asks for batches before it says so."""
        if one.trained:
            return False
        known = self.epoch_loader and self.epoch_loader()
        return known is not None and known is not one.loader()

    def pass_ended(self, one: Pass, began_ns: int, whole: bool) -> None:
        self.leave_lane()
        one.waiting = 0
        if whole and one.trained and not self.marks.evaluating:
            self.marks.waited(began_ns)  # for the end of the workers
        one.ended = whole
        if self.current is one:
            self.current = None
        if self.evaluating is one:
            self.end_evaluation()

    # -- phases

    def is_evaluation(self, one: Pass) -> bool:
        if self.marks.priority == _marks.FRAMEWORK:
            return False  # a trainer's own callbacks know it better
        if not self.grad_enabled():
            return True
        return one.batches > 0 and not one.trained and self.steps > 0

    def begin_evaluation(self, one: Pass) -> None:
        if self.evaluating or not self.marks.evaluating:  # else the user said so already, and will say when it ends
            self.marks.evaluate(True)
            self.evaluating = one

    def end_evaluation(self) -> None:
        self.evaluating = None
        self.marks.evaluate(False)

    def save_begins(self) -> bool:
        try:
            if self.saving or _is_worker():
                return False
            self.saving = True
            if self.marks.pending:
                self.marks.flush()
            self.marks.named(_marks.PHASE_BEGIN, CHECKPOINT)
            return True
        except Exception:
            return False

    def save_ended(self) -> None:
        self.saving = False
        try:
            self.marks.named(_marks.PHASE_END, CHECKPOINT)
        except Exception:
            pass


def _is_worker() -> bool:
    """In a DataLoader's worker, whose own work is no training."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None
