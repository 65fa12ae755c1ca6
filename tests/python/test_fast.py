# SPDX-License-Identifier: MIT
"""Marks as builtins (src/mark/python.c) on every Python there is, without a framework: none of them falls back to ctypes
unseen, and no reference is lost."""
import pytest

from programs import of, pythons

EVERY = sorted(pythons().items())

LOOP = """
import ctypes, json, math, sys
from spotter import _marks
marks = _marks.shared()
assert marks.open()
fast, lane = marks.fast, marks.fast.lane
assert all(type(f) is type(len) for f in fast[:4] + tuple(lane))

class Tensor:
    is_cpu, dtype = True, "single"
    def __init__(self, value): self.kept = ctypes.c_float(value)
    def data_ptr(self): return ctypes.addressof(self.kept)
class Double(Tensor):
    pass
class Other:
    pass

def references():
    return [sys.getrefcount(x) for x in (Tensor, Tensor.data_ptr, iterator, clock, 0.5)]

iterator, clock, loss = Other(), Other(), Tensor(0.25)
mode = False  # within a function mode
facts = Tensor, "single", lambda: True, lambda: mode, Tensor.data_ptr, "is_cpu", "dtype"
lane.know(*facts)
lane.enter(1, 1, True, False, 10, id(iterator), id(clock), math.nan)
before = references()
for i in range(1000):
    assert not lane.asked(clock) and lane.asked(iterator) is True and lane.came(iterator) is True
    assert lane.graded(Double(1)) is False and lane.graded(loss) is True and lane.loss_seen() == 0.25
    assert lane.stepped(iterator) is False and lane.stepped(clock) is True and lane.updated() is True
assert references() == before
at, number, last, began, since, scaled, _ = lane.leave()
assert (at, number, since, scaled) == (1, 1010, 0, 0) and math.isnan(last) and began > 0
assert lane.waits_seen() == 1000 and lane.asked(iterator) is False

# What is not as it should be is an answer, or Python's own exception.
lane.enter(3, 3, True, False, 0, 0, id(clock), math.nan)
for name, value in (("is_cpu", property(lambda self: 1 / 0)), ("dtype", "double")):
    kept = Tensor.__dict__[name]
    setattr(Tensor, name, value)
    assert lane.graded(loss) is False
    setattr(Tensor, name, kept)
for mode in (True, None, 1):
    assert lane.graded(loss) is False
mode = False
# The same of what says the address; Ctrl-C and the like are not ours to keep.
def says(self):
    if isinstance(answer, type): raise answer
    return answer
def asked_for_it():
    lane.enter(3, 3, True, False, 0, 0, id(clock), math.nan)
    return lane.graded(loss)
lane.know(*facts[:4], says, *facts[5:])
for answer in (None, "x", ValueError):
    assert asked_for_it() is False
for answer in (1, 0, -1, True):
    assert asked_for_it() is True and math.isnan(lane.loss_seen()) and math.isnan(fast.float_at(answer))
for answer in (KeyboardInterrupt, SystemExit):
    try:
        asked_for_it()
        assert False
    except answer:
        assert lane.leave()[0] == 3
lane.know(*facts)
# What AMP multiplied is kept, but not for long.
for done in (lambda: lane.graded(loss), lane.leave, lambda: lane.enter(3, 3, True, False, 0, 0, 0, math.nan)):
    lane.enter(3, 3, True, False, 0, 0, id(clock), math.nan)
    count = sys.getrefcount(loss)
    lane.scaled(loss, 2.0)
    lane.scaled(loss, 2.0)
    assert sys.getrefcount(loss) == count + 1
    done()
    assert sys.getrefcount(loss) == count
lane.enter(3, 3, True, False, 0, 0, id(clock), math.nan)
loss.is_cpu = False
assert lane.graded(loss) is True and math.isnan(lane.loss_seen())
lane.leave()
for bad in (lambda: lane.enter(1, 1, True, False, "x", 0, 0, 0.0), lambda: fast.step(1, "x"), lambda: lane.asked(),
            lambda: fast.mark(1, 2, 3, 4.0, 5)):
    try:
        bad()
        assert False
    except TypeError:
        pass
assert lane.enter(1) is None and lane.leave()[0] == 0
print(json.dumps([1]))
"""


@pytest.mark.parametrize("name,python", EVERY, ids=[n for n, _ in EVERY])
def test_the_quick_way(world, name, python):
    done = world.run(LOOP, python=python)
    assert done.said == [[1]] and done.err == ""
    steps = of(done.marks, "step")
    assert [s.number for s in steps] == list(range(11, 1011)) and {s.value for s in steps} == {0.25}
    assert len(of(done.marks, "data_wait")) == 1000
