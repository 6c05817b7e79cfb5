#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks the official safetensors library about each file of a corpus and compares with the manifest.

usage: official.py CORPUSDIR

Both of its readers are asked, safe_open (by path) and deserialize (by bytes).
Exit 0: all agree, 1: not, 77: no library.
"""

import os
import sys

try:
    import numpy  # noqa: F401  safe_open needs it
    import safetensors
except ImportError as error:
    print("official.py: skipped: %s" % error)
    sys.exit(77)


def by_path(path):
    with safetensors.safe_open(path, framework="numpy") as file:
        file.metadata()
        return sorted(file.keys())


def by_bytes(path):
    with open(path, "rb") as file:
        return sorted(name for name, _ in safetensors.deserialize(file.read()))


def ask(reader, path):
    """Returns (verdict, what it said)."""
    try:
        return "valid", "%d tensors" % len(reader(path))
    except safetensors.SafetensorError as error:
        return "invalid", str(error)


def fault_of(path, verdict, part):
    """What does not agree about one file, or None."""
    for reader in (by_path, by_bytes):
        got, text = ask(reader, path)
        if got != verdict:
            return "%s: manifest says %s, it says %s: %s" % (reader.__name__, verdict, got, text[:200])
        if got == "invalid" and part not in text:
            return "%s: manifest says '%s', it says: %s" % (reader.__name__, part, text[:200])
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    total = faults = 0
    with open(os.path.join(sys.argv[1], "manifest.tsv"), encoding="utf-8") as manifest:
        for line in manifest:
            if not line.startswith("files/"):
                continue
            name, verdict, _, _, _, part = line.rstrip("\n").split("\t")[:6]
            fault = fault_of(os.path.join(sys.argv[1], name), verdict, part)
            total += 1
            if fault:
                faults += 1
                print("%s: %s" % (name, fault))
    print("%d of %d verdicts agree with safetensors %s" % (total - faults, total, safetensors.__version__))
    return 1 if faults or not total else 0


if __name__ == "__main__":
    sys.exit(main())
