# SPDX-License-Identifier: Apache-2.0
"""Writes a model with a tensor of each dtype in several shapes, at whatever offsets that gives.

usage: numpy_make.py OUTFILE
"""

import random
import sys

from refwriter import ORDER, Tensor, write

BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BF16": 16, "F16": 16, "U16": 16, "I16": 16}
BITS.update({name: 32 for name in ("F32", "U32", "I32")})
BITS.update({name: 64 for name in ("F64", "U64", "I64", "C64")})
SHAPES = {"scalar": [], "empty": [0, 3], "one": [1], "row": [3001], "cube": [2, 3, 4], "deep": [1] * 30 + [8]}


def main():
    rand = random.Random(7)
    tensors = []
    for dtype in ORDER:
        for kind, shape in SHAPES.items():
            bits = BITS.get(dtype, 8)
            for dim in shape:
                bits *= dim
            if bits % 8:
                continue
            data = rand.randbytes(bits // 8)
            if dtype == "BOOL":
                data = bytes(byte & 1 for byte in data)
            tensors.append(Tensor("t.%s.%s" % (dtype, kind), dtype, shape, data))
    write(sys.argv[1], tensors)


main()
