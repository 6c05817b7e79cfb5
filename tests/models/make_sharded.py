#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Splits a model into shards with an index, as transformers saves one.

usage: make_sharded.py INFILE OUTDIR [SHARDS]     (default 3)

Tensors go in the order of their names, a new shard begins where its share of the bytes is full. The metadata but
"format" moves into the index.
"""

import json
import os
import sys

from refwriter import read, write


def split(tensors, count):
    """Returns `count` lists of about the same number of bytes."""
    total = sum(len(tensor.data) for tensor in tensors)
    parts, done = [[] for _ in range(count)], 0
    for tensor in tensors:
        middle = done + len(tensor.data) // 2
        parts[min(count - 1, middle * count // max(total, 1))].append(tensor)
        done += len(tensor.data)
    return parts


def elements(tensor):
    count = 1
    for dim in tensor.shape:
        count *= dim
    return count


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    out, count = sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 3
    tensors, metadata = read(sys.argv[1])
    tensors.sort(key=lambda tensor: tensor.name)
    parts = split(tensors, count)
    if not all(parts):
        sys.exit("make_sharded.py: too few tensors for %d shards" % count)
    os.makedirs(out, exist_ok=True)
    weight_map = {}
    for number, part in enumerate(parts, 1):
        name = "model-%05d-of-%05d.safetensors" % (number, count)
        write(os.path.join(out, name), part, {"format": "pt"})
        weight_map.update((tensor.name, name) for tensor in part)
    facts = {key: value for key, value in (metadata or {}).items() if key != "format"}
    facts["total_size"] = sum(len(tensor.data) for tensor in tensors)
    facts["total_parameters"] = sum(map(elements, tensors))
    with open(os.path.join(out, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps({"metadata": facts, "weight_map": weight_map}, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
