# SPDX-License-Identifier: MIT
"""PyTorch programs that know nothing of Spotter: their own counts and losses against what is in the ring.

SPOTTER_TEST_TORCH names a Python that has torch; default: the one that runs the tests."""
import math
import os
import sys

import pytest

from programs import needs, of

BEGIN = """
import json, sys, torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(48, 4), torch.randn(48, 1))
model = torch.nn.Linear(4, 1)
losses = []

def loss_of(batch):
    x, y = batch
    return ((model(x) - y) ** 2).mean()
"""
LOOP = BEGIN + """
loader = DataLoader(data, batch_size=8, num_workers=int(sys.argv[1]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        loss = loss_of(batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
"""
END = """
print(json.dumps(losses))
"""


@pytest.fixture(scope="session")
def torch_python():
    return needs(os.environ.get("SPOTTER_TEST_TORCH") or sys.executable, "torch")


@pytest.fixture
def train(world, torch_python):
    def run(code, *args, **kwargs):
        return world.run(code, *args, python=torch_python, **kwargs)
    run.world = world
    return run


def steps_are(done, losses):
    steps = of(done.marks, "step")
    assert [s.number for s in steps] == list(range(1, len(losses) + 1))
    assert [s.value for s in steps] == pytest.approx(losses, nan_ok=True)
    assert [m.t_ns for m in done.marks] == sorted(m.t_ns for m in done.marks)
    return steps


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loop(train, workers):
    done = train(LOOP + END, workers)
    steps_are(done, done.said[0])
    assert len(done.said[0]) == 18
    assert [m.name for m in of(done.marks, "source")] == ["torch"]
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2, 3]
    assert not of(done.marks, "micro_step") and not of(done.marks, "phase_begin")
    settings = {m.name: m.value for m in of(done.marks, "setting")}
    assert settings["dataloader.num_workers"] == workers
    assert settings["dataloader.batch_size"] == 8 and settings["dataloader.pin_memory"] == 0
    if workers:
        assert settings["dataloader.prefetch_factor"] == 2
    assert list(done.all_marks) == [done.pid], "workers of a loader have nothing to say"


def test_waits_are_the_loaders(train):
    """Of a dataset that sleeps 20 ms for each batch, as the program itself times them."""
    done = train(BEGIN + """
import time
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 6
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.zeros(4), torch.zeros(1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
it, waits = iter(DataLoader(Slow(), batch_size=1)), []
while True:
    t = time.monotonic()
    try:
        batch = next(it)
    except StopIteration:
        break
    waits.append(time.monotonic() - t)
    optimizer.zero_grad(); loss_of(batch).backward(); optimizer.step()
print(json.dumps(waits))
""")
    waits = [m.number / 1e9 for m in of(done.marks, "data_wait")]
    assert waits[:6] == pytest.approx(done.said[0], abs=0.01)
    assert min(waits[:6]) >= 0.02 and len(waits) <= 7


def test_gradient_accumulation(train):
    done = train(BEGIN + """
optimizer = torch.optim.Adam(model.parameters())
for i, batch in enumerate(DataLoader(data, batch_size=4)):
    loss = loss_of(batch) / 3
    loss.backward()
    if i % 3 == 2:
        optimizer.step(); optimizer.zero_grad()
        losses.append(loss.item())
""" + END)
    steps_are(done, done.said[0])
    assert len(done.said[0]) == 4 and len(of(done.marks, "micro_step")) == 8


