# SPDX-License-Identifier: Apache-2.0
"""Tensor entries: dtypes, integers, shapes, offsets, the layout of the data, overflow, and what __metadata__ holds."""

from build import (
    BITS,
    BITSIZE,
    COVER,
    INFO,
    JSON,
    OFFSET,
    OVERFLOW,
    accept,
    beside,
    entry,
    frame,
    members,
    one,
    reject,
    sound,
    warn,
)

TOP = (1 << 64) - 1


def tensors(*entries, data):
    """A file of tensors a, b, c … with these entries in this order."""
    return frame(members(*zip("abcdefghij", entries)), data, pad=8)


def dtypes():
    for dtype in BITS:
        yield accept("dtype_" + dtype, sound(("w", dtype, [2, 4])), "dtype %s" % dtype)
    yield accept("dtype_all", sound(*[(dtype, dtype, [8]) for dtype in BITS]), "all 22 dtypes in one file")
    for dtype in BITS:
        if BITS[dtype] % 8 == 0:
            continue
        yield accept("dtype_zero_" + dtype, sound(("w", dtype, [0])), "%s, zero elements" % dtype)
        yield reject(
            "dtype_odd_" + dtype,
            one(dtype='"%s"' % dtype, shape="[3]", offsets="[0,2]", data=2),
            "three %s are no whole bytes" % dtype,
            BITSIZE,
        )
        yield reject(
            "dtype_scalar_" + dtype,
            one(dtype='"%s"' % dtype, shape="[]", offsets="[0,1]", data=1),
            "a scalar of %s is no whole byte" % dtype,
            BITSIZE,
        )
    yield accept(
        "subbyte",
        sound(("f4", "F4", [3, 2]), ("f6a", "F6_E2M3", [4]), ("f6b", "F6_E3M2", [2, 2]), ("i", "I64", [1])),
        "sub-byte tensors of whole bytes",
    )
    yield reject("f4_as_bytes", one(dtype='"F4"', shape="[8]", offsets="[0,8]"), "F4 counted as one byte each", INFO)
    yield reject(
        "f6_as_bytes", one(dtype='"F6_E2M3"', shape="[8]", offsets="[0,8]"), "F6 counted as one byte each", INFO
    )
    unknown = {
        "lower": "f32",
        "title": "Float32",
        "torch": "float32",
        "empty": "",
        "space": "F32 ",
        "leading_space": " F32",
        "nul": r"F32\u0000",
        "I4": "I4",
        "U4": "U4",
        "F128": "F128",
        "C128": "C128",
        "F8": "F8",
        "FN": "F8_E4M3FN",
        "numpy": "<f4",
        "lower_bf16": "bf16",
        "BFLOAT16": "BFLOAT16",
        "ggml": "Q4_0",
        "E4M3": "F8_e4m3",
        "long": "F" * 300,
    }
    for key, text in unknown.items():
        yield reject("dtype_unknown_" + key, one(dtype='"%s"' % text), "unknown dtype: " + key, JSON)
    for key, text in {
        "null": "null",
        "number": "3",
        "true": "true",
        "array": '["F32"]',
        "map_value": '{"F32":1}',
        "map_two": '{"F32":null,"x":null}',
        "map_empty": "{}",
        "map_unknown": '{"f32":null}',
    }.items():
        yield reject("dtype_" + key, one(dtype=text), "dtype is " + key.replace("_", " "), JSON)


# Spellings of 2 that are no plain digits, and other things that are no size.
SPELLINGS = {
    "float": "2.0",
    "exponent": "2e0",
    "exponent_upper": "2E0",
    "exponent_minus": "20e-1",
    "minus_zero": "-0",
    "negative": "-2",
    "string": '"2"',
    "null": "null",
    "true": "true",
    "2_64": "18446744073709551616",
    "many_digits": "9" * 60,
    "leading_zero": "02",
    "double_zero": "00",
    "plus": "+2",
    "hex": "0x2",
    "octal": "0o2",
    "array": "[2]",
    "object": "{}",
    "underscore": "2_0",
    "suffix": "2L",
    "dot": "2.",
    "arabic": "\u0662",
    "fullwidth": "\uff12",
}


