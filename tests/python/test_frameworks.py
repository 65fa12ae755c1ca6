# SPDX-License-Identifier: MIT
"""Lightning, Hugging Face's Trainer, Keras, JAX: programs that know nothing of Spotter, where they are installed."""
import pytest

from programs import of, python_with


LIGHTNING = """
import json, sys, warnings; warnings.simplefilter("ignore")
import torch
import {package} as pl
from torch.utils.data import DataLoader, TensorDataset
losses = []
class Model(pl.LightningModule):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(4, 1)
    def loss(self, batch): return ((self.layer(batch[0]) - batch[1]) ** 2).mean()
    def training_step(self, batch, i):
        return self.loss(batch)
    def on_train_batch_end(self, outputs, batch, i):
        if i % ACCUMULATE == ACCUMULATE - 1: losses.append(outputs["loss"].item())
    def validation_step(self, batch, i): self.log("val_loss", self.loss(batch))
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.01)
ACCUMULATE = int(sys.argv[1])
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
callbacks = []
if len(sys.argv) > 2:
    import spotter
    callbacks.append(spotter.LightningCallback())
trainer = pl.Trainer(max_epochs=2, accumulate_grad_batches=ACCUMULATE, enable_progress_bar=False, logger=False,
                     enable_model_summary=False, accelerator="cpu", callbacks=callbacks)
trainer.fit(Model(), DataLoader(data, batch_size=8), DataLoader(data, batch_size=8))
print(json.dumps([trainer.global_step, losses]))
"""


@pytest.mark.parametrize("accumulate,explicit", [(1, False), (2, False), (1, True)])
def test_lightning(world, accumulate, explicit):
    python = python_with("lightning.pytorch")
    done = world.run(LIGHTNING.format(package="lightning.pytorch"), accumulate, *(["explicit"] if explicit else []),
                     python=python)
    steps, losses = done.said[0]
    assert [s.number for s in of(done.marks, "step")] == list(range(1, steps + 1))
    assert [s.value for s in of(done.marks, "step")] == pytest.approx(losses)
    assert [m.name for m in of(done.marks, "source")] == ["lightning"]
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2]
    assert len(of(done.marks, "micro_step")) == 8 * (accumulate - 1) / accumulate
    phases = [m.name for m in of(done.marks, "phase_begin")]
    assert phases.count("evaluate") == 3 and phases.count("checkpoint") >= 1  # with the one before training
    assert "val_loss" in {m.name for m in of(done.marks, "scalar")}


HF = """
import json, torch, warnings; warnings.simplefilter("ignore")
from transformers import Trainer, TrainerCallback, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels=None):
        out = self.layer(x)
        return {"loss": ((out - labels) ** 2).mean(), "logits": out}
class Data(torch.utils.data.Dataset):
    def __len__(self): return 32
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {"x": torch.randn(4, generator=g), "labels": torch.randn(1, generator=g)}
logged = []
class Log(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **more):
        if "loss" in logs: logged.append(logs["loss"])
names = dict(per_device_train_batch_size=4, gradient_accumulation_steps=2, num_train_epochs=2, logging_steps=1,
             report_to=[], disable_tqdm=True, use_cpu=True, save_strategy="no")
try:
    arguments = TrainingArguments("out", eval_strategy="epoch", **names)
except TypeError:
    arguments = TrainingArguments("out", evaluation_strategy="epoch", **names)
trainer = Trainer(Model(), arguments, train_dataset=Data(), eval_dataset=Data(), callbacks=[Log()])
print(json.dumps([trainer.train().global_step, logged]))
"""


def test_transformers(world):
    done = world.run(HF, python=python_with("transformers", "accelerate", "torch"))
    steps, logged = done.said[-1]
    assert steps == 8 and [s.number for s in of(done.marks, "step")] == list(range(1, 9))
    assert [m.value for m in of(done.marks, "scalar") if m.name == "loss"] == pytest.approx(logged)
    assert [m.name for m in of(done.marks, "source")] == ["transformers"]
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2] and len(of(done.marks, "micro_step")) == 8
    assert [m.name for m in of(done.marks, "phase_begin")] == ["evaluate", "evaluate"]


