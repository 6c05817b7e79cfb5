#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A directory of shards is one tree, the same as that of the whole model.
. "$(dirname "$0")/lib.sh"
need_python

"$PYTHON" "$SRC/tests/models/make_sharded.py" "$MODEL" set 3
start set m
"$PYTHON" "$HERE/tree.py" m set/*.safetensors
mount_it "$MODEL" whole -o ro
diff -r --exclude=__metadata__ m whole || fail "the shards differ from the whole"
"$STFS" umount whole
[ "$(awk -F '\t' '!/^#/ { print $5 }' m/.safetensors/tensors.tsv | sort -u | wc -l)" = 3 ] || fail "tensors.tsv: files"
grep " $T/m " /proc/self/mountinfo | grep -qF " $T/set rw" || fail "the source is not shown"
stop m

# Named after the directory, which is refused as its own mountpoint.
expect 4 '"\./set" is there already and not empty: .*' "$STFS" set
expect 4 'the mountpoint ".*/set" would hide the source .*' "$STFS" set set
mkdir elsewhere
(cd elsewhere && expect 0 "" "$STFS" ../set && [ -d set/model ] && expect 0 "" "$STFS" umount set)

# The cache of a hub: links to blobs with other names.
mkdir -p hub/blobs hub/snapshots/1
for file in set/*; do
	sum=$(sha256sum <"$file" | cut -c1-40)
	cp "$file" "hub/blobs/$sum"
	ln -s "../../blobs/$sum" "hub/snapshots/1/$(basename "$file")"
done
mount_it hub/snapshots/1 m
"$PYTHON" "$HERE/tree.py" m set/*.safetensors
"$STFS" umount m

# A shard that is gone refuses the mount; -o partial mounts the rest.
rm set/model-00002-of-00003.safetensors
expect 1 '.*model-00002-of-00003\.safetensors.*' "$STFS" set m
"$STFS" set m -o partial 2>/dev/null
"$PYTHON" "$HERE/tree.py" m set/*.safetensors
"$STFS" umount m
