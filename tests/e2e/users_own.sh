#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The part of users.sh that an ordinary user does, in $T/home.
set -euo pipefail
. "$HERE/expect.sh"
cd "$T/home"

expect 0 "" "$STFS" "$MODEL"
trap 'fusermount3 -uz tiny-llama 2>/dev/null || true' EXIT
[ "$(cat tiny-llama/model/norm/weight/shape)" = 64 ] || fail "a user's own mount"
[ "$(stat -c %u tiny-llama/model)" = "$(stat -c %u "$MODEL")" ] || fail "owner"
grep " $T/home/tiny-llama " /proc/self/mountinfo | grep -q " rw,nosuid,nodev.* fuse.safetensorsfs $MODEL " ||
	fail "type, source or flags"
expect 4 '".*/tiny-llama" is a mount already, .*' "$STFS" "$MODEL"
exec 9<tiny-llama/model/norm/weight/data
expect 4 '".*/tiny-llama" is busy: .*' "$STFS" umount tiny-llama
exec 9<&-
expect 0 "" "$STFS" umount tiny-llama
[ ! -e tiny-llama ] || fail "the mountpoint was not removed"

cp "$MODEL" 'a,b \c.safetensors'
expect 0 "" "$STFS" 'a,b \c.safetensors'
[ -d 'a,b \c/model' ] || fail "odd mount does not answer"
expect 0 "" "$STFS" umount 'a,b \c'

expect 0 "" "$STFS" "$MODEL"
for dir in /proc/[0-9]*; do
	[ "$(readlink "$dir/exe")" = "$STFS" ] && grep -qF "STFS_E2E_TAG=$T" "$dir/environ" && kill -9 "${dir#/proc/}"
done 2>/dev/null
expect 0 "" "$STFS" umount tiny-llama
rmdir tiny-llama

expect 4 'the mountpoint ".*/roots" cannot be used: you may not write to it' "$STFS" "$MODEL" "$T/roots"
mkdir other
"$STFS" "$MODEL" other -o allow_other 2>err && "$STFS" umount other || grep -q "FUSE refused the mount at" err ||
	fail "allow_other of a user: $(cat err)"
