#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `BINARY check` to its bounds: hostile headers of 100 MB, and a sound one of 100,000 tensors.

usage: bounds.py BINARY [measure]

The sound one is read in less time than the official library's safe_open takes, where that is installed. A hostile header is
refused or read in less than a second of the processor and 64 MiB beyond itself; where safe_open shows that the machine is a
slow one, or is kept busy by others, the second is longer by as much. Without "measure" nothing is measured: the headers are
a tenth of that size, and the program must come to an answer.
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
SOUND = 100_000
SECONDS = 1.0
SAFE_OPEN = 0.15  # seconds that safe_open takes for the sound header where a second is a second
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


def safe_open_seconds(path):
    """Seconds of the processor that the official library takes for the sound header; None where it is not installed."""
    try:
        import numpy  # noqa: F401  safe_open needs it
        import safetensors
    except ImportError:
        return None
    begin = time.process_time()
    with safetensors.safe_open(path, framework="numpy"):
        pass
    return time.process_time() - begin


def slowness(sound):
    """How many times slower than usual the machine is just now."""
    return max(1.0, (safe_open_seconds(sound) or 0) / SAFE_OPEN)


def hostile_fault(binary, path, sound):
    """What is wrong about one hostile header, or None."""
    best = None
    for _ in range(TRIES):
        code, seconds, memory = check(binary, path)
        if code not in (0, 1):
            return "exit %d" % code
        if not sound:
            return None
        if memory > HEADER + BEYOND + PROGRAM:
            return "%d MiB beyond the header" % ((memory - HEADER) >> 20)
        if seconds >= SECONDS:
            seconds /= slowness(sound)
        best = min(best or seconds, seconds)
        if best < SECONDS:
            return None
    return "%.2f s" % best


def sound_fault(binary, path):
    safe_open_seconds(path)  # the first one pays for the library's own start
    ours, theirs = [], []
    for _ in range(2 * TRIES):  # by turns, so that both have the same weather
        ours.append(check(binary, path)[1])
        theirs.append(safe_open_seconds(path))
    if theirs[0] is None:
        print("not compared with safe_open: it is not installed")
        return None
    print("100,000 tensors: %.0f ms, safe_open %.0f ms" % (min(ours) * 1e3, min(theirs) * 1e3))
    return None if min(ours) < min(theirs) else "slower than safe_open"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    binary = os.path.abspath(sys.argv[1])
    bounded = sys.argv[2:] == ["measure"]
    faults = []
    with tempfile.TemporaryDirectory(prefix="stfs-bounds.") as here:
        path, sound = os.path.join(here, "x.safetensors"), os.path.join(here, "sound.safetensors") if bounded else None
        if sound:
            make(sound, "moe", SOUND)
            faults.append(("moe", sound_fault(binary, sound)))
        for kind in KINDS:
            make(path, kind, HEADER if bounded else HEADER // 10)
            faults.append((kind, hostile_fault(binary, path, sound)))
    found = ["%s: %s" % (kind, fault) for kind, fault in faults if fault]
    print("\n".join(found + ["%d headers, %d faults" % (len(faults), len(found))]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
