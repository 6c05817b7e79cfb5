#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The source lies on a filesystem whose server fails: reads give EIO, the daemon lives. The server is another mount of ours,
# of a model that has the inner model as the bytes of a tensor; what it refuses is an error under the inner mount's pages.
. "$(dirname "$0")/lib.sh"
need_python

"$PYTHON" - <<-'END'
	import random
	from refwriter import Tensor, write
	data = random.Random(9).randbytes(16 << 20).replace(b"\0", b"\1")
	half = len(data) // 2
	write("inner", [Tensor("a", "U8", [half], data[:half]), Tensor("b", "U8", [half], data[half:])])
	whole = open("inner", "rb").read()
	write("made", [Tensor("inner", "U8", [len(whole)], whole)])
END

# begin OPTIONS: the outer mount in the background, the inner one on top of it, none of the data read yet.
begin() {
	cp made outer.safetensors
	mount_it outer.safetensors outer
	OUTER=$(daemons)
	start outer/inner/data m -o "$1"
}

finish() {
	kill -0 "$DAEMON" || fail "$1: the daemon is dead"
	stop m
	"$STFS" umount outer || fail "umount of the outer mount"
}

# is_mapped FILE: the daemon has it in its address space.
is_mapped() {
	grep -qF " $T/$1" "/proc/$DAEMON/maps"
}

# A source that a server may take away is not mapped unless one says so; another is, unless one says not.
for case in "no outer/inner/data ro" "yes outer/inner/data io=map" "yes outer.safetensors ro" "no outer.safetensors io=pread"; do
	read -r want source options <<<"$case"
	cp made outer.safetensors
	mount_it outer.safetensors outer
	start "$source" m -o "$options"
	got=no
	! is_mapped "$source" || got=yes
	[ $got = "$want" ] || fail "mapped: $got, not $want: $source -o $options"
	stop m
	"$STFS" umount outer
done

for options in io=map io=pread; do
	begin $options
	"$PYTHON" "$HERE/changed.py" m inner whole || fail "nested mounts"
	finish "nested mounts ($options)"

	begin $options
	truncate -s 1M outer.safetensors
	"$PYTHON" "$HERE/changed.py" m inner refused || fail "pages that fail ($options)"
	grep -q "cannot be read" "$LOG" || fail "pages that fail: the log says nothing"
	finish "pages that fail ($options)"

	begin $options
	kill -9 "$OUTER"
	until_true 100 test ! -e "/proc/$OUTER/exe" || true
	"$PYTHON" "$HERE/changed.py" m inner refused || fail "the server died ($options)"
	finish "the server died ($options)"

	# Stalled: the reader waits, can be killed, and others are served when it goes on.
	begin $options
	kill -STOP "$OUTER"
	cat m/b/data >/dev/null &
	reader=$!
	sleep 0.2
	kill -9 $reader
	wait $reader 2>/dev/null || true
	[ ! -d /proc/$reader ] || fail "a killed reader hangs"
	kill -CONT "$OUTER"
	"$PYTHON" "$HERE/changed.py" m inner whole || fail "the server stalled ($options)"
	finish "the server stalled ($options)"
done
