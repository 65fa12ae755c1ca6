#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may include whom: the architecture as a table, and the check that the tree keeps to it.

    tools/layers.py [TREE]      prints every forbidden include as file:line, exit 1 if there is one

Each folder of src is a library of its own and is linked with no more than its row allows, so a
forbidden call fails to link as well; this names the line that asked for it."""
import re
import sys
from pathlib import Path

MAY_INCLUDE = {
    "base": [],
    "mark": ["base"],
    "model": ["base"],
    "launch": ["base"],
    "collect": ["model", "base"],
    "gpu": ["model", "base"],
    "stack": ["model", "base"],
    "sink": ["model", "base"],
    "push": ["model", "base"],
    "fleet": ["push", "explain", "model", "base"],
    "record": ["model", "base"],
    "explain": ["model", "base"],
    "engine": ["mark", "collect", "gpu", "stack", "record", "explain", "sink", "model", "base"],
    "agent": ["engine", "mark", "collect", "gpu", "stack", "record", "explain", "sink", "model", "base"],
    "tui": ["explain", "record", "model", "base"],
    "web": ["explain", "record", "model", "base"],
    "cli": ["base", "mark", "model", "launch", "collect", "gpu", "stack", "sink", "push", "fleet", "record",
            "explain", "engine", "agent", "tui", "web"],
}

# Headers of libraries, and the only folders that know them. A header of ours that includes one is
# private to its folder.
FOREIGN = {
    r"sqlite3(ext)?\.h": ["record", "cli"],  # cli: `spotter sql` shows rows of any shape
    r"zstd\w*\.h": ["record", "sink"],
    r"(n?cursesw?/)?n?curses\w*\.h|term(io|cap|info)?\.h": ["tui"],
    r"termios\.h": ["tui", "launch"],
    r"microhttpd\.h": ["web"],
    r"curl/.*": [],
    r"jansson\w*\.h": ["fleet"],
    r"(lib)?elf\.h|elfutils/.*|dwarf\.h": ["stack"],
    r"nvml\.h|cuda\w*\.h|rocm_smi/.*|amd_smi/.*|level_zero/.*": [],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(file):
    """[(line, '<' or '"', path)]"""
    lines = file.read_text(errors="replace").splitlines()
    return [(n, m[1], m[2]) for n, m in enumerate(map(INCLUDE.match, lines), 1) if m]


def private_headers(src):
    """{"record/x.h"}: headers that pass a library's header on, directly or through another."""
    headers = {str(f.relative_to(src)): includes(f) for f in src.rglob("*.h")}
    private = set()
    while True:
        more = {name for name, rows in headers.items() if name not in private and any(
            path in private if kind == '"' else any(re.fullmatch(p, path) for p in FOREIGN)
            for _, kind, path in rows)}
        if not more:
            return private
        private |= more


def check_include(layer, kind, path, private):
    """None, or what is wrong with this include."""
    allowed = MAY_INCLUDE[layer]
    if kind == "<":
        for pattern, layers in FOREIGN.items():
            if re.fullmatch(pattern, path) and layer not in layers:
                where = " and ".join(layers) or "no folder (vendor libraries are loaded with dlopen)"
                return f"<{path}> belongs to {where}"
        return None
    target = path.split("/")[0]
    if "/" not in path:
        return None if path == "spotter.h" else f'write "{layer}/{path}": includes name their folder'
    if ".." in path.split("/"):
        return f'"{path}": includes start at src'
    if target not in MAY_INCLUDE:
        return f'"{path}": no such folder in src'
    if target != layer and path in private:
        return f'"{path}" passes a library\'s header on: it is private to {target}'
    if target != layer and target not in allowed:
        return f"{layer} may include {', '.join(allowed) or 'libc only'}; not {target}"
    return None


def check(tree):
    """[(file, line, what)] of everything that breaks a rule."""
    wrong = []
    src = Path(tree) / "src"
    private = private_headers(src)
    for folder in sorted(p for p in src.iterdir() if p.is_dir()):
        if folder.name not in MAY_INCLUDE:
            wrong.append((folder.relative_to(tree), 0, "a folder without a row in tools/layers.py"))
            continue
        for file in sorted(folder.rglob("*.[ch]")):
            for number, kind, path in includes(file):
                what = check_include(folder.name, kind, path, private)
                if what:
                    wrong.append((file.relative_to(tree), number, what))
    return wrong


def main():
    tree = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
    wrong = check(tree)
    for file, line, what in wrong:
        print(f"{file}:{line}: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
