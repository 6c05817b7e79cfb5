#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/FORMAT.md and the corpus together: each case named there exists, and each that exists is named there.

usage: format_doc.py SOURCE_ROOT
"""
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile


def case_names(root):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, root / "tests/corpus/generate.py", folder], check=True, stdout=subprocess.DEVNULL)
        for line in (pathlib.Path(folder) / "manifest.tsv").read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                # "files/NAME.safetensors", or "dirs/NAME/" and what is below
                yield line.split("\t")[0].split("/")[1].removesuffix(".safetensors")


def main():
    root = pathlib.Path(sys.argv[1])
    cases = set(case_names(root))
    text = (root / "docs/FORMAT.md").read_text(encoding="utf-8")
    patterns = set(re.findall(r"`((?:accept|warn|reject)_[\w*]+)`", text))
    unknown = {p for p in patterns if not fnmatch.filter(cases, p)}
    unnamed = cases - {case for p in patterns for case in fnmatch.filter(cases, p)}
    for name in sorted(unknown):
        print("no such case in the corpus:", name)
    for name in sorted(unnamed):
        print("not named in docs/FORMAT.md:", name)
    print(f"{len(cases)} cases, {len(patterns)} names")
    return 1 if unknown or unnamed or not cases else 0


sys.exit(main())
