# SPDX-License-Identifier: Apache-2.0
"""Builders for model directories: a tree is a map of relative path to content (bytes, Link, FIFO or DIRECTORY)."""

import json
from collections import namedtuple

from build import size_of, sound

# path is what is asked about, below the case's own directory.
Tree = namedtuple("Tree", "name content verdict reason note fs error entry")
Link = namedtuple("Link", "target")
FIFO = object()
DIRECTORY = object()

INDEX = "model.safetensors.index.json"
CONFIG = b"{}\n"
TENSORS = [
    ("model.embed.weight", "F32", [2, 3]),
    ("model.layers.0.q.weight", "BF16", [2, 2]),
    ("model.layers.1.q.weight", "BF16", [2, 2]),
    ("model.norm.weight", "F32", [3]),
]
TOTAL = sum(size_of(dtype, shape) for _, dtype, shape in TENSORS)


def tree(fs, verdict):
    def make(name, content, reason, note="-", entry="", verdict=verdict):
        return Tree(fs + "_" + name, content, verdict, reason, note, fs, "-", entry)

    return make


accept = tree("accept", "valid")
warn = tree("warn", "valid")
reject = tree("reject", "invalid")
refuse = tree("reject", "valid")


def shard_name(stem, number, count):
    return "%s-%05d-of-%05d.safetensors" % (stem, number, count) if count > 1 else stem + ".safetensors"


def share(count):
    """The tensors of each of `count` shards."""
    return [TENSORS[len(TENSORS) * i // count : len(TENSORS) * (i + 1) // count] for i in range(count)]


def shards(stem, count):
    """The files of the model split in `count`."""
    return {
        shard_name(stem, i + 1, count): sound(*part, metadata={"format": "pt"}) for i, part in enumerate(share(count))
    }


def split(count, stem="model"):
    """The weight_map of that split."""
    return {name: shard_name(stem, i + 1, count) for i, part in enumerate(share(count)) for name, _, _ in part}


FIRST, SECOND = shards("model", 2).values()
MAP = split(2)


def renamed(names):
    """The weight_map of the two shards under other file names."""
    return {tensor: names.get(file, file) for tensor, file in MAP.items()}


def document(value, indent=2, newline=True):
    return (json.dumps(value, indent=indent) + ("\n" if newline else "")).encode()


def index(weight_map=None, total=TOTAL):
    """An index as transformers writes it."""
    weight_map = MAP if weight_map is None else weight_map
    return document({"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))})
