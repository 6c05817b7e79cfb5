#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What calls answer that neither read bytes nor change anything (docs/SEMANTICS.md).
. "$(dirname "$0")/lib.sh"
need_python

start "$MODEL" m -o ro
"$PYTHON" "$HERE/calls.py" m
stop m

# Without the kernel's cache: a private map is exact, and a shared one is, or is refused.
start "$MODEL" m -o ro,direct_io
"$PYTHON" - <<-'END'
	import errno, mmap, os
	fd = os.open("m/model/embed_tokens/weight/data", os.O_RDONLY)
	want = os.pread(fd, 1 << 20, 0)
	for flags in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
	    try:
	        with mmap.mmap(fd, 0, flags, mmap.PROT_READ) as mapped:
	            assert len(want) > 4096 and mapped[:] == want, "map of a file that is not cached"
	    except OSError as error:
	        assert flags == mmap.MAP_SHARED and error.errno == errno.ENODEV, error
END
stop m
