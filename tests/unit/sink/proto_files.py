# SPDX-License-Identifier: MIT
"""Readers of TensorBoard event files and Perfetto traces that know nothing of the code that writes them: from the
published formats only."""
import struct


def crc32c(data):
    """Bit by bit: RFC 3720, appendix B.4."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def unmask(masked):
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def records(data):
    """The payloads of a TFRecord file, each checked."""
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        assert unmask(struct.unpack_from("<I", data, at + 8)[0]) == crc32c(data[at:at + 8]), at
        payload = data[at + 12:at + 12 + length]
        assert len(payload) == length, "cut short"
        assert unmask(struct.unpack_from("<I", data, at + 12 + length)[0]) == crc32c(payload), at
        at += 16 + length
        yield payload


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if not byte & 0x80:
            assert shift <= 70
            return value, at


def fields(data):
    """{number: [values]} of a message: ints, 8 or 4 bytes, or bytes."""
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            assert kind == 2, kind
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        assert at <= len(data)
        found.setdefault(key >> 3, []).append(value)
    return found


def double(raw):
    return struct.unpack("<d", raw)[0]


def text(raw):
    return raw.decode("utf-8")


def read_tensorboard(data):
    """[(wall time, step, tag, value)]; the first record is the version."""
    events = [fields(r) for r in records(data)]
    assert text(events[0][3][0]) == "brain.Event:2" and 5 not in events[0]
    rows = []
    for e in events[1:]:
        assert set(e) <= {1, 2, 5}
        for v in fields(e[5][0])[1]:
            v = fields(v)
            rows.append((double(e[1][0]), e[2][0], text(v[1][0]), struct.unpack("<f", v[2][0])[0]))
    return rows


class Track:
    def __init__(self, f):
        self.uuid = f[1][0]
        self.parent = f.get(5, [0])[0]
        self.name = text(f[2][0]) if 2 in f else None
        self.process = fields(f[3][0]) if 3 in f else None
        self.thread = fields(f[4][0]) if 4 in f else None
        self.unit = text(fields(f[8][0]).get(6, [b""])[0]) if 8 in f else None
        self.slices, self.counts, self.instants, self.open = [], [], [], []


def read_perfetto(data):
    """{uuid: Track}, as a viewer puts it together: packets sorted by time, slices nested on their track."""
    packets = [fields(p) for p in fields(data)[1]]
    assert packets[0][13] == [1], "the state of a sequence is cleared first"
    tracks, events = {}, []
    for p in packets:
        assert p[10] == [1]
        if 60 in p:
            track = Track(fields(p[60][0]))
            assert track.uuid not in tracks and (not track.parent or track.parent in tracks)
            tracks[track.uuid] = track
        else:
            events.append((p[8][0], fields(p[11][0])))
    events.sort(key=lambda e: e[0])
    for t, e in events:
        track = tracks[e[11][0]]
        kind = e[9][0]
        if kind == 1:
            notes = {}
            for n in e.get(4, []):
                n = fields(n)
                notes[text(n[10][0])] = n[4][0] if 4 in n else double(n[5][0]) if 5 in n else text(n[6][0])
            track.open.append((t, text(e[23][0]), notes))
        elif kind == 2:
            begin, name, notes = track.open.pop()
            track.slices.append((begin, t, name, notes))
        elif kind == 3:
            track.instants.append((t, text(e[23][0])))
        else:
            assert kind == 4 and track.unit is not None
            track.counts.append((t, double(e[44][0])))
    return tracks
