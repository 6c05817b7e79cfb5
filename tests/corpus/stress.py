#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one big file: for measuring, or a hostile header that must be refused or read quickly in little memory.

usage: stress.py OUTFILE KIND [N]

Sound files, their data a hole in the file:
  moe          N tensors (100000) with the names of a mixture of experts
  huge-tensor  one U8 tensor of N bytes (4 GiB and some), marked at its start, around 4 GiB and at its end
Headers of N bytes (100000000, the limit of the format):
  names        as many tensors as fit              metadata    as many metadata entries as fit
  escapes      names of nothing but \\u escapes     controls    one name of control characters
  dims         one tensor of millions of ones      numbers     an unknown field of millions of numbers
  nest         an unknown field, 127 levels again and again
  nest-open    brackets that never close           onestring   one name as long as the header
  dots         one name of dots                    prefixes    each name with a dot and more behind it is the next name
  blanks       nothing but blanks around a {}      dups        the same name over and over
  unknown      one entry full of unknown fields    overlaps    as many tensors on the same bytes as fit
"""

import itertools
import os
import sys

LIMIT = 100_000_000
BLOCK = 1000
EMPTY = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
BYTE = '{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
MARK = b"<safetensorsfs>"


def write_header(file, parts, size):
    """Writes the length word and the parts, padded with spaces to `size` bytes."""
    file.write(size.to_bytes(8, "little"))
    done = 0
    for part in parts:
        done += file.write(part.encode())
    assert done <= size, "%d bytes of header do not fit" % done
    file.write(b" " * (size - done))


def fill(size, head, items, tail):
    """Yields head, as many items (ASCII, with their own commas) as fit, and tail."""
    room = size - len(head) - len(tail)
    yield head
    for item in items:
        room -= len(item)
        if room < 0:
            break
        yield item
    yield tail


def repeat(size, head, text, tail):
    """Yields head, one text as often as it fits, and tail."""
    yield from (head, text * ((size - len(head) - len(tail)) // len(text)), tail)


def unknown(size, head, text, tail):
    """The same for the value of an unknown field."""
    return repeat(size, '{"a":{"x":' + head, text, tail + "," + EMPTY[1:] + "}")


def counted(form):
    """Items of BLOCK numbers each."""
    return (form * BLOCK % tuple(range(i, i + BLOCK)) for i in itertools.count(0, BLOCK))


def prefixes():
    name = "a"
    while True:
        yield ',"%s":%s' % (name, EMPTY)
        name += ".a"


def escapes():
    digits = {ord(digit): "\\u00%02x" % ord(digit) for digit in "0123456789"}
    filler = "\\u6743\\ud83d\\ude00" * 60
    for i in itertools.count():
        yield ',"%s%s":%s' % (filler, str(i).translate(digits), EMPTY)


def hostile(kind, size):
    """The parts of a header of that kind, and how many bytes of data it needs."""
    first = '{"first":' + EMPTY
    whole = ('{"', '":' + EMPTY + "}")
    deep = "[" * 124 + "]" * 124
    parts = {
        "names": lambda: fill(size, first, counted(',"%x":' + EMPTY), "}"),
        "metadata": lambda: fill(size, '{"__metadata__":{"format":"pt"', counted(',"%x":""'), "}}"),
        "escapes": lambda: fill(size, first, escapes(), "}"),
        "controls": lambda: repeat(size, whole[0], "\\u001b", whole[1]),
        "dims": lambda: repeat(size, '{"a":{"dtype":"U8","data_offsets":[0,1],"shape":[1', ",1", "]}}"),
        "numbers": lambda: unknown(size, "[0", ",-1.7976931348623157e+308,12345678901234567890", "]"),
        "nest": lambda: unknown(size, "[[]", "," + deep, "]"),
        "nest-open": lambda: repeat(size, '{"a":{"x":', "[", ""),
        "onestring": lambda: repeat(size, whole[0], "n", whole[1]),
        "dots": lambda: repeat(size, whole[0], ".", whole[1]),
        "prefixes": lambda: fill(size, first, prefixes(), "}"),
        "blanks": lambda: (" \t\r\n" * (size // 8), "{}", " \t\r\n" * (size // 8 - 1)),
        "dups": lambda: repeat(size, first, ',"first":' + EMPTY, "}"),
        "unknown": lambda: fill(size, '{"a":' + EMPTY[:-1], counted(',"%x":0'), "}}"),
        "overlaps": lambda: fill(size, '{"first":' + BYTE, counted(',"%x":' + BYTE), "}"),
    }
    if kind not in parts:
        sys.exit(__doc__)
    return parts[kind](), 1 if kind in ("dims", "overlaps") else 0


def moe_names():
    for layer in itertools.count():
        for expert in range(128):
            for projection in ("down", "gate", "up"):
                yield "model.layers.%d.mlp.experts.%d.%s_proj.weight" % (layer, expert, projection)


def moe(file, count):
    """Writes the header of the mixture of experts; returns the bytes of data."""
    size, parts = 768 * 2048 * 2, []
    for i, name in enumerate(sorted(itertools.islice(moe_names(), count))):
        shape = "2048,768" if "down" in name else "768,2048"
        place = (name, shape, i * size, (i + 1) * size)
        parts.append('"%s":{"dtype":"BF16","shape":[%s],"data_offsets":[%d,%d]}' % place)
    text = '{"__metadata__":{"format":"pt"},' + ",".join(parts) + "}"
    write_header(file, [text], -(-len(text) // 8) * 8)
    return count * size


def huge(file, size):
    """Writes the header of the huge tensor and its marks; returns the bytes of data."""
    text = '{"big":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)
    write_header(file, [text], -(-len(text) // 8) * 8)
    start = file.tell()
    for at in (0, (1 << 32) - 7, size - len(MARK)):
        if 0 <= at <= size - len(MARK):
            file.seek(start + at)
            file.write(MARK)
    file.seek(start)
    return size


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    kind, number = sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else None
    parts = None
    if kind not in ("moe", "huge-tensor"):
        parts, data = hostile(kind, number or LIMIT)
    with open(sys.argv[1], "wb") as file:
        if kind == "moe":
            data = moe(file, number or 100_000)
        elif kind == "huge-tensor":
            data = huge(file, number or (1 << 32) + 12345)
        else:
            write_header(file, parts, number or LIMIT)
        file.flush()
        os.ftruncate(file.fileno(), file.tell() + data)


if __name__ == "__main__":
    main()
