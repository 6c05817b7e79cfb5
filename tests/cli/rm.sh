#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rm: tensors and modules, by name, path and expression.
. "$(dirname "$0")/common.sh"

fresh() {
	rm -rf m.safetensors .m.safetensors.stage
	cp small.safetensors m.safetensors
}
# removed WHAT NAME...: these are gone, everything else is as it was, in its order.
removed() {
	code 0 commit -q m.safetensors
	unstaged m.safetensors
	witness "$1" "${@:2}" <<'END'
old, new = read("small.safetensors"), committed("m.safetensors")
assert set(args) <= set(old.tensors)
assert new.metadata == old.metadata
assert list(new.tensors.items()) == [item for item in old.tensors.items() if item[0] not in args], list(new.tensors)
END
	sound m.safetensors
}

fresh
code 0 rm m.safetensors scalar
code 0 status m.safetensors
printf '%s\n' "D scalar" "# 1 changes, 0 incomplete, 0 scratch files" >want
same want out status
removed "a tensor" scalar
fresh
code 0 rm m.safetensors model/layers/ params/dense data $'two\nlines' 日本.w scalar scalar
removed "many" model.layers.{0,1,10}.w params/dense/kernel data $'two\nlines' 日本.w scalar
fresh
code 0 rm --dry-run m.safetensors --regex '^model\.layers\.1?0|^.{2}\.w$'
printf '%s\n' model.layers.0.w model.layers.10.w 日本.w >want
LC_ALL=C code 0 rm --dry-run m.safetensors --regex '^model\.layers\.1?0|^.{2}\.w$'
same want out "dry run"
unstaged m.safetensors
code 0 rm --commit m.safetensors --regex '^model\.layers\.1?0|^.{2}\.w$'
has out "wrote 1 file"
removed "by expression" model.layers.{0,10}.w 日本.w

# Nothing is left of it but the metadata.
fresh
code 0 rm m.safetensors --regex ''
# shellcheck disable=SC2046
removed "all" $(python3 "$here/model.py" names small.safetensors | grep -v '^lines$\|^two$') $'two\nlines'

# What is not there: all of it is named, nothing is changed.
fresh
code 1 rm m.safetensors scalar nope model.lay
has err '"nope"'
has err '"model.lay"'
code 1 rm m.safetensors __metadata__
code 1 rm m.safetensors __metadata__/format
code 1 rm m.safetensors ''
code 1 rm m.safetensors --regex 'nothing here'
code 2 rm m.safetensors --regex '('
code 2 rm m.safetensors --regex x scalar
code 2 rm m.safetensors
unstaged m.safetensors

# One that is put back by name is no change.
code 0 rm m.safetensors model
code 0 discard m.safetensors model
code 0 status m.safetensors
has out "# nothing is staged"
unstaged m.safetensors

# A shard whose tensors are all gone goes too, and the index forgets them.
cp -r shards old
code 0 rm shards part2
code 0 commit shards
has out "shards: wrote 1 file"
witness "a shard removed" <<'END'
old, new = read("old").tensors, read("shards").tensors
assert new == {name: tensor for name, tensor in old.items() if name.startswith("part1.")}
assert sorted(os.listdir("shards")) == ["model-00001-of-00002.safetensors", "model.safetensors.index.json"]
END
code 1 rm --commit shards part1
has err "no tensor would be left"
code 0 status shards
has out "D part1.a"
code 0 discard shards
finish
