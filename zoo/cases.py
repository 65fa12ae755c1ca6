# SPDX-License-Identifier: MIT
"""A case: a program, what is wrong with it, what is true about it, and what cures it. The table is in cases_ill.py,
cases_frameworks.py and cases_healthy.py; a case is one row there.

causes    right answers for the first finding; empty: nothing is wrong
marks     words of the comments `# ail: WORD` in the program; such a line is where the cause is. None: not in the program
flags     of the program;  fix: flags of the cured program (None: cannot be cured here, no gain is measured)
injure    what is done from outside (inject.py);  heal: the cure is that this is not done
kind      finding: a cause with a gain;  note: named among findings or notes, no gain to speak of;
          death: the program ends badly and the cause is named
tags      single | compound | healthy, and: alike (looks like another case), cores_full (prediction is scored apart)
needs     root-cgroup, fuse, shm, gpu (the virtual GPU), or the name of a Python module"""
import re
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
MARK = re.compile(r"# ail: ([\w ]+)$")


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    flags: str = ""
    causes: tuple = ()
    fix: str = None
    heal: bool = False
    injure: dict = field(default_factory=dict)
    env: dict = field(default_factory=dict)
    scenario: str = ""
    kind: str = "finding"
    tags: tuple = ()
    needs: tuple = ()
    marks: str = ""
    also: tuple = ()
    data: str = ""

    @property
    def healthy(self):
        return "healthy" in self.tags

    @property
    def curable(self):
        return self.fix is not None or self.heal

    @property
    def group(self):
        return "healthy" if self.healthy else "compound" if "compound" in self.tags else "single"

    def places(self):
        """(file, line) of every marked line of this case."""
        if not self.marks:
            return []
        names = [self.program] + [w for w in self.flags.split() if w.endswith(".py")]
        return [place for name in names for word in self.marks.split() for place in marked(name, word)]

    def requirements(self):
        """What it needs, with what follows from the rest of the row."""
        wants = set(self.needs)
        if {"cpu", "memory", "read_bps", "read_iops"} & set(self.injure):
            wants.add("root-cgroup")
        wants |= {"fuse"} if "far_ms" in self.injure else set()
        wants |= {"shm"} if "shm" in self.injure else set()
        return sorted(wants)


def marked(program, word):
    file = PROGRAMS / program
    found = []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        m = MARK.search(line)
        if m and word in m[1].split():
            found.append((str(file), number))
    return found


def ill(name, program, causes, flags="", fix=None, **more):
    """One thing wrong. Its marks are those of the first cause unless said otherwise."""
    causes = (causes,) if isinstance(causes, str) else tuple(causes)
    more.setdefault("marks", causes[0])
    tags = tuple(more.pop("tags", ())) + ("single",)
    return Case(name, program, flags, causes, fix, tags=tags, **more)


def outside(name, program, causes, flags="", **more):
    """The cause is not in the program: a limit, a neighbour, the GPU itself."""
    more.setdefault("marks", "")
    more.setdefault("heal", True)
    return ill(name, program, causes, flags, **more)


def both(name, program, causes, flags="", fix=None, **more):
    """More than one thing wrong: the first finding is one of them, and `also` is among the first three."""
    more.setdefault("also", tuple(causes))
    tags = tuple(more.pop("tags", ())) + ("compound",)
    return Case(name, program, flags, tuple(causes), fix, tags=tags, **more)


def fine(name, program, flags="", **more):
    tags = tuple(more.pop("tags", ())) + ("healthy",)
    return Case(name, program, flags, tags=tags, kind="healthy", **more)


def every():
    from cases_frameworks import FRAMEWORKS
    from cases_healthy import HEALTHY
    from cases_ill import ILL
    return ILL + FRAMEWORKS + HEALTHY


def by_name(names):
    """The cases of these names; a name may end in * ; all without names."""
    table = every()
    if not names:
        return table
    picked = []
    for name in names:
        hits = [c for c in table if c.name == name or name.endswith("*") and c.name.startswith(name[:-1])]
        if not hits:
            raise SystemExit(f"zoo: no case {name!r}; `zoo list` names them")
        picked += [c for c in hits if c not in picked]
    return picked
