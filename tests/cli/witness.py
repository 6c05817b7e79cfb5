# SPDX-License-Identifier: Apache-2.0
"""Reads models in its own few lines, and with the official library where that is installed, for the tests of edits."""
import json
import os
import struct
from collections import namedtuple

try:
    from safetensors import deserialize
except ImportError:
    deserialize = None

Tensor = namedtuple("Tensor", "dtype shape data")
Model = namedtuple("Model", "tensors metadata")  # tensors: a dict by name, in the order of their bytes


def read_file(path):
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    metadata = header.pop("__metadata__", None)
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        assert begin == end, (path, name, "leaves a hole")
        end = stop
        tensors[name] = Tensor(entry["dtype"], tuple(entry["shape"]), raw[8 + n + begin:8 + n + stop])
    assert 8 + n + end == len(raw), (path, "has bytes that belong to nobody")
    if deserialize:
        for name, entry in deserialize(raw):
            mine = tensors[name]
            assert (entry["dtype"], tuple(entry["shape"])) == (mine.dtype, mine.shape), (path, name)
            assert bytes(entry["data"]) == mine.data, (path, name)
    return Model(tensors, metadata)


def read(path):
    """A file, or a directory of shards with an index."""
    if not os.path.isdir(path):
        return read_file(path)
    index = [name for name in os.listdir(path) if name.endswith(".index.json")]
    assert len(index) == 1, index
    weight_map = json.load(open(os.path.join(path, index[0])))["weight_map"]
    tensors, metadata = {}, {}
    for file in sorted(set(weight_map.values())):
        shard = read_file(os.path.join(path, file))
        assert all(weight_map[name] == file for name in shard.tensors), file
        tensors.update(shard.tensors)
        metadata.update(shard.metadata or {})
    assert sorted(tensors) == sorted(weight_map)
    return Model(tensors, metadata)


def committed(path):
    """Reads a file that was committed, and looks at the form of its header."""
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        text = f.read(n)
    body = text.rstrip(b" ")
    header = json.loads(body)
    assert body == json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode(), "the header is not compact"
    assert n % 8 == 0, "the data is not aligned"
    if "__metadata__" in header:
        assert list(header)[0] == "__metadata__", "the metadata is not first"
        assert list(header["__metadata__"]) == sorted(header["__metadata__"]), "the metadata is not sorted"
    return read_file(path)
