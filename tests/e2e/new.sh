#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# -o new: an empty tree whose first commit makes the model.
. "$(dirname "$0")/lib.sh"
need_python

tensor() { # PATH
	mkdir -p "$1"
	echo U8 >"$1/dtype"
	echo 2 3 >"$1/shape"
	printf abcdef >"$1/data"
}

umask 022
chmod 755 .
start x.safetensors m -o new
[ "$(stat -c %a m)" = 755 ] || fail "the mode of the root: $(stat -c %a m)"
[ "$(ls -A m)" = __metadata__ ] || fail "an empty tree: $(ls -A m)"
[ ! -e x.safetensors ] && [ ! -e .x.safetensors.stage ] || fail "made before anything was staged"
tensor m/a/b
grep -qx "A a.b" m/.safetensors/status
# A file that is not there yet is mounted all the same.
"$STFS" status -o new x.safetensors | grep -qx "A a.b" || fail "status of what is mounted"
expect 4 '"x.safetensors" is mounted at .*' "$STFS" set-metadata -o new x.safetensors a=b
expect 0 "" "$STFS" commit -o new --dry-run x.safetensors
expect 0 "" "$STFS" commit m
[ "$(stat -c %a x.safetensors)" = 644 ] || fail "the mode of the new file"
"$PYTHON" "$HERE/tree.py" m x.safetensors
grep -qx "# nothing is staged" m/.safetensors/status
[ ! -e .x.safetensors.stage ] || fail "a staging area is left"

# From here on it is a model as any other.
"$STFS" status x.safetensors | grep -qx "# nothing is staged"
tensor m/a/c
echo pt >m/__metadata__/format
expect 0 "" "$STFS" commit x.safetensors
"$PYTHON" "$HERE/tree.py" m x.safetensors
stop m
expect 0 "" "$STFS" check x.safetensors

# A daemon that dies before the first commit loses nothing.
start d/ m -o new
tensor m/t
kill -9 "$DAEMON"
wait "$DAEMON" || true
DAEMON=
umount -l m
start d/ m -o new
grep -qx "A t" m/.safetensors/status
expect 0 "" "$STFS" commit m
"$PYTHON" "$HERE/tree.py" m d/model.safetensors
stop m
[ "$(ls -A d)" = model.safetensors ] || fail "a new directory: $(ls -A d)"
[ ! -e .d.stage ] || fail "a staging area is left"

# Nothing staged, nothing made.
start e/ m -o new
stop m
[ ! -e e ] || fail "a directory without a model is left"
expect 3 'plain: .* ends with .*' "$STFS" plain m -o new
