#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A full disk: whoever writes is told, nothing is lost that was accepted, and a commit takes nothing that is damaged.
. "$(dirname "$0")/lib.sh"
. "$HERE/edit.sh"
need_root

mkdir -m 700 disk
mount -t tmpfs -o size=8M,mode=700 none disk || skip "no tmpfs can be mounted"
mkdir -m 700 disk/stage
cp old.safetensors m.safetensors
mkdir m
"$STFS" m.safetensors m -o stage=disk/stage

# no_space COMMAND...: it fails for want of space, and says so.
no_space() {
	"$@" >err 2>&1 && fail "a full disk is not noticed: $*"
	grep -q "No space left on device" err || fail "$*: $(cat err)"
}
fill() {
	cat /dev/zero >disk/filling 2>/dev/null || true
}

# Room is that of the staging area.
[ "$(stat -f -c %b/%S m)" = "$(stat -f -c %b/%S disk)" ] || fail "statfs of the mount"

# New data that does not fit.
printf before >m/__metadata__/note
no_space dd if=/dev/zero of=m/scratch bs=1M count=20 status=none
[ "$(stat -c %s m/scratch)" -gt 4000000 ] || fail "what fitted was not taken"
rm m/scratch
head -c 10000000 /dev/urandom >outside
cp outside moving
no_space mv moving m/model/big/data
cmp moving outside || fail "mv lost its source"
echo commit >m/.safetensors/commit 2>/dev/null && fail "half a tensor is committed"
grep -q 'model\.big' m/.safetensors/result || fail "the culprit is not named: $(cat m/.safetensors/result)"
[ "$(sha256sum <m.safetensors)" = "$(sha256sum <old.safetensors)" ] || fail "a refused commit changed the model"
head -c 3000000 outside >m/model/big/data || fail "there is room again"
commit_elsewhere() {
	echo commit >m/.safetensors/commit || fail "$(cat m/.safetensors/result)"
	[ -z "$(ls -A disk/stage)" ] || fail "staged files are left: $(ls -A disk/stage)"
}
commit_elsewhere
meant <<-'END'
	meta["note"] = "before"
	put("model.big", data=open("outside", "rb").read(3000000))
END

# A write that breaks off half-way damages the tensor until it is written anew.
head -c 5900000 /dev/zero >disk/filling
dd if=/dev/zero of=m/model/big/data bs=1M conv=notrunc count=2 status=none
no_space dd if=/dev/urandom of=m/model/big/data bs=900k seek=2 count=1 conv=notrunc status=none iflag=fullblock
rm disk/filling
echo commit >m/.safetensors/commit 2>/dev/null && fail "a damaged tensor is committed"
grep -q 'model\.big.*write' m/.safetensors/result || fail "the damage is not named: $(cat m/.safetensors/result)"
kill -9 "$(daemons)"
until_true 100 no_daemons
"$STFS" umount m
"$STFS" m.safetensors m -o stage=disk/stage
echo commit >m/.safetensors/commit 2>/dev/null && fail "a damaged tensor is committed after a remount"
head -c 3000000 /dev/zero >m/model/big/data
commit_elsewhere
meant <<-'END'
	meta["note"] = "before"
	put("model.big", data=bytes(3000000))
END

# A disk that is full to the last byte: every kind of edit is refused with the right word, reading goes on, nothing is lost.
echo accepted >m/__metadata__/note
mkdir m/dir
fill
for n in $(seq 300); do
	mkdir m/dir/$n 2>/dev/null || break
done
made=$(ls m/dir | wc -l)
no_space mkdir m/dir/more
no_space touch m/dir/file
no_space mv m/dir m/moved
no_space rm m/model/a/b/data
no_space sh -c "exec cat m.safetensors >m/model/big/data"
[ "$(cat m/__metadata__/note)" = accepted ] || fail "reading does not go on"
"$STFS" umount m
"$STFS" m.safetensors m -o stage=disk/stage || fail "a full disk cannot be mounted"
[ "$(cat m/__metadata__/note)" = accepted ] && [ "$(ls m/dir | wc -l)" = "$made" ] || fail "an accepted edit is lost"
rm disk/filling
rm -r m/dir
head -c 3000000 /dev/zero >m/model/big/data
echo mended >m/__metadata__/note
commit_elsewhere
meant <<-'END'
	meta["note"] = "mended"
	put("model.big", data=bytes(3000000))