def test_accumulation_without_a_loader(train):
    done = train(BEGIN + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(12):
    loss = loss_of(data[i * 4:i * 4 + 4])
    loss.backward()
    if i % 4 == 3:
        optimizer.step(); optimizer.zero_grad()
        losses.append(loss.item())
""" + END)
    steps_are(done, done.said[0])
    assert len(of(done.marks, "micro_step")) == 9


def test_two_optimizers_are_one_clock(train):
    """A GAN: the one that was seen first counts; the other's losses are not its."""
    done = train(BEGIN + """
other = torch.nn.Linear(1, 4)
first = torch.optim.Adam(model.parameters())
second = torch.optim.Adam(other.parameters())
for epoch in range(2):
    for batch in DataLoader(data, batch_size=8):
        first.zero_grad(); real = loss_of(batch); real.backward(); first.step()
        losses.append(real.item())
        second.zero_grad(); (model(other(batch[1])) ** 2).mean().backward(); second.step()
""" + END)
    steps_are(done, done.said[0])
    assert len(done.said[0]) == 12 and not of(done.marks, "micro_step")


def test_an_optimizer_for_each_parameter(train):
    done = train(BEGIN + """
all = [torch.optim.SGD([p], lr=0.01) for p in model.parameters()]
for batch in DataLoader(data, batch_size=8):
    loss = loss_of(batch); loss.backward()
    for o in all:
        o.step(); o.zero_grad()
    losses.append(loss.item())
""" + END)
    steps_are(done, done.said[0])


def test_a_second_stage_counts(train):
    """The first optimizer lives on, unused: after a while the other is the clock."""
    done = train(BEGIN + """
first = torch.optim.SGD(model.parameters(), lr=0.01)
second = torch.optim.SGD(model.parameters(), lr=0.001)
for optimizer, count in ((first, 5), (second, 60)):
    for i in range(count):
        optimizer.zero_grad(); loss_of(data[:8]).backward(); optimizer.step()
""")
    assert len(of(done.marks, "step")) == 5 + 60 - 19


def test_a_subclass_that_calls_its_base(train):
    done = train(BEGIN + """
class Mine(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
plain = torch.optim.SGD(model.parameters(), lr=0.01)  # so that the base class is hooked, too
optimizer = Mine(model.parameters(), lr=0.01)
for batch in DataLoader(data, batch_size=8):
    optimizer.zero_grad(); loss = loss_of(batch); loss.backward(); optimizer.step()
    losses.append(loss.item())
""" + END)
    steps_are(done, done.said[0])


def test_lbfgs_has_no_micro_steps(train):
    done = train(BEGIN + """
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
def closure():
    optimizer.zero_grad(); loss = loss_of(data[:]); loss.backward(); return loss
for i in range(3):
    optimizer.step(closure)
""")
    assert len(of(done.marks, "step")) == 3 and not of(done.marks, "micro_step")


EVALUATE = {
    "no_grad outside": """
    with torch.no_grad():
        for batch in test: loss_of(batch)
""",
    "no_grad inside": """
    for batch in test:
        with torch.no_grad(): loss_of(batch)
""",
    "inference mode, left early": """
    with torch.inference_mode():
        for batch in test:
            loss_of(batch); break
"""}


@pytest.mark.parametrize("how", EVALUATE)
def test_evaluation(train, how):
    done = train(BEGIN + """
loader, test = DataLoader(data, batch_size=8), DataLoader(data, batch_size=4, num_workers=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for batch in loader:
        optimizer.zero_grad(); loss = loss_of(batch); loss.backward(); optimizer.step()
        losses.append(loss.item())
""" + EVALUATE[how] + END)
    steps_are(done, done.said[0])
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2]
    phases = [(m.kind, m.name) for m in done.marks if m.kind.startswith("phase")]
    assert phases[:3] == [("phase_begin", "evaluate"), ("phase_end", "evaluate"), ("phase_begin", "evaluate")]
    order = [m.kind for m in done.marks if m.kind in ("step", "phase_begin", "phase_end")]
    assert order[:8] == ["step"] * 6 + ["phase_begin", "phase_end"]
    assert {m.name: m.value for m in of(done.marks, "setting")}["dataloader.batch_size"] == 8


def test_a_new_iterator_for_every_batch_is_no_epoch(train):
    done = train(BEGIN + """
loader = DataLoader(data, batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(10):
    loss = loss_of(next(iter(loader))); optimizer.zero_grad(); loss.backward(); optimizer.step()
    losses.append(loss.item())
""" + END)
    steps_are(done, done.said[0])
    assert [m.number for m in of(done.marks, "epoch")] == [1]


