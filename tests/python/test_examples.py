# SPDX-License-Identifier: MIT
"""The examples run, with a recorder and (where they say so) without."""
import os
import sys

import pytest

from programs import PACKAGE, needs, of, python_with

EXAMPLES = PACKAGE.parents[1] / "examples" / "python"


def run(world, name, *args, python=sys.executable, **kwargs):
    return world.run((EXAMPLES / name).read_text(), *args, python=python, **kwargs)


def test_torch(world):
    done = run(world, "torch_train.py", "--epochs", 2, "--workers", 1,
               python=needs(os.environ.get("SPOTTER_TEST_TORCH") or sys.executable, "torch"))
    assert [s.number for s in of(done.marks, "step")] == list(range(1, 113)) and "step 112" in done.out
    assert [m.name for m in of(done.marks, "phase_begin")] == ["evaluate", "evaluate", "checkpoint"]


@pytest.mark.parametrize("recorded", [True, False])
def test_numpy(world, recorded):
    needs(sys.executable, "numpy")
    env = None if recorded else dict(world.base, PYTHONPATH=str(PACKAGE.parent))
    done = run(world, "numpy_train.py", "--steps", 100, env=env)
    assert "step 100" in done.out
    if recorded:
        steps = of(done.marks, "step")
        assert len(steps) == 100 == len(of(done.marks, "data_wait")) and steps[-1].value < steps[0].value / 10
        assert [m.name for m in of(done.marks, "scalar")] == ["test_error"]


def test_keras(world):
    done = run(world, "keras_train.py", "--epochs", 2, "--callback", python=python_with("keras", "jax"),
               env=dict(world.env, KERAS_BACKEND="jax"))
    assert [s.number for s in of(done.marks, "step")] == list(range(1, 113))