KERAS = """
import os, sys, json
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy
if os.environ["KERAS_BACKEND"] == "tf.keras":
    del os.environ["KERAS_BACKEND"]
    from tensorflow import keras
else:
    import keras
class Count(keras.callbacks.Callback):
    losses = []
    def on_train_batch_end(self, batch, logs=None): self.losses.append(float(logs["loss"]))
count = Count()
mine = {"none": [], "sync": [count], "ours": [count]}[sys.argv[1]]
if sys.argv[1] == "ours":
    import spotter
    mine = mine + [spotter.KerasCallback()]
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"], steps_per_execution=int(sys.argv[2]))
x, y = numpy.random.randn(64, 4).astype("f4"), numpy.random.randn(64, 1).astype("f4")
model.fit(x, y, epochs=2, batch_size=8, validation_split=0.25, verbose=0, callbacks=mine)
print(json.dumps([int(model.optimizer.iterations), count.losses]))
"""


def keras_python(backend):
    if backend == "tf.keras":
        return python_with("tensorflow", also="assert tensorflow.keras.__version__ < '3'")
    return python_with("keras", backend, also="assert keras.__version__ >= '3'", KERAS_BACKEND=backend)


@pytest.mark.parametrize("backend,how,execution", [
    ("jax", "none", 1), ("jax", "sync", 1), ("jax", "ours", 1), ("jax", "sync", 3), ("torch", "sync", 1),
    ("tensorflow", "none", 1), ("tensorflow", "sync", 3), ("tf.keras", "none", 1), ("tf.keras", "ours", 1),
    ("tf.keras", "sync", 3)])
def test_keras(world, backend, how, execution):
    """Keras 3 on each of its backends; Keras 2, which is what tensorflow.keras was until 2.15."""
    done = world.run(KERAS, how, execution, python=keras_python(backend), env=dict(world.env, KERAS_BACKEND=backend))
    iterations, losses = done.said[-1]
    steps = of(done.marks, "step")
    assert iterations == 12
    assert [s.number for s in steps] == [n for n in range(1, 13) if n % execution == 0]
    if losses:
        assert [s.value for s in steps] == pytest.approx(losses)
    assert all(s.value == s.value for s in steps), "every step has a loss"
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2]
    assert [m.name for m in of(done.marks, "phase_begin")] == ["evaluate", "evaluate"]
    assert [m.name for m in of(done.marks, "source")] == ["keras"]


def test_jax_compile_time(world):
    done = world.run("""
        import jax, jax.numpy as jnp, spotter, json
        f = jax.jit(lambda x: (x ** 2).sum())
        losses = []
        for i in range(3):
            loss = f(jnp.ones(8) * i).block_until_ready()
            spotter.step(loss=loss)
            losses.append(float(loss))
        print(json.dumps(losses))
        """, python=python_with("jax"))
    assert [s.value for s in of(done.marks, "step")] == done.said[0]
    assert [m for m in of(done.marks, "scalar") if m.name == "jax.compile_seconds" and m.value > 0]


DEEPSPEED = """
import json, os, sys, warnings; warnings.simplefilter("ignore")
os.environ.update(DS_ACCELERATOR="cpu", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
import deepspeed, torch
from torch.utils.data import DataLoader
deepspeed.ops.__compatible_ops__.clear()  # which would be compiled now, for minutes
deepspeed.init_distributed("gloo", auto_mpi_discovery=False, init_method="file://" + os.path.abspath("meeting"),
                           rank=0, world_size=1)
model = torch.nn.Linear(4, 1)
engine = deepspeed.initialize(
    model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    config={"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
            "zero_optimization": {"stage": int(sys.argv[1])}, "zero_allow_untested_optimizer": True})[0]
loader = DataLoader([torch.randn(4) for i in range(32)], batch_size=4, num_workers=1)
losses = []
for epoch in range(2):
    engine.train()
    for batch in loader:
        loss = (engine(batch) ** 2).mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    engine.eval()
    with torch.no_grad():
        for batch in DataLoader([torch.randn(4) for i in range(8)], batch_size=4): engine(batch)
print()
print(json.dumps([engine.global_steps, losses[1::2]]))
"""


