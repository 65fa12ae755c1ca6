# SPDX-License-Identifier: MIT
"""Event files and traces as Google's own protobuf reads them, by the published messages and field numbers
(tensorflow/core/util/event.proto and framework/summary.proto; perfetto protos/perfetto/trace). available() says whether
python3-protobuf is there. What these messages do not name is a mistake: nothing may be left over."""
import struct
import sys
from pathlib import Path

import proto_files

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from published import available, messages  # noqa: E402,F401

# {message: {field: (number, type, repeated)}}
TENSORBOARD = {
    "Event": {"wall_time": (1, "double"), "step": (2, "int64"), "file_version": (3, "string"), "summary": (5, "Summary")},
    "Summary": {"value": (1, "Value", True)},
    "Value": {"tag": (1, "string"), "simple_value": (2, "float"), "node_name": (7, "string")},
}
PERFETTO = {
    "Trace": {"packet": (1, "TracePacket", True)},
    "TracePacket": {"timestamp": (8, "uint64"), "trusted_packet_sequence_id": (10, "uint32"),
                    "track_event": (11, "TrackEvent"), "sequence_flags": (13, "uint32"),
                    "timestamp_clock_id": (58, "uint32"), "track_descriptor": (60, "TrackDescriptor")},
    "TrackEvent": {"debug_annotations": (4, "DebugAnnotation", True), "type": (9, "int32"), "track_uuid": (11, "uint64"),
                   "categories": (22, "string", True), "name": (23, "string"), "counter_value": (30, "int64"),
                   "double_counter_value": (44, "double")},
    "DebugAnnotation": {"bool_value": (2, "bool"), "uint_value": (3, "uint64"), "int_value": (4, "int64"),
                        "double_value": (5, "double"), "string_value": (6, "string"), "name": (10, "string")},
    "TrackDescriptor": {"uuid": (1, "uint64"), "name": (2, "string"), "process": (3, "ProcessDescriptor"),
                        "thread": (4, "ThreadDescriptor"), "parent_uuid": (5, "uint64"),
                        "counter": (8, "CounterDescriptor")},
    "ProcessDescriptor": {"pid": (1, "int32"), "cmdline": (2, "string", True), "process_name": (6, "string")},
    "ThreadDescriptor": {"pid": (1, "int32"), "tid": (2, "int64"), "thread_name": (5, "string")},
    "CounterDescriptor": {"type": (1, "int32"), "categories": (2, "string", True), "unit": (3, "int32"),
                          "unit_multiplier": (4, "int64"), "is_incremental": (5, "bool"), "unit_name": (6, "string")},
}


def parsed(kind, data):
    message = kind.FromString(data)
    message.DiscardUnknownFields()
    assert message.ByteSize() == len(data), "it has fields that nobody has published"
    return message


def read_tensorboard(data):
    """As proto_files.read_tensorboard."""
    kind = messages("tensorboard", TENSORBOARD)["Event"]
    events = [parsed(kind, record) for record in proto_files.records(data)]
    assert events[0].file_version == "brain.Event:2"
    return [(e.wall_time, e.step, v.tag, v.simple_value) for e in events[1:] for v in e.summary.value]


def read_perfetto(data):
    """(tracks by uuid, events in order of time): what proto_files.read_perfetto puts together."""
    trace = parsed(messages("perfetto", PERFETTO)["Trace"], data)
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    events = sorted((p for p in trace.packet if p.HasField("track_event")), key=lambda p: p.timestamp)
    assert len(tracks) + len(events) == len(trace.packet)
    return tracks, events


def same_tensorboard(data):
    """The two readers agree on every value."""
    mine, theirs = proto_files.read_tensorboard(data), read_tensorboard(data)
    assert [(w, s, t, struct.pack("<f", v)) for w, s, t, v in mine] == [
        (w, s, t, struct.pack("<f", v)) for w, s, t, v in theirs]


def same_perfetto(data):
    mine, (tracks, events) = proto_files.read_perfetto(data), read_perfetto(data)
    assert set(mine) == set(tracks)
    for uuid, track in mine.items():
        row = tracks[uuid]
        assert (track.name or "", track.parent) == (row.name, row.parent_uuid)
        of = [e for e in events if e.track_event.track_uuid == uuid]
        begins = [(e.timestamp, e.track_event.name) for e in of if e.track_event.type == 1]
        assert begins == sorted([(s[0], s[2]) for s in track.slices] + [(s[0], s[1]) for s in track.open])
        assert [(e.timestamp, e.track_event.double_counter_value) for e in of if e.track_event.type == 4] == track.counts
        assert [(e.timestamp, e.track_event.name) for e in of if e.track_event.type == 3] == track.instants
        if track.process:
            assert row.process.pid == track.process[1][0]
        if track.thread:
            assert (row.thread.pid, row.thread.tid) == (track.thread[1][0], track.thread[2][0])
