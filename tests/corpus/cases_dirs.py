# SPDX-License-Identifier: Apache-2.0
"""Model directories: indexes and their shards, variants, caches, hostile weight_maps. See trees.py for the builders."""

from trees import (
    CONFIG,
    DIRECTORY,
    FIFO,
    FIRST,
    INDEX,
    MAP,
    SECOND,
    TOTAL,
    Link,
    accept,
    document,
    index,
    refuse,
    reject,
    renamed,
    shard_name,
    shards,
    split,
    warn,
)

A, B = shard_name("model", 1, 2), shard_name("model", 2, 2)
SHARDS = {A: FIRST, B: SECOND}


def beside(**files):
    """The sound two-shard model and some files more."""
    return {INDEX: index(), **SHARDS, **files}


def pointing(value, *files):
    """An index that names `value` for the first shard's tensors; `files` are the places where the shard lies."""
    return {INDEX: index(renamed({A: value})), B: SECOND, **{place: FIRST for place in files}}


def sound_indexes():
    yield accept("two_shards", beside(), "two shards and a true index")
    yield accept(
        "two_shards_config",
        beside(**{"config.json": CONFIG, "README.md": b"# model\n", ".gitattributes": b"\n"}),
        "other files of a repository beside it",
    )
    yield accept(
        "index_hub_style",
        {INDEX: document({"metadata": {"total_size": TOTAL}, "weight_map": MAP}, newline=False), **SHARDS},
        "index without the final newline, in order of insertion",
    )
    yield accept(
        "index_compact",
        {INDEX: document({"weight_map": MAP}, indent=None), **SHARDS},
        "index on one line, without metadata",
        "transformers and diffusers fail with KeyError, the hub does not",
    )
    yield accept(
        "index_total_float", {INDEX: index(total=float(TOTAL)), **SHARDS}, "total_size is a float of the right value"
    )
    yield accept(
        "index_extra_keys",
        {
            INDEX: document(
                {"metadata": {"total_size": TOTAL, "q": {"a": [1, None]}}, "version": 2, "weight_map": MAP}
            ),
            **SHARDS,
        },
        "unknown members in the index",
    )
    yield accept(
        "index_unicode_escapes",
        {INDEX: index().replace(b"model.norm", rb"mod\u0065l.norm"), **SHARDS},
        "escapes in a name of the weight_map",
    )
    yield accept(
        "odd_shard_names",
        {
            INDEX: index(renamed({A: "out-00000.safetensors", B: "out-mtp-00000.safetensors"})),
            "out-00000.safetensors": FIRST,
            "out-mtp-00000.safetensors": SECOND,
        },
        "shards whose names follow no pattern",
        "only the index knows",
    )
    odd = {A: "model-00003-of-00009.safetensors", B: "model-00007-of-00009.safetensors"}
    yield accept(
        "counts_lie",
        {INDEX: index(renamed(odd)), odd[A]: FIRST, odd[B]: SECOND},
        "shard numbers that count to nine, two listed",
        "names are not parsed where there is an index",
    )
    yield accept("three_shards", {INDEX: index(split(3)), **shards("model", 3)}, "three shards")
    yield accept(
        "one_listed_shard",
        {INDEX: index({name: A for name in list(MAP)[:2]}, total=32), A: FIRST},
        "an index of one shard",
    )
    yield accept(
        "consolidated",
        beside(**{"consolidated.safetensors": shards("model", 1)["model.safetensors"]}),
        "shards, index and consolidated.safetensors (Mistral)",
        "never merge the two",
    )
    yield accept(
        "diffusers_unet",
        {
            "diffusion_pytorch_model.safetensors.index.json": index(split(2, "diffusion_pytorch_model")),
            **shards("diffusion_pytorch_model", 2),
            "config.json": CONFIG,
        },
        "a diffusers component",
    )


def doubtful_indexes():
    yield warn("total_size", {INDEX: index(total=TOTAL + 9), **SHARDS}, "total_size is wrong", "no loader checks it")
    yield warn(
        "unlisted_tensor",
        {INDEX: index({name: file for name, file in MAP.items() if name != "model.norm.weight"}), **SHARDS},
        "a shard holds a tensor the index does not list",
    )
    yield warn(
        "missing_tensor",
        {INDEX: index({**MAP, "lm_head.weight": A}), **SHARDS},
        "index names a tensor its shard lacks",
        verdict="invalid",
    )
    yield warn(
        "tensor_in_wrong_shard",
        {INDEX: index({**MAP, "model.norm.weight": A}), **SHARDS},
        "index names the wrong shard for a tensor",
        verdict="invalid",
    )
    yield warn(
        "tensor_in_two_shards",
        {INDEX: index(), A: FIRST, B: shards("model", 1)["model.safetensors"]},
        "tensors of the first shard are in the second as well",
        "the index decides",
    )
    yield warn(
        "index_lists_metadata",
        {INDEX: index({**MAP, "__metadata__": A}), **SHARDS},
        "weight_map lists __metadata__ as a tensor",
        "no shard can hold such a tensor",
        verdict="invalid",
    )
    yield warn(
        "single_and_index",
        beside(**{"model.safetensors": SECOND}),
        "model.safetensors beside an index",
        "transformers takes the single file, vLLM the index",
    )
    yield warn(
        "two_splits",
        beside(**shards("model", 3)),
        "a split in two and a split in three of one model",
        "a glob loads all twice",
    )


