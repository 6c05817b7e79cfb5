#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# -o new: models from nothing.
. "$(dirname "$0")/common.sh"

mkdir work
cd work || exit 1
seq 1000 | head -c 1024 >bytes

# A file: nothing but the staging area is there before the first commit.
code 0 put -o new a.safetensors x.y bytes --dtype F32 --shape 256
code 0 put -o new a.safetensors x bytes --dtype U8 --shape 32,32
[ ! -e a.safetensors ] && [ -d .a.safetensors.stage ] || fail "what a staged model leaves: $(ls -A)"
code 0 status -o new ./a.safetensors
printf '%s\n' "A x" "A x.y" "# 2 changes, 0 incomplete, 0 scratch files" >want
sort -o out out
same <(sort want) out status
code 3 status a.safetensors
code 0 commit -o new a.safetensors
has out "a.safetensors: wrote 1 file"
unstaged a.safetensors
[ "$(stat -c %a a.safetensors)" = "$(printf %o $((0666 & ~$(umask))))" ] || fail "the mode of a new file"
witness "a new file" <<'END'
data = open("bytes", "rb").read()
assert committed("a.safetensors") == Model({"x.y": Tensor("F32", (256,), data), "x": Tensor("U8", (32, 32), data)}, None)
END
sound a.safetensors

# One that is there is opened as ever.
code 0 set-metadata --commit -q -o new,format=pt a.safetensors k=v
witness "metadata of it" <<'END'
assert committed("a.safetensors").metadata == {"format": "pt", "k": "v"}
END

# A directory: one file, or shards.
code 0 put --commit -q -o new,format=pt d/ x bytes --dtype U8 --shape 1024
[ "$(ls -A d)" = model.safetensors ] || fail "a new directory: $(ls -A d)"
witness "a new directory" <<'END'
assert committed("d/model.safetensors").metadata == {"format": "pt"}
END
for name in a b c; do
	code 0 put -o new e/ $name bytes --dtype U8 --shape 1024
done
[ ! -e e ] || fail "a directory before its commit"
code 0 commit -o new --max-shard-size 2KiB e/
has out "wrote 3 files"
[ ! -e .e.stage ] || fail "a staging area is left"
code 0 check -q e
witness "new shards" <<'END'
assert sorted(os.listdir("e")) == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                   "model.safetensors.index.json"]
assert list(read("e").tensors) == ["a", "b", "c"]
END
mkdir empty
code 0 put --commit -o new empty/ x bytes --dtype U8 --shape 1024
[ -f empty/model.safetensors ] || fail "an empty directory: $(ls -A empty)"

# Elsewhere, dropped, and nothing at all.
code 0 put -o new,stage=s o.safetensors x bytes --dtype U8 --shape 1024
code 0 commit -o new,stage=s --output p.safetensors o.safetensors
[ ! -e o.safetensors ] && [ -f p.safetensors ] || fail "--output of a new model: $(ls -A)"
code 0 discard -o new,stage=s o.safetensors
code 0 commit -o new o.safetensors
has out "nothing is staged"
code 0 status -o new n/
[ ! -e o.safetensors ] && [ ! -e n ] || fail "made by looking: $(ls -A)"

# It came to be in another way meanwhile: what is staged waits, the file is kept.
code 0 put -o new late.safetensors x bytes --dtype U8 --shape 1024
cp a.safetensors late.safetensors
code 1 commit -o new late.safetensors
has err "another version"
cmp -s a.safetensors late.safetensors || fail "a file was overwritten"
code 0 discard late.safetensors

code 3 put -o new plain x bytes --dtype U8 --shape 1024
has err "plain: the name of a new model ends with .safetensors"
code 3 put -o new nowhere/x.safetensors x bytes --dtype U8 --shape 1024
has err "nowhere/x.safetensors: its folder cannot be opened"
ln -s gone.safetensors link.safetensors
code 3 put -o new link.safetensors x bytes --dtype U8 --shape 1024
code 1 put -o new ../shards/../ x bytes --dtype U8 --shape 1024
code 0 put -o new a.safetensors t bytes --dtype U8 --shape 1024
code 1 commit -o new --max-shard-size 1KB a.safetensors
[ -z "$(find .. -name '*stfs-commit*')" ] || fail "temporary files"
finish
