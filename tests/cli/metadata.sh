#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# set-metadata and rm-metadata: staged, shown, committed; every other byte of the model stays.
. "$(dirname "$0")/common.sh"

cp small.safetensors old.safetensors
code 0 set-metadata small.safetensors format=tf 'note=a=b' empty= $'lines=one\ntwo\n'
[ ! -s out ] || fail "set-metadata speaks: $(cat out)"
[ "$(stat -c %a .small.safetensors.stage)" = 700 ] || fail "the mode of the staging area"
cmp -s small.safetensors old.safetensors || fail "staging changed the model"
code 0 status small.safetensors
printf '%s\n' "M __metadata__/format" "A __metadata__/note" "A __metadata__/empty" "A __metadata__/lines" \
	"# 4 changes, 0 incomplete, 0 scratch files" >want
same want out status
code 0 diff small.safetensors
has out '"pt" -> "tf"'
has out '"one\x0atwo\x0a"'

# A key that is not there: nothing of the command is staged.
code 1 rm-metadata small.safetensors long nope no
has err '"nope"'
has err '"no"'
code 0 status small.safetensors
same want out "status after a refusal"
code 0 rm-metadata small.safetensors long
code 0 commit -q small.safetensors
[ ! -s out ] || fail "commit -q speaks: $(cat out)"
unstaged small.safetensors
witness "committed metadata" <<'END'
old, new = read("old.safetensors"), committed("small.safetensors")
assert list(new.tensors.items()) == list(old.tensors.items())
want = dict(old.metadata, format="tf", note="a=b", empty="", lines="one\ntwo\n")
del want["long"]
assert new.metadata == want, new.metadata
END
sound small.safetensors

# All in one go; keys that a file name cannot hold as they are.
code 0 set-metadata --commit small.safetensors .hidden=1 'a/b=2' '#x=3' 'data=4' 'é=ü'
has out "small.safetensors: wrote 1 file, 3.1 MB"
unstaged small.safetensors
witness "odd keys" <<'END'
assert {k: v for k, v in committed("small.safetensors").metadata.items() if len(v) == 1} == {
    ".hidden": "1", "a/b": "2", "#x": "3", "data": "4", "é": "ü"}
END
code 0 rm-metadata --commit -q small.safetensors .hidden a/b '#x' data é note note
witness "keys removed" <<'END'
assert sorted(committed("small.safetensors").metadata) == ["empty", "format", "lines", "two\tlines"]
END

# The same value again is no change.
code 0 set-metadata small.safetensors format=tf
code 0 status small.safetensors
has out "# nothing is staged"
unstaged small.safetensors

# A model without metadata gets some, and loses it again.
printf '\x10\0\0\0\0\0\0\0{}              ' >none.safetensors
code 0 set-metadata --commit none.safetensors format=pt
witness "first entry" <<'END'
assert committed("none.safetensors") == Model({}, {"format": "pt"})
END
code 0 rm-metadata --commit none.safetensors format
witness "last entry" <<'END'
assert not committed("none.safetensors").metadata
END

# Shards: the entry is in both, and changes in both; a new one goes into the first.
cp -r shards old
code 0 set-metadata --commit shards format=tf new=1
has out "shards: wrote 2 files"
witness "metadata of shards" <<'END'
old = read("old")
first, second = (committed(f"shards/model-0000{n}-of-00002.safetensors") for n in (1, 2))
assert first.metadata == {"format": "tf", "new": "1"} and second.metadata == {"format": "tf"}
assert read("shards").tensors == old.tensors
assert open("shards/model.safetensors.index.json").read() == open("old/model.safetensors.index.json").read()
END
[ "$(ls -A shards | wc -l)" -eq 3 ] || fail "leftovers: $(ls -A shards)"

# What tools leave behind is told apart from what somebody would call an entry.
for key in sedAbCdEf XXldduaM tmpk3x_9a1b 4913 note.orig note.rej note.bak; do
	code 0 set-metadata small.safetensors "$key=x"
	code 0 status small.safetensors
	has out "A __metadata__/$key (looks like a tool's leftover)"
	code 0 commit --dry-run small.safetensors
	has err "warning: small.safetensors: __metadata__ key \"$key\" looks like a tool's leftover"
	code 0 discard small.safetensors
done
code 0 set-metadata small.safetensors sed=1 XX=1 tmp=1 .bak=1 original=1
code 0 status small.safetensors
lacks out leftover
code 0 discard small.safetensors

code 2 set-metadata small.safetensors format
has err '"format" is not written KEY=VALUE'
code 2 set-metadata small.safetensors
code 2 set-metadata small.safetensors ok=1 $'k=\xff'
code 2 set-metadata small.safetensors "$(printf 'k%.0s' {1..300})=1"
code 2 rm-metadata small.safetensors
code 2 set-metadata -o lax small.safetensors a=b
has err "cannot be edited"
code 3 set-metadata nowhere.safetensors a=b
code 1 set-metadata hole.safetensors a=b
code 0 status small.safetensors
has out "# nothing is staged"
finish
