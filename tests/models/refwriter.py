# SPDX-License-Identifier: Apache-2.0
"""Reads and writes .safetensors files; writes as the reference writer does, metadata keys sorted so that runs agree."""

import json
from collections import namedtuple

# data holds the raw bytes: little-endian, row-major.
Tensor = namedtuple("Tensor", "name dtype shape data")

# The reference writer's order of dtypes, in the header and in the data.
ORDER = (
    "U64 I64 F64 C64 F32 U32 I32 BF16 F16 U16 I16 F8_E5M2FNUZ F8_E4M3FNUZ F8_E8M0 F8_E4M3 F8_E5M2 I8 U8 "
    "F6_E3M2 F6_E2M3 F4 BOOL"
).split()


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write(path, tensors, metadata=None):
    """Writes the tensors: big dtypes first, then by the bytes of the name; the header padded to 8 with spaces."""
    tensors = sorted(tensors, key=lambda tensor: (ORDER.index(tensor.dtype), tensor.name.encode()))
    header, end = {}, 0
    if metadata is not None:
        header["__metadata__"] = dict(sorted(metadata.items()))
    for tensor in tensors:
        begin, end = end, end + len(tensor.data)
        header[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = compact(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            file.write(tensor.data)


def read(path):
    """Returns (tensors in the order of the data, metadata or None) of a sound file."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", None)
    tensors = [
        Tensor(name, entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    ]
    begin = lambda tensor: header[tensor.name]["data_offsets"]
    return sorted(tensors, key=begin), metadata
