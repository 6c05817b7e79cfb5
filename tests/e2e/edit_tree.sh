#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rules of the tree for those who change it: names, kinds, errors, times, and what is never committed.
. "$(dirname "$0")/lib.sh"
. "$HERE/edit.sh"

for options in "" control=list,npy=list; do
	begin $options
	"$PYTHON" -W ignore "$HERE/edit_tree.py" m
	echo commit >m/.safetensors/commit || fail "$(cat m/.safetensors/result m/.safetensors/status)"
	meant m.safetensors <<-'END'
		put("new.deep.tensor", "F64", [2], bytes(16))
		put("spelt.in.one", "U8", [1], b"x")
		put("with/slash", "U8", [1], b"y")
		put("", "U8", [1], b"z")
		for n, text in enumerate(["2 3", "2,3", "[2, 3]", "(2, 3)", "2x3", "2 3"]):
		    put("forms.f%d" % n, "I8", [2, 3], bytes(6))
		put("forms.scalar1", "I8", [], b"1")
		put("forms.scalar2", "I8", [], b"2")
		meta.clear()
		meta.update({"plain": "x", "two": "a\nb\n", "none": "", "%": "percent", ".dot": "dot", "a/b": "slash", "sedAbCdEf": "litter"})
	END
	grep -q 'warning:.*sedAbCdEf.*leftover' m/.safetensors/result || fail "litter is not told of: $(cat m/.safetensors/result)"
	"$STFS" umount m
	rm -rf .m.safetensors.stage
done

# Everything again in the flat layout.
begin flat
quiet cp -r m/model.a.w m/copy.of.it
quiet mv m/model.a.b m/moved.b
mkdir m/n.e.w
echo U8 >m/n.e.w/dtype
echo 2 >m/n.e.w/shape
printf ab >m/n.e.w/data
quiet rm -r m/empty
"$PYTHON" - <<-'END'
	import os
	for bad in ".hidden", "%zz", "a/b":
	    try:
	        os.mkdir("m/" + bad)
	    except OSError:
	        continue
	    raise SystemExit(bad)
END
echo commit >m/.safetensors/commit || fail "$(cat m/.safetensors/result m/.safetensors/status)"
meant m.safetensors <<-'END'
	put("copy.of.it", *t["model.a.w"][1:])
	move("model.a.b", "moved.b")
	put("n.e.w", "U8", [2], b"ab")
	take("empty")
END
"$PYTHON" "$HERE/tree.py" m --flat m.safetensors
finish

# Removing while listing misses nothing.
begin
"$PYTHON" - <<-'END'
	import os
	for n in range(3000):
	    with open("m/__metadata__/key%d" % n, "w") as file:
	        file.write(str(n))
END
quiet find m/__metadata__ -name 'key*' -delete
[ "$(ls m/__metadata__ | wc -l)" = 3 ] || fail "find -delete missed some"
"$PYTHON" - <<-'END'
	import os
	for n in range(3000):
	    os.close(os.open("m/__metadata__/key%d" % n, os.O_CREAT | os.O_WRONLY))
	with os.scandir("m/__metadata__") as entries:
	    for entry in entries:
	        if entry.name.startswith("key"):
	            os.unlink(entry.path)
	assert len(os.listdir("m/__metadata__")) == 3
END
finish

# A module of many tensors is renamed, removed and copied as one.
"$PYTHON" - <<-'END'
	from refwriter import Tensor, write
	write("many.safetensors", [Tensor("layers.%d.w%d" % (n % 100, n), "U8", [1], b"x") for n in range(10000)])
END
mkdir many
"$STFS" many.safetensors many
quiet mv many/layers many/blocks
[ "$(stat -c %s .many.safetensors.stage/journal)" -lt 2000 ] || fail "renaming a module costs $(stat -c %s .many.safetensors.stage/journal) bytes"
[ "$(find many -name data | wc -l)" = 10000 ] || fail "a moved module is not whole"
echo commit >many/.safetensors/commit
"$PYTHON" - <<-'END'
	from refwriter import read
	tensors, _ = read("many.safetensors")
	assert sorted(t.name for t in tensors) == sorted("blocks.%d.w%d" % (n % 100, n) for n in range(10000))
END
"$STFS" umount many

# A few bytes of a large tensor cost a few bytes, and a copy within the mount none, also over what was there.
"$PYTHON" - <<-'END'
	with open("huge.safetensors", "wb") as file:
	    size = 3 << 30
	    text = b'{"t":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]},"s":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}}'
	    text %= size, size, size, size + 1
	    text += b" " * (-len(text) % 8)
	    file.write(len(text).to_bytes(8, "little") + text)
	    file.write(b"start")
	    file.truncate(8 + len(text) + size + 1)
END
mkdir huge
"$STFS" huge.safetensors huge
cheap() {
	[ "$(du -sk .huge.safetensors.stage | cut -f1)" -lt 100 ] || fail "$1 cost $(du -sk .huge.safetensors.stage)"
}
quiet cp -r huge/t huge/u
quiet cp huge/t/data huge/s/data
quiet cp huge/t/data huge/s/data
quiet cp huge/t/shape huge/s/shape
cheap "a copy"
"$STFS" umount huge
"$STFS" huge.safetensors huge
for copy in u s; do
	[ "$(stat -c %s huge/$copy/data)" = $((3 << 30)) ] || fail "a copy by reference has another size"
	[ "$(head -c 5 huge/$copy/data)" = start ] || fail "a copy by reference has other bytes"
done
dd if=/dev/urandom of=huge/t/data bs=4096 count=1 seek=100000 conv=notrunc status=none
truncate -s 10 huge/u/data
echo 10 >huge/u/shape
cheap "4 KB"
rm -r huge/s
quiet mv huge/u huge/t2
cheap "a move"
"$STFS" umount huge
rm -r .huge.safetensors.stage