def integers():
    for key, text in SPELLINGS.items():
        yield reject("shape_" + key, one(shape="[2,%s]" % text), "shape holds " + key.replace("_", " "), JSON)
        yield reject("offset_" + key, one(offsets="[%s,8]" % text), "data_offsets holds " + key.replace("_", " "), JSON)
    yield reject("offset_end_float", one(offsets="[0,8.0]"), "end is 8.0", JSON)
    yield reject("offset_end_exponent", one(offsets="[0,8e0]"), "end is 8e0", JSON)
    yield reject("offset_end_2_64", one(offsets="[0,18446744073709551624]"), "end is 2^64+8: wraps to 8", JSON)
    yield accept("integer_blanks", one(shape="[ 2\t]", offsets="[\n0 , 8\r]"), "blanks around integers")
    yield accept("integer_max", one(shape="[0,%d]" % TOP, offsets="[0,0]", data=0), "2^64-1 as a dimension behind a 0")
    for key, text in {"number": "2", "string": '"2"', "null": "null", "object": '{"0":2}', "true": "true"}.items():
        yield reject("shape_is_" + key, one(shape=text), "shape is " + key, JSON)
    pairs = {
        "empty": "[]",
        "one": "[8]",
        "three": "[0,8,8]",
        "number": "8",
        "null": "null",
        "object": '{"begin":0,"end":8}',
        "string": '"0,8"',
        "nested": "[[0,8]]",
        "nulls": "[null,null]",
    }
    for key, text in pairs.items():
        yield reject("offsets_" + key, one(offsets=text), "data_offsets is " + key, JSON)


def fields():
    for field, text in {
        "dtype": '{"shape":[2],"data_offsets":[0,8]}',
        "shape": '{"dtype":"F32","data_offsets":[0,8]}',
        "offsets": '{"dtype":"F32","shape":[2]}',
        "all": "{}",
    }.items():
        yield reject("missing_" + field, frame(members(("a", text)), pad=8), "%s missing" % field, JSON)
    for key, text in {
        "null": "null",
        "number": "1",
        "string": '"F32"',
        "true": "true",
        "empty_array": "[]",
        "short_array": '["F32",[2]]',
        "long_array": '["F32",[2],[0,8],0]',
        "list": "[" + entry() + "]",
    }.items():
        yield reject("entry_" + key, frame(members(("a", text)), pad=8), "entry is " + key.replace("_", " "), JSON)
    yield reject(
        "extra_top_level",
        beside("version", "1"),
        "a top-level member that is no tensor",
        JSON,
        "there is no extension point but __metadata__",
    )
    yield reject("extra_top_level_map", beside("config", '{"k":"v"}'), "a top-level map that is no tensor", JSON)
    yield reject("entry_nested", beside("layers", members(("0", entry()))), "entries nested in a module", JSON)


def metadata():
    yield accept("metadata", beside("__metadata__", '{"format":"pt","a":"1","Z":""}'), "metadata of three keys")
    yield accept(
        "metadata_empty", beside("__metadata__", "{}"), "empty metadata", "readers that test truth take it for a tensor"
    )
    yield accept(
        "metadata_raw_utf8",
        beside("__metadata__", '{"title":"é权 😀","é":"x"}'),
        "raw UTF-8 in metadata",
        "one json-c refuses it",
    )
    yield accept(
        "metadata_json_in_value", beside("__metadata__", r'{"config":"{\"a\":[1,2]}"}'), "a value that is JSON text"
    )
    yield accept(
        "metadata_long_value", beside("__metadata__", '{"notes":"%s"}' % ("line\\n" * 20000)), "a value of 100 KB"
    )
    yield accept(
        "metadata_keys_of_paths",
        beside("__metadata__", '{"a/b":"1",".hidden":"2","#x":"3","y~":"4","%41":"5"}'),
        "keys that need escapes as file names",
    )
    yield accept(
        "metadata_many",
        beside("__metadata__", "{" + ",".join('"k%d":"%d"' % (i, i) for i in range(2000)) + "}"),
        "2,000 metadata keys",
    )
    yield warn("metadata_null", beside("__metadata__", "null"), "metadata is null", "the format wants a map")
    for key, text in {
        "array": "[]",
        "string": '"x"',
        "number": "0",
        "true": "true",
        "false": "false",
        "list": '["format","pt"]',
        "pairs": '[["format","pt"]]',
    }.items():
        yield reject("metadata_is_" + key, beside("__metadata__", text), "metadata is " + key, JSON)
    for key, text in {
        "number": "1",
        "float": "1.5",
        "null": "null",
        "true": "true",
        "object": '{"a":"b"}',
        "array": '["pt"]',
    }.items():
        yield reject(
            "metadata_value_" + key, beside("__metadata__", '{"format":%s}' % text), "metadata value is " + key, JSON
        )
    yield reject(
        "metadata_value_second",
        beside("__metadata__", '{"a":"x","step":100}'),
        "second metadata value is a number",
        JSON,
    )
    yield reject(
        "tensor_named_metadata",
        frame(members(("__metadata__", entry())), pad=8),
        "a tensor named __metadata__",
        JSON,
        "the official writer makes this file",
    )


