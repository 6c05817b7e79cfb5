# SPDX-License-Identifier: Apache-2.0
"""Model directories where something has to be chosen or found: no index, variants, several models, slices, caches."""

import json

from build import entry, frame, members, sound
from trees import (
    CONFIG,
    DIRECTORY,
    FIFO,
    FIRST,
    INDEX,
    SECOND,
    Link,
    accept,
    index,
    refuse,
    reject,
    shard_name,
    shards,
    split,
    warn,
)

A, B = shard_name("model", 1, 2), shard_name("model", 2, 2)
SHARDS = {A: FIRST, B: SECOND}
WHOLE = shards("model", 1)["model.safetensors"]
HASH = "0123456789abcdef0123456789abcdef01234567"
NO_MODEL = {"config.json": CONFIG}


def singles():
    yield accept("single", {"model.safetensors": WHOLE, "config.json": CONFIG}, "a single file")
    yield accept(
        "single_adapter", {"adapter_model.safetensors": FIRST, "adapter_config.json": CONFIG}, "a PEFT adapter"
    )
    yield accept("single_variant", {"model.fp16.safetensors": WHOLE}, "the fp16 variant alone")
    yield accept(
        "single_modules_below",
        {"model.safetensors": WHOLE, "2_Dense/model.safetensors": FIRST},
        "a model at the top and a module in a subfolder (sentence-transformers)",
    )
    yield warn(
        "single_variant_and_plain",
        {"model.safetensors": WHOLE, "model.fp16.safetensors": FIRST},
        "plain and fp16 file",
        "plain before variant",
    )
    yield reject("empty_dir", {}, "an empty directory")
    yield reject("no_weights", {**NO_MODEL, "README.md": b"#\n"}, "no weights at all")
    yield reject(
        "other_weights",
        {**NO_MODEL, "pytorch_model.bin": b"PK\3\4", "model.gguf": b"GGUF"},
        "weights of other formats only",
    )
    yield reject("single_broken", {"model.safetensors": WHOLE[:-5]}, "a single file, cut")
    yield reject("single_directory", {"model.safetensors": DIRECTORY}, "model.safetensors is a directory")
    yield reject("single_fifo", {"model.safetensors": FIFO}, "model.safetensors is a named pipe")
    yield refuse(
        "two_stems",
        {"model.safetensors": FIRST, "consolidated.safetensors": FIRST},
        "two single files with different stems",
        "never guess between two models",
    )
    yield refuse(
        "two_adapters",
        {"style.safetensors": FIRST, "subject.safetensors": SECOND},
        "two single files, disjoint names",
        "nothing says that they belong together",
    )


def no_index():
    three = shards("model", 3)
    yield warn("no_index", dict(SHARDS), "complete shards without an index", "names are disjoint")
    yield warn("no_index_three", dict(three), "three shards without an index")
    yield reject(
        "no_index_half", {A: FIRST}, "first of two shards alone, no index", "loaders happily load half a model"
    )
    yield reject("no_index_last", {B: SECOND}, "last of two shards alone, no index")
    for number in (1, 2, 3):
        gap = {name: data for name, data in three.items() if name != shard_name("model", number, 3)}
        yield reject("no_index_gap_%d" % number, gap, "shard %d of three missing, no index" % number)
    yield reject("no_index_counts_differ", {A: FIRST, shard_name("model", 2, 3): SECOND}, "1 of 2 and 2 of 3, no index")
    yield refuse(
        "no_index_same_names", {A: FIRST, B: WHOLE}, "tensors in two shards, no index", "nothing says which is right"
    )
    yield refuse("no_index_two_splits", {**SHARDS, **three}, "two splits without an index")
    yield reject("no_index_short", {A: FIRST, B: SECOND[:-1]}, "complete shards without an index, one cut")
    yield refuse(
        "no_index_odd_names",
        {"out-00000.safetensors": FIRST, "out-mtp-00000.safetensors": SECOND},
        "files of no pattern without an index",
    )


