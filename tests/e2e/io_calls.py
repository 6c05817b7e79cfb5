# SPDX-License-Identifier: Apache-2.0
"""Reads the biggest tensor of a mount through each call that can carry bytes, at many offsets.

usage: io_calls.py MOUNT MODEL
"""

import errno
import mmap
import os
import random
import sys

from refwriter import read

rand = random.Random(3)


def check(condition, what):
    if not condition:
        sys.exit("io_calls.py: " + what)


def spots(size):
    edges = [0, 1, 4095, 4096, 4097, size - 4097, size - 1, size, size + 1]
    edges += [rand.randrange(size) for _ in range(40)]
    lengths = [1, 511, 4096, 4097, 70000, size]
    return [(max(0, spot), rand.choice(lengths)) for spot in edges for _ in range(2)]


def by_pread(fd, spot, length):
    return os.pread(fd, length, spot)


def by_preadv(fd, spot, length):
    parts = [bytearray(length // 2), bytearray(length - length // 2)]
    done = os.preadv(fd, parts, spot)
    return b"".join(parts)[:done]


def by_sendfile(fd, spot, length):
    with open("out", "w+b", buffering=0) as out:
        done = 0
        while done < length:
            sent = os.sendfile(out.fileno(), fd, spot + done, length - done)
            if not sent:
                break
            done += sent
        out.seek(0)
        return out.read()


def by_copy_file_range(fd, spot, length):
    with open("out", "w+b", buffering=0) as out:
        done = 0
        while done < length:
            try:
                sent = os.copy_file_range(fd, out.fileno(), length - done, spot + done)
            except OSError as error:
                # Between filesystems the kernel leaves it to the caller; cp and shutil then read and write.
                if error.errno in (errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    return None
                raise
            if not sent:
                break
            done += sent
        out.seek(0)
        return out.read()


def by_splice(fd, spot, length):
    """Through a pipe, as much as one call carries."""
    reader, writer = os.pipe()
    try:
        sent = os.splice(fd, writer, min(length, 4096), offset_src=spot)
        return os.read(reader, sent) if sent else b""
    finally:
        os.close(reader)
        os.close(writer)


def check_calls(fd, data):
    calls = [by_pread, by_preadv, by_sendfile, by_copy_file_range]
    if hasattr(os, "splice"):
        calls.append(by_splice)
    for call in calls:
        for spot, length in spots(len(data)):
            got = call(fd, spot, length)
            want = data[spot : spot + length]
            if call is by_splice:
                check(bool(got) == bool(want) and want.startswith(got), "splice at %d" % spot)
            else:
                check(got is None or got == want, "%s %d at %d" % (call.__name__, length, spot))


def check_mmap(fd, data):
    for flags, prot in ((mmap.MAP_SHARED, mmap.PROT_READ), (mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)):
        with mmap.mmap(fd, 0, flags, prot) as mapped:
            for spot, length in spots(len(data)):
                check(mapped[spot : spot + length] == data[spot : spot + length], "mmap at %d" % spot)
            check(mapped[:] == data, "mmap")
    with mmap.mmap(fd, 4097, mmap.MAP_SHARED, mmap.PROT_READ, offset=4096) as mapped:
        check(mapped[:] == data[4096:8193], "mmap from a page")
    try:
        mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    except OSError as error:
        check(error.errno == errno.EACCES, "shared writable mmap: %s" % error)
    else:
        check(False, "a shared writable mmap was not refused")


def check_seek(fd, size):
    check(os.lseek(fd, 0, os.SEEK_END) == size, "SEEK_END")
    check(os.lseek(fd, 0, os.SEEK_DATA) == 0, "SEEK_DATA")
    check(os.lseek(fd, 0, os.SEEK_HOLE) == size, "SEEK_HOLE")


def main():
    mount, model = sys.argv[1:]
    tensors, _ = read(model)
    tensor = max(tensors, key=lambda tensor: len(tensor.data))
    for name, data in (("data", tensor.data), ("data.npy", None)):
        fd = os.open(os.path.join(mount, *tensor.name.split("."), name), os.O_RDONLY)
        if data is None:
            head = os.fstat(fd).st_size - len(tensor.data)
            check(head % 64 == 0 and head > 0, "size of the NumPy header")
            data = os.pread(fd, head, 0) + tensor.data
        check_mmap(fd, data)
        check_calls(fd, data)
        check_seek(fd, len(data))
        os.close(fd)


main()
