# SPDX-License-Identifier: MIT
"""tests/run counts what ran: a failure must not be able to hide."""
import importlib.machinery
import importlib.util
import os
import signal
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


APART = """[ RUN      ] one
[  FAILED  ] one
[ RUN      ] two
[  FAILED  ] two
[==========] 2 test(s) run.
ERROR: 3 is
odd
[  ERROR   ] --- [   LINE   ] --- x.c:7: error: Failure!
[  ERROR   ] --- 1 != 2
[   LINE   ] --- x.c:8: error: Failure!
[  PASSED  ] 0 test(s).
[  FAILED  ] 2 test(s), listed below:
[  FAILED  ] one
[  FAILED  ] two
"""


def test_each_failure_has_its_own_words(run):
    """stderr behind stdout, as meson keeps them."""
    one, two = run.one_binary("x", False, False, APART).failures
    assert one[1].startswith("ERROR: 3 is\nodd\n") and "1 != 2" not in one[1]
    assert "1 != 2" in two[1] and "odd" not in two[1]
    assert (run.reason(one[1]), run.reason(two[1])) == ("3 is", "1 != 2")


def test_a_long_output_keeps_its_reason_and_its_end(run):
    noise = [f"line {i}" for i in range(500)]
    found = run.excerpt("\n".join([*noise, "E   assert 1 == 2"]))
    assert found[-1] == "E   assert 1 == 2" and len(found) <= run.OUTPUT_LINES + 1
    report = ["==7==ERROR: AddressSanitizer: heap-use-after-free", "    #0 in f x.c:3"]
    found = run.excerpt("\n".join([*noise, *report, *noise, "ABORTING"]))
    assert found[:2] == report and found[-1] == "ABORTING" and len(found) <= run.OUTPUT_LINES + 1


def test_every_file_has_its_turn(run):
    found = run.parts_of("tests/e2e")
    assert {Path(f).name for f, _ in found} == {p.name for p in (TREE / "tests/e2e").glob("test_*.py")}
    assert [part for f, part in found if f.endswith("/test_gpu.py")] == ["0/3", "1/3", "2/3"]
    assert set(run.FILES) <= {Path(f).stem for f, _ in found}


def test_parts_make_the_whole(run):
    def chosen(part):
        done = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m",
                               "not alone", TREE / "tests/e2e/test_failure.py"], cwd=TREE, capture_output=True, text=True,
                              env=os.environ | {"SPOTTER_PART": part})
        return [line for line in done.stdout.splitlines() if "::" in line]
    whole, parts = chosen("0/1"), [chosen(f"{k}/3") for k in range(3)]
    assert sorted(sum(parts, [])) == sorted(whole) and len(whole) > 3
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_broken_suite_does_not_stop_the_next(run, monkeypatch, capsys):
    def broken(_):
        raise OSError("no such luck")
    monkeypatch.setattr(run.Run, "build", lambda self: run.Result(passed=1))
    monkeypatch.setattr(run.Run, "check", broken)
    monkeypatch.setattr(run.Run, "unit", lambda self: run.Result(passed=2))
    monkeypatch.setattr(sys, "argv", ["run", "check", "unit"])
    before = signal.getsignal(signal.SIGINT)
    assert run.main() == 1
    signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().out.splitlines()
    assert said[-3:] == ["failed:", "  check: check: OSError: no such luck", "3 passed, 1 failed"]


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


UNSTEADY = """import os
import pytest
def test_once():
    with open(os.environ["SEEN"], "a") as f:
        f.write("x")
    assert os.path.getsize(os.environ["SEEN"]) > 1
class TestSome:
    @pytest.mark.parametrize("n", ["a b", "[c]"])
    def test_never(self, n): assert n == 2
def test_good(): pass
"""


def test_what_failed_by_accident_is_told_from_what_fails(run, tmp_path):
    """Also where tests are found by their folder, and by parts."""
    (tmp_path / "test_x.py").write_text(UNSTEADY)
    for where in (tmp_path, tmp_path / "test_x.py"):
        seen = tmp_path / f"seen-{where.name}"
        r = run.pytest("build", where, {"SEEN": seen, "SPOTTER_PART": "0/1"})
        assert (r.passed, len(r.failures)) == (1, 3)
        assert run.again.look(r) == ["test_x::test_once"]
        assert r.passed == 2 and [name for name, _ in r.failures] == ["TestSome::test_never[a b]",
                                                                      "TestSome::test_never[[c]]"]
        assert seen.read_text() == "xxx"


def test_many_failures_are_no_accident(run):
    def good():
        calls.append(1)
        return run.Result(passed=1)
    for failures, called in ((run.again.UNSTEADY + 1, True), (run.again.MOST + 1, False)):
        calls = []
        r = run.Result(failures=[(str(i), "") for i in range(failures)]).repeatable(good)
        assert run.again.look(r) == [] and len(r.failures) == failures and bool(calls) == called


def test_what_cannot_be_run_again_stays_a_failure(run):
    skipped = lambda: run.Result(skips=[("x", "no disk")])  # noqa: E731
    r = run.Result(failures=[("build", ""), ("x", "")], again={"x": skipped})
    assert run.again.look(r) == [] and len(r.failures) == 2


def test_unsteady_tests_are_named(run, monkeypatch, capsys):
    unsteady = run.Result(passed=1, failures=[("x", "E   1 != 2")]).repeatable(lambda: run.Result(passed=1))
    monkeypatch.setattr(run.Run, "build", lambda self: run.Result(passed=1))
    monkeypatch.setattr(run.Run, "unit", lambda self: unsteady)
    monkeypatch.setattr(sys, "argv", ["run", "unit"])
    before = signal.getsignal(signal.SIGINT)
    assert run.main() == 0
    signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().out.splitlines()[-3:] == ["unsteady:", "  unit: x: 1 != 2",
                                                         "3 passed, 0 failed, 1 unsteady"]


def test_timeout_ends_the_whole_group(run):
    code, out = run.call(["sh", "-c", "echo begun; sleep 100 & sleep 100"], 0.5)
    assert code is None and "begun" in out and "did not end" in out


def test_unknown_suite_is_refused():
    done = subprocess.run([sys.executable, TREE / "tests/run", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "no suite 'nonsense'" in done.stderr
