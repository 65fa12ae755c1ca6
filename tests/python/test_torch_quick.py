# SPDX-License-Identifier: MIT
"""The quick way through the hooks of PyTorch (python/spotter/_hooks/torch_loop.py): it says what the slow one says, of
loops that keep to it and of those that do not."""
import math

import pytest

from programs import of
from test_torch import BEGIN, END, steps_are, torch_python, train  # noqa: F401 fixtures

MANY = BEGIN + """
import threading
marks = sys._spotter_marks_3
assert marks.open() and marks.fast.lane
waits_seen = marks.fast.lane.waits_seen
if sys.argv[1] == "slow":
    marks.fast = marks.fast._replace(lane=None)
import spotter
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def fit(loss, backward=lambda loss: loss.backward()):
    optimizer.zero_grad(); backward(loss); optimizer.step()

def some(count, loader):
    return [batch for _, batch in zip(range(count), loader)]

class Nested(torch.utils.data.Dataset):
    "Its samples come from a loader of its own, and not all of them come."
    def __init__(self, most): self.most = most
    def __len__(self): return 10
    def __getitem__(self, i):
        if i == self.most: raise ValueError("theirs")
        return next(iter(DataLoader(data, batch_size=1)))[0][0], torch.zeros(1)

loader = DataLoader(data, batch_size=8)
for _ in range(2):  # as most
    for batch in loader: fit(loss_of(batch))
for kind in (torch.float64, torch.bfloat16):  # losses of other types, on and off
    for batch in loader: fit(loss_of(batch)); fit(loss_of(batch).to(kind))
for batch in loader:  # no scalar, a gradient with it
    fit(((model(batch[0]) - batch[1]) ** 2).flatten(), lambda loss: loss.backward(torch.ones(8)))
    fit(loss_of(batch))
for i, batch in enumerate(loader):  # backward() that fails, as that of many numbers does; and is followed by a step
    def fails(loss):
        try: loss.backward()
        except RuntimeError: pass
    fit(model(batch[0]) if i % 2 else loss_of(batch), fails)
for i, batch in enumerate(loader):  # an evaluation in the middle, by words and by torch, of this loader and another
    fit(loss_of(batch))
    if i == 2:
        with spotter.phase("evaluate"): some(2, loader)
    if i == 3:
        with torch.no_grad(): some(2, loader)
whole = iter(loader)
for i in range(6):
    if i in (2, 4):
        with torch.no_grad(): loss_of(next(whole))
    else: fit(loss_of(next(whole)))
for i, batch in enumerate(loader):  # accumulation, sometimes
    loss_of(batch).backward()
    if i % 3: optimizer.step(); optimizer.zero_grad()
for i in range(3):  # left early, and the iterator is gone
    for batch in loader:
        fit(loss_of(batch)); break
    del batch
for i in range(4): fit(loss_of(data[:8]))  # without a loader
for most in (4, 99):
    try:
        for batch in DataLoader(Nested(most), batch_size=2): fit(loss_of(batch))
    except ValueError: pass
other = torch.optim.Adam(model.parameters())  # two clocks
for batch in loader:
    fit(loss_of(batch)); loss_of(batch).backward(); other.step()
for batch in loader:  # somebody else fetches meanwhile, and calls backward()
    thread = threading.Thread(target=lambda: (some(2, loader), model(batch[0]).mean().backward()))
    fit(loss_of(batch)); thread.start(); thread.join()
class Odd(torch.Tensor): pass
for batch in loader: fit(loss_of(batch).as_subclass(Odd))
torch.save(model.state_dict(), "model.pt")
for batch in loader: fit(loss_of(batch))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)  # the clock is gone
for batch in loader: fit(loss_of(batch))
for batch in spotter.steps(loader): fit(loss_of(batch))  # and now they are the user's
for batch in loader:
    loss = loss_of(batch); fit(loss); spotter.step(loss=loss)
print(json.dumps([waits_seen()]))
"""


def test_the_quick_way_says_what_the_slow_one_says(train):
    quick, slow = train(MANY, "quick"), train(MANY, "slow")
    said = [[(m.kind, m.name, m.number if m.kind != "data_wait" else 0, str(m.value)) for m in done.marks
             if m.kind != "setting"] for done in (quick, slow)]
    assert said[0] == said[1]
    assert quick.said[0][0] > 40 and slow.said[0][0] == 0, "waits for data that were marked in C"
    for done in (quick, slow):
        assert [m.t_ns for m in done.marks] == sorted(m.t_ns for m in done.marks)
        assert all(m.number < 1e10 for m in of(done.marks, "data_wait")), "no wait begins where another did"


def test_steps_of_the_users_take_the_losses_that_hooks_see(train):
    done = train(BEGIN.replace("import json", "import spotter, json") + """
loader = DataLoader(data, batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for batch in spotter.steps(loader):
        optimizer.zero_grad(); loss = loss_of(batch); loss.backward(); optimizer.step()
        losses.append(loss.item())
""" + END)
    steps_are(done, done.said[0])
    assert [m.name for m in of(done.marks, "source")] == ["api"] and len(of(done.marks, "data_wait")) == 14