@pytest.mark.parametrize("stage", [0, 1])
def test_deepspeed(world, stage):
    done = world.run(DEEPSPEED, stage, python=python_with("deepspeed", "torch"))
    steps, losses = done.said[-1]
    assert steps == 8 and [s.number for s in of(done.marks, "step")] == list(range(1, 9))
    assert [s.value for s in of(done.marks, "step")] == pytest.approx(losses), "as the program computed it"
    assert [m.name for m in of(done.marks, "source")] == ["deepspeed"]
    assert len(of(done.marks, "micro_step")) == 8
    assert [m.number for m in of(done.marks, "epoch")] == [1, 2]
    assert [m.name for m in of(done.marks, "phase_begin")] == ["evaluate", "evaluate"]
    settings = {m.name: m.value for m in of(done.marks, "setting")}
    assert settings["dataloader.num_workers"] == 1 and settings["trainer.accumulate_grad_batches"] == 2


MXNET = """
import json
import mxnet as mx
from mxnet import autograd, gluon
net = gluon.nn.Dense(1)
net.initialize()
whole = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}, update_on_kvstore=False)
for i in range(5):
    with autograd.record():
        loss = (net(mx.nd.random.normal(shape=(8, 4))) ** 2).mean()
    loss.backward()
    if i % 2: whole.step(8)
    else: whole.allreduce_grads(); whole.update(8)
del whole
again = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
for i in range(2):
    with autograd.record():
        loss = (net(mx.nd.random.normal(shape=(8, 4))) ** 2).mean()
    loss.backward()
    again.step(8)
print(json.dumps([loss.asscalar().item() > 0]))
"""


def test_mxnet(world):
    """Retired in 2023. Where its wheel can still be imported: steps by either way, and a second Trainer takes over."""
    done = world.run(MXNET, python=python_with("mxnet.gluon", also="mxnet.nd.ones(1).asscalar()"))
    assert done.said == [[True]]
    assert [s.number for s in of(done.marks, "step")] == list(range(1, 8))
    assert [m.name for m in of(done.marks, "source")] == ["mxnet"]


def test_mxnet_and_deepspeed_by_their_shape(world):
    """Neither is installed on most machines: packages of that shape, for what the hooks rely on."""
    gluon = world.place / "mxnet" / "gluon"
    engine = world.place / "deepspeed" / "runtime"
    for folder in (gluon, engine):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder.parent / "__init__.py").write_text("")
    (gluon / "trainer.py").write_text("class Trainer:\n    def step(self, n): return n\n")
    (engine / "engine.py").write_text("class DeepSpeedEngine:\n    global_steps = calls = 0\n    def step(self):\n"
                                      "        self.calls += 1\n        self.global_steps = self.calls // 2\n"
                                      "    def backward(self, loss): return loss / 2\n"
                                      "    def gradient_accumulation_steps(self): return 2\n")
    done = world.run("""
        from mxnet.gluon.trainer import Trainer
        a, b = Trainer(), Trainer()
        for i in range(4):
            assert a.step(i) == i
            b.step(i)
        """)
    assert [s.number for s in of(done.marks, "step")] == [1, 2, 3, 4]
    assert [m.name for m in of(done.marks, "source")] == ["mxnet"]
    done = world.run("""
        from deepspeed.runtime.engine import DeepSpeedEngine
        e = DeepSpeedEngine()
        for i in range(6):
            assert e.backward(loss=float(i)) == i / 2
            e.step()
        """)
    assert [(s.number, s.value) for s in of(done.marks, "step")] == [(1, 1.0), (2, 3.0), (3, 5.0)]
    assert len(of(done.marks, "micro_step")) == 3
