#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Style that can be counted, and tables that must agree with the tree. What a person must judge is
in CONTRIBUTING.md.

    tools/style.py [TREE]           prints every violation as file:line, exit 1 if there is one
    tools/style.py --list-c [TREE]  names the C files (for clang-format)
    tools/style.py --list-all       names every file that is not ignored (for tools/fresh)"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

FUNCTION_LINES = 60
NESTING = 4
FILE_LINES = 600        # an error
FILE_LINES_WARN = 500   # a remark
BANNED_NAMES = re.compile(r"(utils?|common|misc|helpers?)(\.\w+)?")
SPDX = "SPDX-License-Identifier: MIT"
SPDX_SUFFIXES = {".c", ".h", ".def", ".py", ".sql", ".sh"}
# Written so that this file does not find itself.
LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE = re.compile(r"""(?:^|[\s"'`=(:,])/(?:work|root)/""")
# Data of any kind: their bytes are what some machine said, or what a fuzzer made of it.
DATA = ("tests/roots/", "tests/fuzz/corpus/", "tests/golden/", "LICENSE")
CONTROL = re.compile(r"^(\t*)(?:if|for|while|switch|do)\b")


def all_files(tree):
    """Tracked files and those that will be: ignored ones left out. Without git: all but build*."""
    git = None
    if shutil.which("git"):
        git = subprocess.run(["git", "-C", tree, "-c", f"safe.directory={tree}", "ls-files", "-co",
                              "--exclude-standard", "-z"], capture_output=True)
    if git and git.returncode == 0:
        names = [n.decode(errors="replace") for n in git.stdout.split(b"\0") if n]
    else:
        names = [str(p.relative_to(tree)) for p in tree.rglob("*")
                 if not p.relative_to(tree).parts[0].startswith(("build", ".git"))
                 and "__pycache__" not in p.parts]
    return sorted(n for n in set(names) if (tree / n).is_symlink() or (tree / n).is_file())


def files(tree):
    return [n for n in all_files(tree) if not (tree / n).is_symlink()]


def c_files(tree):
    return [n for n in files(tree) if n.endswith((".c", ".h")) and not n.startswith(DATA)]