def layout():
    half = lambda begin, end: entry(shape="[1]", offsets="[%d,%d]" % (begin, end))
    yield accept("scalar", sound(("s", "F64", [])), "rank 0")
    yield accept(
        "scalars",
        sound(*[(dtype, dtype, []) for dtype in BITS if BITS[dtype] >= 8]),
        "a scalar of every whole-byte dtype",
    )
    yield accept(
        "header_unsorted", tensors(half(8, 12), half(0, 4), half(4, 8), data=12), "header order differs from data order"
    )
    yield accept(
        "order_not_by_dtype", sound(("a", "U8", [1]), ("b", "F64", [1]), ("c", "BOOL", [1])), "small dtypes first"
    )
    yield accept(
        "many_dims",
        one(shape="[" + ",".join("1" * 100) + "]", offsets="[0,4]", data=4),
        "100 dimensions",
        "NumPy has 64 at most",
    )
    yield accept("many_tensors", sound(*[("layer.%d.w" % i, "U8", [1]) for i in range(2000)]), "2,000 tensors")
    yield accept(
        "bool_bytes", one(dtype='"BOOL"', shape="[8]", data=bytes(range(2, 10))), "BOOL bytes other than 0 and 1"
    )
    yield accept("nan_inf", one(data=bytes.fromhex("0000c07f000080ff")), "NaN and Inf in the data")
    yield accept(
        "data_like_header",
        one(dtype='"U8"', shape="[16]", offsets="[0,16]", data=b'{"__metadata__":'),
        "data that reads as JSON",
    )
    yield reject("reversed", one(offsets="[8,0]"), "begin after end", OFFSET)
    yield reject("reversed_second", tensors(half(0, 4), half(8, 4), data=8), "begin after end in the second", OFFSET)
    yield reject("hole_start", one(offsets="[4,12]", data=12), "4 unused bytes at the start", OFFSET)
    yield reject("hole_between", tensors(half(0, 4), half(8, 12), data=12), "4 unused bytes between two", OFFSET)
    yield reject("hole_end", tensors(half(0, 4), half(4, 8), data=12), "4 unused bytes at the end", COVER)
    yield reject("overlap", tensors(half(0, 4), half(2, 6), data=6), "two tensors overlap", OFFSET)
    yield reject("overlap_contained", tensors(entry(), half(2, 6), data=8), "one tensor inside another", OFFSET)
    yield reject(
        "alias",
        tensors(entry(), entry(), data=8),
        "two names on the same bytes",
        OFFSET,
        "tied weights; refused upstream",
    )
    yield reject("alias_prefix", tensors(entry(), half(0, 4), data=8), "two names from the same start", OFFSET)
    yield reject("alias_suffix", tensors(entry(), half(4, 8), data=8), "two names to the same end", OFFSET)
    yield reject(
        "swapped_sizes", tensors(half(0, 8), entry(offsets="[8,12]"), data=12), "sizes of two tensors exchanged", INFO
    )
    yield reject(
        "offsets_from_file_start", one(offsets="[72,80]"), "offsets counted from the start of the file", OFFSET
    )
    yield reject("size_too_small", one(shape="[3]"), "shape needs 12 bytes, offsets give 8", INFO)
    yield reject("size_too_big", one(shape="[1]"), "shape needs 4 bytes, offsets give 8", INFO)
    yield reject("size_off_by_one", one(offsets="[0,7]", data=7), "offsets one byte short", INFO)
    yield reject("size_scalar", one(shape="[]"), "a scalar of 8 bytes", INFO)
    yield reject("size_zero_shape", one(shape="[0]"), "shape needs no bytes, offsets give 8", INFO)
    yield reject("size_zero_offsets", one(offsets="[0,0]", data=0), "shape needs 8 bytes, offsets give none", INFO)
    yield reject("past_end", one(shape="[4]", offsets="[0,16]"), "tensor longer than the data", COVER)