def test_an_epoch_that_is_left_early_is_one(train):
    done = train(BEGIN + """
loader = DataLoader(data, batch_size=4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for i, batch in enumerate(loader):
        loss = loss_of(batch); optimizer.zero_grad(); loss.backward(); optimizer.step()
        losses.append(loss.item())
        if i == 4: break
""" + END)
    steps_are(done, done.said[0])
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2, 3]


def test_persistent_workers(train):
    done = train(BEGIN + """
loader = DataLoader(data, batch_size=8, num_workers=1, persistent_workers=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for batch in loader:
        loss = loss_of(batch); optimizer.zero_grad(); loss.backward(); optimizer.step()
        losses.append(loss.item())
""" + END)
    steps_are(done, done.said[0])
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2, 3]


def test_a_checkpoint(train):
    done = train(LOOP + """
torch.save(model.state_dict(), "model.pt")
import pickle
assert pickle.loads(pickle.dumps(torch.save)) is torch.save
torch.load("model.pt")
try:
    torch.save(model, "/nonexistent/x")
except Exception:
    pass
""" + END, 0)
    phases = [(m.kind, m.name) for m in done.marks if m.kind.startswith("phase")]
    assert phases == [("phase_begin", "checkpoint"), ("phase_end", "checkpoint")] * 2


def test_our_own_step_takes_over(train):
    """`spotter.step()` after the optimizer's: its numbers, its losses, none twice."""
    done = train(LOOP.replace("losses.append(loss.item())",
                              "losses.append(loss.item()); spotter.step(loss=loss, accuracy=0.5)")
                 .replace("import json", "import spotter, json") + END, 0)
    steps_are(done, done.said[0])
    assert [m.name for m in of(done.marks, "source")] == ["api"]
    assert {(m.name, m.value) for m in of(done.marks, "scalar")} == {("accuracy", 0.5)}
    assert len(of(done.marks, "data_wait")) >= 18


def test_losses_of_other_types(train):
    done = train(BEGIN + """
for dtype in (torch.float64, torch.bfloat16, torch.float16):
    p = torch.nn.Parameter(torch.tensor(1.5, dtype=dtype))
    optimizer = torch.optim.SGD([p], lr=0.5)
    loss = p * 2
    loss.backward(); losses.append(loss.item())
    try:
        optimizer.step()
    except RuntimeError:
        p.grad = None; optimizer.step()
    del optimizer
""" + END)
    assert [s.value for s in of(done.marks, "step")] == [3.0, 3.0, 3.0] == done.said[0]


