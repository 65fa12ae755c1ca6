# SPDX-License-Identifier: MIT
"""Reads the rings of marks (src/mark/ring.h) that a program left behind: a second reader, for tests."""
import struct
from pathlib import Path
from types import SimpleNamespace

KINDS = ("none", "step", "scalar", "phase_begin", "phase_end", "data_wait", "micro_step", "epoch", "setting",
         "source")
HEADER, NAME_BYTES = 4096, 64
HEAD = struct.Struct("<QIIIIiiiIQII")
SLOT = struct.Struct("<QqQdIII")


def read(file):
    """Marks of one ring, oldest first, each with .kind, .name, .number, .value, .t_ns."""
    raw = Path(file).read_bytes()
    magic, version, slots, names, size, pid, rank, world, _, head, named, _ = HEAD.unpack_from(raw)
    assert magic == 0x31474e4952544f50 and version == 1 and size == len(raw)
    assert head <= slots, f"{head} marks do not fit a ring of {slots}: the test must make fewer"
    words = [raw[HEADER + i * NAME_BYTES:][:NAME_BYTES].split(b"\0")[0].decode() for i in range(min(named, names))]
    marks = []
    for n in range(head):
        turn, t_ns, number, value, kind, name, _ = SLOT.unpack_from(raw, HEADER + names * NAME_BYTES + n * 64)
        assert turn == 2 * n + 2
        marks.append(SimpleNamespace(kind=KINDS[kind], name=words[name - 1] if name else "", number=number,
                                     value=value, t_ns=t_ns, pid=pid, rank=rank, world=world))
    return marks


def read_all(folder):
    """Marks of each process: {pid: [mark, ...]}."""
    found = {}
    for file in sorted(Path(folder).glob("*.ring")):
        marks = read(file)
        found[int(file.name.partition("-")[0])] = marks
    return found
