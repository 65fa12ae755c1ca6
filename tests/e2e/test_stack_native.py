# SPDX-License-Identifier: MIT
"""A program without Python: where its running threads are, and who called; what is said where the kernel
does not tell."""
import subprocess

import pytest

from conftest import BUILD

CHAIN = BUILD / "tests/programs/chain"
REFUSE = BUILD / "tests/programs/refuse"
INNER = ["chain_outer [chain]", "chain_middle [chain]", "chain_inner [chain]"]


def collapsed(spotter, record):
    """{thread: {frames: microseconds}} of the program."""
    out = {}
    for line in spotter("export", "--to", "collapsed", record).out.splitlines():
        stack, us = line.rsplit(" ", 1)
        frames = stack.split(";")
        if frames[0].startswith("chain "):
            out.setdefault(frames[1], {})[tuple(frames[2:])] = int(us)
    return out


@pytest.mark.alone
def test_running_threads_have_their_callers(spotter, tmp_path):
    record = tmp_path / "chain.spot"
    spotter("run", "--out", record, "--", CHAIN, 3)
    threads = collapsed(spotter, record)
    sampled = spotter.json("doctor")["level"] == "L3"
    # who may not sample sees nothing of threads that never wait
    assert not sampled or "main thread" in threads and len(threads) == 2, threads
    for name, stacks in threads.items():
        root = "main [chain]" if name == "main thread" else "chain_thread [chain]"
        native = {s: us for s, us in stacks.items() if s and not s[0].startswith("[")}
        if not sampled:
            continue
        assert native, stacks
        # Whatever is told is right: from its root downwards, in the order of the calls.
        for stack in native:
            named = [f for f in stack if f.startswith(("chain_", "main ")) and f != root]
            assert stack[0] == root or stack[0].startswith("_start"), stack
            assert named == INNER[:len(named)], stack
        # And it is told of most of the time that was not spent in a queue.
        whole = sum(us for s, us in native.items() if list(s[-3:]) == INNER)
        assert whole > 0.3 * sum(native.values()), stacks
    if sampled:
        assert "chain_inner" in spotter("report", record).out


def test_refusal_is_said(spotter, tmp_path):
    record = tmp_path / "refused.spot"
    done = subprocess.run([str(REFUSE), str(spotter.binary), "run", "--out", str(record), "--", str(CHAIN), "1.5"],
                          env=spotter.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for stacks in collapsed(spotter, record).values():
        assert not any("chain_inner" in f for s in stacks for f in s), stacks
    told = spotter("why", record).out + spotter("report", record).out
    assert "may not sample running threads" in " ".join(told.split()), told
