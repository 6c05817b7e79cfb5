# SPDX-License-Identifier: Apache-2.0
"""Builders for the corpus: pieces of a header as raw JSON text, so that a case can be wrong in exactly one place."""

import json
from collections import namedtuple

# fs is what safetensorsfs answers (accept, warn, reject), verdict what the reference reader says (valid, invalid).
Case = namedtuple("Case", "name content verdict reason note fs error")

BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}

# Parts of the reference's messages.
SMALL = "header too small"
LARGE = "header too large"
LENGTH = "invalid header length"
UTF8 = "invalid UTF-8 in header"
JSON = "invalid JSON in header"
OFFSET = "invalid offset for tensor"
OVERFLOW = "overflow computing buffer size"
BITSIZE = "does not end up at a byte boundary"
INFO = "invalid shape, data type, or offset for tensor"
COVER = "incomplete metadata, file not fully covered"


def accept(name, content, reason, note="-"):
    """The reference takes it and so do we, without a word."""
    return Case("accept_" + name, content, "valid", reason, note, "accept", "-")


def warn(name, content, reason, note="-"):
    """The reference takes it; we take it and warn."""
    return Case("warn_" + name, content, "valid", reason, note, "warn", "-")


def reject(name, content, reason, error, note="-"):
    """Both refuse it; `error` is a part of the reference's message."""
    return Case("reject_" + name, content, "invalid", reason, note, "reject", error)


def refuse(name, content, reason, note="-"):
    """The reference takes it, by laxness; we refuse it."""
    return Case("reject_" + name, content, "valid", reason, note, "reject", "-")


def pattern(size):
    """Data bytes: no two neighbours alike, no value missing."""
    return bytes((91 + 13 * i) & 255 for i in range(size))


def encode(text):
    return text if isinstance(text, bytes) else text.encode("utf-8")


def frame(header, data=8, length=None, pad=0):
    """A file: length word, header (text or bytes, padded to a multiple of `pad`), data (a size, or the bytes)."""
    header = encode(header)
    if pad:
        header += b" " * (-len(header) % pad)
    if length is None:
        length = len(header)
    return length.to_bytes(8, "little") + header + (pattern(data) if isinstance(data, int) else data)


def entry(dtype='"F32"', shape="[2]", offsets="[0,8]", more=""):
    """One tensor entry from raw JSON texts; `more` goes behind the last field."""
    return '{"dtype":%s,"shape":%s,"data_offsets":%s%s}' % (dtype, shape, offsets, more)


def members(*pairs):
    """An object of (JSON text of the key without quotes, JSON text of the value) in the given order."""
    return "{" + ",".join('"%s":%s' % pair for pair in pairs) + "}"


def one(data=8, **fields):
    """A file of one tensor `a`; the fields are those of entry()."""
    return frame(members(("a", entry(**fields))), data, pad=8)


def beside(key, value):
    """A file of one good tensor `a` and, before it, one more top-level member."""
    return frame(members((key, value), ("a", entry())), 8, pad=8)


def size_of(dtype, shape):
    count = 1
    for dim in shape:
        count *= dim
    return count * BITS[dtype] // 8


def place(tensors, start=0):
    """Members of (JSON text of the name, dtype, shape), laid one behind the other; returns (members, end)."""
    placed, at = [], start
    for name, dtype, shape in tensors:
        end = at + size_of(dtype, shape)
        dims = "[" + ",".join(map(str, shape)) + "]"
        placed.append((name, entry('"%s"' % dtype, dims, "[%d,%d]" % (at, end))))
        at = end
    return placed, at


def sound(*tensors, metadata=None, pad=8):
    """A file with nothing wrong: (JSON text of the name, dtype, shape) …"""
    placed, end = place(tensors)
    if metadata is not None:
        placed.insert(0, ("__metadata__", json.dumps(metadata, separators=(",", ":"))))
    return frame(members(*placed), end, pad=pad)


def named(*names):
    """A file of one-byte tensors with these names, given as JSON text without quotes."""
    return sound(*[(name, "U8", [1]) for name in names])
