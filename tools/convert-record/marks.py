#!/usr/bin/env python3
"""Makes a record of version 4 of one with the names of version 3: marks.py IN OUT

Up to version 3 the streams of main memory and L2 with equal work per SM had the names that those by ticket have today, and the
configuration in the record may have rows of metrics that are gone.
docs/records.md describes the entries.
"""
import re
import struct
import sys
import zlib

HEAD = struct.Struct("<8sI")
PROVENANCE, GPU, END, GPU_AGAIN, MARK = 1, 2, 4, 5, 16
GONE = rb"\n *sm\.l2_worst(?:_sm)?: [^\n]*"


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def as_varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def entries(data):
    at = HEAD.size
    while at < len(data):
        kind, behind = varint(data, at)
        length, behind = varint(data, behind)
        end = behind + length
        if zlib.crc32(data[at:end]) != struct.unpack_from("<I", data, end)[0]:
            sys.exit(f"byte {at}: damaged")
        yield kind, data[behind:end]
        at = end + 4


def entry(kind, payload):
    whole = as_varint(kind) + as_varint(len(payload)) + payload
    return whole + struct.pack("<I", zlib.crc32(whole))


def renamed(payload):
    mark = re.sub(rb"^(main|l2)\.bandwidth\.", rb"\1.bandwidth_equal.", payload[4:])
    return struct.pack("<I", len(mark)) + mark


def without_gone(payload):
    """The text of the configuration is the last field but one, before a number of four bytes."""
    end = len(payload) - 4
    at = next(at for at in range(end - 3) if struct.unpack_from("<I", payload, at)[0] == end - at - 4)
    text = re.sub(GONE, b"", payload[at + 4:end])
    return payload[:at] + struct.pack("<I", len(text)) + text + payload[end:]


def convert(data):
    """The head of a GPU ends with the bytes of its body, which are the entries that follow."""
    out, head, body = HEAD.pack(data[:8], 4), None, b""
    for kind, payload in entries(data):
        if kind >= MARK:
            body += entry(kind, renamed(payload) if kind == MARK else payload)
            continue
        if head:
            out += entry(head[0], head[1][:-8] + struct.pack("<Q", len(body))) + body
        head, body = (kind, payload) if kind in (GPU, GPU_AGAIN) else None, b""
        if kind == END:
            out += entry(kind, struct.pack("<Q", len(out)))
        elif not head:
            out += entry(kind, without_gone(payload) if kind == PROVENANCE else payload)
    return out


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    with open(sys.argv[2], "wb") as file:
        file.write(convert(data))


main()