def variants():
    fp16 = {shard_name("model.fp16", 1, 2): FIRST, shard_name("model.fp16", 2, 2): SECOND}
    fp16_index = {"model.safetensors.index.fp16.json": index(split(2, "model.fp16"))}
    old = {
        "diffusion_pytorch_model-0000%d-of-00002.fp16.safetensors" % (i + 1): data
        for i, data in enumerate((FIRST, SECOND))
    }
    old_map = {
        name: file.replace("model.fp16-", "diffusion_pytorch_model-").replace("02.safe", "02.fp16.safe")
        for name, file in split(2, "model.fp16").items()
    }
    old_index = {"diffusion_pytorch_model.safetensors.fp16.index.json": index(old_map)}
    yield accept("variant", {**fp16, **fp16_index}, "fp16 shards and index")
    yield accept("variant_old_name", {**old, **old_index}, "old diffusers names of shards and index")
    yield warn(
        "variant_and_plain",
        {**fp16, **fp16_index, **SHARDS, INDEX: index()},
        "plain and fp16 shards, an index each",
        "the plain index first",
    )
    yield warn(
        "variant_old_and_plain",
        {
            **old,
            **old_index,
            "diffusion_pytorch_model.safetensors.index.json": index(split(2, "diffusion_pytorch_model")),
            **shards("diffusion_pytorch_model", 2),
        },
        "plain and old fp16 names, an index each",
    )
    yield warn("variant_no_index", dict(fp16), "complete fp16 shards without an index")
    yield warn("variant_old_no_index", dict(old), "complete shards of old diffusers names without an index")
    yield warn(
        "variant_single_and_index",
        {"model.fp16.safetensors": WHOLE, **SHARDS, INDEX: index()},
        "an index, and the fp16 file beside",
    )
    yield reject(
        "variant_missing_shard", {**fp16_index, shard_name("model.fp16", 1, 2): FIRST}, "fp16 index, a shard missing"
    )


def several():
    other = "consolidated"
    yield refuse(
        "two_indexes",
        {INDEX: index(), **SHARDS, other + ".safetensors.index.json": index(split(2, other)), **shards(other, 2)},
        "two indexes of different stems",
        "never guess: list them; index=NAME picks",
    )
    yield refuse("two_stems_no_index", {**SHARDS, **shards(other, 2)}, "complete shards of two stems, no index")
    pipeline = {
        "unet/diffusion_pytorch_model.safetensors": FIRST,
        "vae/diffusion_pytorch_model.safetensors": SECOND,
        "text_encoder/model.safetensors": WHOLE,
        "model_index.json": CONFIG,
        "scheduler/scheduler_config.json": CONFIG,
    }
    yield refuse(
        "pipeline", pipeline, "a diffusers pipeline, one model a subfolder", "nothing at the top: list the components"
    )
    yield accept("pipeline_component", pipeline, "one component of a pipeline", entry="vae/")


def slices():
    info = lambda rank: {"DCP_SHARDING_INFO": json.dumps({"w": {"saved_offsets": [rank * 2, 0]}}), "format": "pt"}
    dcp = {
        "shard-0000%d-model-00001-of-00001.safetensors" % (rank + 1): sound(("w", "F32", [2, 3]), metadata=info(rank))
        for rank in range(2)
    }
    yield refuse(
        "dcp_slices",
        dcp,
        "slices of a tensor by torch DCP, deliberately no index",
        "never merged; each file mounts alone",
    )
    part = sound(("model.w", "F32", [2, 3]), ("model.b", "F32", [2]))
    ranks = {"model-rank-%d-part-0.safetensors" % rank: part for rank in range(2)}
    yield refuse("vllm_ranks", ranks, "vLLM ranks: the same names in each file", "slices, not shards")
    parts = {
        "model-rank-%d-part-%d.safetensors" % (rank, number): sound(("p%d" % number, "F32", [2]))
        for rank in range(2)
        for number in range(2)
    }
    yield refuse("vllm_rank_parts", parts, "vLLM ranks of two parts each")