def zero_size():
    byte, zero = lambda at: entry('"U8"', "[1]", "[%d,%d]" % (at, at + 1)), lambda at: entry(
        shape="[4,0]", offsets="[%d,%d]" % (at, at)
    )
    yield accept("zero_alone", sound(("z", "F32", [0, 7])), "one zero-size tensor, no data")
    yield accept("zero_start", tensors(zero(0), byte(0), data=1), "zero-size tensor at the start")
    yield accept(
        "zero_start_listed_last", tensors(byte(0), zero(0), data=1), "zero-size tensor at the start, listed last"
    )
    yield accept("zero_between", tensors(byte(0), zero(1), byte(1), data=2), "zero-size tensor between two")
    yield accept("zero_end", tensors(byte(0), zero(1), data=1), "zero-size tensor at the end")
    yield accept("zero_many", tensors(*[zero(1)] * 9, byte(0), data=1), "nine zero-size tensors at one place")
    yield accept("zero_every_dtype", sound(*[(dtype, dtype, [0]) for dtype in BITS]), "zero-size tensors of all dtypes")
    yield accept("zero_rank_3", sound(("z", "F16", [3, 0, 5])), "zero in the middle of a shape")
    yield reject("zero_inside", tensors(entry(), zero(4), data=8), "zero-size tensor inside another", OFFSET)
    yield reject("zero_past_end", tensors(byte(0), zero(2), data=1), "zero-size tensor past the end", OFFSET)
    yield reject("zero_late", tensors(zero(8), data=0), "only a zero-size tensor, at 8", OFFSET)
    yield reject(
        "zero_late_with_data", tensors(zero(8), data=8), "only a zero-size tensor, behind unused bytes", OFFSET
    )


def overflow():
    huge = lambda dtype, *dims, end=8: one(
        dtype='"%s"' % dtype, shape="[%s]" % ",".join(map(str, dims)), offsets="[0,%d]" % end
    )
    yield accept("zero_then_huge", huge("F32", 0, TOP, 9, end=0)[:-8], "0 first, then 2^64-1: the product stays 0")
    yield reject(
        "huge_then_zero",
        huge("F32", TOP, 9, 0, end=0)[:-8],
        "the same dimensions, 0 last: the product overflows",
        OVERFLOW,
    )
    yield reject("shape_overflow", huge("U8", 1 << 32, 1 << 32), "product of the shape is 2^64", OVERFLOW)
    yield reject("shape_overflow_to_size", huge("U8", (1 << 32) + 1, (1 << 32), 8), "product wraps around", OVERFLOW)
    yield reject("shape_overflow_many", huge("U8", *[2] * 64), "64 dimensions of 2", OVERFLOW)
    yield reject("bits_overflow", huge("F64", 1 << 61), "2^61 elements of 8 bytes", OVERFLOW)
    yield reject("bits_overflow_u8", huge("U8", 1 << 61), "2^61 bytes are 2^64 bits", OVERFLOW)
    yield reject("bits_overflow_f4", huge("F4", 1 << 62), "2^62 F4 are 2^64 bits", OVERFLOW)
    yield reject("bits_overflow_to_size", huge("F32", (1 << 62) + 2), "size wraps around to 8 bytes", OVERFLOW)
    yield reject("bits_max", huge("U8", (1 << 61) - 1), "2^61-1 bytes, the most there can be, in 8", INFO)
    yield reject("huge_consistent", huge("U8", 1 << 60, end=1 << 60), "2^60 bytes promised in a small file", COVER)
    yield reject("huge_end_only", one(offsets="[0,%d]" % TOP), "end is 2^64-1", INFO)
    yield reject("huge_offsets", one(offsets="[%d,%d]" % (TOP - 8, TOP)), "offsets near 2^64", OFFSET)
    yield reject(
        "huge_end_wraps",
        one(dtype='"U8"', shape="[%d]" % TOP, offsets="[0,%d]" % TOP),
        "end + 8 + header wraps",
        OVERFLOW,
    )


def cases():
    for group in (dtypes, integers, fields, metadata, layout, zero_size, overflow):
        yield from group()
