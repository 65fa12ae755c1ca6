#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/metrics.md from src/model/metrics.def, for people and for the site; `make docs` writes it and
a test compares. `spotter metrics` prints the same table from inside the program."""
import re
import sys
from pathlib import Path

ROW = re.compile(r'^METRIC\(\w+,\s*"([^"]+)",\s*(\w+),\s*[^,]+,\s*(\w+),\s*(\w+),\s*"([^"]*)",\s*'
                 r'"[^"]*",\s*"([^"]*)"\)')
HEADING = re.compile(r"^/\* (.*?)\s*\*/$")
INTRO = """# What Spotter measures

Every number in a record, once. Generated from `src/model/metrics.def`: change it there, then run
`make docs`. A counter only grows, so what matters is its rate; a gauge is what it is at that moment.
A value that could not be read is absent, never zero. The last column is the name in Prometheus format.
"""


def page(definitions):
    out, heading, table = [INTRO], None, False
    for line in definitions.splitlines():
        m = HEADING.match(line)
        if m:
            heading, table = m[1], False
        row = ROW.match(line)
        if not row:
            continue
        if not table:
            out.append(f"\n## {heading}\n\n| metric | unit | kind | of | what | Prometheus |\n"
                       "|---|---|---|---|---|---|")
            table = True
        name, unit, kind, entity, prometheus, text = row.groups()
        export = f"`{prometheus}`" if prometheus else ""
        out.append(f"| `{name}` | {unit.lower()} | {kind.lower()} | {entity.lower()} | {text} | {export} |")
    return "\n".join(out) + "\n"


def main():
    tree = Path(__file__).resolve().parents[1]
    sys.stdout.write(page((tree / "src/model/metrics.def").read_text()))


if __name__ == "__main__":
    main()
