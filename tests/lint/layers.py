#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the source to the rules of its layers (docs/ARCHITECTURE.md); prints each breach and fails on any.

usage: layers.py SOURCE_ROOT
"""
import pathlib
import re
import sys

LAYERS = ["base", "format", "model", "fuse", "cli"]
QUIET_LAYERS = ["base", "format", "model"]  # a library neither prints nor ends the process
PRINTS_OR_ENDS = r"v?f?printf|v?dprintf|f?puts|f?putc|putchar|perror|abort|_?_?exit|_Exit|quick_exit"
BANNED = r"v?sprintf|strcpy|stpcpy|strcat|strncpy|strncat|ato[ifl]|atoll|gets|strtok|alloca"
VERSIONS = r"\b(FUSE_(MAJOR_|MINOR_)?VERSION|FUSE_MAKE_VERSION|JSON_C_\w*VERSION\w*|fuse_version)\b"
LINES_MAX = 500
ONLY_IN = [("fuse", lambda path: path.parts[1] == "fuse"),
           ("json", lambda path: path.as_posix() == "src/format/json_decode.c")]


def without_comments_and_strings(text):
    """Blanks them out; lines stay where they are. Includes keep their names."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        start = text.rfind("\n", 0, match.start()) + 1
        if text[start:match.start()].lstrip().startswith("#include"):
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())

    return token.sub(blank, text)


def calls(code, names):
    for match in re.finditer(rf"(?<![\w.>])({names})\s*\(", code):
        yield match.group(1), code.count("\n", 0, match.start()) + 1


class Lint:
    def __init__(self, root):
        self.root = root
        self.files = sorted(p.relative_to(root) for p in (root / "src").rglob("*.[ch]"))
        self.headers = {}
        self.breaches = 0

    def breach(self, path, line, what):
        print(f"{path}:{line}: {what}")
        self.breaches += 1

    def find_headers(self):
        for path in self.files:
            if path.suffix != ".h":
                continue
            if path.name in self.headers:
                self.breach(path, 1, f"has the name of {self.headers[path.name]}: includes by bare name would be unclear")
            self.headers[path.name] = path

    def check_includes(self, path, code):
        layer = LAYERS.index(path.parts[1])
        for n, line in enumerate(code.split("\n"), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]*)[>"]', line)
            if not match:
                continue
            bracket, name = match.groups()
            for prefix, allowed in ONLY_IN:
                if bracket == "<" and name.startswith(prefix) and not allowed(path):
                    self.breach(path, n, f"includes <{name}>")
            if bracket == '"':
                header = self.headers.get(name)
                if header is None:
                    self.breach(path, n, f'includes "{name}", which is no header of src by its bare name')
                elif LAYERS.index(header.parts[1]) > layer:
                    self.breach(path, n, f'includes "{name}" of the higher layer {header.parts[1]}')

    def check_file(self, path):
        text = (self.root / path).read_text(encoding="utf-8")
        code = without_comments_and_strings(text)
        if path.parts[1] not in LAYERS:
            self.breach(path, 1, "is in no layer")
            return
        if "SPDX-License-Identifier: Apache-2.0" not in text.split("\n", 1)[0]:
            self.breach(path, 1, "does not begin with its SPDX line")
        if path.suffix == ".c" and text.count("\n") >= LINES_MAX:
            self.breach(path, text.count("\n"), f"has {LINES_MAX} lines or more")
        self.check_includes(path, code)
        for name, line in calls(code, BANNED):
            self.breach(path, line, f"calls {name}, which is banned")
        for match in re.finditer(VERSIONS, code):
            line = code.count("\n", 0, match.start()) + 1
            self.breach(path, line, f"asks for {match.group()}: what a library can do is asked of its headers")
        if path.parts[1] in QUIET_LAYERS:
            for name, line in calls(code, PRINTS_OR_ENDS):
                self.breach(path, line, f"calls {name} in a library layer")

    def check_build(self, path):
        text = (self.root / path).read_text(encoding="utf-8")
        for match in re.finditer(r"\b(fuse3|json_c)\.version\(", text):
            line = text.count("\n", 0, match.start()) + 1
            self.breach(path, line, f"asks for {match.group()}): what a library can do is asked of its headers")

    def run(self):
        self.find_headers()
        for path in sorted(p.relative_to(self.root) for p in self.root.glob("src/**/meson.build")):
            self.check_build(path)
        for path in self.files:
            self.check_file(path)
        if not self.files:
            print("no source files found")
            return 1
        print(f"{len(self.files)} files, {self.breaches} breaches")
        return 1 if self.breaches else 0


sys.exit(Lint(pathlib.Path(sys.argv[1])).run())
