#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mmap, sendfile, copy_file_range, splice and preadv give exact bytes at any offset, as read does.
. "$(dirname "$0")/lib.sh"
need_python

for options in io=map io=pread npy=list; do
	start "$MODEL" m -o ro,$options
	"$PYTHON" "$HERE/io_calls.py" m "$MODEL"
	stop m
done
