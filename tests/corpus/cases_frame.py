# SPDX-License-Identifier: Apache-2.0
"""The frame: length word, files that are something else, UTF-8, first byte, padding, bytes behind the data."""

import json

from build import (
    COVER,
    JSON,
    LARGE,
    LENGTH,
    SMALL,
    UTF8,
    accept,
    entry,
    frame,
    members,
    named,
    one,
    reject,
    sound,
    warn,
)

GOOD = members(("a", entry()))
LIMIT = 100_000_000


def length_word():
    yield accept("empty_header", frame("{}", 0), "no tensors, header {} of 2 bytes")
    yield accept("empty_padded", frame("{}", 0, pad=8), "no tensors, padded to 8")
    yield accept("page_padded", frame(GOOD + " " * (4088 - len(GOOD))), "header padded so that the data starts at 4096")
    yield accept(
        "unpadded_header",
        frame(GOOD + " "),
        "header of odd length",
        "readers that round the start of the data read shifted bytes",
    )
    yield accept(
        "unaligned_tensors",
        sound(("a", "U8", [3]), ("b", "F64", [2]), ("c", "I16", [1])),
        "tensors not aligned to their own size",
    )
    yield reject("empty_file", b"", "0 bytes", SMALL)
    yield reject("one_byte", b"{", "1 byte", SMALL)
    yield reject("seven_bytes", bytes(7), "7 bytes", SMALL)
    yield reject("length_only", (2).to_bytes(8, "little"), "8 bytes, the length word alone", LENGTH)
    yield reject("length_past_end", frame("{}", 0, length=3), "length word one past the file", LENGTH)
    yield reject(
        "length_limit_short_file",
        frame(GOOD, length=LIMIT),
        "length word 100,000,000 in a short file",
        LENGTH,
        "the limit itself is allowed",
    )
    yield reject("length_limit_plus_one", frame(GOOD, length=LIMIT + 1), "length word 100,000,001", LARGE)
    for power in (31, 32, 63):
        yield reject("length_2_%d" % power, frame(GOOD, length=1 << power), "length word 2^%d" % power, LARGE)
    yield reject("length_2_63_minus_1", frame(GOOD, length=(1 << 63) - 1), "length word 2^63-1", LARGE)
    yield reject("length_2_64_minus_1", frame(GOOD, length=(1 << 64) - 1), "length word 2^64-1", LARGE)
    yield reject(
        "length_2_64_minus_8", frame(GOOD, length=(1 << 64) - 8), "length word 2^64-8: adding 8 gives 0", LARGE
    )
    yield reject("length_zero", frame("", 8), "length word 0", JSON)
    yield reject("zeros", bytes(4096), "a file of zeros", JSON, "allocated by a download that never wrote")
    yield reject(
        "length_cuts_brace", frame(GOOD, length=len(GOOD) - 1), "length word one short: the last brace is data", JSON
    )
    yield reject("length_takes_data", frame(GOOD, b"12345678", length=len(GOOD) + 1), "length word one long", JSON)


def other_files():
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d7a" * 16 + b"\nsize 2471645608\n"
    page = b"<!DOCTYPE html>\n<html><head><title>Access denied</title></head><body>401</body></html>\n"
    yield reject("lfs_pointer", pointer, "a git-LFS pointer", LARGE)
    yield reject("html", page, "an HTML page", LARGE)
    yield reject("html_blank_first", b"\n\n" + page.lower(), "an HTML page behind blank lines", LARGE)
    yield reject(
        "zip",
        b"PK\x03\x04" + bytes(4) + b"archive/data.pkl" + bytes(64),
        "a ZIP (a renamed .pt)",
        LENGTH,
        "the length word reads as 67 MB, below the limit",
    )
    yield reject("pickle", b"\x80\x02}q\x00(X\x05\x00\x00\x00stateq\x01" + bytes(32), "a bare pickle", LARGE)
    yield reject("gguf", b"GGUF\x03\x00\x00\x00" + (2).to_bytes(8, "little") * 2, "a GGUF file", LARGE)
    yield reject("hdf5", b"\x89HDF\r\n\x1a\n" + bytes(40), "an HDF5 file (old Keras)", LARGE)
    yield reject(
        "npy",
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n" + bytes(8),
        "a NumPy file",
        LARGE,
    )
    yield reject("gzip", b"\x1f\x8b\x08\x00" + bytes(4) + b"\x02\xff" + bytes(20), "a gzip file", LENGTH)
    yield reject("zstd", b"\x28\xb5\x2f\xfd\x04\x58\x41\x00" + bytes(20), "a zstd file", LARGE)
    yield reject("bare_json", (GOOD + "\n").encode(), "the header's JSON without a length word", LARGE)
    yield reject(
        "index_json", b'{\n  "metadata": {},\n  "weight_map": {}\n}\n', "an index under the name of a shard", LARGE
    )
    yield reject("shell_text", b"Entry not found\n", "the text of a failed download", LARGE)
    yield reject(
        "big_endian_length", len(GOOD).to_bytes(8, "big") + GOOD.encode() + bytes(8), "length word big-endian", LARGE
    )
    yield reject(
        "length_32_bit", len(GOOD).to_bytes(4, "little") + GOOD.encode() + bytes(8), "length word of 4 bytes", LARGE
    )
    yield reject("two_files_joined", one() + one(), "two files, one behind the other", COVER)