def caches():
    blobs = {
        "blobs/" + "a" * 64: FIRST,
        "blobs/" + "b" * 64: SECOND,
        "blobs/" + "c" * 40: index(),
        "blobs/" + "d" * 64: WHOLE,
    }
    snapshot = "snapshots/" + HASH + "/"
    to = lambda letter, count: Link("../../blobs/" + letter * count)
    links = {snapshot + A: to("a", 64), snapshot + B: to("b", 64), snapshot + INDEX: to("c", 40)}
    yield accept(
        "cache_snapshot",
        {**blobs, **links},
        "a snapshot of the Hugging Face cache",
        "every file is a link out of the directory",
        entry=snapshot,
    )
    yield accept(
        "cache_root",
        {**blobs, **links, "refs/main": HASH.encode()},
        "a repository of the Hugging Face cache, one snapshot",
    )
    yield accept(
        "cache_root_no_refs", {**blobs, **links}, "a repository of the Hugging Face cache, one snapshot and no refs"
    )
    yield accept(
        "cache_single",
        {**blobs, snapshot + "model.safetensors": to("d", 64)},
        "a snapshot with a single file",
        entry=snapshot,
    )
    subfolder = {snapshot + "unet/" + name.rsplit("/", 1)[1]: Link("../" + link.target) for name, link in links.items()}
    yield accept("cache_subfolder", {**blobs, **subfolder}, "a component in a snapshot", entry=snapshot + "unet/")
    yield reject(
        "cache_pruned",
        {path: item for path, item in {**blobs, **links}.items() if path != "blobs/" + "b" * 64},
        "a snapshot whose blob is gone",
        entry=snapshot,
    )
    yield reject(
        "cache_incomplete",
        {**blobs, **links, snapshot + B: Link("../../blobs/gone.incomplete")},
        "a download that was broken off",
        entry=snapshot,
    )
    yield reject(
        "cache_no_snapshot", {"blobs/" + "a" * 64: FIRST, "refs/main": HASH.encode()}, "a cache without a snapshot"
    )
    other = {path.replace(HASH, HASH[::-1]): item for path, item in links.items()}
    two = {**blobs, **links, **other}
    yield accept("cache_two_snapshots", {**two, "refs/main": HASH.encode()}, "two snapshots, refs/main names one")
    yield refuse("cache_two_snapshots_no_refs", two, "two snapshots and no refs", "never guess between two models")
    yield reject("cache_refs_gone", {**blobs, **links, "refs/main": HASH[::-1].encode()}, "refs/main names no snapshot")


def lost_links():
    """Links that git or an archive tool wrote as small text files, where links cannot be made."""
    blobs = {"blobs/aa": FIRST, "blobs/bb": SECOND, "blobs/cc": index()}
    snapshot = "snapshots/" + HASH + "/"
    texts = {snapshot + A: b"../../blobs/aa", snapshot + B: b"../../blobs/bb", snapshot + INDEX: b"../../blobs/cc"}
    for key, entry_path in (("root", ""), ("snapshot", snapshot)):
        yield accept(
            "cache_text_links_" + key,
            {**blobs, **texts},
            "a cache whose links were turned into text (%s)" % key,
            entry=entry_path,
            verdict="invalid",
        )
    for key, text in {
        "elsewhere": "../nowhere",
        "absolute": "/etc/hostname",
        "inner": "../../blobs/../blobs/aa",
    }.items():
        yield reject(
            "cache_text_link_" + key,
            {**blobs, **texts, snapshot + A: text.encode()},
            "a link turned into text that names no blob: " + text,
            entry=snapshot,
        )


def shard_headers():
    bad = frame(members(("model.embed.weight", entry()), ("model.embed.weight", entry())), pad=8)
    yield refuse(
        "shard_dup_name", {INDEX: index({"model.embed.weight": A}, total=8), A: bad}, "a shard with a name twice"
    )
    extra = frame(members(("model.embed.weight", entry(more=',"stride":[1]'))), pad=8)
    yield warn(
        "shard_unknown_field",
        {INDEX: index({"model.embed.weight": A}, total=8), A: extra},
        "a shard with an unknown field",
    )
    odd = sound((r"a\nb", "F32", [2]))
    yield warn("shard_awkward_name", {INDEX: index({"a\nb": A}, total=8), A: odd}, "a shard with a newline in a name")


def cases():
    for group in (singles, no_index, variants, several, slices, caches, lost_links, shard_headers):
        yield from group()
