#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Any block size, from any place, buffered and O_DIRECT, gives the bytes that are in the file.
. "$(dirname "$0")/lib.sh"
need_python

# A tensor at an odd offset that is no multiple of anything, one that ends the file, and the small kinds.
"$PYTHON" - <<-'END'
	import random
	from refwriter import Tensor, write
	rand = random.Random(1)
	data = {
	    "big": rand.randbytes(3 * 1024 * 1024 + 12345),
	    "empty": b"",
	    "half": rand.randbytes(3),
	    "scalar": rand.randbytes(1),
	    "last": rand.randbytes(5000),
	}
	for name, content in data.items():
	    open(name, "wb").write(content)
	write("odd.safetensors", [
	    Tensor("a.half", "U8", [3], data["half"]),
	    Tensor("b.big", "U8", [len(data["big"])], data["big"]),
	    Tensor("c.empty", "U8", [0, 4], data["empty"]),
	    Tensor("d.scalar", "I8", [], data["scalar"]),
	    Tensor("e.last", "F4", [2, 5000], data["last"]),
	])
END

check() {
	local pairs="a/half:half b/big:big c/empty:empty d/scalar:scalar e/last:last" pair bs flag
	for pair in $pairs; do
		for bs in 1M 128K 4096 4095 513; do
			for flag in "" direct; do
				dd if="m/${pair%:*}/data" bs=$bs ${flag:+iflag=$flag} status=none | cmp - "${pair#*:}" ||
					fail "${pair#*:} bs=$bs $flag ($1)"
			done
		done
	done
	for bs in 1 7; do
		dd if=m/e/last/data bs=$bs status=none | cmp - last || fail "bs=$bs ($1)"
	done
	for skip in 0 1 4095 4096 4097 131071 1048577 3145729 3158072 3158073; do
		for flag in "" ,direct; do
			dd if=m/b/big/data bs=100K skip=$skip count=3 iflag=skip_bytes,fullblock$flag status=none |
				cmp - <(tail -c +$((skip + 1)) big | head -c 307200) || fail "from $skip $flag ($1)"
		done
	done
}

for options in io=map io=pread io=map,direct_io io=pread,direct_io; do
	mount_it odd.safetensors m -o $options
	check $options
	"$STFS" umount m
done
