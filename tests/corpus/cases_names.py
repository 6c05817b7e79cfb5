# SPDX-License-Identifier: Apache-2.0
"""Tensor names: what survives the way into paths, and what is worth a warning because it is awkward there."""

from build import accept, named, sound, warn


def plain():
    yield accept(
        "names_torch",
        sound(
            ("model.layers.0.mlp.up_proj.weight", "BF16", [4, 2]),
            ("model.norm.weight", "F32", [2]),
            metadata={"format": "pt"},
        ),
        "names of torch modules",
    )
    yield accept("names_flax", named("params/Dense_0/kernel", "params/Dense_0/bias"), "names of Flax, with /")
    yield accept(
        "names_mlx",
        named("blk.0.attn_q.weight", "blk.10.attn_q.weight", "blk.2.attn_q.weight"),
        "names of numbered blocks",
    )
    yield accept(
        "names_lora",
        named("lora_unet_down_blocks_0.alpha", "base_model.model.q_proj.lora_A.default.weight"),
        "names of LoRA",
    )
    yield accept("names_unicode_raw", named("é", "权重", "😀", "ﬀ"), "names in raw UTF-8")
    yield accept("names_unicode_escaped", named(r"h\u00e9", r"\u6743\u91cd", r"\ud83d\ude00"), "names in escapes")
    yield accept("names_nfc_nfd", named(r"\u00e9", r"e\u0301"), "two names equal after normalisation", "bytes decide")
    yield accept("names_case", named("w", "W", "weight", "Weight"), "names that differ in case")
    yield accept(
        "names_almost_metadata",
        named("__METADATA__", "__metadata__ ", "__metadata", "__metadata__.x"),
        "names close to __metadata__ are tensors",
    )
    yield accept(
        "names_slots",
        named("w.data", "w.dtype", "w.shape", "shape", "x.data.dtype"),
        "names equal to files of the tree",
    )
    yield accept("names_percent", named("%", "%41", "%_", "a%+", "%2F", "100%"), "names that look like escapes")
    yield accept(
        "names_shell",
        named("-rf", "*", "$(x)", "a b", "a;b", "~", "#", "a'b", r"a\\b", r"a\"b", "a:b", "?"),
        "names that mean something to a shell",
    )
    yield accept("names_windows", named("CON", "nul", "a<b>|", "trailing "), "names that mean something to Windows")
    yield accept(
        "names_bidi", named(r"\u202eabc", r"\u200b", r"\ufeff"), "names with direction marks and invisible characters"
    )
    yield accept("names_control_file", named("%2Esafetensors", "safetensors"), "names like our own control directory")
    yield accept("names_empty_pieces", named("a..b", ".safetensors", "x."), "names with an empty piece between dots")
    yield accept("name_piece_255", named("n" * 255), "piece of 255 bytes, the longest file name")
    yield accept("name_piece_243_escaped", named("%" * 81), "piece that a mount escapes to 243 bytes")
    yield accept("name_piece_255_utf8", named("权" * 85), "piece of 255 bytes in UTF-8")
    yield accept("name_many_pieces", named(".".join(["block"] * 60)), "60 pieces, 359 bytes")


def awkward():
    yield warn("name_empty", named(""), "the empty name")
    yield warn("name_dot", named("."), "the name .")
    yield warn("name_dotdot", named(".."), "the name ..")
    yield warn(
        "name_absolute", named("/etc/passwd"), "a name that is an absolute path", "never joined to a path as it is"
    )
    yield warn("name_traversal", named("../../etc/passwd"), "a name that climbs out as a path")
    yield warn("name_inner_traversal", named("a/../b"), "a name with .. between slashes")
    yield warn("name_double_slash", named("a//b"), "a name with an empty part")
    yield warn("name_trailing_slash", named("a/"), "a name that ends in /")
    yield warn("name_slash", named("/"), "the name /")
    yield warn("name_nul", named(r"a\u0000b", "a"), "NUL in a name, beside the name it would be cut to")
    yield warn("name_nul_only", named(r"\u0000"), "the name of one NUL")
    yield warn("name_newline", named(r"a\nb"), "newline in a name")
    yield warn("name_escape_sequence", named(r"\u001b[31mred\u001b[0m"), "terminal escapes in a name")
    yield warn("name_bell", named(r"\u0007"), "BEL in a name")
    yield warn("name_tab", named(r"a\tb"), "tab in a name", "breaks lines of columns")
    yield warn("name_del", named("a\x7fb"), "DEL in a name")
    yield warn("name_piece_256", named("n" * 256), "piece of 256 bytes")
    yield warn("name_piece_256_dotted", named("a." + "n" * 256 + ".b"), "a piece of 256 bytes between short ones")
    yield warn("name_piece_utf8", named("a" + "权" * 85), "piece of 256 bytes that must be cut inside no character")
    yield warn(
        "name_255_256_300", named("n" * 255, "p" * 256, "q" * 300), "names of 255, 256 and 300 bytes", "NAME_MAX is 255"
    )
    yield warn("name_5000", named("n" * 5000), "a name of 5,000 bytes", "longer than PATH_MAX")
    yield warn("name_100000", named("n" * 100_000), "a name of 100,000 bytes")
    yield warn("name_prefix_dot", named("a", "a.b"), "a name that is file and directory at the dot")
    yield warn("name_prefix_slash", named("a", "a/b"), "a name that is file and directory at the slash")
    yield warn("name_prefix_far", named("m.w", "m.v", "m.w.x.y.z"), "a name below another, some levels deeper")
    yield warn(
        "name_prefix_unsorted", named("a.b", "a-c", "a"), "a name above another, a third between them in byte order"
    )


def cases():
    yield from plain()
    yield from awkward()
