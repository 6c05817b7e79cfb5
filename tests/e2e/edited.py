# SPDX-License-Identifier: Apache-2.0
"""Compares a model with what was meant: an old one, and what is done to it by the statements on stdin.

usage: edited.py OLD NEW <STATEMENTS

The statements have `t`, the tensors by name in their order, `meta`, and put(), take() and move(). NEW is compared byte for
byte: the order of the tensors, dtypes, shapes, data, metadata, and how a header is laid out. The official library reads it too,
if there is one.
"""

import json
import os
import sys

from refwriter import Tensor, compact, read


def files_of(path):
    if not os.path.isdir(path):
        return [path]
    index = os.path.join(path, "model.safetensors.index.json")
    with open(index) as file:
        return [os.path.join(path, name) for name in sorted(set(json.load(file)["weight_map"].values()))]


def load(path):
    tensors, meta = {}, None
    for name in files_of(path):
        part, its = read(name)
        tensors.update((tensor.name, tensor) for tensor in part)
        meta = its if meta is None else meta
    return tensors, meta


def check_layout(path):
    """What a header must look like, whatever is in it."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length)
    header = json.loads(text)
    assert (8 + length) % 8 == 0, "data is not 8-aligned"
    assert text.rstrip(b" ").decode() == compact(header), "the header is not compact"
    if "__metadata__" in header:
        assert list(header)[0] == "__metadata__", "__metadata__ is not first"
        assert list(header["__metadata__"]) == sorted(header["__metadata__"]), "metadata is not sorted"
    end = 0
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["data_offsets"][0] == end, "a gap before " + name
            end = entry["data_offsets"][1]
    assert os.path.getsize(path) == 8 + length + end, "bytes after the last tensor"


def check_official(path, want, meta):
    try:
        from safetensors import deserialize, safe_open
    except ImportError:
        return
    with open(path, "rb") as file:
        got = dict(deserialize(file.read()))
    for name, entry in got.items():
        assert want[name].data == entry["data"], "official library: data of " + name
        assert list(want[name].shape) == entry["shape"], "official library: shape of " + name
        assert want[name].dtype == entry["dtype"], "official library: dtype of " + name
    with safe_open(path, "numpy") as file:
        assert (file.metadata() or None) == (meta or None), "official library: metadata"


def main():
    old, new = sys.argv[1:]
    t, meta = load(old)
    added = set()

    def put(name, dtype=None, shape=None, data=None):
        base = t.get(name, Tensor(name, None, None, None))
        if name not in t:
            added.add(name)
        t[name] = Tensor(name, dtype or base.dtype, base.shape if shape is None else shape, base.data if data is None else data)

    def take(name):
        return t.pop(name)

    def move(name, new_name):
        items = [(new_name if key == name else key, value) for key, value in t.items()]
        t.clear()
        t.update((key, value._replace(name=key)) for key, value in items)

    scope = {"t": t, "meta": meta, "put": put, "take": take, "move": move}
    exec(sys.stdin.read(), scope)
    meta = scope["meta"]
    got, got_meta = load(new)
    # Old ones keep their order; new ones follow, in the order in which a tool happened to make them.
    kept = [name for name in t if name not in added]
    if list(got)[: len(kept)] != kept or set(got) != set(t):
        sys.exit("edited.py: tensors: got %r, want %r" % (list(got), list(t)))
    for name in t:
        for field in ("dtype", "shape", "data"):
            a, b = getattr(got[name], field), getattr(t[name], field)
            if a != b if field != "shape" else list(a) != list(b):
                sys.exit("edited.py: %s of %s: got %.60r, want %.60r" % (field, name, a, b))
    if (got_meta or {}) != (meta or {}):
        sys.exit("edited.py: metadata: got %r, want %r" % (got_meta, meta))
    for path in files_of(new):
        check_layout(path)
        check_official(path, t, read(path)[1])


if __name__ == "__main__":
    main()