END
"$STFS" umount m
umount disk

# No room for the new model: said before anything is written.
mount -t tmpfs -o size=8M,mode=700 none disk
cp old.safetensors disk/m.safetensors
"$STFS" disk/m.safetensors m
head -c 4000000 /dev/zero >disk/filling
echo small >m/__metadata__/note
before=$(ls -A disk)
no_space bash -c 'echo commit >m/.safetensors/commit'
grep -q . m/.safetensors/result || fail "no words for it"
[ "$(ls -A disk)" = "$before" ] || fail "left: $(ls -A disk)"
rm disk/filling
echo commit >m/.safetensors/commit || fail "$(cat m/.safetensors/result)"
meant disk/m.safetensors <<<'meta["note"] = "small"'
"$STFS" umount m
umount disk

# A disk that is full from the beginning: the mount shows the model, and the first edit fails with a line in the log.
mount -t tmpfs -o size=8M,nr_inodes=20,mode=700 none disk
cp old.safetensors disk/m.safetensors
for full in bytes files; do
	if [ $full = bytes ]; then fill; else rm disk/filling && touch disk/{1..20} 2>/dev/null || true; fi
	start disk/m.safetensors m
	no_space bash -c 'echo x >m/__metadata__/note'
	no_space mv m/model m/moved
	said=$(grep -c 'nothing can be edited: the staging area .* cannot be made: No space left on device' "$LOG") || true
	[ "$said" = 1 ] || fail "a disk that is full of $full: the log says $(cat "$LOG")"
	[ "$(cat m/__metadata__/note)" = "hello world" ] && [ -e m/model ] || fail "a refused edit is shown"
	[ ! -e disk/.m.safetensors.stage ] || fail "left: disk/.m.safetensors.stage"
	stop m
done
find disk -name "[0-9]*" -delete
start disk/m.safetensors m
echo room >m/__metadata__/note || fail "there is room again"
echo commit >m/.safetensors/commit || fail "$(cat m/.safetensors/result)"
meant disk/m.safetensors <<<'meta["note"] = "room"'
stop m
umount disk

# A disk that fails: write() and fsync() say so, what was there stays, and nothing is wrong once it works again.
if ! command -v strace >/dev/null; then
	echo "not tried: strace is not installed"
	exit 0
fi
# failing CALLS COMMAND...: these calls of the daemon fail meanwhile.
failing() {
	local calls=$1 code=0 tracer
	shift
	strace -f -qq -o /dev/null -e trace="$calls" -e inject="$calls":error=EIO -p "$DAEMON" 2>.log/strace &
	tracer=$!
	until_true 100 is_traced || fail "the daemon cannot be traced: $(cat .log/strace)"
	"$@" 2>err || code=$?
	kill $tracer
	wait $tracer || true
	[ $code != 0 ] && grep -q "Input/output error" err || fail "$calls fail, and $* says: $(cat err)"
}
is_traced() {
	! grep -qx "TracerPid:	0" /proc/"$DAEMON"/task/*/status
}
cp old.safetensors m.safetensors
start m.safetensors m
echo before >m/__metadata__/note
failing pwrite64 dd if=/dev/zero of=m/model/a/b/data bs=5 count=1 conv=notrunc status=none
failing pwrite64 sh -c 'echo lost >m/__metadata__/format'
failing pwrite64 mv m/model/a m/moved
[ "$(cat m/__metadata__/note)" = before ] && [ "$(cat m/model/a/b/data)" = bytes ] || fail "a write that failed changed something"
head -c 3000000 /dev/urandom >outside
failing fsync,fdatasync dd if=outside of=m/model/big/data bs=1M conv=notrunc,fsync status=none
cmp m/model/big/data outside || fail "what write() took is gone after a failed fsync()"
sync m/model/big/data 2>err && fail "what was lost is on disk, says a second fsync()"
grep -q "Input/output error" err || fail "a second fsync(): $(cat err)"
echo model/big >m/.safetensors/discard
sync m/model/big/data m/__metadata__/note || fail "fsync() after a discard"
stop m
