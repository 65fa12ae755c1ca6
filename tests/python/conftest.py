# SPDX-License-Identifier: MIT
"""`world`: runs programs, each test in a place of its own (programs.py)."""
import pytest

from programs import BUILD, World


@pytest.fixture
def world(tmp_path):
    if not (BUILD / "libspotter.so").exists():
        pytest.fail(f"{BUILD / 'libspotter.so'} is not there: run make first")
    return World(tmp_path)
