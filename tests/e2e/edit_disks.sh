#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commits on real disks: blocks are shared where the filesystem can, and a disk without room for the new model is told before.
. "$(dirname "$0")/lib.sh"
need_python
need_root
need losetup filefrag
[ -c /dev/loop-control ] || skip "there are no loop devices"
tested=0
# In memory, where syncs cost nothing.
mkdir memory
mount -t tmpfs -o size=800M none memory || skip "no tmpfs can be mounted"

# disk FILESYSTEM MIB: a small disk of that kind at disk; fails where there can be none.
disk() {
	local options=()
	command -v "mkfs.$1" >/dev/null || return 1
	case $1 in
	xfs) options=(-q -m reflink=1) ;;
	*) options=(-q) ;;
	esac
	rm -f memory/image
	truncate -s "$2M" memory/image
	"mkfs.$1" "${options[@]}" memory/image >"$T/.log/mkfs" 2>&1 || return 1
	mkdir -p disk
	mount -t "$1" -o loop memory/image disk 2>"$T/.log/mount" || return 1
	tested=$((tested + 1))
}

# make MIB: a model of about that size, with a few odd lengths.
make() {
	"$PYTHON" - "$1" disk/m.safetensors <<-'END'
		import random, sys
		from refwriter import Tensor, write
		r, size = random.Random(3), int(sys.argv[1]) << 20
		tensors = [Tensor("big", "U8", [size], r.randbytes(size)), Tensor("odd", "U8", [70001], r.randbytes(70001)),
		           Tensor("small", "F32", [3], r.randbytes(12))]
		write(sys.argv[2], tensors, {"note": "old"})
	END
	# The old file goes on under this name; what it is compared with is somewhere else.
	ln disk/m.safetensors disk/old
	cp disk/old old.safetensors
}

meant() {
	"$PYTHON" "$HERE/edited.py" old.safetensors disk/m.safetensors || fail "not what was meant"
	expect 0 "" "$STFS" check disk/m.safetensors
}

free_kib() {
	sync -f disk
	df --output=avail -k disk | tail -1
}

# fill KIB: leaves about that much room.
fill() {
	local room
	room=$(free_kib)
	fallocate -l $(((room - $1) * 1024)) disk/filling
}

nothing_left() {
	[ -z "$(ls -A disk | grep -vxE 'lost\+found|m\.safetensors|old|filling')" ] || fail "left: $(ls -A disk)"
}

# Shared blocks: less room than the model takes is enough.
for filesystem in btrfs xfs; do
	disk $filesystem 340 || continue
	make 32
	fill 20000
	before=$(free_kib)
	"$STFS" set-metadata disk/m.safetensors note=new
	head -c 70001 /dev/urandom >odd
	"$STFS" put disk/m.safetensors odd odd
	"$STFS" commit disk/m.safetensors >said
	grep -qE ': wrote 1 file, 33\.[0-9] MB \(33\.[0-9] MB cloned' said || fail "$filesystem: $(cat said)"
	meant <<<'meta["note"] = "new"; put("odd", data=open("odd", "rb").read())'
	used=$((before - $(free_kib)))
	[ $used -lt 8000 ] || fail "$filesystem: the new model takes $used KiB of its own"
	filefrag -v disk/m.safetensors | grep -q shared || fail "$filesystem: no blocks are shared: $(filefrag -v disk/m.safetensors)"
	nothing_left

	# From a mount, over and over, with changes in what is shared.
	cp disk/m.safetensors old.safetensors
	mkdir -p m
	"$STFS" disk/m.safetensors m
	for n in 1 2 3; do
		printf $n | dd of=m/big/data bs=1 seek=$((n * 1000003)) conv=notrunc status=none
		echo commit >m/.safetensors/commit || fail "$filesystem: $(cat m/.safetensors/result)"
		grep -q ' cloned' m/.safetensors/result || fail "$filesystem: $(cat m/.safetensors/result)"
	done
	"$STFS" umount m
	meant <<-'END'
		big = bytearray(t["big"].data)
		for n in (1, 2, 3):
		    big[n * 1000003] = ord(str(n))
		put("big", data=bytes(big))
	END
	used=$((before - $(free_kib)))
	[ $used -lt 8000 ] || fail "$filesystem: after four commits $used KiB are used"
	nothing_left
	umount disk
done

# No room for a copy: said before anything is written, nothing is lost, and it works when there is.
if disk ext4 96; then
	make 32
	fill 20000
	"$STFS" set-metadata disk/m.safetensors note=new
	"$STFS" status disk/m.safetensors >before
	room=$(free_kib)
	code=0
	# What looks for leaks cannot be traced itself.
	tracing=(env "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0" strace -f -qq -e trace=openat -o trace)
	command -v strace >/dev/null || tracing=()
	"${tracing[@]}" "$STFS" commit disk/m.safetensors >said 2>&1 || code=$?
	[ $code = 6 ] && grep -q 'no space: 3[0-9]* bytes are to be written, ' said || fail "exit $code: $(cat said)"
	! grep -sq 'stfs-commit' trace || fail "a file was begun: $(grep stfs-commit trace)"
	[ $(($(free_kib) - room)) -ge -100 ] && [ $(($(free_kib) - room)) -le 100 ] || fail "room was taken"
	cmp disk/m.safetensors old.safetensors || fail "a refused commit changed the model"
	"$STFS" status disk/m.safetensors | diff before - || fail "a refused commit changed what is staged"
	rm disk/filling
	expect 0 "" "$STFS" commit -q disk/m.safetensors
	meant <<<'meta["note"] = "new"'
	nothing_left
	umount disk
fi
[ $tested -gt 0 ] || skip "no disk can be made: $(cat "$T"/.log/mkfs "$T"/.log/mount 2>/dev/null)"
