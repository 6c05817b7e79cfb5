#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 100,000 tensors: mounted at once, listed whole, and the daemon stays small.
. "$(dirname "$0")/lib.sh"
need_python

"$PYTHON" - <<-'END'
	import json
	n, size = 100000, 6
	header = {"model.layers.%d.block.%d.weight" % (i // 1000, i % 1000):
	          {"dtype": "BF16", "shape": [3], "data_offsets": [i * size, (i + 1) * size]} for i in range(n)}
	text = json.dumps(header, separators=(",", ":")).encode()
	with open("many.safetensors", "wb") as file:
	    file.write(len(text).to_bytes(8, "little") + text)
	    file.write(b"".join(b"%06d" % i for i in range(n)))
END

rss() {
	awk '/^VmRSS/ { print $2 }' /proc/$DAEMON/status
}

start many.safetensors m
find m -printf '%i %f\n' >found
[ "$(grep -c ' data$' found)" = 100000 ] || fail "find"
[ "$(sort -n found | cut -d' ' -f1 | uniq -d | wc -l)" = 0 ] || fail "two entries have one inode number"
[ "$(ls -lR m | grep -c ' data$')" = 100000 ] || fail "ls -lR"
[ "$(cat m/model/layers/57/block/123/weight/data)" = 057123 ] || fail "a tensor's bytes"
[ "$(cat m/model.layers.99.block.999.weight/data)" = 099999 ] || fail "a dotted name"
for i in $(seq 0 37 999); do
	cat m/model/layers/$((i % 100))/block/$i/weight/data m/model.layers.$((i % 100)).block.$i.weight/shape >/dev/null
done
[ "$(cut -f1 m/.safetensors/tensors.tsv | wc -l)" = 100001 ] || fail "tensors.tsv"
echo "resident: $(rss) KiB"
# A sanitizer's own tables are not the daemon's.
if ! grep -qE 'lib(asan|tsan|ubsan)|__asan|__tsan' /proc/$DAEMON/maps "$STFS"; then
	[ "$(rss)" -lt 100000 ] || fail "the daemon holds $(rss) KiB"
fi
stop m
