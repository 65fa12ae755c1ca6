# SPDX-License-Identifier: MIT
"""A Parquet file as the specification reads (parquet.apache.org/docs/file-format, parquet.thrift): plain and dictionary
pages of version 1, zstd, flat schemas. Everything that is not expected is a mistake. table() gives the columns as lists
with None for nulls."""
import ctypes
import ctypes.util
import struct

TYPES = {2: "<q", 5: "<d"}
TEXT = 6


def unpack(data, size):
    """zstd by the library that is there: Python has none of its own before 3.14."""
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    lib.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(max(size, 1))
    got = lib.ZSTD_decompress(out, size, data, len(data))
    assert got == size, f"a page of {got} bytes instead of {size}"
    return out.raw[:size]


class Compact:
    """Thrift's compact protocol: a struct is {field: value}."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            b = self.byte()
            value |= (b & 0x7f) << shift
            shift += 7
            if not b & 0x80:
                return value

    def zigzag(self):
        n = self.varint()
        return (n >> 1) ^ -(n & 1)

    def value(self, kind):
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            n = self.varint()
            self.at += n
            return bytes(self.data[self.at - n:self.at])
        if kind == 9:
            head = self.byte()
            n = head >> 4 if head >> 4 != 15 else self.varint()
            return [self.value(head & 15) for _ in range(n)]
        if kind == 12:
            return self.struct()
        raise AssertionError(f"type {kind} of Thrift is not used by Parquet's headers")

    def struct(self):
        fields, last = {}, 0
        while head := self.byte():
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            kind = head & 15
            assert last not in fields
            fields[last] = kind == 1 if kind in (1, 2) else self.value(kind)
        return fields


def hybrid(data, at, width, n):
    """RLE and bit-packed runs: n values, and where they end."""
    out = []
    while len(out) < n:
        c = Compact(data, at)
        head = c.varint()
        at = c.at
        if head & 1:
            count = (head >> 1) * 8
            bits = int.from_bytes(data[at:at + count * width // 8], "little")
            assert len(data) >= at + count * width // 8
            out += [bits >> i * width & (1 << width) - 1 for i in range(min(count, n - len(out)))]
            at += count * width // 8
        else:
            size = (width + 7) // 8
            out += [int.from_bytes(data[at:at + size], "little")] * (head >> 1)
            at += size
    return out[:n], at


def hybrid_chunks(data, at, width, n):
    """The same for long runs, in pieces that a big integer likes."""
    c = Compact(data, at)
    head = c.varint()
    if not head & 1 or (head >> 1) * 8 < n:
        return hybrid(data, at, width, n)
    out, at = [], c.at
    end = at + (head >> 1) * width
    assert end <= len(data)
    for start in range(at, end, width * 64):
        bits = int.from_bytes(data[start:min(start + width * 64, end)], "little")
        count = min(start + width * 64, end) - start
        out += [bits >> i * width & (1 << width) - 1 for i in range(count * 8 // width)]
    return out[:n], end


def plain(data, kind, n):
    if kind in TYPES:
        assert len(data) == 8 * n
        return [v for v, in struct.iter_unpack(TYPES[kind], data)]
    out, at = [], 0
    for _ in range(n):
        length, = struct.unpack_from("<I", data, at)
        out.append(data[at + 4:at + 4 + length].decode())
        at += 4 + length
    assert at == len(data)
    return out


def page(data, at):
    """(header, payload, where it ends)"""
    c = Compact(data, at)
    head = c.struct()
    body = data[c.at:c.at + head[3]]
    assert len(body) == head[3]
    return head, unpack(body, head[2]), c.at + head[3]


def chunk(data, meta, optional, rows):
    assert meta[4] == 6 and meta[5] == rows
    begin = at = meta.get(11, meta[9])
    words, unpacked = None, 0
    if 11 in meta:
        head, body, end = page(data, at)
        assert head[1] == 2 and head[7][2] == 0
        words = plain(body, meta[1], head[7][1])
        assert len(set(words)) == len(words), "a dictionary has each word once"
        unpacked += end - at - head[3] + head[2]
        at = end
    assert at == meta[9]
    head, body, end = page(data, at)
    unpacked += end - at - head[3] + head[2]
    assert (end - begin, unpacked) == (meta[7], meta[6])
    assert head[1] == 0 and head[5][1] == rows and head[5][2] == (8 if words is not None else 0)
    assert head[5][2] in meta[2]
    levels, start = [1] * rows, 0
    if optional:
        size, = struct.unpack_from("<I", body)
        levels, stop = hybrid_chunks(body[:4 + size], 4, 1, rows)
        assert stop == 4 + size
        start = 4 + size
    n = sum(levels)
    if words is not None:
        ids, stop = hybrid_chunks(body, start + 1, body[start], n)
        assert stop == len(body)
        values = [words[i] for i in ids]
    else:
        values = plain(body[start:], meta[1], n)
    rest = iter(values)
    return [next(rest) if level else None for level in levels], begin, end


def table(data):
    """({column: values}, {key: value}, {column: (type, optional, logical)}, rows of each group)"""
    assert data[:4] == data[-4:] == b"PAR1"
    length, = struct.unpack("<I", data[-8:-4])
    foot = Compact(data[-8 - length:-8])
    meta = foot.struct()
    assert foot.at == length and meta[1] == 1
    root, *schema = meta[2]
    assert root[5] == len(schema) and 1 not in root
    names = [s[4].decode() for s in schema]
    assert len(set(names)) == len(names)
    columns, groups, at = {n: [] for n in names}, [], 4
    for group in meta[4]:
        assert len(group[1]) == len(schema) and group[5] == at
        for s, c in zip(schema, group[1]):
            assert c[3][3] == [s[4]] and c[3][1] == s[1]
            values, begin, at_end = chunk(data, c[3], s[3] == 1, group[3])
            assert begin == at, "nothing lies between two chunks"
            at = at_end
            columns[s[4].decode()] += values
        assert group[6] == at - group[5]
        groups.append(group[3])
    assert at == len(data) - 8 - length
    assert meta[3] == sum(groups)
    kinds = {s[4].decode(): (s[1], s[3] == 1, (s.get(6), s.get(10))) for s in schema}
    return columns, {w[1].decode(): w[2].decode() for w in meta[5]}, kinds, groups
