#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures renaming one tensor of a model, as a file on disk that is durable, against what people do without us.

usage: edit.py BINARY [MEGABYTES] [RUNS] [FOLDER]      (1000, 5 and the temporary folder; with the PYTHON that has the library)

In turn, on the same file: `safetensorsfs mv` and `commit`; the official library loading all of it and saving it again, and
then syncing it; `cp` and a sync, which is the least that a copy costs. Prints medians, ratios, and the peak memory of each,
which is never told below that of this script.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

LIBRARY = """
import os, sys
from safetensors import safe_open
from safetensors.numpy import save_file
with safe_open(sys.argv[1], framework="numpy") as file:
    tensors = {name: file.get_tensor(name) for name in file.keys()}
    metadata = file.metadata()
tensors["renamed"] = tensors.pop("layer.0.weight")
save_file(tensors, sys.argv[1] + ".new", metadata)
os.rename(sys.argv[1] + ".new", sys.argv[1])
os.fsync(os.open(sys.argv[1], os.O_RDONLY))
"""


def make(path, megabytes):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models"))
    from refwriter import Tensor, write

    piece = os.urandom(1 << 20)
    tensors = [Tensor("layer.%d.weight" % i, "U8", [10 << 20], piece * 10) for i in range(max(1, megabytes // 10))]
    write(path, tensors, {"format": "pt"})


def ours(binary, path):
    return ["sh", "-c", '"$1" mv "$2" layer.0.weight renamed && exec "$1" commit -q "$2"', "sh", binary, path]


def library(_, path):
    return [sys.executable, "-c", LIBRARY, path]


def copy(_, path):
    return ["sh", "-c", 'cp --reflink=never "$1" "$1.new" && sync "$1.new" && mv "$1.new" "$1"', "sh", path]


def measure(command):
    """Seconds, and the peak memory in bytes of the largest process."""
    begin = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("%s: status %d" % (command[0], status))
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    ways = {"mv and commit": ours, "load and save": library, "cp": copy}
    times, peaks = {name: [] for name in ways}, {name: 0 for name in ways}
    with tempfile.TemporaryDirectory(dir=sys.argv[4] if len(sys.argv) > 4 else None) as here:
        path, whole = os.path.join(here, "m.safetensors"), os.path.join(here, "whole.safetensors")
        made = os.fork()  # so that what it takes is not counted with the memory of others
        if made == 0:
            make(whole, megabytes)
            os._exit(0)
        os.waitpid(made, 0)
        for _ in range(runs):
            for name, way in ways.items():
                subprocess.run(["cp", whole, path], check=True)
                subprocess.run(["sync", path], check=True)
                seconds, peak = measure(way(binary, path))
                times[name].append(seconds)
                peaks[name] = max(peaks[name], peak)
    base = statistics.median(times["mv and commit"])
    print("one tensor of %d MB renamed" % megabytes)
    for name in ways:
        median = statistics.median(times[name])
        print("%-14s %7.2f s  (%.2f times)  %6.0f MB" % (name, median, median / base, peaks[name] / 1e6))


main()