def broken_indexes():
    yield reject("index_cut", {INDEX: index()[:40], **SHARDS}, "index is cut off")
    yield reject("index_empty", {INDEX: b"", **SHARDS}, "index of 0 bytes")
    yield reject("index_zeros", {INDEX: bytes(300), **SHARDS}, "index of zeros")
    yield reject(
        "index_lfs_pointer",
        {INDEX: b"version https://git-lfs.github.com/spec/v1\n", **SHARDS},
        "index is a git-LFS pointer",
    )
    yield reject("index_bom", {INDEX: b"\xef\xbb\xbf" + index(), **SHARDS}, "index starts with a byte order mark")
    yield reject("index_nul_padding", {INDEX: index() + bytes(8), **SHARDS}, "index padded with NUL")
    yield reject("index_utf8", {INDEX: index().replace(b"norm", b"n\xffrm"), **SHARDS}, "byte 0xFF in the index")
    yield reject(
        "index_trailing_comma", {INDEX: index().replace(b'"\n  }\n}', b'",\n  }\n}'), **SHARDS}, "comma before a brace"
    )
    yield reject("index_array", {INDEX: document([{"weight_map": MAP}]), **SHARDS}, "index is an array")
    yield reject("index_string", {INDEX: document("weight_map"), **SHARDS}, "index is a string")
    yield refuse(
        "index_nan", {INDEX: index(total=float("nan")), **SHARDS}, "NaN in the index", "Python's json takes it"
    )
    yield reject("index_no_map", {INDEX: document({"metadata": {}}), **SHARDS}, "index without weight_map")
    yield reject("index_empty_map", {INDEX: index({}, total=0), **SHARDS}, "weight_map is empty", "it names no file")
    for key, value in {"array": list(MAP), "string": A, "null": None, "pairs": list(map(list, MAP.items()))}.items():
        yield reject(
            "index_map_" + key,
            {INDEX: document({"metadata": {}, "weight_map": value}), **SHARDS},
            "weight_map is " + key,
        )
    for key, value in {"number": 3, "null": None, "list": [A], "object": {"file": A}, "true": True}.items():
        yield reject("index_value_" + key, {INDEX: index({**MAP, "x": value}), **SHARDS}, "weight_map value is " + key)
    twice = index().replace(b'"model.norm.weight"', b'"model.norm.weight": "%s",\n    "model.norm.weight"' % A.encode())
    yield refuse("index_dup_name", {INDEX: twice, **SHARDS}, "one name twice in weight_map", "Python keeps the last")
    yield refuse(
        "index_dup_name_escaped",
        {INDEX: twice.replace(b'"model.norm.weight"', rb'"m\u006fdel.norm.weight"', 1), **SHARDS},
        "one name twice in weight_map, once as an escape",
    )
    head, tail = index().rsplit(b"\n}", 1)
    yield refuse(
        "index_dup_map",
        {INDEX: head + b',\n  "weight_map": {}\n}' + tail, **SHARDS},
        "weight_map twice",
        "Python keeps the last",
    )
    yield reject(
        "index_nested_bomb", {INDEX: b'{"metadata":' + b"[" * 100_000, **SHARDS}, "100,000 brackets in the index"
    )
    yield reject("index_directory", {INDEX: DIRECTORY, **SHARDS}, "the index is a directory")
    yield reject("index_dangling_link", {INDEX: Link("../blobs/gone"), **SHARDS}, "the index is a dangling symlink")


