#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Costs follow what was touched: bytes staged, bytes moved by the daemon, records of the journal, and memory.
. "$(dirname "$0")/lib.sh"
need_python

# What is large is a hole: nothing of it may be written, not even by a commit.
"$PYTHON" - <<-'END'
	from refwriter import compact
	def make(path, sizes):
	    header, end = {"__metadata__": {"format": "pt"}}, 0
	    for name, size in sizes:
	        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
	        end += size
	    text = compact(header).encode()
	    text += b" " * (-len(text) % 8)
	    with open(path, "wb") as file:
	        file.write(len(text).to_bytes(8, "little") + text)
	        file.truncate(8 + len(text) + end)
	make("two.safetensors", [("model.big", 1 << 30), ("model.other", 1 << 30)])
	make("many.safetensors", [("many.%d.w" % i, 8) for i in range(10000)] + [("lone.w", 8)])
END

# A sanitizer's memory is not the program's.
bounds=yes
if grep -qE '__asan_init|__tsan_init' "$STFS"; then
	bounds=
	echo "the bounds of memory are not looked at: the program has a sanitizer"
fi

staged() {
	du -sk ".$1.stage" | cut -f1
}

# moved FIELD: bytes that the daemon moved since it was started (proc(5): rchar and wchar by calls, write_bytes to a disk).
moved() {
	awk -v field="$1:" '$1 == field { print $2 }' "/proc/$DAEMON/io"
}

# memory FIELD: KiB of the daemon. VmHWM is the most that it ever had, pages of the model's mapping with it; RssAnon is without.
memory() {
	awk -v field="$1:" '$1 == field { print $2 }' "/proc/$DAEMON/status"
}

# less GOT LIMIT WHAT
less() {
	echo "$3: $1"
	[ "$1" -lt "$2" ] || fail "$3: $1, not less than $2"
}
memory_less() {
	[ -z "$bounds" ] || less "$@"
}

# cheap WHAT COMMAND...: it works, and neither what is staged nor what the daemon writes grows by more than kilobytes.
cheap() {
	local what=$1 wrote disk
	shift
	wrote=$(moved wchar) disk=$(moved write_bytes)
	"$@" || fail "$what: exit $?"
	less $(($(moved wchar) - wrote)) 262144 "$what: bytes written by the daemon, answers with them"
	less $(($(moved write_bytes) - disk)) 262144 "$what: bytes on their way to a disk"
	less "$(staged two.safetensors)" 256 "$what: KiB staged"
}

store() {
	"$PYTHON" - "$@" <<-'END'
		import mmap, sys
		with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as map:
		    map.madvise(mmap.MADV_RANDOM)  # else the kernel reads ahead, and the daemon answers that
		    map[700 << 20:(700 << 20) + 4096] = b"m" * 4096
		    map.flush()
	END
}

head -c 4096 /dev/urandom >page
start two.safetensors m
cheap "4 KiB by dd" dd if=page of=m/model/big/data bs=4096 seek=1000 conv=notrunc status=none
cheap "4 KiB by mmap" store m/model/big/data
cheap "a byte beyond the old end, and cut" sh -c 'printf x >>m/model/big/data && truncate -s 1G m/model/big/data'
dd if=m/model/big/data bs=4096 skip=1000 count=1 status=none | cmp - page || fail "what dd wrote"
[ "$(dd if=m/model/big/data bs=4096 skip=$((700 * 256)) count=1 status=none | tr -d m | wc -c)" = 0 ] || fail "what mmap stored"
[ "$(dd if=m/model/big/data bs=4096 skip=1001 count=1 status=none | tr -d '\0' | wc -c)" = 0 ] || fail "what is beside it"

# A copy is a reference, however often; a move is only a name.
cheap "cp" cp --reflink=auto -r m/model/other m/copy
cheap "cp of a copy" cp -r m/copy m/again
cheap "copy_file_range" "$PYTHON" -c '
import os
os.mkdir("m/third")
a, b = os.open("m/model/other/data", os.O_RDONLY), os.open("m/third/data", os.O_WRONLY | os.O_CREAT)
left = 1 << 30
while left:
    left -= os.copy_file_range(a, b, left)'
