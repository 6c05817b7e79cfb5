#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A tensor past 4 GiB: exact bytes on both sides of each border, from a sparse file.
. "$(dirname "$0")/lib.sh"
need_python

"$PYTHON" "$HERE/huge.py" make huge.safetensors || skip "no sparse file of 6 GiB can be made here"
for options in io=map io=pread; do
	start huge.safetensors m -o $options
	[ "$(stat -c %s m/big/data)" = $((5 * 1024 * 1024 * 1024 + 7)) ] || fail "size"
	[ "$(stat -c %b m/big/data)" = $((5 * 1024 * 1024 * 2 + 1)) ] || fail "blocks"
	"$PYTHON" "$HERE/huge.py" check m
	stop m
done