def check_functions(name, lines):
    """A function is what stands between a '{' and a '}' in the first column (clang-format's)."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            if number - start - 1 > FUNCTION_LINES:
                yield name, start, f"a function of {number - start - 1} lines; {FUNCTION_LINES} at most"
            start = None
        m = start and CONTROL.match(line)
        if m and len(m[1]) > NESTING:
            yield name, number, f"nested {len(m[1])} deep; {NESTING} at most"


def check_file(tree, name):
    path = Path(name)
    text = (tree / name).read_text(errors="replace")
    lines = text.splitlines()
    if BANNED_NAMES.fullmatch(path.name) or any(BANNED_NAMES.fullmatch(p) for p in path.parts[:-1]):
        yield name, 0, "a name that says nothing: call it by what it does"
    code = path.suffix in SPDX_SUFFIXES or text.startswith("#!")
    if code and len(lines) > FILE_LINES:
        yield name, len(lines), f"{len(lines)} lines; {FILE_LINES} at most: split it by reason"
    if code and not any(SPDX in line for line in lines[:3]):
        yield name, 1, f"no '{SPDX}' in the first lines"
    for number, line in enumerate(lines, 1):
        if LATER.search(line):
            yield name, number, "a note for later: do it, or open an issue"
        if MACHINE.search(line):
            yield name, number, "a path of somebody's machine"
    if path.suffix in (".c", ".h"):
        yield from check_functions(name, lines)


METRIC = re.compile(r'^METRIC\((\w+),\s*"([^"]+)",\s*\w+,\s*[^,]+,\s*\w+,\s*(\w+),.*"([^"]*)"\)\s*$')


def metric_rows(tree):
    """[(line, id, name, entity, help)]"""
    definitions = tree / "src/model/metrics.def"
    rows = []
    if definitions.exists():
        for number, line in enumerate(definitions.read_text().splitlines(), 1):
            m = METRIC.match(line)
            if m:
                rows.append((number, m[1], m[2], m[3], m[4]))
            elif line.startswith("METRIC("):
                rows.append((number, None, line, None, None))
    return rows


def check_metrics(tree):
    """Every metric says what it is, has a name of its own, is put by some source, and is in the docs."""
    where = "src/model/metrics.def"
    sources = "".join(p.read_text(errors="replace") for layer in ("collect", "gpu", "stack", "engine")
                      for p in (tree / "src" / layer).rglob("*.[ch]"))
    used = set(re.findall(r"\bM_(\w+)\b", sources))
    page = tree / "docs/metrics.md"
    described = page.read_text() if page.exists() else ""
    seen = set()
    for line, ident, name, entity, help_text in metric_rows(tree):
        if ident is None:
            yield where, line, "cannot read this row"
            continue
        if name in seen:
            yield where, line, f"'{name}' is there twice"
        seen.add(name)
        if not help_text:
            yield where, line, f"'{name}' has no help text"
        if f"`{name}`" not in described:
            yield where, line, f"'{name}' is not in docs/metrics.md: run make docs"
        if entity != "GPU" and ident not in used:
            yield where, line, f"nothing measures '{name}' (M_{ident} in no source)"


def check_causes(tree):
    """A rule is a file named by its cause; people get a page about it."""
    rules = {p.stem for p in (tree / "src/explain/rules").glob("*.c")}
    pages = {p.stem for p in (tree / "docs/causes").glob("*.md")}
    for cause in sorted(rules - pages):
        yield f"src/explain/rules/{cause}.c", 0, f"no docs/causes/{cause}.md about it"
    table = tree / "src/explain/causes.c"
    known = set(re.findall(r'\{\s*"(\w+)",\s*"[\w -]+",\s*\d', table.read_text())) if table.exists() else set()
    for cause in sorted(pages - known - {"README", "index"}):
        yield f"docs/causes/{cause}.md", 0, "no such cause in src/explain/causes.c"
    for cause in sorted(rules - known):
        yield f"src/explain/rules/{cause}.c", 0, "no such cause in src/explain/causes.c"


def check_fuzz_rows(tree):
    """Meson lists files by hand: a target without a row would never run."""
    folder = tree / "tests/fuzz"
    listed = set(re.findall(r"^\s*\['(\w+)',", (folder / "meson.build").read_text(), re.M)) \
        if (folder / "meson.build").exists() else set()
    there = {p.stem[5:] for p in folder.glob("fuzz_*.c")}
    for name in sorted(there - listed):
        yield f"tests/fuzz/fuzz_{name}.c", 0, "no row in tests/fuzz/meson.build"
    for name in sorted(there):
        if not any((folder / "corpus" / name).glob("*")):
            yield f"tests/fuzz/fuzz_{name}.c", 0, f"no first inputs in tests/fuzz/corpus/{name}"


def check_unit_rows(tree):
    """The same for unit tests."""
    for file in sorted((tree / "tests/unit").glob("*/test_*.c")):
        rows = file.parent / "meson.build"
        if not rows.exists() or not re.search(rf"'(test_)?{file.stem[5:]}(\.c)?'", rows.read_text()):
            yield file.relative_to(tree), 0, f"no row in {rows.relative_to(tree)}"


def check_format(tree):
    """clang-format 14's opinion, where it is installed. Other versions have other opinions."""
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    names = c_files(tree)
    if not program or not names or not (tree / ".clang-format").exists():
        return
    run = subprocess.run([program, "--dry-run", "-Werror", *names], cwd=tree, capture_output=True,
                         text=True)
    seen = set()
    for file, line in re.findall(r"^(\S+?):(\d+):\d+: error: code should be clang-formatted",
                                 run.stderr, re.M):
        if file not in seen:
            seen.add(file)
            yield file, int(line), "not as clang-format would have it: run make format"


def check(tree):
    wrong = []
    for name in files(tree):
        if not name.startswith(DATA) and not name.endswith(".png"):
            wrong += check_file(tree, name)
    for part in (check_metrics, check_causes, check_fuzz_rows, check_unit_rows, check_format):
        wrong += part(tree)
    return [(str(file), line, what) for file, line, what in wrong]


def long_files(tree):
    for name in files(tree):
        if Path(name).suffix in SPDX_SUFFIXES and not name.startswith(DATA):
            n = len((tree / name).read_text(errors="replace").splitlines())
            if FILE_LINES_WARN < n <= FILE_LINES:
                yield name, n


def main():
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    tree = Path(words[0] if words else Path(__file__).resolve().parents[1]).resolve()
    if "--list-c" in sys.argv:
        print(*(tree / n for n in c_files(tree)), sep="\n")
        return 0
    if "--list-all" in sys.argv:
        print(*all_files(tree), sep="\n")
        return 0
    wrong = check(tree)
    for file, line, what in wrong:
        print(f"{file}:{line}: {what}")
    for name, n in long_files(tree):
        print(f"{name}: {n} lines: soon too long", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
