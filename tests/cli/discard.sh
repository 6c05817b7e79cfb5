#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# discard: all of it, or below some paths; the model is as it was.
. "$(dirname "$0")/common.sh"

printf 12345678 >eight.bin
cp small.safetensors m.safetensors
stage() {
	code 0 set-metadata m.safetensors format=tf new=1
	code 0 rm-metadata m.safetensors long
	code 0 rm m.safetensors scalar model.layers.1
	code 0 put m.safetensors added.x eight.bin --dtype U8 --shape 8
	code 0 put m.safetensors packed eight.bin --dtype U8 --shape 8
	code 0 mv m.safetensors empty void
}
staged() { # LINE...
	code 0 status m.safetensors
	printf '%s\n' "$@" "# $# changes, 0 incomplete, 0 scratch files" | sort >want
	sort -o out out
	same want out "what is staged"
}
all=("M packed (data, dtype, shape)" "R empty -> void" "A added.x" "D model.layers.1.w" "D scalar" "M __metadata__/format"
	"A __metadata__/new" "D __metadata__/long")

stage
staged "${all[@]}"
code 0 discard m.safetensors __metadata__/format added.x scalar
staged "${all[@]:0:2}" "D model.layers.1.w" "${all[@]:6}"
code 0 discard m.safetensors model/layers/1 packed
staged "R empty -> void" "${all[@]:6}"
code 1 discard m.safetensors nope void ''
has err '"nope"'
staged "${all[@]:6}"
code 0 discard m.safetensors __metadata__
code 0 status m.safetensors
has out "# nothing is staged"
unstaged m.safetensors

stage
code 0 discard m.safetensors
[ ! -s out ] || fail "discard speaks: $(cat out)"
unstaged m.safetensors
code 0 discard m.safetensors
cmp -s m.safetensors small.safetensors || fail "the model was changed"

# What was made for a tensor goes with it, whatever that is called.
code 0 put m.safetensors __metadata__x.y.w eight.bin --dtype U8 --shape 8
code 0 discard m.safetensors __metadata__x.y.w
unstaged m.safetensors

# What was renamed has its name back, however the change is named; unless somebody else has it by now.
code 0 mv m.safetensors model net
code 0 mv m.safetensors empty void
code 0 discard m.safetensors net void
code 0 status m.safetensors
has out "# nothing is staged"
code 0 mv m.safetensors empty void
code 0 put m.safetensors empty eight.bin --dtype U8 --shape 8
code 0 discard m.safetensors void
staged "M empty (data, dtype, shape)"
code 0 discard m.safetensors

# What looks like a path is taken for the deleted tensor of that name, not for another one's path.
code 0 put m.safetensors %64ata eight.bin --dtype U8 --shape 8 --commit -q
code 0 rm m.safetensors %64ata
code 0 put m.safetensors data eight.bin --dtype U8 --shape 8
code 0 discard m.safetensors %64ata
staged "M data (data, shape)"
code 0 discard m.safetensors %64ata
code 0 discard m.safetensors ./%64ata
unstaged m.safetensors
code 0 rm m.safetensors data %64ata
code 0 discard m.safetensors data
staged "D %64ata"
code 0 discard m.safetensors

# A path that ends where a name was cut is the beginning of names, and spells none.
python3 - "$here" <<'END'
import sys
sys.path.insert(0, sys.argv[1] + "/../models")
from refwriter import Tensor, write
names = "a." + "b" * 300 + ".w", "a." + "b" * 300 + "c.w", "a.b", "a." + "b" * 200
write("cut.safetensors", [Tensor(name, "U8", [1], b"x") for name in names], {})
END
code 0 rm cut.safetensors a
code 0 status cut.safetensors
has out "# 4 changes"
code 0 discard cut.safetensors "a/$(printf 'b%.0s' {1..240})%+"
code 0 status cut.safetensors
has out "# 2 changes"
code 0 discard cut.safetensors a.b
code 0 status cut.safetensors
has out "# 1 changes"
code 0 discard cut.safetensors

# Somewhere else: a directory of the user's stays, empty.
mkdir -m 700 area
code 0 set-metadata -o stage=area m.safetensors a=b
unstaged m.safetensors
code 0 status m.safetensors
has out "# nothing is staged"
code 0 status -o stage=area m.safetensors
has out "A __metadata__/a"
code 0 discard -o stage=area m.safetensors
[ -d area ] && [ -z "$(ls -A area)" ] || fail "the staging directory of the user: $(ls -A area 2>&1)"

# A file that is no journal is refused by all, and nothing of it is touched.
code 0 set-metadata m.safetensors a=b
printf 'garbage garbage garbage' >.m.safetensors.stage/journal
for words in "status m.safetensors" "commit m.safetensors" "rm m.safetensors scalar"; do
	# shellcheck disable=SC2086
	code 1 $words
done
[ "$(cat .m.safetensors.stage/journal)" = 'garbage garbage garbage' ] || fail "a damaged journal was changed"
code 1 discard m.safetensors
has err ".m.safetensors.stage"

code 2 discard
code 3 discard nowhere
finish
