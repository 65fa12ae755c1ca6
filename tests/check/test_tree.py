# SPDX-License-Identifier: MIT
"""The tree keeps to its rules, and each check finds a planted violation (a check that cannot fail
proves nothing)."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tools"))

import layers  # noqa: E402
import metrics_page  # noqa: E402
import screen_svg  # noqa: E402
import style  # noqa: E402

HEAD = "/* SPDX-License-Identifier: MIT */\n"


def shown(wrong):
    return "\n".join(f"{file}:{line}: {what}" for file, line, what in wrong)


def test_include_arrows_hold():
    wrong = layers.check(TREE)
    assert not wrong, shown(wrong)


def test_style_holds():
    wrong = style.check(TREE)
    assert not wrong, shown(wrong)


def test_metrics_page_is_current():
    want = metrics_page.page((TREE / "src/model/metrics.def").read_text())
    assert (TREE / "docs/metrics.md").read_text() == want, "run make docs"


def test_picture_of_top_is_current():
    screen = TREE / "tests/golden/screens/overview-docs-132x38-true.txt"
    assert (TREE / "docs/top.svg").read_text() == screen_svg.draw(screen.read_text()), "run make docs"


def test_scripts_parse():
    for name in ("tools/setup", "tools/demo", "tools/fresh", "tools/fuzz", ".ci/run"):
        shell = "bash" if name == ".ci/run" else "sh"
        subprocess.run([shell, "-n", TREE / name], check=True)


@pytest.fixture
def small(tmp_path):
    """A little tree that is right, to plant things in."""
    for layer in ("base", "model", "record", "cli", "collect", "explain"):
        (tmp_path / "src" / layer).mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "src/base/buf.h").write_text(HEAD + "struct buf;\n")
    (tmp_path / "src/record/inner.h").write_text(HEAD + "#include <sqlite3.h>\n")
    (tmp_path / "src/record/open.h").write_text(HEAD + '#include "record/inner.h"\n')
    (tmp_path / "src/model/run.c").write_text(HEAD + '#include "base/buf.h"\n\n#include <stdio.h>\n')
    return tmp_path


def put(tree, name, text):
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def found(check, tree, file, words):
    wrong = [(str(f), line, what) for f, line, what in check(tree)]
    hits = [w for w in wrong if w[0] == file and words in w[2]]
    assert hits, f"'{words}' not among: {shown(wrong) or 'nothing'}"
    return hits


def test_small_tree_is_right(small):
    assert layers.check(small) == [] and style.check(small) == []


@pytest.mark.parametrize("file, line, words", [
    ("src/base/x.c", '#include "model/run.h"', "base may include libc only; not model"),
    ("src/model/x.c", '#include "record/writer.h"', "model may include base; not record"),
    ("src/record/x.c", '  #  include "explain/verdict.h"', "not explain"),
    ("src/explain/x.c", '#include "record/reader.h"', "not record"),
    ("src/explain/rules/x.c", '#include "collect/collector.h"', "not collect"),
    ("src/collect/x.c", '#include "engine/engine.h"', "not engine"),
    ("src/explain/x.c", "#include <sqlite3.h>", "belongs to record"),
    ("src/cli/x.c", '#include "record/open.h"', "private to record"),
    ("src/cli/x.c", "#include <ncursesw/curses.h>", "belongs to tui"),
    ("src/cli/x.c", "#include <curses.h>", "belongs to tui"),
    ("src/collect/x.c", "#include <nvml.h>", "dlopen"),
    ("src/model/x.c", '#include "run.h"', 'write "model/run.h"'),
    ("src/model/x.c", '#include "../base/buf.h"', "start at src"),
    ("src/model/x.c", '#include "nowhere/buf.h"', "no such folder"),
])
def test_forbidden_include_is_found(small, file, line, words):
    put(small, file, f"{HEAD}{line}\n")
    assert found(layers.check, small, file, words)[0][1] == 2


def test_unknown_folder_is_found(small):
    put(small, "src/extras/x.c", HEAD)
    found(layers.check, small, "src/extras", "without a row")


def function(body):
    return f"{HEAD}void f(void)\n{{\n{body}}}\n"


@pytest.mark.parametrize("file, text, words", [
    ("src/base/long.c", function("\tx();\n" * 61), "a function of 61 lines"),
    ("src/base/deep.c", function("\tif (a)\n\t\tif (b)\n\t\t\tif (c)\n\t\t\t\tif (d)\n\t\t\t\t\tif (e)\n"
                                 "\t\t\t\t\t\tx();\n"), "nested 5 deep"),
    ("src/base/huge.c", HEAD + "int x;\n" * 600, "601 lines"),
    ("src/base/util.c", HEAD, "a name that says nothing"),
    ("src/helpers/x.c", HEAD, "a name that says nothing"),
    ("src/base/x.c", "int x;\n", "SPDX"),
    ("tools/x.py", "print()\n", "SPDX"),
    ("tools/x", "#!/bin/sh\ntrue\n", "SPDX"),
    ("src/base/x.c", HEAD + "/* TO" "DO: later */\n", "a note for later"),
    ("README.md", "see FIX" "ME\n", "a note for later"),
    ("README.md", "cd /wo" "rk/main\n", "somebody's machine"),
    ("tools/x.py", f"# {style.SPDX}\nhome = '/ro" "ot/.local'\n", "somebody's machine"),
    ("src/explain/rules/new.c", HEAD, "no docs/causes/new.md"),
    ("docs/causes/gone.md", "# gone\n", "no such cause"),
    ("tests/fuzz/fuzz_new.c", HEAD, "no row in tests/fuzz/meson.build"),
    ("tests/fuzz/fuzz_new.c", HEAD, "no first inputs"),
    ("tests/unit/base/test_new.c", HEAD, "no row in tests/unit/base/meson.build"),
])
def test_violation_is_found(small, file, text, words):
    put(small, file, text)
    found(style.check, small, file, words)


def test_allowed_things_are_allowed(small):
    put(small, "src/base/x.c", function("\tx();\n" * 60))
    put(small, "src/base/y.c", function("\tif (a)\n\t\tif (b)\n\t\t\tif (c)\n\t\t\t\tif (d)\n\t\t\t\t\tx();\n"))
    put(small, "README.md", "tests/roots/x, --root DIR, /proc/1/root, the work/main branch\n")
    put(small, "tests/roots/odd/t0/x", "TO" "DO /ro" "ot/x\n")
    assert style.check(small) == []


ROW = 'METRIC({}, "{}", COUNT, 1, GAUGE, {}, "", "", "{}")\n'


@pytest.mark.parametrize("rows, words", [
    (ROW.format("A", "a.a", "HOST", ""), "no help text"),
    (ROW.format("A", "a.a", "HOST", "x"), "not in docs/metrics.md"),
    (ROW.format("A", "a.a", "HOST", "x"), "nothing measures 'a.a'"),
    (ROW.format("A", "a.a", "HOST", "x") + ROW.format("B", "a.a", "HOST", "y"), "there twice"),
    ("METRIC(A, broken\n", "cannot read"),
])
def test_metric_violation_is_found(small, rows, words):
    put(small, "src/model/metrics.def", HEAD + rows)
    found(style.check, small, "src/model/metrics.def", words)


def test_good_metric_passes(small):
    put(small, "src/model/metrics.def", HEAD + ROW.format("A", "a.a", "HOST", "x") +
        ROW.format("G", "gpu.g", "GPU", "x"))
    put(small, "src/collect/a.c", HEAD + "int a = M_A;\n")
    put(small, "docs/metrics.md", "| `a.a` | `gpu.g` |\n")
    assert style.check(small) == []


@pytest.mark.skipif(not shutil.which("clang-format"), reason="no clang-format")
def test_format_violation_is_found(small):
    shutil.copy(TREE / ".clang-format", small)
    put(small, "src/base/x.c", HEAD + "int  f( void ){return 1;}\n")
    found(style.check, small, "src/base/x.c", "clang-format")
