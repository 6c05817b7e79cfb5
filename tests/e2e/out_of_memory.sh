#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon whose allocations fail now and then goes on, says ENOMEM, and never serves a wrong byte or loses what it accepted.
. "$(dirname "$0")/lib.sh"
need_python
[ -n "${MALLOC_PRELOAD:-}" ] || skip "the allocator cannot be replaced here (a sanitizer's, or not glibc's)"
[ -e "$MALLOC_PRELOAD" ] || fail "$MALLOC_PRELOAD was not built"

# mount_failing MODEL MOUNTPOINT [OPTIONS...]: in the foreground; SIGUSR2 turns failing on and off.
mount_failing() {
	mkdir -p "$2"
	: >"$LOG"
	LD_PRELOAD=$MALLOC_PRELOAD FAULTY_MALLOC_STATE=$T/state FAULTY_MALLOC_ONE_IN=${ONE_IN:-20} "$STFS" "$@" -f 2>>"$LOG" &
	DAEMON=$!
	until_true 100 is_ready || fail "the daemon did not get ready"
}

cp "$MODEL" m.safetensors
for options in ro ro,io=pread; do
	mount_failing m.safetensors m -o "$options,npy=list,control=list"
	"$PYTHON" "$HERE/out_of_memory.py" read m "$DAEMON"
	stop m
done
ONE_IN=50 mount_failing m.safetensors m -o npy=list,control=list
"$PYTHON" "$HERE/out_of_memory.py" edit m "$DAEMON"
stop m
# One that has none at all ends well too.
cp "$MODEL" n.safetensors
for options in ro rw; do
	ONE_IN=1 mount_failing n.safetensors n -o "$options"
	cat n/.safetensors/header.json >/dev/null
	rm -f state
	kill -USR2 "$DAEMON"
	until_true 100 grep -qs on state || fail "memory does not fail"
	! cat n/.safetensors/tensors.tsv >/dev/null 2>&1 || fail "there was memory"
	stop n
done
# What was accepted is there for the next mount, and commits.
mount_it m.safetensors m -o npy=list,control=list
"$PYTHON" "$HERE/out_of_memory.py" check m
echo commit >m/.safetensors/commit || fail "cannot be committed: $(cat m/.safetensors/result)"
"$PYTHON" "$HERE/out_of_memory.py" check m
"$STFS" umount m
