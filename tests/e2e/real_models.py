# SPDX-License-Identifier: Apache-2.0
"""Compares every tensor of a mount with what the official library reads from the model.

usage: real_models.py MOUNT MODEL
"""

import os
import sys

import numpy
import safetensors
from tree import content, files_below, place, same


def compare_tensor(mount, name, entry, array):
    path = os.path.join(mount, place(name, False))
    same(content(path, "data"), bytes(entry["data"]), name + " data")
    same(content(path, "dtype").decode(), entry["dtype"] + "\n", name + " dtype")
    same(content(path, "shape").decode(), " ".join(map(str, entry["shape"])) + "\n", name + " shape")
    loaded = numpy.load(os.path.join(path, "data.npy"), mmap_mode="r" if array.size else None)
    same(list(loaded.shape), list(array.shape), name + " data.npy shape")
    same(loaded.tobytes(), array.tobytes(), name + " data.npy")


def main():
    mount, model = sys.argv[1:]
    with open(model, "rb") as file:
        entries = dict(safetensors.deserialize(file.read()))
    with safetensors.safe_open(model, framework="numpy") as file:
        metadata = file.metadata() or {}
        same(sorted(file.keys()), sorted(entries), "names")
        for name in file.keys():
            compare_tensor(mount, name, entries[name], file.get_tensor(name))
    for key, value in metadata.items():
        same(content(mount, "__metadata__", key).decode(), value + "\n", "metadata " + key)
    same(len(files_below(mount)), 3 * len(entries) + len(metadata), "number of files")
    if not entries:
        sys.exit("real_models.py: a model without tensors proves nothing")
    size = sum(len(entry["data"]) for entry in entries.values())
    print("%s: %d tensors, %d bytes: all equal" % (os.path.basename(model), len(entries), size))


main()
