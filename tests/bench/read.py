#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures reading a model through a mount, against the same bytes as plain files and through other FUSE filesystems.

usage: read.py BINARY [--size MIB] [--tensors N] [--runs N] [--dir DIR]

Each way is measured in turn, in the same run, on a mount made anew (so that the mount's cache is empty) of a source that is in the
page cache; the median counts. squashfuse_ll and bindfs are peers where they are installed (squashfs-tools makes
the image). Columns: MB/s or entries/s, and in parentheses the ratio to plain files. Look at the ratios.
"""

import argparse
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models"))
from refwriter import compact  # noqa: E402

READS = {
    "dd bs=4K": lambda path: dd(path, "4K"),
    "dd bs=128K": lambda path: dd(path, "128K"),
    "dd bs=1M": lambda path: dd(path, "1M"),
    "dd bs=1M, again": lambda path: dd(path, "1M") and None or dd(path, "1M"),
    "dd bs=1M, direct": lambda path: dd(path, "1M", "iflag=direct"),
    "mmap, every page": lambda path: touch_pages(path),
}


def dd(path, block, *more):
    begin = time.perf_counter()
    subprocess.run(["dd", "if=" + path, "of=/dev/null", "bs=" + block, "status=none", *more], check=True)
    return os.path.getsize(path) / 1e6 / (time.perf_counter() - begin)


def touch_pages(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
        begin = time.perf_counter()
        touched = len(mapped[:: mmap.PAGESIZE])
        return touched * mmap.PAGESIZE / 1e6 / (time.perf_counter() - begin)


def count_lines(command):
    begin = time.perf_counter()
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.count(b"\n")
    return lines / (time.perf_counter() - begin)


WALKS = {
    "ls -lR": lambda path: count_lines(["ls", "-lR", path]),
    "find": lambda path: count_lines(["find", path]),
    "find, again": lambda path: count_lines(["find", path]) and None or count_lines(["find", path]),
}


def write_model(path, tensors):
    """Tensors as (name, bytes): whole MiB are the same random block again and again, so that no tool can guess them."""
    block = os.urandom(1 << 20)
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, size in tensors:
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    text = compact(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, size in tensors:
            for _ in range(size >> 20):
                file.write(block)
            file.write(block[: size & 0xFFFFF])


class Mount:
    """A filesystem that shows `source`; mounted anew for each measurement."""

    def __init__(self, name, source, command, unmount=("umount",)):
        self.name, self.source, self.command, self.unmount = name, source, command, unmount

    def measure(self, function, below):
        if not self.command:
            return function(os.path.join(self.source, below))
        with tempfile.TemporaryDirectory(dir=os.path.dirname(self.source)) as point:
            subprocess.run([*self.command, self.source, point], check=True)
            try:
                return function(os.path.join(point, below))
            finally:
                subprocess.run([*self.unmount, point], check=True)


def mounts_of(binary, model, plain):
    """The ways to look at a model; `plain` is the same tree as plain files."""
    yield Mount("plain files", plain, None)
    yield Mount("safetensorsfs", model, [binary], (binary, "umount"))
    if shutil.which("mksquashfs") and shutil.which("squashfuse_ll"):
        image = plain + ".squashfs"
        subprocess.run(["mksquashfs", plain, image, "-noI", "-noD", "-noF", "-noX", "-quiet", "-no-progress"], check=True,
                       stdout=subprocess.DEVNULL)
        yield Mount("squashfuse_ll", image, ["squashfuse_ll"])
    if shutil.which("bindfs"):
        yield Mount("bindfs", plain, ["bindfs", "--no-allow-other"])


def export(binary, model, plain):
    """Copies the tree of a model out of a mount, so that all ways show the same tree."""
    Mount("", model, [binary], (binary, "umount")).measure(lambda point: shutil.copytree(point, plain), "")


def warm(path):
    for folder, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                while file.read(1 << 20):
                    pass


def table(title, ways, measures, below, runs):
    """Runs go round the ways, so that a slow moment of the machine meets all of them."""
    found = {(way.name, what): [] for way in ways for what in measures}
    for _ in range(runs):
        for what, function in measures.items():
            for way in ways:
                found[way.name, what].append(way.measure(function, below))
    print("\n%-18s" % title + "".join("%22s" % way.name for way in ways))
    for what in measures:
        rates = [statistics.median(found[way.name, what]) for way in ways]
        print("%-18s" % what + "".join("%15.0f (%4.2f)" % (rate, rate / rates[0]) for rate in rates))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--size", type=int, default=512, help="MiB of the tensor that is read")
    parser.add_argument("--tensors", type=int, default=20000, help="of the model that is listed")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dir", default=None)
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory(dir=options.dir) as here:
        big, many = os.path.join(here, "big.safetensors"), os.path.join(here, "many.safetensors")
        # Three bytes first: the tensor lies at an odd offset, as most do.
        write_model(big, [("odd", 3), ("big", options.size << 20)])
        names = ["model.layers.%d.block.%d.weight" % (i // 100, i % 100) for i in range(options.tensors)]
        write_model(many, [(name, 16) for name in names])
        for title, model, measures, below in (("MB/s", big, READS, "big/data"), ("entries/s", many, WALKS, "")):
            plain = model + ".plain"
            export(binary, model, plain)
            ways = list(mounts_of(binary, model, plain))
            warm(here)
            table(title, ways, measures, below, options.runs)


main()
