# SPDX-License-Identifier: MIT
"""A trace, read by Perfetto's own messages: those of its Python package, which `make peers` fetches. (There is no
trace_processor in that package; it fetches one when it is first used.)"""
import json
import subprocess

import pytest

from conftest import TREE
from test_gpu_peers import venv

TRAIN = """
import time, spotter
for i in range(1, 21):
    time.sleep(0.02)
    spotter.step(loss=1 / i)
with spotter.phase("evaluate"): time.sleep(0.05)
"""

READ = """
import json, sys
sys.path.insert(0, sys.argv[1])
import proto_peers
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as published
for name, members in proto_peers.PERFETTO.items():  # what our own reader takes for published
    for field, (number, kind, *_) in members.items():
        found = getattr(published, name).DESCRIPTOR.fields_by_name[field]
        assert found.number == number, (name, field, found.number)
        if found.message_type is not None:
            assert found.message_type.name == kind, (name, field)
        elif found.enum_type is None:
            assert found.type == getattr(found, "TYPE_" + kind.upper()), (name, field)
with open(sys.argv[2], "rb") as f:
    data = f.read()
trace = published.Trace.FromString(data)
trace.DiscardUnknownFields()
assert trace.ByteSize() == len(data), "it has fields that nobody has published"
tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
events = [p.track_event for p in trace.packet if p.HasField("track_event")]
kinds = published.TrackEvent
begins = [e for e in events if e.type == kinds.TYPE_SLICE_BEGIN]
ends = [e for e in events if e.type == kinds.TYPE_SLICE_END]
counts = [e for e in events if e.type == kinds.TYPE_COUNTER]
assert all(e.track_uuid in tracks for e in events) and all(tracks[e.track_uuid].HasField("counter") for e in counts)
print(json.dumps({"slices": [[tracks[e.track_uuid].name, e.name] for e in begins], "ends": len(ends),
                  "loss": [e.double_counter_value for e in counts if tracks[e.track_uuid].name == "loss"]}))
"""


@pytest.mark.long
def test_perfettos_own_messages(spotter, tmp_path):
    python = venv("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    (tmp_path / "train.py").write_text(TRAIN)
    spotter("run", "--quiet", "--", "/usr/bin/python3", tmp_path / "train.py", check=True)
    spotter.settled()
    trace = tmp_path / "trace"
    spotter("export", "--to", "perfetto", "--out", trace, check=True)
    done = subprocess.run([python, "-c", READ, TREE / "tests/unit/sink", trace], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["loss"] == pytest.approx([1 / i for i in range(1, 21)])
    steps = [name for track, name in said["slices"] if track == "steps"]
    assert steps and steps == [f"step {n}" for n in range(21 - len(steps), 21)] and len(steps) >= 19
    assert ["evaluate", "evaluate"] in said["slices"] and said["ends"] == len(said["slices"])
