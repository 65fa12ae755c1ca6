# SPDX-License-Identifier: MIT
"""Memory that grows: the line that keeps it is named, as a guess, from the record alone."""
import pytest

PYTHON = "/usr/bin/python3"

# A helper that makes lists and gives them back, a list that is bounded, numbers that are kept, and one line that leaks.
LEAKS = r'''
import sys, time

def parts_of(batch):
    parts = []
    for k in range(0, len(batch), 1 << 16):
        parts.append(batch[k:k + (1 << 16)])
    return parts

def train(seconds):
    kept, recent, sizes, made = [], [], [], 0
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        parts = parts_of(b"y" * (1 << 18))
        recent.append(parts)
        sizes.append(len(parts))
        if len(recent) > 8:
            recent.pop(0)
        due = 50 * (time.monotonic() - start)
        while made < due:  # by the clock: a busy machine does not make it grow unevenly
            batch = b"x" * (1 << 18)
            kept.append(batch)  # here
            made += 1
        time.sleep(0.02)

train(float(sys.argv[1]))
'''


def leak_of(spotter, program, name):
    """The note; None where the machine had no time to look."""
    spotter("run", "-q", "--name", name, "--", PYTHON, program, "13", check=True)
    verdict = spotter.json("why", name)
    return next((x for x in verdict["findings"] + verdict["notes"] if x["cause"] == "memory_leak"), None)


@pytest.mark.one_user
def test_the_line_that_keeps_is_named_as_a_guess(spotter, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(LEAKS)
    said = leak_of(spotter, program, "first") or leak_of(spotter, program, "second") or leak_of(spotter, program, "third")
    program.write_text("# changed\n" * 40)  # the record has what it needs
    verdict = spotter.json("why")
    leak = next(x for x in verdict["findings"] + verdict["notes"] if x["cause"] == "memory_leak")
    assert leak == said
    line = next(n for n, text in enumerate(LEAKS.split("\n"), 1) if text.endswith("# here"))
    assert leak["where"] == {"file": str(program), "line": line, "function": "train", "guess": True}
    why = [e["text"] for e in leak["evidence"] if e["metric"] == "kept.lines"]
    assert len(why) == 1 and f"train.py:{line}, a guess from the source: kept.append(batch)" in why[0], leak["evidence"]
    assert f"likely kept at train.py:{line}" in " ".join(spotter("why").out.split())
    # Once for each line, and libraries not at all.
    rows = spotter.json("sql", "SELECT file, line, source FROM place WHERE kind = 'keeps' ORDER BY id")
    assert {row["file"] for row in rows} == {str(program)}, rows
    assert len(rows) <= 8 and len({row["line"] for row in rows}) == len(rows), rows
