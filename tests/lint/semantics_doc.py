#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/SEMANTICS.md and the tests together: each row names a test, and each test that is named exists.

usage: semantics_doc.py SOURCE_ROOT
"""
import pathlib
import re
import sys


def exists(root, name):
    if ":" not in name:
        return (root / "tests/e2e" / f"{name}.sh").exists()
    file, function = name.split(":")
    path = root / "tests/unit" / file
    return path.exists() and f"START_TEST({function})" in path.read_text(encoding="utf-8")


def main():
    root = pathlib.Path(sys.argv[1])
    faults = rows = 0
    for number, line in enumerate((root / "docs/SEMANTICS.md").read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("|"):
            cell = line.rstrip("| ").rsplit("|", 1)[1]
            if cell.strip() in ("tests", "---"):
                continue
        elif " Tests: " in line or line.startswith("Tests: "):
            cell = line.split("Tests: ", 1)[1]
        else:
            continue
        rows += 1
        names = re.findall(r"`([^`]+)`", cell)
        missing = [name for name in names if not exists(root, name)]
        if missing or not names:
            faults += 1
            print(f"docs/SEMANTICS.md:{number}: " + ("no such test: " + ", ".join(missing) if names else "names no test"))
    print(f"{rows} statements, {faults} faults")
    return 1 if faults or not rows else 0


sys.exit(main())
