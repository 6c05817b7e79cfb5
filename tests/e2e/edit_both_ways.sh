#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The same edits with tools in a mount and with commands without one make the same files, byte for byte.
. "$(dirname "$0")/lib.sh"
. "$HERE/edit.sh"

printf 12345 >five
"$STFS" cat old.safetensors model.a.w >w.bin
"$PYTHON" - x.npy <<-'END'
	import sys
	head = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }"
	with open(sys.argv[1], "wb") as file:
	    file.write(b"\x93NUMPY\x01\x00v\x00" + head.ljust(117).encode() + b"\n" + bytes(range(12)))
END

# with_tools MODEL [WORD]: the edits, and a commit that is told the word.
with_tools() {
	mount_it "$1" m
	quiet mv m/model/a m/model/z
	quiet rm -r m/lm_head
	echo "other world" >m/__metadata__/note
	printf new >m/__metadata__/added
	quiet rm m/__metadata__/config
	quiet cp five m/model/z/b/data
	quiet cp w.bin m/model/z/w/data
	echo 24 >m/model/z/w/shape
	quiet mkdir m/fresh
	quiet cp x.npy m/fresh/data.npy
	quiet mkdir -p m/model/scale2
	quiet cp five m/model/scale2/data
	echo I8 >m/model/scale2/dtype
	echo 5 1 >m/model/scale2/shape
	quiet mv m/model/scale m/swap
	quiet mv m/model/scale2 m/model/scale
	quiet mv m/swap m/model/scale2
	# What is dropped again leaves nothing.
	echo U8 >m/empty/dtype
	echo empty >m/.safetensors/discard
	"$STFS" status m >status.tools
	echo "commit${2:+ $2}" >m/.safetensors/commit || fail "commit: $(cat m/.safetensors/result)"
	"$STFS" umount m
}

command_works() {
	expect 0 "" "$STFS" "$@"
}

# with_commands MODEL [WORD]: the same edits.
with_commands() {
	command_works mv "$1" model.a model.z
	command_works rm "$1" lm_head
	command_works set-metadata "$1" "note=other world" added=new
	command_works rm-metadata "$1" config
	command_works put "$1" model.z.b five
	command_works put "$1" model.z.w w.bin --dtype F32 --shape 24
	command_works put "$1" fresh x.npy
	command_works put "$1" model.scale2 five --dtype I8 --shape 5,1
	printf '%s\t%s\n' model.scale model.scale2 model.scale2 model.scale >map
	command_works mv "$1" --map map
	command_works put "$1" empty five --dtype U8 --shape 5
	command_works discard "$1" empty
	"$STFS" status "$1" >status.commands
	command_works commit -q ${2:+--$2} "$1"
}

for word in "" sort; do
	for kind in file shards; do
		rm -rf tools.safetensors commands.safetensors tools commands
		if [ $kind = file ]; then
			cp old.safetensors tools.safetensors
			cp old.safetensors commands.safetensors
			with_tools tools.safetensors $word
			with_commands commands.safetensors $word
			cmp tools.safetensors commands.safetensors || fail "$kind${word:+, $word}: the two are not the same"
		else
			command_works convert -q --max-shard-size 1MB old.safetensors tools/
			cp -r tools commands
			with_tools tools $word
			with_commands commands $word
			diff -r tools commands || fail "$kind${word:+, $word}: the two are not the same"
		fi
		diff status.tools status.commands || fail "$kind: the status is not the same"
		grep -q "^R model.a.w -> model.z.w" status.tools || fail "nothing was staged: $(cat status.tools)"
		[ -z "$(find . -name '*.stage')" ] || fail "left: $(find . -name '*.stage')"
	done
done
