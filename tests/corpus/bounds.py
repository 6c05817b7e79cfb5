#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `BINARY check` to its bounds: hostile headers of 100 MB, and a sound one of 100,000 tensors.

usage: bounds.py BINARY [measure]

A hostile header is refused or read in less than a second of the processor and 64 MiB beyond itself. The sound one is read
in less time than the official library's safe_open takes, where that is installed. Without "measure" nothing is: the headers
are a tenth of that size, and the program must come to an answer.
"""

import os
import subprocess
import sys
import tempfile
import time

STRESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stress.py")
KINDS = (
    "names metadata escapes controls dims numbers nest nest-open onestring dots prefixes blanks dups unknown overlaps"
).split()
HEADER = 100_000_000
SECONDS = 1.0
BEYOND = 64 << 20
PROGRAM = 6 << 20  # what it has in memory for a file of nothing
TRIES = 5  # others use the processor's caches too: the best of them counts


def make(path, kind, number):
    subprocess.run([sys.executable, STRESS, path, kind, str(number)], check=True)


def check(binary, path):
    """Returns (exit code or minus the signal, seconds of the processor, bytes in memory at the most)."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    pid = os.posix_spawn(binary, [binary, "check", "-q", path], os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def hostile_fault(binary, path, bounded):
    """What is wrong about one hostile header, or None."""
    best = None
    for _ in range(TRIES):
        code, seconds, memory = check(binary, path)
        if code not in (0, 1):
            return "exit %d" % code
        if not bounded:
            return None
        if memory > HEADER + BEYOND + PROGRAM:
            return "%d MiB beyond the header" % ((memory - HEADER) >> 20)
        best = min(best or seconds, seconds)
        if best < SECONDS:
            return None
    return "%.2f s" % best


def sound_fault(binary, path):
    try:
        import numpy  # noqa: F401  safe_open needs it
        import safetensors
    except ImportError as error:
        print("not compared with safe_open: %s" % error)
        return None

    ours, theirs = [], []
    for _ in range(2 * TRIES):  # by turns, so that both have the same weather
        ours.append(check(binary, path)[1])
        begin = time.process_time()
        with safetensors.safe_open(path, framework="numpy"):
            pass
        theirs.append(time.process_time() - begin)
    print("100,000 tensors: %.0f ms, safe_open %.0f ms" % (min(ours) * 1e3, min(theirs) * 1e3))
    return None if min(ours) < min(theirs) else "slower than safe_open"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    bounded = sys.argv[2:] == ["measure"]
    faults = 0
    with tempfile.TemporaryDirectory(prefix="stfs-bounds.") as here:
        path = os.path.join(here, "x.safetensors")
        for kind in KINDS + ["moe"] * bounded:
            make(path, kind, 100_000 if kind == "moe" else HEADER if bounded else HEADER // 10)
            fault = sound_fault(binary, path) if kind == "moe" else hostile_fault(binary, path, bounded)
            if fault:
                faults += 1
                print("%s: %s" % (kind, fault))
    print("%d headers, %d faults" % (len(KINDS) + bounded, faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
