# SPDX-License-Identifier: MIT
"""Trainings under `spotter run`, unchanged: what the program counted, against what is in the record. What the
hooks see in detail is tested in tests/python, without a recorder."""
import json
import subprocess
import sys
import textwrap

import pytest

from virtual_gpu import vgpu  # noqa: F401 a fixture


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


needs_torch = pytest.mark.skipif(not has("torch"), reason="torch is not installed")

TRAIN = """
import json, sys, torch, time
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, num_workers=int(sys.argv[1]))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
losses = []
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        time.sleep(0.01)
    with torch.no_grad():
        for x, y in loader:
            model(x)
torch.save(model.state_dict(), sys.argv[2])
print(json.dumps(losses))
"""


@pytest.fixture
def program(tmp_path):
    def write(code):
        file = tmp_path / "train.py"
        file.write_text(textwrap.dedent(code))
        return file
    return write


@needs_torch
@pytest.mark.parametrize("workers", [0, 2])
def test_torch(spotter, program, tmp_path, workers):
    done = spotter("run", "-q", "--", sys.executable, program(TRAIN), workers, tmp_path / "model.pt", check=True)
    losses = json.loads(done.out)
    steps = spotter.json("sql", "SELECT step, loss, seconds, data_wait, source FROM steps ORDER BY step")
    assert [s["step"] for s in steps] == list(range(1, 25))
    assert [s["loss"] for s in steps] == pytest.approx(losses)
    assert {s["source"] for s in steps} == {"torch"}
    assert all(s["data_wait"] >= 0 for s in steps)
    phases = spotter.json("sql", "SELECT name, seconds FROM phases ORDER BY t")
    assert [p["name"] for p in phases] == ["evaluate"] * 3 + ["checkpoint"]
    settings = {s["name"]: s["value"] for s in spotter.json("sql", "SELECT name, value FROM settings ORDER BY t")}
    assert settings["dataloader.num_workers"] == workers and settings["dataloader.batch_size"] == 8


def test_the_api(spotter, program):
    done = spotter("run", "-q", "--", sys.executable, program("""
        import spotter, time
        assert spotter.active()
        for i in range(20):
            time.sleep(0.01)
            spotter.step(loss=1 / (i + 1))
            if i % 5 == 4:
                with spotter.phase("evaluate"):
                    time.sleep(0.01)
                spotter.log(accuracy=i / 20)
        """), check=True)
    assert done.err == ""
    steps = spotter.json("sql", "SELECT step, loss, source FROM steps ORDER BY step")
    assert [(s["step"], s["loss"]) for s in steps] == [(i + 1, pytest.approx(1 / (i + 1))) for i in range(20)]
    assert {s["source"] for s in steps} == {"api"}
    scalars = spotter.json("sql", "SELECT step, name, value FROM scalars ORDER BY t")
    assert [(s["step"], s["name"], s["value"]) for s in scalars] == [
        (i, "accuracy", pytest.approx((i - 1) / 20)) for i in (5, 10, 15, 20)]
    assert len(spotter.json("sql", "SELECT * FROM phases WHERE name = 'evaluate' AND seconds >= 0.01")) == 4


def test_load_gives_it_back(spotter, program, tree):
    spotter("run", "-q", "--", sys.executable, program("""
        import spotter, time
        for i in range(5):
            time.sleep(0.02)
            spotter.step(loss=i)
        """), check=True)
    out = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import spotter, json
        run = spotter.load("last")
        print(json.dumps([[s["step"], s["loss"]] for s in run.steps(as_="list")]))
        assert len(run.samples("job.cpu")["t"] if not isinstance(run.samples("job.cpu"), list) else [1]) > 0
        """)], env=dict(spotter.env, PYTHONPATH=str(tree / "python"), SPOTTER_EXE=str(spotter.binary)),
        capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout) == [[i + 1, i] for i in range(5)]


def test_snapshot_has_all_gpus(spotter, vgpu, tree):  # noqa: F811
    vgpu("eight")
    out = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import spotter, json
        print(json.dumps([[g.index, g.memory_used_bytes < g.memory_total_bytes, g.simulated]
                          for g in spotter.snapshot(seconds=1).gpus]))
        """)], env=dict(spotter.env, PYTHONPATH=str(tree / "python"), SPOTTER_EXE=str(spotter.binary)),
        capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout) == [[i, True, True] for i in range(8)]


def test_no_hooks(spotter, program):
    code = """
        import os, json
        print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(("SPOTTER_", "PYTHONP"))}))
        """
    plain = {k: v for k, v in spotter.env.items() if k.startswith(("SPOTTER_", "PYTHONP"))}
    done = spotter("run", "-q", "--no-hooks", "--", sys.executable, program(code), check=True)
    assert json.loads(done.out) == plain
    done = spotter("run", "-q", "--", sys.executable, program(code), check=True)
    assert set(json.loads(done.out)) - set(plain) == {"SPOTTER_MARKS", "SPOTTER_LIB", "SPOTTER_PYTHON", "SPOTTER_RUN",
                                                      "SPOTTER_EXE", "PYTHONPATH"}


TWO_RANKS = """
import torch, torch.distributed as dist, os, time
dist.init_process_group("gloo")
torch.set_num_threads(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(10):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""


@needs_torch
def test_two_ranks_are_one_run(spotter, program, tmp_path):
    # torch 1.13 on Python 3.11 cannot say "redirect nothing": Std.NONE is not among the members of its enum.
    done = spotter("run", "-q", "--", sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2",
                   "--redirects", "1", "--tee", "1", "--log_dir", tmp_path / "log", "--rdzv_backend", "c10d",
                   "--rdzv_endpoint", "127.0.0.1:0", program(TWO_RANKS), timeout=120)
    if done.code and "gloo" in done.err.lower() and "interface" in done.err.lower():
        pytest.skip("gloo finds no network interface here")
    assert done.code == 0, done.err
    steps = spotter.json("sql", "SELECT rank, step FROM steps ORDER BY rank, step")
    assert [(s["rank"], s["step"]) for s in steps] == [(r, n) for r in range(2) for n in range(1, 11)]
