# SPDX-License-Identifier: MIT
"""check_steps.py STEPS_AS: the run of steps_source.h, read back from both formats by readers of their own; by
Google's protobuf, and by TensorBoard's own reader, too where they are installed."""
import os
import subprocess
import sys
import tempfile

import proto_files
import proto_peers

S = 1000000000


def output(word):
    return subprocess.run([sys.argv[1], word], check=True, stdout=subprocess.PIPE).stdout


def check_tensorboard(data):
    rows = proto_files.read_tensorboard(data)
    of = {}
    for wall, step, tag, value in rows:
        of.setdefault(tag, []).append((round(wall - 1700000000, 3), step, value))
    assert of["loss"] == [(1.0, 1, 2.5), (1.5, 2, 2.25), (4.0, 3, 1.75)], of["loss"]
    assert of["spotter/step_time_s"] == [(1.5, 2, 0.5), (4.0, 3, 1.0)]
    assert of["rank1/spotter/step_time_s"] == [(1.75, 2, 0.75)] and "rank1/loss" not in of
    assert of["spotter/data_wait_s"] == [(1.5, 2, 0.125), (4.0, 3, 0.25)]
    assert [x[1] for x in of["rank1/lr"]] == [2, 2]
    assert of['acc,"u"?[2J'] == [(1.1, 1, 0.5)]
    assert [x[2] for x in of["spotter/cpu_cores"]] == [1.5] * 4
    assert [x[2] for x in of["spotter/gpu1/busy"]] == [0.125, 0.25, 0.375, 0.5]
    assert not any("newer" in tag for tag in of)
    return len(rows)


def damaged(data):
    """A reader that checks nothing would take this too."""
    for at in (3, 9, 20, len(data) - 2):
        broken = bytearray(data)
        broken[at] ^= 4
        try:
            list(proto_files.records(bytes(broken)))
        except (AssertionError, OverflowError, MemoryError, ValueError):
            continue
        raise AssertionError(f"byte {at} is not covered")


def check_with_tensorboard(data, n):
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    except Exception:  # not there, or not for this Python
        return "tensorboard itself is not installed"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.tfevents.1")
        with open(path, "wb") as f:
            f.write(data)
        values = [v for e in EventFileLoader(path).Load() for v in e.summary.value]
    assert len(values) == n, (len(values), n)
    return "tensorboard reads it too"


def check_perfetto(data):
    tracks = proto_files.read_perfetto(data)
    named = {(tracks[t.parent].process[1][0] if t.parent else 0, t.name): t for t in tracks.values() if t.name}
    assert [t.process[1][0] for t in tracks.values() if t.process] == [42, 43]
    assert named[42, "steps of rank 0"].slices == [
        (6 * S, 6500000000, "step 2", {"loss": 2.25, "data_wait_s": 0.125}),
        (8 * S, 9 * S, "step 3", {"loss": 1.75, "data_wait_s": 0.25})]
    assert named[43, "steps of rank 1"].slices == [
        (6 * S, 6750000000, "step 2", {"data_wait_s": 0.5, "batches": 4})]
    assert named[42, "loss"].counts == [(6 * S, 2.5), (6500000000, 2.25), (9 * S, 1.75)]
    assert named[43, "lr"].counts == [(6800000000, 0.001), (6900000000, 0.0005)]
    assert named[42, "evaluate"].slices == [(6500000000, 8 * S, "evaluate", {})]
    assert [x[1] for x in named[42, "epoch"].open] == ["epoch"], "it was still going on"
    assert named[0, "job.cpu"].counts == [(t * S, 1.5) for t in (5, 6, 7, 8)] and named[0, "job.cpu"].unit == "cores"
    assert [c[1] for c in named[0, "GPU 1 gpu.busy"].counts] == [0, 0.125, 0.25, 0.375, 0.5]
    assert named[0, "events"].instants == [(7 * S, "oom_kill")]
    threads = [t for t in tracks.values() if t.thread]
    assert [(t.thread[1][0], t.thread[2][0]) for t in threads] == [(42, 42)]
    assert threads[0].slices == [(6 * S, 7 * S, "pipe", {"running": 0.25, "pipe": 0.75})]
    for t in tracks.values():
        assert t.name is None or "\x1b" not in t.name


def main():
    data = output("tensorboard")
    n = check_tensorboard(data)
    damaged(data)
    said = check_with_tensorboard(data, n)
    trace = output("perfetto")
    check_perfetto(trace)
    if proto_peers.available():
        proto_peers.same_tensorboard(data)
        proto_peers.same_perfetto(trace)
        said += "; protobuf reads both"
    else:
        said += "; python3-protobuf is not installed"
    print(f"{n} values; {said}; the trace holds")


main()