def hostile_paths():
    inside = "model/" + A
    yield accept("path_subfolder", pointing("shards/" + A, "shards/" + A), "a shard in a subfolder")
    yield accept("path_deep_subfolder", pointing("a/b/c/" + A, "a/b/c/" + A), "a shard some folders down")
    yield accept("path_dot_slash", pointing("./" + A, A), "a shard as ./name")
    yield accept("path_inner_dot", pointing("model/./" + A, inside), "a shard as model/./name")
    climbing = {
        "dotdot": "../out/" + A,
        "dotdot_back": "../m/" + A,
        "inner_dotdot": "model/../" + A,
        "trailing_dotdot": "model/..",
        "dotdot_only": "..",
        "dot_only": ".",
        "dotdot_windows": "..\\out\\" + A,
        "dotdot_mixed": "model\\..\\..\\out/" + A,
        "absolute": "/etc/hostname",
        "absolute_safetensors": "/srv/models/" + A,
        "double_slash": "//srv/models/" + A,
        "drive": "C:\\models\\" + A,
        "drive_slash": "C:/models/" + A,
        "drive_relative": "C:" + A,
        "unc": "\\\\host\\share\\" + A,
        "backslash": "model\\" + A,
        "backslash_root": "\\" + A,
        "empty": "",
        "nul": A + "\0.safetensors",
        "nul_first": "\0" + A,
        "newline": "model\n/" + A,
        "escape": "\x1b[2J" + A,
        "trailing_slash": A + "/",
        "tilde": "~/" + A,
        "url": "https://host/" + A,
        "percent": "%2e%2e/out/" + A,
        "file_url": "file:///srv/models/" + A,
    }
    for key, value in climbing.items():
        tree = {"m/" + path: content for path, content in pointing(value, A, inside).items()}
        yield reject("path_" + key, {**tree, "out/" + A: FIRST}, "weight_map holds %s" % ascii(value), entry="m/")
    for key, value in {
        "bin": "w.bin",
        "none": "weights",
        "upper": A.upper(),
        "suffix": A + ".bak",
        "prefix_only": ".safetensors.bin",
        "index": INDEX,
        "bare_json": "config.json",
    }.items():
        files = () if value == INDEX else (value,)
        yield reject(
            "path_extension_" + key, pointing(value, *files), "weight_map names another kind of file: %s" % value
        )
    yield reject(
        "path_case", pointing(A.replace("model", "MODEL"), A), "weight_map differs from the file's name in case"
    )
    yield reject("path_long", pointing("d" * 300 + "/" + A, A), "a folder of 300 bytes in weight_map")
    yield reject("path_very_long", pointing("d/" * 5000 + A, A), "a path of 10,000 bytes in weight_map")


def shards_wrong():
    yield reject("missing_shard", {INDEX: index(), A: FIRST}, "index names a shard that is not there")
    yield reject("missing_first_shard", {INDEX: index(), B: SECOND}, "the first shard is not there")
    yield reject("no_shards", {INDEX: index()}, "an index alone")
    yield reject(
        "short_shard",
        {INDEX: index(), A: FIRST, B: SECOND[:-1]},
        "second shard cut by one byte",
        "partial mounts what is whole",
    )
    yield reject("short_first_shard", {INDEX: index(), A: FIRST[:100], B: SECOND}, "first shard cut in its header")
    yield reject("empty_shard", {INDEX: index(), A: FIRST, B: b""}, "second shard of 0 bytes")
    yield reject("long_shard", {INDEX: index(), A: FIRST + b"\0", B: SECOND}, "first shard with a byte too many")
    yield reject(
        "shard_lfs_pointer",
        {INDEX: index(), A: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", B: SECOND},
        "a shard is a git-LFS pointer",
    )
    yield reject(
        "shard_bad_json", {INDEX: index(), A: FIRST.replace(b":", b" ", 1), B: SECOND}, "a shard with broken JSON"
    )
    yield reject("shard_directory", {INDEX: index(), A: DIRECTORY, B: SECOND}, "a shard is a directory")
    yield reject(
        "shard_fifo", {INDEX: index(), A: FIFO, B: SECOND}, "a shard is a named pipe", "opening it must not wait"
    )
    yield reject(
        "shard_device_link", {INDEX: index(), A: Link("/dev/zero"), B: SECOND}, "a shard is a link to a device"
    )
    yield reject(
        "shard_dangling_link",
        {INDEX: index(), A: Link("../blobs/gone"), B: SECOND},
        "a shard is a dangling symlink",
        "a pruned cache",
    )
    yield reject("shard_link_loop", {INDEX: index(), A: Link(A), B: SECOND}, "a shard is a symlink to itself")
    yield reject("shard_link_directory", {INDEX: index(), A: Link("."), B: SECOND}, "a shard is a link to a directory")
    yield accept(
        "shard_link_elsewhere",
        {
            "m/" + INDEX: index(),
            "m/" + A: Link("../store/one"),
            "m/" + B: Link("../store/two"),
            "store/one": FIRST,
            "store/two": SECOND,
        },
        "shards are links out of the directory",
        entry="m/",
    )


def cases():
    for group in (sound_indexes, doubtful_indexes, broken_indexes, hostile_paths, shards_wrong):
        yield from group()
