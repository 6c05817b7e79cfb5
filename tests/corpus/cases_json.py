# SPDX-License-Identifier: Apache-2.0
"""The JSON of the header: grammar, escapes, nesting, duplicates, unknown fields, what serde takes by accident."""

from build import JSON, OFFSET, accept, beside, entry, frame, members, named, one, place, refuse, reject, sound, warn

GOOD = members(("a", entry()))


def with_unknown(value, key="x"):
    """One good tensor whose entry has an unknown field, raw JSON text."""
    return one(more=',"%s":%s' % (key, value))


def grammar():
    swaps = {
        "trailing_comma": (GOOD[:-1] + ",}", "comma before the last brace"),
        "trailing_comma_entry": (GOOD[:-2] + ",}}", "comma before an entry's brace"),
        "trailing_comma_array": (GOOD.replace("[2]", "[2,]"), "comma before ]"),
        "leading_comma": ("{," + GOOD[1:], "comma behind the first brace"),
        "double_comma": (GOOD.replace(',"shape"', ',,"shape"'), "two commas"),
        "missing_comma": (GOOD.replace(',"shape"', ' "shape"'), "comma missing"),
        "missing_colon": (GOOD.replace('"a":', '"a" '), "colon missing"),
        "double_colon": (GOOD.replace('"a":', '"a"::'), "two colons"),
        "missing_brace": (GOOD[:-1], "last brace missing"),
        "missing_value": ('{"a":}', "value missing"),
        "key_only": ('{"a"}', "key without a value"),
        "open_string": ('{"a', "string not closed"),
        "open_brace": ("{", "one brace"),
        "wrong_bracket": (GOOD[:-1] + "]", "closed by the wrong bracket"),
        "mismatched_array": (GOOD.replace("[2]", "[2}"), "array closed by a brace"),
        "single_quotes": (GOOD.replace('"', "'"), "single quotes (a Python repr)"),
        "unquoted_key": ('{a:' + entry() + "}", "key without quotes"),
        "number_key": ('{1:' + entry() + "}", "key is a number"),
        "null_key": ('{null:' + entry() + "}", "key is null"),
        "comment_block": (GOOD[:-1] + "/* x */}", "block comment"),
        "comment_line": (GOOD[:-1] + "// x\n}", "line comment"),
        "comment_hash": (GOOD[:-1] + "# x\n}", "hash comment"),
        "backtick": (GOOD.replace('"', "`"), "backticks"),
        "nul_inside": (GOOD.replace(",", ",\0", 1), "NUL between two tokens"),
        "vt_inside": (GOOD.replace(",", ",\v", 1), "vertical tab between two tokens"),
        "nbsp_inside": (GOOD.replace(",", ",\u00a0", 1), "no-break space between two tokens"),
    }
    for key, (text, what) in swaps.items():
        yield reject("json_" + key, frame(text, pad=8), what, JSON)
    tops = {
        "array": "[]",
        "array_of_entry": "[" + entry() + "]",
        "string": '"a"',
        "number": "1",
        "null": "null",
        "true": "true",
    }
    for key, text in tops.items():
        yield reject("top_" + key, frame(text, 0, pad=8), "top level is " + key.replace("_", " "), JSON)
    for literal in (
        "NaN",
        "Infinity",
        "-Infinity",
        "NULL",
        "True",
        "TRUE",
        "nul",
        "nulll",
        "undefined",
        "None",
        "'x'",
        "0x1",
    ):
        key = literal.lower().strip("'").replace("-", "minus_") + ("_case" if literal in ("NULL", "TRUE") else "")
        yield reject("literal_" + key, with_unknown(literal), "%s in an unknown field" % literal, JSON)