MODES = BEGIN + """
from torch.overrides import TorchFunctionMode
marks = sys._spotter_marks_3
seen = []
class Says(TorchFunctionMode):
    "Says that the data of a tensor is there; passes everything else on."
    def __init__(self, answer): self.answer = answer
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(getattr(func, "__name__", "?"))
        return self.answer if seen[-1] == "data_ptr" else func(*args, **(kwargs or {}))

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
fed = sys.argv[1] == "fed"
batches = DataLoader(data, batch_size=8) if fed else [data[i:i + 8] for i in range(0, 48, 8)]
assert marks.open() and marks.fast.lane
new = int(torch.__version__.split(".")[0]) > 1  # a mode can be put aside
for answer in ("quick", None, "x", 1, -1, "two"):
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(batch)
        value = loss.item()
        if answer == "quick":
            loss.backward()
        elif answer == "two":
            with Says(1), Says(None): loss.backward()
        else:
            with Says(answer): loss.backward()
        optimizer.step()
        losses.append(value if new or answer == "quick" else None)
print(json.dumps(losses))
print(json.dumps([len(seen), sorted(set(seen))]))
print(json.dumps([marks.lane.lane is not None, marks.fast.lane.waits_seen()]))
"""


@pytest.mark.parametrize("feed", ["fed", "by hand"])
def test_function_modes_are_asked_nothing_and_seen_once(train, feed):
    """Their answers for is_cpu, dtype or the address are not to be trusted, and backward() comes twice."""
    done = train(MODES, feed)
    steps_are(done, [math.nan if loss is None else loss for loss in done.said[0]])
    assert len(done.said[0]) == 36 and not of(done.marks, "micro_step")
    assert done.said[1] == [36, ["backward"]]
    assert len(of(done.marks, "data_wait")) == (42 if feed == "fed" else 0)
    stays, waits = done.said[2]
    assert waits >= 24 if feed == "fed" else stays, "on the quick way"


def test_a_default_device(train):
    """torch 2: a function mode, for the whole program. The loop stays on the quick way, but for its losses."""
    done = train(BEGIN + """
if not hasattr(torch, "set_default_device"): print(json.dumps(["old"])); sys.exit()
torch.set_default_device("cpu")
marks = sys._spotter_marks_3
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in DataLoader(data, batch_size=8):
    optimizer.zero_grad(); loss = loss_of(batch); loss.backward(); optimizer.step()
    losses.append(loss.item())
for i in range(6):
    optimizer.zero_grad(); loss = loss_of(data[i:i + 8]); loss.backward(); optimizer.step()
    losses.append(loss.item())
assert marks.fast.lane.waits_seen() >= 3, marks.fast.lane.waits_seen()
""" + END)
    if done.said[0] == ["old"]:
        pytest.skip("torch.set_default_device: not in this torch")
    steps_are(done, done.said[0])
    assert len(done.said[0]) == 12 and not of(done.marks, "micro_step")


def test_ctrl_c_between_any_two_lines(train):
    """An interrupt behind each call of the quick way: the loop is run again, as in a notebook, and counts go on."""
    done = train(BEGIN + """
marks = sys._spotter_marks_3
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(data, batch_size=8)
steps = 0

def run():
    global steps
    for batch in loader:
        optimizer.zero_grad(); loss = loss_of(batch); loss.backward()
        steps += 1  # it counts even when the interrupt comes at its end
        optimizer.step()

run()
plain = marks.fast
waits = []
for name in ("enter", "leave", "asked", "came", "graded", "stepped", "waits_seen", "know"):
    for before in (True, False):
        armed = [2]
        def trap(*args, real=getattr(plain.lane, name), before=before):
            armed[0] -= 1
            if before and armed[0] == 0: raise KeyboardInterrupt
            answer = real(*args)
            if armed[0] == 0: raise KeyboardInterrupt
            return answer
        marks.fast = plain._replace(lane=plain.lane._replace(**{name: trap}))
        hit = False
        for _ in range(3):
            try: run()
            except KeyboardInterrupt: hit = True
        assert hit or name == "know", (name, before)
        marks.fast = plain
        run(); run()
        at = plain.lane.waits_seen()
        run()
        assert plain.lane.waits_seen() >= at + 4, (name, before, "is not quick again")
        assert (marks.lane.lane is not None) or plain.lane.leave()[0] == 0, (name, before)
print(json.dumps([steps]))
""")
    numbers = [m.number for m in of(done.marks, "step")]
    assert abs(len(numbers) - done.said[0][0]) <= 16, "one for each interrupt, which may come before its mark"
    assert sum(b <= a for a, b in zip(numbers, numbers[1:])) <= 2, "that of leave() takes the number with it"
    assert not of(done.marks, "phase_begin")
