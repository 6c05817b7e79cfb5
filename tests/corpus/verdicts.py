#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `BINARY check` over a corpus and compares its answers with the column fs of the manifest.

usage: verdicts.py BINARY CORPUSDIR

accept: exit 0 and no word of a warning; warn: exit 0 with a warning; reject: exit 1 or 3 and some text. A signal or
more than 10 seconds is a fault whatever was wanted. Exit 0: all agree, 1: not.
"""

import os
import subprocess
import sys

SECONDS = 10


def ask(binary, path):
    """Returns (answer, what was said); an answer that is none of the three is a fault."""
    try:
        run = subprocess.run(
            [binary, "check", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "no answer in %d s" % SECONDS, ""
    text = run.stdout.decode("utf-8", "replace").strip()
    if run.returncode < 0:
        return "signal %d" % -run.returncode, text
    if run.returncode == 0:
        return "warn" if "warning" in text.lower() else "accept", text
    if run.returncode in (1, 3):
        return "reject" if text else "exit %d without a word" % run.returncode, text
    return "exit %d" % run.returncode, text


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    binary, corpus = os.path.abspath(sys.argv[1]), sys.argv[2]
    total = faults = 0
    with open(os.path.join(corpus, "manifest.tsv"), encoding="utf-8") as manifest:
        for line in manifest:
            if line.startswith("#"):
                continue
            name, _, reason, _, want = line.rstrip("\n").split("\t")[:5]
            answer, text = ask(binary, os.path.join(corpus, name))
            total += 1
            if answer != want:
                faults += 1
                print("%s: want %s, got %s (%s)" % (name, want, answer, reason))
                for said in text.splitlines()[:2]:
                    print("    " + ascii(said[:160])[1:-1])
    print("%d of %d answers are as wanted" % (total - faults, total))
    return 1 if faults or not total else 0


if __name__ == "__main__":
    sys.exit(main())