def escapes():
    yield accept("escapes_all", named(r'\u0061\/\u00e9\ud83d\ude00\"\\'), "escapes in a name, with a surrogate pair")
    yield accept("escapes_upper_hex", named(r"\u00C9\u00e9", r"\uD83D\uDE00"), "hex digits of both cases")
    yield accept(
        "escapes_field_names",
        frame(r'{"a":{"dt\u0079pe":"F32","sh\u0061pe":[2],"d\u0061ta_offsets":[0,8]}}', pad=8),
        "field names with escapes",
    )
    yield accept("escapes_dtype", one(dtype=r'"\u00463\u0032"'), "dtype with escapes")
    yield accept(
        "escapes_metadata_key",
        beside(r"\u005f_metadata__", '{"k":"v"}'),
        "the key __metadata__ with an escape",
        "keys are compared after unescaping",
    )
    yield accept(
        "escapes_metadata_value",
        beside("__metadata__", r'{"k":"\b\f\n\r\t\"\\\/\u0000\u001f\ud83d\ude00"}'),
        "every escape in a metadata value",
    )
    yield accept("raw_del", beside("__metadata__", '{"k":"\x7f\uffff\ufffe"}'), "DEL and noncharacters raw in a value")
    bad = {
        "x": r"\x41",
        "quote": r"\'",
        "v": r"\v",
        "zero": r"\0",
        "upper_u": r"\U0041",
        "newline": "\\\n",
        "e": r"\e",
        "u_short": r"\u41",
        "u_empty": r"\u",
        "u_letter": r"\u00g0",
        "u_sign": r"\u+041",
        "u_space": r"\u 041",
        "u_brace": r"\u{41}",
        "high_alone": r"\ud83d",
        "low_alone": r"\ude00",
        "pair_reversed": r"\ude00\ud83d",
        "high_high": r"\ud83d\ud83d",
        "high_then_letter": r"\ud83dx",
        "high_then_escape": r"\ud83d\n",
        "high_then_bmp": r"\ud83d\u0041",
        "high_then_raw": "\\ud83d\U0001f600",
    }
    for key, text in bad.items():
        yield reject("escape_" + key, named(text), "escape %s in a name" % ascii(text).strip("'"), JSON)
    lone = r"\ud83d"
    yield reject(
        "surrogate_metadata_key", beside("__metadata__", '{"%s":"v"}' % lone), "lone surrogate in a metadata key", JSON
    )
    yield reject(
        "surrogate_metadata_value",
        beside("__metadata__", '{"k":"%s"}' % lone),
        "lone surrogate in a metadata value",
        JSON,
    )
    yield reject("surrogate_dtype", one(dtype='"%s"' % lone), "lone surrogate in a dtype", JSON)
    yield reject("surrogate_field_name", with_unknown("1", lone), "lone surrogate in an unknown field's name", JSON)
    yield reject("surrogate_field_value", with_unknown('"%s"' % lone), "lone surrogate in an unknown field", JSON)
    yield reject(
        "surrogate_nested_key", with_unknown('{"%s":1}' % lone), "lone surrogate deep in an unknown field", JSON
    )
    for key, raw in {"newline": "\n", "tab": "\t", "nul": "\0", "1f": "\x1f"}.items():
        yield reject("raw_%s_in_name" % key, named("a" + raw), "raw %s in a name" % key, JSON)
        yield reject(
            "raw_%s_in_value" % key,
            beside("__metadata__", '{"k":"v%s"}' % raw),
            "raw %s in a metadata value" % key,
            JSON,
        )
    yield reject("raw_tab_in_unknown", with_unknown('"\t"'), "raw tab in an unknown field", JSON)


def nesting():
    # The header's and the entry's braces are the first two levels.
    for key, opening, closing in (("array", "[", "]"), ("object", '{"k":', "}")):
        inner = "[]" if key == "array" else "{}"
        deep = lambda levels: opening * (levels - 3) + inner + closing * (levels - 3)
        yield warn("nesting_100_" + key, with_unknown(deep(100)), "unknown field nested to level 100 (%s)" % key)
        yield warn("nesting_127_" + key, with_unknown(deep(127)), "unknown field nested to level 127 (%s)" % key)
        yield reject(
            "nesting_128_" + key, with_unknown(deep(128)), "unknown field nested to level 128 (%s)" % key, JSON
        )
    yield reject("nesting_open", frame("[" * 5000, 0), "5,000 brackets that never close", JSON)
    yield reject("nesting_10000", with_unknown("[" * 10000 + "]" * 10000), "unknown field nested to level 10,002", JSON)
    yield reject("nesting_in_shape", one(shape="[" * 200 + "2" + "]" * 200), "shape nested 200 deep", JSON)