def utf8():
    bad = {
        "ff": (b"\xff", "byte 0xFF"),
        "continuation": (b"\x80", "continuation byte alone"),
        "cut": (b"\xe2\x82", "character cut off"),
        "overlong_2": (b"\xc0\xaf", "overlong form of 2 bytes"),
        "overlong_3": (b"\xe0\x80\xaf", "overlong form of 3 bytes"),
        "overlong_nul": (b"\xc0\x80", "NUL in overlong form (Java)"),
        "surrogate": (b"\xed\xa0\x80", "UTF-8 of a surrogate"),
        "surrogate_pair": (b"\xed\xa0\xbd\xed\xb8\x80", "surrogate pair in UTF-8 (CESU-8)"),
        "past_end": (b"\xf4\x90\x80\x80", "code point past U+10FFFF"),
        "f5": (b"\xf5\x80\x80\x80", "byte 0xF5"),
        "five_bytes": (b"\xf8\x88\x80\x80\x80", "form of 5 bytes"),
        "latin1": (b"caf\xe9", "Latin-1"),
    }
    for key, (raw, what) in bad.items():
        header = GOOD.encode().replace(b'"a"', b'"' + raw + b'"')
        yield reject("utf8_" + key, frame(header, pad=8), what + " in a name", UTF8)
    value = members(("__metadata__", '{"k":"?"}'), ("a", entry())).encode()
    yield reject(
        "utf8_metadata_value", frame(value.replace(b"?", b"\xc0\xaf"), pad=8), "overlong form in a metadata value", UTF8
    )
    yield reject("utf8_padding", frame(GOOD.encode() + b"  \xff"), "byte 0xFF in the padding", UTF8)
    yield reject("utf16", frame(GOOD.encode("utf-16-le")), "header in UTF-16", JSON)
    yield reject("utf16_bom", frame(GOOD.encode("utf-16")), "header in UTF-16 with a byte order mark", UTF8)
    edges = ["\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
    yield accept("utf8_edges", named(*edges), "the first and last code point of each length, raw")


def blanks():
    for key, blank in {"space": " ", "tab": "\t", "cr": "\r", "lf": "\n", "all": " \t\r\n"}.items():
        yield warn(
            "leading_" + key,
            frame(blank + GOOD),
            "header starts with a blank (%s)" % key,
            "the format wants '{' as the first byte",
        )
    yield warn("leading_page", frame(" " * (4088 - len(GOOD)) + GOOD), "header padded at its start")
    for key, blank in {"tab": "\t\t", "cr": "\r\r", "lf": "\n\n", "mixed": " \t\r\n"}.items():
        yield accept(
            "trailing_" + key,
            frame(GOOD + blank),
            "padding of %s" % key,
            "the format names 0x20 only; the reference takes the four blanks of JSON",
        )
    yield accept("long_padding", frame(GOOD + " " * 100_000), "100,000 spaces of padding")
    inside = '{ "a" :\t{ "dtype" : "F32" ,\r\n "shape" : [ 2 ] , "data_offsets" : [ 0 , 8 ] } }'
    yield accept("blanks_everywhere", frame(inside, pad=8), "blanks around every token")
    yield accept(
        "pretty", frame(json.dumps(json.loads(GOOD), indent=2)), "newlines and indents", "json.dump writers do this"
    )
    for key, raw in {
        "nul": b"\0",
        "vt": b"\x0b",
        "ff": b"\x0c",
        "nbsp": b"\xc2\xa0",
        "bom": b"\xef\xbb\xbf",
        "line_separator": b"\xe2\x80\xa8",
        "letter": b"x",
        "brace": b"}",
    }.items():
        yield reject(
            "padding_" + key,
            frame(GOOD.encode() + raw * 3),
            "padding of " + key,
            JSON,
            "real files exist; lax takes it" if key == "nul" else "-",
        )
    yield reject("padding_nul_after_space", frame(GOOD.encode() + b"   \0"), "one NUL behind the spaces", JSON)
    yield reject("leading_bom", frame(b"\xef\xbb\xbf" + GOOD.encode()), "byte order mark", JSON)
    yield reject("leading_nul", frame(b"\0" + GOOD.encode()), "NUL before the header", JSON)
    yield reject("leading_ff", frame(b"\x0c" + GOOD.encode()), "form feed before the header", JSON)
    yield reject("only_spaces", frame(" " * 16, 0), "spaces only", JSON)
    yield reject("two_documents", frame(GOOD + "{}"), "two JSON documents", JSON)
    yield reject("document_after_newline", frame(GOOD + "\n{}"), "two lines of JSON", JSON)
    yield reject(
        "empty_map_then_metadata",
        frame('{},"__metadata__":{}}', 0),
        "metadata-only file of an old writer",
        JSON,
        "the official writer makes it of no tensors and an empty map",
    )


def ends():
    yield reject("truncated_1", one()[:-1], "data cut by one byte", COVER)
    yield reject("truncated_all", one(data=0), "all data missing", COVER, "header-only files of partial downloads")
    yield reject("truncated_in_header", one()[:30], "cut inside the header", LENGTH)
    yield reject("extra_1", one(data=9), "one byte behind the data", COVER)
    yield reject(
        "extra_4", one(data=12), "four bytes behind the data", COVER, "a published SD 1.5 checkpoint; lax takes it"
    )
    yield reject("extra_newline", one() + b"\n", "newline behind the data", COVER)
    yield reject("extra_page", one() + bytes(4096), "a page of zeros behind the data", COVER)
    yield reject("empty_with_data", frame("{}", 8, pad=8), "no tensors, but data", COVER)
    yield reject(
        "zero_size_with_data",
        frame(members(("z", entry(shape="[0]", offsets="[0,0]"))), 1, pad=8),
        "only a zero-size tensor, but data",
        COVER,
    )


def cases():
    for group in (length_word, other_files, utf8, blanks, ends):
        yield from group()
