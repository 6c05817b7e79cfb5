# SPDX-License-Identifier: Apache-2.0
"""Compares a mount with its model, tensor by tensor: names, bytes, dtype, shape, metadata; and nothing else is there.

usage: tree.py MOUNT [--flat] MODEL...     (the model files, all of a sharded one)
"""

import os
import sys

from refwriter import read

SLOTS = {"data", "dtype", "shape"}


def escape(piece):
    out = "".join("%%%02X" % ord(c) if c in "%/" or ord(c) < 32 or c == "\x7f" else c for c in piece)
    if not out:
        return "%_"
    return "%%%02X%s" % (ord(out[0]), out[1:]) if out in SLOTS else out


def place(name, flat):
    """The path of a tensor whose pieces are short; longer ones are the business of other tests."""
    pieces = [name] if flat else name.split(".")
    path = "/".join(map(escape, pieces))
    assert all(len(piece.encode()) <= 240 for piece in path.split("/"))
    if flat and path.startswith("."):
        return "%2E" + path[1:]
    return "%5F" + path[1:] if path == "__metadata__" or path.startswith("__metadata__/") else path


def content(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def same(got, want, what):
    if got != want:
        sys.exit("tree.py: %s: got %.80r, want %.80r" % (what, got, want))


def compare_tensor(mount, tensor, flat):
    path = os.path.join(mount, place(tensor.name, flat))
    same(content(path, "data"), tensor.data, tensor.name + " data")
    same(content(path, "dtype"), tensor.dtype.encode() + b"\n", tensor.name + " dtype")
    same(content(path, "shape"), " ".join(map(str, tensor.shape)).encode() + b"\n", tensor.name + " shape")
    same(os.stat(os.path.join(path, "data")).st_size, len(tensor.data), tensor.name + " size")


def files_below(mount):
    return {
        os.path.relpath(os.path.join(folder, name), mount) for folder, _, names in os.walk(mount) for name in names
    }


def main():
    mount, rest = sys.argv[1], sys.argv[2:]
    flat = "--flat" in rest
    models = [read(path) for path in rest if path != "--flat"]
    tensors = [tensor for model in models for tensor in model[0]]
    metadata = {}
    for model in models:
        for key, value in (model[1] or {}).items():
            metadata.setdefault(key, value)
    for tensor in tensors:
        compare_tensor(mount, tensor, flat)
    for key, value in metadata.items():
        same(content(mount, "__metadata__", escape(key)), value.encode() + b"\n", "metadata " + key)
    want = {os.path.join(place(tensor.name, flat), slot) for tensor in tensors for slot in SLOTS}
    want |= {os.path.join("__metadata__", escape(key)) for key in metadata}
    same(sorted(files_below(mount)), sorted(want), "files")
    print("%d tensors, %d metadata entries" % (len(tensors), len(metadata)))


if __name__ == "__main__":
    main()