def duplicates():
    first, second = ("a", entry()), ("b", entry(offsets="[8,16]"))
    two = '"__metadata__":%s,"__metadata__":%s,"a":' + entry()
    yield refuse(
        "dup_name_same",
        frame(members(first, first), pad=8),
        "same name twice, same entry",
        "the format forbids it; the reference keeps the last",
    )
    yield refuse(
        "dup_name_first_bad",
        frame(members(("a", entry(offsets="[4,9]")), first), pad=8),
        "same name twice, the first with bad offsets",
        "the first is never checked by the reference",
    )
    yield refuse(
        "dup_name_other_dtype",
        frame(members(("a", entry('"U8"', "[8]")), first), pad=8),
        "same name twice, other dtype",
    )
    yield refuse(
        "dup_name_escaped", frame(members(first, (r"\u0061", entry())), pad=8), "same name twice, once as an escape"
    )
    yield refuse(
        "dup_name_escapes_differ",
        frame(members((r"\u00e9", entry()), ("é", entry())), pad=8),
        "same name raw and escaped",
    )
    yield refuse(
        "dup_name_pair",
        frame(members((r"\ud83d\ude00", entry()), ("😀", entry())), pad=8),
        "same name raw and as a surrogate pair",
    )
    yield refuse(
        "dup_name_nul",
        frame(members((r"a\u0000b", entry()), (r"a\u0000b", entry())), pad=8),
        "same name twice, with a NUL",
    )
    yield refuse("dup_name_empty", frame(members(("", entry()), ("", entry())), pad=8), "the empty name twice")
    yield refuse("dup_name_far", frame(members(first, second, first), 16, pad=8), "same name twice, another between")
    yield refuse("dup_name_three", frame(members(first, first, first), pad=8), "same name three times")
    zero = ("z", entry(shape="[0]", offsets="[0,0]"))
    yield refuse("dup_name_zero_size", frame(members(zero, zero), 0, pad=8), "a zero-size tensor twice")
    yield reject(
        "dup_name_last_bad",
        frame(members(first, ("a", entry(offsets="[4,12]"))), pad=8),
        "same name twice, the last with bad offsets",
        OFFSET,
        "the reference does not speak of duplicates",
    )
    yield reject(
        "dup_name_two_parts",
        frame(members(first, ("a", entry(offsets="[8,16]"))), 16, pad=8),
        "same name twice, each with bytes of its own",
        OFFSET,
    )
    yield reject(
        "dup_name_first_bad_type",
        frame(members(("a", "null"), first), pad=8),
        "same name twice, the first no entry",
        JSON,
    )
    yield refuse(
        "dup_metadata_key",
        beside("__metadata__", '{"k":"1","k":"2"}'),
        "metadata key twice",
        "the reference keeps the last",
    )
    yield refuse("dup_metadata_key_same", beside("__metadata__", '{"k":"1","k":"1"}'), "metadata key twice, same value")
    yield refuse(
        "dup_metadata_key_escaped",
        beside("__metadata__", r'{"k":"1","\u006b":"2"}'),
        "metadata key twice, once as an escape",
    )
    yield refuse("dup_metadata_key_empty", beside("__metadata__", '{"":"1","":"2"}'), "empty metadata key twice")
    for key, pair in {"": ("{}", "{}"), "_null": ("null", "null"), "_one_null": ("null", '{"k":"v"}')}.items():
        yield reject(
            "dup_metadata" + key, frame("{" + two % pair + "}", pad=8), "__metadata__ twice (%s, %s)" % pair, JSON
        )
    yield reject(
        "dup_metadata_escaped",
        frame(members(("__metadata__", "{}"), (r"__metadat\u0061__", "{}"), first), pad=8),
        "__metadata__ twice, once as an escape",
        JSON,
    )
    for field, value in {"dtype": '"F32"', "shape": "[2]", "data_offsets": "[0,8]"}.items():
        yield reject("dup_field_" + field, one(more=',"%s":%s' % (field, value)), "%s twice in an entry" % field, JSON)
    yield reject("dup_field_escaped", one(more=r',"dtyp\u0065":"F32"'), "dtype twice, once as an escape", JSON)
    yield warn("dup_unknown_field", one(more=',"x":1,"x":2'), "an unknown field twice")
    yield warn("dup_unknown_nested", with_unknown('{"k":1,"k":2}'), "a name twice deep in an unknown field")