cheap "mv" mv m/model m/renamed
for name in copy again third; do
	[ "$(stat -c %s m/$name/data)" = $((1 << 30)) ] || fail "the size of $name"
done
"$STFS" discard m
stop m

# A module is renamed by one record, whatever is in it: the journal grows as for a module of one tensor.
journal_grows() {
	local before
	before=$(stat -c %s .many.safetensors.stage/journal)
	"$@" || fail "$*"
	echo $(($(stat -c %s .many.safetensors.stage/journal) - before))
}
start many.safetensors m
echo staged >m/__metadata__/note
one=$(journal_grows mv m/lone m/l2ne)
many=$(journal_grows mv m/many m/m2ny)
less "$many" 1024 "bytes of the journal for 10,000 tensors"
[ "$many" = "$one" ] || fail "renaming 10,000 tensors takes $many bytes of the journal, one takes $one"
stop m
one=$(journal_grows "$STFS" mv many.safetensors l2ne l3ne)
many=$(journal_grows "$STFS" mv many.safetensors m2ny m3ny)
less "$many" 1024 "the same by the command"
[ "$many" = "$one" ] || fail "the command takes $many bytes of the journal for 10,000 tensors, $one for one"
"$STFS" status many.safetensors | grep -qxF 'R many.9999.w -> m3ny.9999.w' || fail "the module is not renamed"

# The memory of the daemon is the same whether it stages 16 MiB or 256.
for size in 16 256; do
	start two.safetensors m
	dd if=/dev/zero of=m/model/big/data bs=1M count=$size conv=notrunc status=none
	dd if=/dev/zero of=m/scratch bs=1M count=$((size / 4)) status=none
	[ "$(staged two.safetensors)" -ge $((size * 1280)) ] || fail "not all is staged"
	eval "anon_$size=$(memory RssAnon) peak_$size=$(memory VmHWM)"
	"$STFS" discard m
	stop m
done
memory_less $((anon_256 - anon_16)) 4096 "KiB more for 320 MiB staged than for 20"
memory_less $((peak_256 - peak_16)) 8192 "KiB more at the peak"

# rss KIB COMMAND...: the most that a command had in memory, whatever pages it had mapped with it, is below KIB. (The kernel
# counts the process that starts it until it runs the program, so that this says too much rather than too little.)
rss() {
	local limit=$1 got
	shift
	got=$("$PYTHON" -c '
import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
if status:
    sys.exit("status %d" % status)
print(usage.ru_maxrss)' "$STFS" "$@") || fail "$*"
	got=${got##*$'\n'}
	memory_less "$got" "$limit" "KiB of $1"
}
# is_committed NAME: the model is 2 GiB of which little is on disk, and holds what was meant.
is_committed() {
	"$STFS" ls two.safetensors | grep -qx "$1" || fail "$1 is not in the model"
	[ "$(stat -c %s two.safetensors)" -gt $((2 << 30)) ] || fail "the size of the new model"
	less "$(du -k two.safetensors | cut -f1)" 4096 "KiB on disk of a model of holes"
	expect 0 "" "$STFS" check two.safetensors
}

# A model of 2 GiB is edited and committed in 32 MB.
start two.safetensors m
mv m/model/big m/model/large
echo tf >m/__metadata__/format
rss 31250 commit m
memory_less "$(memory VmHWM)" 31250 "KiB of the daemon at a commit of 2 GiB"
less $(($(moved write_bytes))) 4194304 "bytes on their way to a disk for it"
stop m
is_committed model.large
[ "$("$STFS" cat two.safetensors __metadata__/format)" = tf ] || fail "the metadata"

rss 31250 mv two.safetensors model.large model.huge
rss 31250 set-metadata two.safetensors format=flax
rss 31250 commit -q two.safetensors
is_committed model.huge
[ "$("$STFS" cat two.safetensors __metadata__/format)" = flax ] || fail "the metadata"
