# SPDX-License-Identifier: Apache-2.0
"""A sparse model with a tensor of 5 GiB and 7 bytes, marked at the places where 32 bits end.

usage: huge.py make FILE | huge.py check MOUNT
"""

import json
import mmap
import os
import sys

SIZE = (5 << 30) + 7
BEFORE = 3  # bytes of the tensor before it, so that nothing is aligned
MARKS = [0, (1 << 31) - 5, (1 << 31), (1 << 32) - 5, (1 << 32) - 1, (1 << 32), (1 << 32) + 4096, SIZE - 10]


def mark(spot):
    return b"<%08x>" % (spot & 0xFFFFFFFF)


def content(spot, length):
    """What the tensor holds there."""
    out = bytearray(max(0, min(length, SIZE - spot)))
    for place in MARKS:
        for i, byte in enumerate(mark(place)):
            if 0 <= place + i - spot < len(out):
                out[place + i - spot] = byte
    return bytes(out)


def make(path):
    header = {
        "small": {"dtype": "U8", "shape": [BEFORE], "data_offsets": [0, BEFORE]},
        "big": {"dtype": "U8", "shape": [SIZE], "data_offsets": [BEFORE, BEFORE + SIZE]},
    }
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        begin = file.tell() + BEFORE
        file.truncate(begin + SIZE)
        for place in MARKS:
            file.seek(begin + place)
            file.write(mark(place))


def check(mount):
    fd = os.open(os.path.join(mount, "big/data"), os.O_RDONLY)
    npy = os.open(os.path.join(mount, "big/data.npy"), os.O_RDONLY)
    head = os.fstat(npy).st_size - SIZE
    mapped = mmap.mmap(fd, SIZE, mmap.MAP_SHARED, mmap.PROT_READ)
    for place in MARKS:
        spot = max(0, place - 5000)
        want = content(spot, 10000)
        assert want.count(b"<") >= 1
        for name, got in (
            ("pread", os.pread(fd, 10000, spot)),
            ("data.npy", os.pread(npy, min(10000, SIZE - spot), head + spot)),
            ("mmap", mapped[spot : spot + 10000]),
        ):
            if got != want:
                sys.exit("huge.py: %s at %d" % (name, spot))
    if os.pread(fd, 10, SIZE) or len(os.pread(fd, 10, SIZE - 1)) != 1:
        sys.exit("huge.py: the end is not where it should be")


{"make": make, "check": check}[sys.argv[1]](sys.argv[2])
