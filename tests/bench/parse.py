#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `check` of a file of many tensors against the official library's safe_open, in the same run.

usage: parse.py BINARY [TENSORS] [RUNS]      (100000 and 9; with the PYTHON that has the library)

Prints medians and their ratio, and the peak of the heap of `check` where libmemusage is there. The time of `check`
is that of a whole process, that of safe_open only of the call.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

STRESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../corpus/stress.py")


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def check(binary, path):
    subprocess.run([binary, "check", "-q", path], check=True)


def official(path):
    import safetensors

    with safetensors.safe_open(path, framework="numpy"):
        pass


def peak_heap(binary, path):
    """Bytes, or None where nothing can tell."""
    environment = dict(os.environ, LD_PRELOAD="libmemusage.so")
    run = subprocess.run([binary, "check", "-q", path], env=environment, stderr=subprocess.PIPE, text=True)
    found = re.search(r"heap peak: (\d+)", run.stderr)
    return int(found.group(1)) if found else None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    tensors = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    with tempfile.TemporaryDirectory() as here:
        path = os.path.join(here, "moe.safetensors")
        subprocess.run([sys.executable, STRESS, path, "moe", str(tensors)], check=True)
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
        official(path)  # the library is loaded, the header is in the page cache
        ours, theirs = [], []
        for _ in range(runs):
            ours.append(seconds(lambda: check(binary, path)))
            theirs.append(seconds(lambda: official(path)))
        heap = peak_heap(binary, path)
    mine, other = statistics.median(ours), statistics.median(theirs)
    print("%d tensors, a header of %.1f MB" % (tensors, length / 1e6))
    print("check       %7.1f ms, the whole process" % (mine * 1e3))
    print("safe_open   %7.1f ms, the call (%.2f times check)" % (other * 1e3, other / mine))
    print("peak heap of check: " + ("%.1f MB" % (heap / 1e6) if heap else "unknown (no libmemusage)"))


main()
