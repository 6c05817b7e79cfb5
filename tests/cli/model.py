#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the models of these tests, and reads models in its own few lines, as a witness for what the program prints.

usage: model.py make DIR | names FILE | bytes FILE NAME | json FILE
"""
import json
import os
import random
import struct
import sys

BITS = {"F32": 32, "F16": 16, "BF16": 16, "U8": 8, "I64": 64, "BOOL": 8, "F4": 4, "F64": 64, "F8_E4M3": 8}


def count(shape):
    n = 1
    for dim in shape:
        n *= dim
    return n


def layout(tensors, metadata=None):
    """The header for (name, dtype, shape) in this order, and the size of the data."""
    header, end = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape in tensors:
        begin, end = end, end + count(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    return header, end


def write(path, header, data_size, sparse=False, pad=b"", tail=b""):
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8) + pad
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        if sparse:
            f.truncate(8 + len(text) + data_size)
        else:
            f.write(random.Random(path.rsplit("/", 1)[-1]).randbytes(data_size) + tail)


def make_small(folder):
    tensors = [
        ("model.norm.weight", "F32", (5,)), ("model.layers.0.w", "BF16", (2, 3)), ("model.layers.1.w", "BF16", (2, 3)),
        ("model.layers.10.w", "BF16", (2, 3)), ("scalar", "F64", ()), ("empty", "F32", (0, 4)),
        ("packed", "F4", (3, 2)), ("params/dense/kernel", "U8", (7,)), ("data", "U8", (2,)),
        ("esc\x1b[31mred", "U8", (3,)), ("two\nlines", "U8", (4,)), ("日本.w", "F8_E4M3", (2,)), ("big", "U8", (3 << 20,)),
    ]
    metadata = {"format": "pt", "two\tlines": "one\ntwo\x1b[0m", "long": "x" * 5000}
    write(folder + "/small.safetensors", *layout(tensors, metadata))


def make_layers(folder):
    tensors = [("lm_head.weight", "BF16", (32000, 2048)), ("model.embed_tokens.weight", "BF16", (32000, 2048))]
    for i in range(22):
        at = f"model.layers.{i}."
        tensors += [(at + "input_layernorm.weight", "F32", (2048,)), (at + "mlp.down_proj.weight", "BF16", (2048, 5632)),
                    (at + "mlp.up_proj.weight", "BF16", (5632, 2048)), (at + "self_attn.q_proj.weight", "BF16", (2048, 2048))]
    tensors += [(f"odd.{i}.bias", "F32", (i + 1,)) for i in range(12)]
    write(folder + "/layers.safetensors", *layout(tensors, {"format": "pt"}), sparse=True)


def make_bad(folder):
    header, size = layout([("a", "F32", (2,)), ("b", "F32", (2,))])
    header["b"]["data_offsets"] = [12, 20]
    write(folder + "/hole.safetensors", header, 20)
    header, size = layout([(f"t{i:03}", "U8", (1,)) for i in range(250)])
    for entry in header.values():
        entry["dtype"] = "u8"
    write(folder + "/many.safetensors", header, size)
    header, size = layout([("a", "F32", (2,))])
    header["a"]["note"] = "odd"
    write(folder + "/odd.safetensors", header, size)
    header, size = layout([("abc", "F32", (2,))])
    write(folder + "/nul.safetensors", header, size, pad=bytes(8))
    write(folder + "/tail.safetensors", header, size, tail=b"1234")


def make_shards(folder, name, missing=False):
    folder += "/" + name
    os.makedirs(folder)
    where = {}
    for n in 1, 2:
        file = f"model-{n:05}-of-00002.safetensors"
        tensors = [(f"part{n}.a", "F32", (3, n)), (f"part{n}.b", "I64", (2,))]
        where.update({t[0]: file for t in tensors})
        if not (missing and n == 2):
            write(folder + "/" + file, *layout(tensors, {"format": "pt"}))
    with open(folder + "/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {}, "weight_map": where}, f)


def make(folder):
    make_small(folder)
    make_layers(folder)
    make_bad(folder)
    make_shards(folder, "shards")
    make_shards(folder, "missing", missing=True)
    with open(folder + "/page.safetensors", "w") as f:
        f.write("<!DOCTYPE html><html></html>\n")


def read(path):
    """All tensors in the order of their bytes: name, dtype, shape, bytes."""
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    header.pop("__metadata__", None)
    rows = []
    for name, t in header.items():
        begin, end = t["data_offsets"]
        rows.append((begin, end, name, t["dtype"], t["shape"], raw[8 + n + begin:8 + n + end]))
    rows.sort(key=lambda row: row[:2])
    return [row[2:] for row in rows]


def main():
    out = sys.stdout.buffer
    if sys.argv[1] == "make":
        make(sys.argv[2])
    elif sys.argv[1] == "names":
        for name, *_ in read(sys.argv[2]):
            out.write(name.encode() + b"\n")
    elif sys.argv[1] == "bytes":
        out.write(next(row[3] for row in read(sys.argv[2]) if row[0] == sys.argv[3]))
    elif sys.argv[1] == "json":
        rows = [{"name": n, "dtype": d, "shape": s, "bytes": len(b)} for n, d, s, b in read(sys.argv[2])]
        out.write(json.dumps(rows).encode())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
