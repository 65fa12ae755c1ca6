# SPDX-License-Identifier: MIT
"""What failed, once more: alone, when everything else has ended, TIMES times.

Thousands of tests share a few cores of a machine that others use too, so one that has always been right can be
too late once. It counts as passed only when it passes every time, and it is named with the reason of its failure
as "unsteady": either the test is wrong or the program has a race, and both must be mended. More than UNSTEADY of
them fail the run; after more than MOST failures nothing is run again, for then it is no accident."""

TIMES = 2
UNSTEADY = 4
MOST = 12


def node(tree, where, case):
    """What pytest calls a test, from its row in junit.xml: classname="tests.e2e.test_x.TestY" name="test_z[1]"."""
    words = case.get("classname", "").split(".")
    path = tree / where
    at = len(words) - 1
    for i, word in enumerate(words):
        if path.name == f"{word}.py" or (path / f"{word}.py").exists():
            path, at = path if path.name == f"{word}.py" else path / f"{word}.py", i
            break
    return "::".join([str(path), *words[at + 1:], case.get("name")])


def passes(run):
    r = run()
    return r.passed > 0 and not r.failures


def look(total):
    """Takes from total's failures those that pass now. Their names; all stay failures when there are too many."""
    if len(total.failures) > MOST:
        return []
    steady = [(name, out) for name, out in total.failures
              if name not in total.again or not all(passes(total.again[name]) for _ in range(TIMES))]
    unsteady = [name for name, _ in total.failures if name not in dict(steady)]
    if len(unsteady) > UNSTEADY:
        return []
    total.failures = steady
    total.passed += len(unsteady)
    return unsteady
