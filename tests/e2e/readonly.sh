#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every call that would change something answers EROFS; also when root takes the kernel's own read-only flag away.
. "$(dirname "$0")/lib.sh"
need_python

cp "$MODEL" model.safetensors
sum=$(sha256sum <model.safetensors)
mount_it model.safetensors m -o ro
"$PYTHON" "$HERE/readonly.py" m
if [ "$(id -u)" = 0 ] && mount -i -o remount,rw m 2>/dev/null; then
	grep " $T/m " /proc/self/mountinfo | grep -q " rw," || fail "the remount did nothing"
	"$PYTHON" "$HERE/readonly.py" m
fi
"$PYTHON" "$HERE/tree.py" m model.safetensors
[ "$(sha256sum <model.safetensors)" = "$sum" ] || fail "the model changed"
"$STFS" umount m
