#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# While a commit runs the mount goes on: reads are answered, edits wait and are in it or staged after it, never lost or refused.
. "$(dirname "$0")/lib.sh"
need_python
[ "$(df --output=avail -k . | tail -1)" -gt 4000000 ] || skip "needs 4 GB of disk"

# Large enough for a commit to take a moment.
"$PYTHON" - <<-'END'
	from refwriter import compact
	size = 1200 << 20
	header = {"__metadata__": {"note": "old"}}
	end = 0
	for name, n in [("large", size), ("small", 1 << 20), ("tiny", 5)]:
	    header[name] = {"dtype": "U8", "shape": [n], "data_offsets": [end, end + n]}
	    end += n
	text = compact(header).encode()
	text += b" " * (-len(text) % 8)
	with open("m.safetensors", "wb") as file:
	    file.write(len(text).to_bytes(8, "little") + text)
	    block = bytes(range(256)) * 4096
	    for _ in range(1201):
	        file.write(block)
	    file.write(b"tiny!")
END
"$PYTHON" -W ignore "$HERE/edit_during.py" "$STFS" m.safetensors m