def test_the_last_of_one_step_is_not_lost(train):
    done = train(BEGIN + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss = loss_of(data[:8]); loss.backward(); optimizer.step()
""")
    assert len(of(done.marks, "step")) == 1


def test_amp_skips_are_steps(train):
    """Iterations whose gradients overflow are counted; the loss is the one before scaling."""
    done = train(BEGIN + """
if not hasattr(torch, "amp") or not hasattr(torch.amp, "GradScaler"):
    print("{}"); sys.exit()
scaler = torch.amp.GradScaler("cpu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(6):
    loss = loss_of(data[:8])
    if i == 2: loss = loss * float("inf")
    optimizer.zero_grad(); scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()
    losses.append(loss.item() if i != 2 else 1e300)
""" + END)
    if done.said == [{}]:
        pytest.skip("a GradScaler for the CPU needs torch 2.3")
    steps = of(done.marks, "step")
    assert [s.number for s in steps] == [1, 2, 3, 4, 5, 6] and math.isinf(steps[2].value)
    assert [s.value for s in steps if s.number != 3] == pytest.approx([x for x in done.said[0] if x < 1e300])
    assert [m.value for m in of(done.marks, "scalar") if m.name == "amp.skipped_steps"] == [1]


def test_a_scaled_loss_that_nobody_used(world):
    """Another tensor at its address is another loss."""
    done = world.plain("""
        import json
        from spotter import _marks
        from spotter._hooks.torch_loop import Loop
        class Tensor:
            def __init__(self, value): self.value = value
        loop = Loop(_marks.shared(), Tensor, lambda: True, lambda tensor: tensor.value)
        used = Tensor(8.0)
        loop.scaled(Tensor(1.0), used)
        loop.backward(used)
        losses = [_marks.shared().loss]
        unused = Tensor(8.0)
        loop.scaled(Tensor(1.0), unused)
        at, found = id(unused), []
        del unused
        while len(found) < 1000 and (not found or id(found[-1]) != at): found.append(Tensor(2.0))
        loop.backward(found[-1])
        print(json.dumps(losses + [_marks.shared().loss]))
    """)
    assert done.said == [[1.0, 2.0]]


def test_compiled_programs_have_the_same_graphs(train):
    code = """
import json, sys
import torch
if not hasattr(torch, "compile"):
    print("{}"); sys.exit()
import torch._dynamo.utils as u
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
@torch.compile(backend="eager")
def train(x):
    loss = (model(x) ** 2).mean(); loss.backward(); optimizer.step(); optimizer.zero_grad(); return loss
@torch.compile(backend="eager", fullgraph=True)
def forward(x):
    return (model(x) ** 2).mean()
for i in range(3):
    train(torch.randn(8, 4))
for i in range(4):
    forward(torch.randn(8, 4)).backward(); optimizer.step()
print(json.dumps([dict(u.counters["stats"]), sum(u.counters["graph_break"].values())]))
"""
    done = train(code)
    if done.said == [{}]:
        pytest.skip("torch.compile needs torch 2.0")
    assert done.said == train(code, env=train.world.base).said
    assert len(of(done.marks, "step")) == 4, "those that are not inside a compiled function"


def test_a_thread_that_trains(train):
    """Not the main one: what it waits for is the training's; what others fetch is not."""
    done = train(BEGIN + """
import threading
def run():
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for batch in DataLoader(data, batch_size=8):
            optimizer.zero_grad(); loss = loss_of(batch); loss.backward(); optimizer.step()
            losses.append(loss.item())
thread = threading.Thread(target=run)
thread.start(); thread.join()
for batch in DataLoader(data, batch_size=8): pass
""" + END)
    steps_are(done, done.said[0])
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2]
    assert 12 <= len(of(done.marks, "data_wait")) <= 14 and not of(done.marks, "phase_begin")


def test_a_loss_elsewhere_is_left_out(train):
    """A tensor without host memory: there is a step, and no number for it."""
    done = train("""
import spotter, torch
spotter.step(loss=torch.empty((), device="meta"))
spotter.step(loss=torch.ones(3), accuracy=torch.tensor(0.5))
""")
    steps = of(done.marks, "step")
    assert [s.number for s in steps] == [1, 2] and all(math.isnan(s.value) for s in steps)
    assert [m.value for m in of(done.marks, "scalar")] == [0.5]


SPAWNED = """
import json, sys, os
import torch, torch.multiprocessing as mp

def train(rank):
    torch.manual_seed(rank)
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), "2"
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(5 + rank):
        optimizer.zero_grad(); model(torch.ones(1, 4)).sum().backward(); optimizer.step()

if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    all = [context.Process(target=train, args=(r,)) for r in range(2)]
    for p in all: p.start()
    print(json.dumps([p.pid for p in all]), flush=True)
    for p in all: p.join()
    assert all[0].exitcode == all[1].exitcode == 0
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes(train, method):
    done = train(SPAWNED, method)
    for rank, pid in enumerate(done.said[0]):
        marks = done.all_marks[pid]
        assert [s.number for s in of(marks, "step")] == list(range(1, 6 + rank))
        assert {m.rank for m in marks} == {rank} and {m.world for m in marks} == {2}
