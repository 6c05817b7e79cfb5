#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each -o does what --help says.
. "$(dirname "$0")/lib.sh"
need_python

W=model/embed_tokens/weight
cp "$MODEL" model.safetensors
"$PYTHON" - <<-'END'
	from refwriter import read
	tensors, _ = read("model.safetensors")
	open("want", "wb").write([t for t in tensors if t.name == "model.embed_tokens.weight"][0].data)
END

# with OPTIONS: mounts at m. without: unmounts.
with() {
	mount_it model.safetensors m -o "$1"
}

without() {
	"$STFS" umount m
}

with flat
"$PYTHON" "$HERE/tree.py" m --flat model.safetensors
[ ! -e m/model ] || fail "flat: a module is there"
cmp m/model.embed_tokens.weight/data want
without

with npy=list
[ "$(find m -name data.npy | wc -l)" = "$(find m -name data | wc -l)" ] || fail "npy=list"
without
with npy=off
[ ! -e m/$W/data.npy ] || fail "npy=off"
without
with npy=hide
[ -e m/$W/data.npy ] && [ "$(find m -name data.npy | wc -l)" = 0 ] || fail "npy=hide"
without

with control=list
ls -A m | grep -qx .safetensors || fail "control=list"
without
with control=hide
[ -e m/.safetensors/tensors.tsv ] && ! ls -A m | grep -qx .safetensors || fail "control=hide"
without

for io in map pread; do
	with io=$io
	"$PYTHON" "$HERE/tree.py" m model.safetensors
	without
done

with direct_io
cmp m/$W/data want || fail "direct_io"
dd if=m/$W/data bs=777 status=none | cmp - want || fail "direct_io, small blocks"
# Mapping such a file needs a kernel and a libfuse that allow it; then it must be right.
"$PYTHON" - m/$W/data <<-'END'
	import errno, mmap, os, sys
	want = open("want", "rb").read()
	fd = os.open(sys.argv[1], os.O_RDONLY)
	try:
	    shared = mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)[:]
	except OSError as error:
	    assert error.errno == errno.ENODEV, error
	    print("direct_io: no shared mmap here")
	else:
	    assert shared == want, "shared mmap"
	private = mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)[:]
	assert private == want, "private mmap"
END
without

for size in 4096 65536; do
	with max_read=$size
	cmp m/$W/data want || fail "max_read=$size"
	without
done
expect 2 'option -o max_read=BYTES cannot be "1"' "$STFS" model.safetensors m -o max_read=1

with noexec,noatime,rw,flat,npy=list,ro
grep " $T/m " /proc/self/mountinfo | grep -q "ro,nosuid,nodev,noexec,noatime" || fail "flags"
[ -e m/model.embed_tokens.weight/data ] || fail "one of many options"
without
mount_it model.safetensors m -o flat -o npy=list
[ "$(find m -name data.npy | wc -l)" -gt 1 ] && [ -e m/model.norm.weight ] || fail "two -o"
without

# lax takes what the format forbids and is harmless.
cp model.safetensors padded.safetensors
printf '\0\0\0\0\0\0\0\0' >>padded.safetensors
expect 1 '.*padded\.safetensors: .*' "$STFS" padded.safetensors m
"$STFS" padded.safetensors m -o lax 2>warnings
grep -q '^safetensorsfs: warning: .*padded' warnings || fail "lax: no warning: $(cat warnings)"
"$PYTHON" "$HERE/tree.py" m model.safetensors
without

# The last word counts; a comma in a value is written \,.
mkdir set
cp model.safetensors set/a.safetensors
cp model.safetensors 'set/b,c.safetensors'
"$STFS" set m -o 'index=a.safetensors,index=b\,c.safetensors' 2>/dev/null
without
expect 2 'option -o index=NAME cannot be "../x"' "$STFS" set m -o index=../x
