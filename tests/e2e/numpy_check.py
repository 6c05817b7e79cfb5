# SPDX-License-Identifier: Apache-2.0
"""Reads every tensor of a mount with NumPy in each way, and compares with the bytes of the model.

usage: numpy_check.py MOUNT MODEL
"""

import os
import sys

import numpy as np
from refwriter import read

EXACT = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "U32": "<u4", "I32": "<i4",
    "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8", "C64": "<c8",
}
RAW = {"BF16": "V2", "F8_E4M3": "V1", "F8_E5M2": "V1", "F8_E8M0": "V1", "F8_E4M3FNUZ": "V1", "F8_E5M2FNUZ": "V1"}


def check(condition, what):
    if not condition:
        sys.exit("numpy_check.py: " + what)


def check_raw(path, tensor):
    """The data file: whole, in pieces, mapped for reading and copy-on-write."""
    bytes_ = np.fromfile(path, np.uint8)
    check(bytes_.tobytes() == tensor.data, "fromfile " + tensor.name)
    if len(tensor.data) > 5:
        part = np.fromfile(path, np.uint8, count=len(tensor.data) - 5, offset=3)
        check(part.tobytes() == tensor.data[3:-2], "fromfile with an offset " + tensor.name)
    if not tensor.data:
        return
    for mode in "rc":
        mapped = np.memmap(path, np.uint8, mode)
        check(mapped.tobytes() == tensor.data, "memmap %s %s" % (mode, tensor.name))
    mapped[0] ^= 255
    check(np.memmap(path, np.uint8, "r").tobytes() == tensor.data, "a private change went through " + tensor.name)
    try:
        np.memmap(path, np.uint8, "r+")
    except OSError:
        pass
    else:
        check(False, "memmap r+ was not refused")


def check_npy(path, tensor):
    if tensor.dtype not in EXACT and tensor.dtype not in RAW:
        check(not os.path.exists(path), "data.npy of a sub-byte type " + tensor.name)
        return
    dtype = np.dtype(EXACT.get(tensor.dtype) or RAW[tensor.dtype])
    loads = [np.load(path)]
    if tensor.data:
        loads += [np.load(path, mmap_mode=mode) for mode in "rc"]
    for array in loads:
        check(array.dtype == dtype and array.dtype.str == dtype.str, "dtype %s %s" % (array.dtype, tensor.name))
        check(list(array.shape) == list(tensor.shape), "shape %s %s" % (array.shape, tensor.name))
        check(array.tobytes() == tensor.data, "data.npy " + tensor.name)
        check(array.flags.c_contiguous, "order " + tensor.name)


def main():
    mount, model = sys.argv[1:]
    tensors, _ = read(model)
    for tensor in tensors:
        path = os.path.join(mount, *tensor.name.split("."))
        check_raw(os.path.join(path, "data"), tensor)
        check_npy(os.path.join(path, "data.npy"), tensor)
    print("%d tensors" % len(tensors))


main()
