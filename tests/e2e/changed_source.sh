#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The source changes under the mount: EIO and a line in the log, or the old bytes whole; never zeros, never a dead
# daemon.
. "$(dirname "$0")/lib.sh"
need_python

"$PYTHON" - <<-'END'
	import random
	from refwriter import Tensor, write
	data = random.Random(5).randbytes(8 << 20).replace(b"\0", b"\1")
	write("made", [Tensor("a", "U8", [4 << 20], data[:4 << 20]), Tensor("b", "U8", [4 << 20], data[4 << 20:])], {"k": "v"})
END

# begin OPTIONS: a fresh copy of the model mounted at m. The kernel has seen the names, but none of the bytes.
begin() {
	cp made model.safetensors
	start model.safetensors m -o "$1"
	find m >/dev/null
}

# is_refused WHAT: every byte that can be had is right, some read fails with EIO, and the daemon lives to say why.
is_refused() {
	"$PYTHON" "$HERE/changed.py" m made refused || fail "$1"
	kill -0 "$DAEMON" || fail "$1: the daemon is dead"
	grep -q 'model\.safetensors' "$LOG" || fail "$1: the log says nothing: $(cat "$LOG")"
	[ "$(grep -vc 'mounted ' "$LOG")" -lt 20 ] || fail "$1: the log says too much"
	[ "$(cat m/b/dtype)" = U8 ] || fail "$1: what needs no source is gone too"
	stop m
}

is_whole() {
	"$PYTHON" "$HERE/changed.py" m made whole || fail "$1"
	stop m
}

for options in io=map io=pread io=map,direct_io; do
	begin $options
	truncate -s 5M model.safetensors
	is_refused "truncated ($options)"

	begin $options
	truncate -s 4198500 model.safetensors
	is_refused "cut inside a page ($options)"

	begin $options
	truncate -s 0 model.safetensors
	is_refused "truncated to nothing ($options)"

	begin $options
	: >model.safetensors
	cp made model.safetensors
	is_refused "written anew ($options)"

	begin $options
	dd if=/dev/zero of=model.safetensors bs=1M count=2 seek=3 conv=notrunc status=none
	is_refused "overwritten ($options)"

	begin $options
	echo x >>model.safetensors
	is_refused "appended to ($options)"

	begin $options
	head -c 3000000 /dev/zero >other
	mv other model.safetensors
	is_whole "replaced by rename ($options)"

	begin $options
	rm model.safetensors
	is_whole "removed ($options)"

	begin $options
	chmod 600 model.safetensors
	is_whole "chmod ($options)"

	begin $options
	ln model.safetensors other-name
	is_whole "ln ($options)"
	rm other-name
done

# While many read: what is read before the cut is right, what comes after fails, and the daemon lives. The cut comes at
# any moment of a request, on a page's border: within a page the kernel's own copy ends in zeros, which nobody can tell.
for options in io=map io=pread; do
	for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
		begin $options,direct_io
		"$PYTHON" "$HERE/changed.py" m made racing model.safetensors $((n * 512 * 1024)) || fail "cut while being read"
		kill -0 "$DAEMON" || fail "cut while being read: the daemon is dead"
		stop m
	done
done

# Zeros that an answer had to take because the data went away under it are not kept for the next reader.
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
	begin io=map
	"$PYTHON" "$HERE/changed.py" m made kept model.safetensors || fail "a hole made while being read"
	stop m
done

# What the kernel has kept from before the change is the old file's, whole. An answer that was sent right before the change is
# not told from one that it met, and is not kept: then once more, with more time between the two.
kept=
for pause in 0 0.3 1 3; do
	begin io=map
	cat m/a/data >/dev/null
	sleep $pause
	truncate -s 100 model.safetensors
	if cmp m/a/data <("$STFS" cat made a) 2>err; then
		kept=yes
	else
		grep -q "Input/output error" err || fail "other bytes than before the change: $(cat err)"
	fi
	stop m
	[ -z "$kept" ] || break
done
[ -n "$kept" ] || fail "kept bytes: $(cat err)"
