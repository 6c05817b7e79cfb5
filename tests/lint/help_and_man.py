#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds --help and the man page together: every command, usage, switch, -o word and exit code stands in both.

usage: help_and_man.py PROGRAM MAN_PAGE
"""
import re
import shutil
import subprocess
import sys


def spoken(program, *words):
    return subprocess.run([program, *words], capture_output=True, check=True, text=True).stdout


def rows(text, title):
    """The left column of the block under `title`."""
    block = re.search(rf"^{re.escape(title)}\n((?:  .*\n)+)", text, re.M)
    return [re.split(r"  +", line[2:])[0] for line in block.group(1).splitlines()] if block else []


def usage(text):
    """One usage line: how optional and repeated things are spaced does not matter."""
    return re.sub(r" ?\.\.\.", "...", text).strip()


def read_help(program):
    main = spoken(program, "--help")
    commands = re.search(r"^Commands:\n((?:  .*\n)+)", main, re.M).group(1)
    usages = [line[2:] for line in commands.splitlines() if not line.startswith("   ")]
    facts = {("usage", usage(u)) for u in usages}
    facts |= {("switch", "", row) for row in rows(main, "Options:")}
    facts |= {("exit", row) for row in rows(main, "Exit status:")}
    for line in usages:
        name = line.split()[0].strip("[]")
        text = spoken(program, name, "--help")
        if usage(text.split("\n", 1)[0]) != usage(f"Usage: safetensorsfs {line}"):
            print(f"{name} --help and --help give different usages")
            facts.add(("usage", text.split("\n", 1)[0]))
        facts |= {("switch", name, row) for row in rows(text, "Options:")}
        facts |= {("exit", row) for row in rows(text, "Exit status:")}
        facts |= {("mount -o", row) for row in rows(text, "Mount options (-o):")}
        facts |= {("model -o", row) for row in rows(text, "What -o takes:")}
        facts |= {("edit -o", row) for row in rows(text, "And for edits:")}
    return facts


def words(tokens):
    """Tokens of one mdoc line as text."""
    text, glue, minus = "", True, 0
    for token in tokens:
        if token == "Fl":
            minus += 1
        elif token in ("Ar", "Cm"):
            pass
        elif token == "Ns":
            glue = True
        elif token == "Op":
            return text + ("" if glue else " ") + "[" + words(tokens[tokens.index("Op") + 1:]) + "]"
        else:
            text += ("" if glue or token == "," else " ") + "-" * minus + token
            glue, minus = False, 0
    return text


def read_man(path):
    facts, section, command, line_so_far = set(), "", "", None
    for line in open(path, encoding="utf-8"):
        tokens = line.split()
        macro, rest = (tokens[0], tokens[1:]) if tokens else ("", [])
        if section == "SYNOPSIS" and macro in (".Nm", ".Sh"):
            if line_so_far:
                facts.add(("usage", usage(line_so_far)))
            line_so_far = ""
        if macro == ".Sh":
            section, command = " ".join(rest), ""
        elif macro == ".Ss":
            command = rest[0]
        elif section == "SYNOPSIS" and macro in (".Cm", ".Op", ".Ar", ".Fl"):
            line_so_far += " " + words([macro[1:]] + rest)
        elif macro == ".It":
            kind = {"OPTIONS": ("switch", ""), "COMMANDS": ("switch", command), "EXIT STATUS": ("exit",),
                    "MODEL OPTIONS": ("model -o",), "EDIT OPTIONS": ("edit -o",), "MOUNT OPTIONS": ("mount -o",)}.get(section)
            if kind:
                facts.add((*kind, words(rest)))
    # Whatever opens a model is also a mount option.
    return facts | {("mount -o", fact[1]) for fact in facts if fact[0] == "model -o"}


def lint_syntax(path):
    if not shutil.which("mandoc"):
        print("mandoc is not here: the syntax of the page was not judged")
        return 0
    # Cross references are to pages that need not be installed; what it says of them is no fault.
    said = subprocess.run(["mandoc", "-T", "lint", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = "".join(line for line in said.splitlines(True) if "referenced manual not found" not in line)
    print(found, end="")
    return found.count("\n")


def main():
    helped, manned = read_help(sys.argv[1]), read_man(sys.argv[2])
    for fact in sorted(helped - manned):
        print("only in --help:", *fact)
    for fact in sorted(manned - helped):
        print("only in the man page:", *fact)
    print(f"{len(helped & manned)} facts in both")
    faults = len(helped ^ manned) + lint_syntax(sys.argv[2])
    # A page that could not be read at all has nothing in common with --help, and nothing must not pass.
    return 1 if faults or not helped & manned else 0


sys.exit(main())