def lax():
    yield warn(
        "unknown_field",
        one(more=',"stride":[1],"x":null'),
        "unknown fields in an entry",
        "the reference ignores them, the schema forbids them",
    )
    yield warn(
        "unknown_field_first", frame('{"a":{"x":1,' + entry()[1:] + "}", pad=8), "unknown field before the others"
    )
    yield warn("unknown_field_empty_name", with_unknown("0", ""), "unknown field with the empty name")
    yield warn("unknown_field_case", with_unknown('"F64"', "Dtype"), "unknown field that differs from dtype in case")
    yield warn("unknown_field_nul", with_unknown('"F64"', r"dtype\u0000"), "unknown field: dtype and a NUL")
    yield warn(
        "unknown_field_values",
        with_unknown(r'[true,false,null,"\ud83d\ude00",{},[],{"a":[{"b":-1.5e-3}]}]'),
        "unknown field with every kind of value",
    )
    good = {
        "zero_exponent": "0e999",
        "zero_fraction": "0.0e99999999999",
        "underflow": "1e-999",
        "max": "1.7976931348623157e308",
        "minus_zero": "-0",
        "long_integer": "1" + "0" * 300,
        "long_fraction": "0." + "3" * 400,
        "forms": "[0,-0.0,1E5,1e+5,10.25]",
        "below_int64": "-9223372036854775809",
    }
    for key, text in good.items():
        yield warn("number_" + key, with_unknown(text), "number in an unknown field: " + key.replace("_", " "))
    bad = {
        "overflow": "1e999",
        "minus_overflow": "-1e999",
        "long_overflow": "1" + "0" * 400,
        "leading_zero": "01",
        "minus_leading_zero": "-01",
        "double_zero": "00",
        "plus": "+1",
        "no_fraction": "1.",
        "no_integer": ".5",
        "no_exponent": "1e",
        "sign_exponent": "1e+",
        "minus": "-",
        "two_dots": "1.2.3",
        "hex": "0x10",
        "underscore": "1_000",
        "arabic": "\u0661",
        "minus_dot": "-.5",
        "zero_exponent_dot": "0e1.5",
    }
    for key, text in bad.items():
        yield reject("number_" + key, with_unknown(text), "number in an unknown field: " + key.replace("_", " "), JSON)
    yield refuse(
        "entry_as_array",
        frame('{"a":["F32",[2],[0,8]]}', pad=8),
        "entry written as an array",
        "an accident of serde; no other reader takes it",
    )
    yield refuse("dtype_as_map", one(dtype='{"F32":null}'), "dtype written as a map", "an accident of serde")
    yield refuse(
        "entry_as_array_dtype_as_map", frame('{"a":[{"F32":null},[2],[0,8]]}', pad=8), "both accidents of serde"
    )
    placed, end = place([("a", "F32", [2])])
    yield accept(
        "field_order", frame('{"a":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}}', pad=8), "fields in another order"
    )
    yield accept(
        "metadata_last",
        frame(members(*placed, ("__metadata__", '{"k":"v"}')), end, pad=8),
        "__metadata__ behind the tensors",
    )
    yield accept(
        "metadata_between",
        frame(members(("a", entry()), ("__metadata__", '{"k":"v"}'), ("b", entry(offsets="[8,16]"))), 16, pad=8),
        "__metadata__ between two tensors",
    )
    yield accept("metadata_only", sound(metadata={"format": "pt"}), "metadata and no tensors")


def cases():
    for group in (grammar, escapes, nesting, duplicates, lax):
        yield from group()
