# SPDX-License-Identifier: MIT
"""tests/run counts what ran: a failure must not be able to hide."""
import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run():
    loader = importlib.machinery.SourceFileLoader("run", str(TREE / "tests/run"))
    spec = importlib.util.spec_from_loader("run", loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["run"] = module
    loader.exec_module(module)
    return module


CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] one
[       OK ] one
[ RUN      ] two
[  ERROR   ] --- 1 != 2
[   LINE   ] --- x.c:3: error: Failure!
[  FAILED  ] two
[ RUN      ] three
there is no such disk here
[  SKIPPED ] three
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] two
"""


def test_cmocka_is_counted_by_function(run):
    r = run.one_binary("x", False, False, CMOCKA)
    assert r.passed == 1
    assert [name for name, _ in r.failures] == ["x: two"]
    assert "1 != 2" in r.failures[0][1]
    assert r.skips == [("x: three", "there is no such disk here")]


def test_a_crash_after_good_tests_is_a_failure(run):
    r = run.one_binary("x", False, False, "[       OK ] one\nSegmentation fault\n")
    assert r.passed == 1 and len(r.failures) == 1


def test_a_silent_failure_is_a_failure(run):
    assert len(run.one_binary("x", False, False, "").failures) == 1


def test_other_programs_are_one_test(run):
    assert run.one_binary("x", True, False, "7 inputs").passed == 1
    assert run.one_binary("x", True, True, "no such file system here").skips == \
        [("x", "no such file system here")]


def test_pytest_failure_is_counted(run, tmp_path):
    test = tmp_path / "test_x.py"
    test.write_text("import pytest\ndef test_a(): pass\ndef test_b(): assert 1 == 2\n"
                    "@pytest.mark.skip(reason='why not')\ndef test_c(): pass\n"
                    "@pytest.fixture\ndef bad(): raise OSError('x')\ndef test_d(bad): pass\n")
    r = run.pytest("build", test)
    assert r.passed == 1 and len(r.failures) == 2 and r.skips == [("test_x::test_c", "why not")]


def test_pytest_that_cannot_collect_is_a_failure(run, tmp_path):
    test = tmp_path / "test_x.py"
    test.write_text("import no_such_module\n")
    assert run.pytest("build", test).failures


def test_timeout_ends_the_whole_group(run):
    code, out = run.call(["sh", "-c", "echo begun; sleep 100 & sleep 100"], 0.5)
    assert code is None and "begun" in out and "did not end" in out


def test_unknown_suite_is_refused():
    done = subprocess.run([sys.executable, TREE / "tests/run", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "no suite 'nonsense'" in done.stderr
