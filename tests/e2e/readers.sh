#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many readers at once, of few files and of many, with and without the kernel's cache; descriptors and memory stay flat.
. "$(dirname "$0")/lib.sh"
need_python

for options in io=map io=pread,direct_io; do
	start "$MODEL" m -o ro,$options
	"$PYTHON" "$HERE/readers.py" m "$MODEL" 8
	before=$(ls /proc/$DAEMON/fd | wc -l)
	"$PYTHON" "$HERE/readers.py" m "$MODEL" 8
	after=$(ls /proc/$DAEMON/fd | wc -l)
	[ "$after" -le $((before + 2)) ] || fail "the daemon keeps descriptors: $before, then $after"
	stop m
done
