#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus: good and bad files and directories, and manifest.tsv, which says what to answer to each.

usage: generate.py OUTDIR     (new, empty, or an older corpus, which is replaced)

Columns of the manifest: name, verdict of the reference reader (valid, invalid), reason, note, what safetensorsfs
answers (accept, warn, reject), and a part of the reference's message ("-": none). Every run writes the same bytes.
"""

import os
import shutil
import sys

import cases_choice
import cases_dirs
import cases_entry
import cases_frame
import cases_json
import cases_names
from trees import DIRECTORY, FIFO, Link


def prepare(out):
    if os.path.isdir(out) and os.listdir(out) and not os.path.exists(os.path.join(out, "manifest.tsv")):
        sys.exit("generate.py: %s is not empty and no corpus" % out)
    for part in ("files", "dirs"):
        shutil.rmtree(os.path.join(out, part), ignore_errors=True)
        os.makedirs(os.path.join(out, part))


def place(path, item):
    """Makes one thing of a tree."""
    os.makedirs(path if item is DIRECTORY else os.path.dirname(path), exist_ok=True)
    if item is FIFO:
        os.mkfifo(path)
    elif isinstance(item, Link):
        os.symlink(item.target, path)
    elif item is not DIRECTORY:
        with open(path, "wb") as file:
            file.write(item)


def write_files(out):
    for module in (cases_frame, cases_json, cases_entry, cases_names):
        for case in module.cases():
            name = "files/%s.safetensors" % case.name
            place(os.path.join(out, name), case.content)
            yield name, case


def write_dirs(out):
    for module in (cases_dirs, cases_choice):
        for case in module.cases():
            name = "dirs/%s/" % case.name
            os.makedirs(os.path.join(out, name))
            for path, item in case.content.items():
                place(os.path.join(out, name, path), item)
            yield name + case.entry, case


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = sys.argv[1]
    prepare(out)
    seen = set()
    with open(os.path.join(out, "manifest.tsv"), "w", encoding="utf-8") as manifest:
        manifest.write("#name\tverdict\treason\tnote\tfs\terror\n")
        for write in (write_files, write_dirs):
            for name, case in write(out):
                assert name.lower() not in seen, name
                seen.add(name.lower())
                row = (name, case.verdict, case.reason, case.note, case.fs, case.error)
                assert not any(set("\t\n\0") & set(column) for column in row), row
                manifest.write("\t".join(row) + "\n")
    files = sum(name.startswith("files/") for name in seen)
    print("%d files, %d directories" % (files, len(seen) - files))


if __name__ == "__main__":
    main()
