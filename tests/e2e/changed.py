# SPDX-License-Identifier: Apache-2.0
"""Reads both tensors of a mount whose source was changed, in pieces.

usage: changed.py MOUNT MODEL whole|refused              (MODEL: what the source was)
       changed.py MOUNT MODEL racing SOURCE SIZE         (cuts SOURCE to SIZE while threads read)
       changed.py MOUNT MODEL kept SOURCE                (makes a hole of SOURCE's data while a thread reads)

whole: every byte must be had. refused: at least one piece must fail. Always: what is had is right, what fails is EIO; but
for the one answer that is under way when the hole is made, which must not be kept for those who read later.
"""

import ctypes
import errno
import os
import sys
import threading
import time

from refwriter import read

PIECE = 100000
PUNCH_HOLE_KEEP_SIZE = 3


def fail(message):
    print("changed.py: " + message, file=sys.stderr)
    os._exit(1)  # from any thread


def read_piece(fd, spot, want):
    """Whether all of it could be had. A read may end early where the trouble begins, but the next one must say why."""
    got = b""
    while len(got) < len(want):
        try:
            more = os.pread(fd, len(want) - len(got), spot + len(got))
        except OSError as error:
            if error.errno != errno.EIO:
                fail(str(error))
            return False
        got += more
        if not more or not want.startswith(got):
            kind = "an early end" if not more else "other bytes" if any(more[-8:]) else "zeros"
            fail("%s at %d" % (kind, spot + len(got)))
    return True


def read_file(path, want, piece=PIECE):
    """Returns how many pieces failed."""
    fd = os.open(path, os.O_RDONLY)
    spots = range(0, len(want), piece)
    failed = sum(not read_piece(fd, spot, want[spot : spot + piece]) for spot in spots)
    os.close(fd)
    return failed


def read_until_refused(path, want):
    while not read_file(path, want, 1 << 20):
        pass


def race(mount, tensors, source, size):
    """Every reader goes on until it is refused, so each sees the cut, most of them in the middle of a request."""
    threads = [
        threading.Thread(target=read_until_refused, args=(os.path.join(mount, tensor.name, "data"), tensor.data))
        for tensor in tensors * 2
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.03)
    begin = os.stat(source).st_size - sum(len(tensor.data) for tensor in tensors)
    # On a border of a page of the file.
    os.truncate(source, (begin + size) // 4096 * 4096)
    for thread in threads:
        thread.join(60)
        if thread.is_alive():
            fail("a reader was never refused")


def read_through(path):
    with open(path, "rb", buffering=0) as file:
        try:
            while file.read(1 << 20):
                pass
        except OSError as error:
            if error.errno != errno.EIO:
                fail(str(error))


def make_hole(source, begin, size):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(source, os.O_WRONLY)
    if libc.fallocate(fd, PUNCH_HOLE_KEEP_SIZE, ctypes.c_long(begin), ctypes.c_long(size)) < 0:
        os.pwrite(fd, bytes(size), begin)  # not every filesystem has holes
    os.close(fd)


def has_other_bytes(path, want):
    """Whether some of what can be had is not what was there."""
    fd = os.open(path, os.O_RDONLY)
    try:
        for spot in range(0, len(want), 4096):
            try:
                if not want.startswith(os.pread(fd, 4096, spot), spot):
                    return True
            except OSError as error:
                if error.errno != errno.EIO:
                    fail(str(error))
    finally:
        os.close(fd)
    return False


def keep(mount, tensors, source):
    size = sum(len(tensor.data) for tensor in tensors)
    for tensor in tensors:
        os.stat(os.path.join(mount, tensor.name, "data"))
    thread = threading.Thread(target=read_through, args=(os.path.join(mount, tensors[0].name, "data"),))
    thread.start()
    time.sleep(0.0005)
    make_hole(source, os.stat(source).st_size - size, size)
    thread.join(60)
    deadline = time.monotonic() + 20  # what was read ahead for the thread may still be on its way
    while any(has_other_bytes(os.path.join(mount, tensor.name, "data"), tensor.data) for tensor in tensors):
        if time.monotonic() > deadline:
            fail("other bytes are kept")
        time.sleep(0.1)


def main():
    mount, model, mode = sys.argv[1:4]
    tensors, _ = read(model)
    if mode == "racing":
        race(mount, tensors, sys.argv[4], int(sys.argv[5]))
        return
    if mode == "kept":
        keep(mount, tensors, sys.argv[4])
        return
    # The later one first: it is what a cut takes away.
    failed = sum(read_file(os.path.join(mount, tensor.name, "data"), tensor.data) for tensor in reversed(tensors))
    if mode == "whole" and failed:
        fail("%d reads failed" % failed)
    if mode == "refused" and not failed:
        fail("nothing was refused")


main()
