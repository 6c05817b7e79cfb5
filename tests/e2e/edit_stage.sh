#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is staged outlives the mount: unmounts, signals, a killed daemon. One writer a model; what does not fit is kept, and said.
. "$(dirname "$0")/lib.sh"
. "$HERE/edit.sh"
STAGE=.m.safetensors.stage
WARN='".*m.safetensors": warning: mounted read-only: '

# edit_all: an edit of every kind; then: what it means.
edit_all() {
	echo edited >m/__metadata__/note
	rm m/__metadata__/config
	printf 12345 >m/model/a/b/data
	dd if=/dev/zero of=m/model/big/data bs=1000 count=1 seek=1000 conv=notrunc status=none
	mv m/model/a/w m/moved
	mkdir m/scratch
	echo scratch >m/scratch/file
	cp -r m/lm_head m/copy
	echo "half a tensor" >m/half
	mkdir m/half.tensor
	echo F32 >m/half.tensor/dtype
}
mean_all='
meta["note"] = "edited"
del meta["config"]
put("model.a.b", data=b"12345")
big = t["model.big"].data
put("model.big", data=big[:1000000] + bytes(1000) + big[1001000:])
move("model.a.w", "moved")
put("copy.weight", *t["lm_head.weight"][1:])
'
# state: all that the mount shows, to compare.
state() {
	(cd m && find . -type f -exec sha256sum {} + -o -type d -printf 'dir %p\n' | sort)
	cat m/.safetensors/status
}
complete() {
	rm -r m/half m/half.tensor m/scratch
	commit
	meant <<<"$mean_all"
	finish
}

# Made at the first edit, for nobody else, and gone when there is nothing in it.
begin
[ ! -e $STAGE ] || fail "a staging area before the first edit"
cat m/model/a/b/data >/dev/null
echo x >m/file
[ "$(stat -c %a $STAGE)" = 700 ] || fail "the staging area is open: $(stat -c %a $STAGE)"
[ "$(find $STAGE -type f -perm /077 | wc -l)" = 0 ] || fail "staged files are open to others"
rm m/file
finish

# Unmounting, signals and kill -9 keep every edit.
begin
edit_all
state >want
"$STFS" umount m
[ -d $STAGE ] || fail "unmounting dropped what is staged"
[ "$(sha256sum <m.safetensors)" = "$(sha256sum <old.safetensors)" ] || fail "unmounting changed the model"
mount_it m.safetensors m
state | diff want - || fail "after a remount"
for signal in TERM KILL INT KILL; do
	kill -$signal "$(daemons)"
	until_true 100 no_daemons || fail "SIG$signal: the daemon lives on"
	! is_mounted m || "$STFS" umount m
	expect 0 "" "$STFS" m.safetensors m
	state | diff want - || fail "after SIG$signal"
done
complete

# Attributes of directories last as long, and are no reason to keep the staging area.
# looks DIRECTORIES: what there is to say of them.
looks() {
	local dir
	for dir; do stat -c '%n %a %u %g %y' "$dir"; done
}
for layout in "" flat; do
	[ -n "$layout" ] && old="m/model.a.w m/lm_head.weight" || old="m/model m/model/a/w"
	begin $layout
	looks m m/__metadata__ $old >plain
	chmod 700 $old
	touch -d '2001-02-03 04:05:06.789' m $old m/__metadata__
	[ "$(cat m/.safetensors/status)" = "# nothing is staged" ] || fail "a chmod is staged: $(cat m/.safetensors/status)"
	finish
	mount_it m.safetensors m ${layout:+-o flat}
	looks m m/__metadata__ $old | diff plain - || fail "attributes outlive what is staged (${layout:-nested})"
	mkdir m/new
	mkdir -m 711 m/new/deep
	[ "$(id -u)" != 0 ] || chown 4711:815 m/new/deep $old
	chmod 700 m/new m $old
	touch -d '2001-02-03 04:05:06.789' m/new m/new/deep m/__metadata__ $old m
	looks m m/__metadata__ $old m/new m/new/deep >want
	for end in kill umount kill; do
		[ $end = umount ] || kill -9 "$(daemons)"
		[ $end = umount ] || until_true 100 no_daemons
		"$STFS" umount m
		mount_it m.safetensors m ${layout:+-o flat}
		looks m m/__metadata__ $old m/new m/new/deep | diff want - || fail "directories after $end (${layout:-nested})"
	done
	mv m/new m/moved
	kill -9 "$(daemons)"
	until_true 100 no_daemons
	"$STFS" umount m
	mount_it m.safetensors m ${layout:+-o flat}
	[ "$(stat -c %a:%y m/moved/deep)" = "$(grep deep want | cut -d' ' -f 2,5-7 | sed 's/ /:/')" ] ||
		fail "a moved directory: $(stat m/moved/deep)"
	echo all >m/.safetensors/discard
	looks m m/__metadata__ $old | diff plain - || fail "attributes outlive a discard (${layout:-nested})"
	finish
done

# Killed at once after each edit, while a file is open and mapped.
begin
for n in 1 2 3 4 5 6; do
	exec 9>>m/__metadata__/note
	echo $n >&9
	printf $n | dd of=m/model/big/data bs=1 seek=$n conv=notrunc status=none
	kill -9 "$(daemons)"
	until_true 100 no_daemons
	exec 9>&-
	"$STFS" umount m
	mount_it m.safetensors m
done
commit
meant <<-'END'
	meta["note"] = "hello world\n1\n2\n3\n4\n5\n6"
	put("model.big", data=t["model.big"].data[:1] + b"123456" + t["model.big"].data[7:])
END
finish

# Stores into a map that nobody flushed, when the daemon is told to go.
begin
"$PYTHON" - m/model/big/data <<-'END' &
	import mmap, os, sys, time
	fd = os.open(sys.argv[1], os.O_RDWR)
	map = mmap.mmap(fd, 0)
	map[77:83] = b"stored"
	open("stored", "w").close()
	while not os.path.exists("go"):
	    time.sleep(0.01)
	os._exit(0)
END
until_true 100 [ -e stored ] || fail "no store"
kill -TERM "$(daemons)"
until_true 100 no_daemons || fail "SIGTERM with a mapped file: the daemon lives on"
touch go
wait $!
! is_mounted m || "$STFS" umount m
mount_it m.safetensors m
[ "$(dd if=m/model/big/data bs=1 skip=77 count=6 status=none)" = stored ] || fail "a store into a map is lost"
echo all >m/.safetensors/discard
finish

# What is staged in one layout is not shown in the other, and nothing of it is lost; commands find it in either.
begin flat
echo 24 >m/model.a.w/shape
mkdir m/added.x
printf x >m/added.x/data
printf U8 >m/added.x/dtype
echo >m/added.x/shape
rm -r m/empty
echo scratch >m/lm_head.weight/notes.txt
"$STFS" umount m
mount_it m.safetensors m 2>.log/out
grep -q 'read-only: edits made with -o flat wait in .*: mount it so, or commit or discard them' .log/out ||
	fail "another layout: $(cat .log/out)"
! touch m/new 2>/dev/null || fail "another layout is writable"
[ "$(cat m/model/a/w/shape)" = "4 6" ] || fail "another layout shows edits"
"$STFS" umount m
expect 0 "" "$STFS" mv m.safetensors lm_head head
expect 0 "" "$STFS" mv m.safetensors --map /dev/stdin <<'END'
model.a.b	model.scale
model.scale	model.a.b
END
expect 0 "" "$STFS" rm m.safetensors added.x
expect 0 "" "$STFS" put m.safetensors put.b old.safetensors --dtype U8 --shape "$(stat -c %s old.safetensors)"
expect 0 "" "$STFS" discard m.safetensors empty
expect 0 "" "$STFS" status m.safetensors
grep -qx 'R lm_head.weight -> head.weight' .log/stdout || fail "status of the other layout: $(cat .log/stdout)"
mount_it m.safetensors m -o flat
[ "$(cat m/head.weight/notes.txt)" = scratch ] && rm m/head.weight/notes.txt || fail "a scratch file is lost"
"$STFS" umount m
expect 0 "" "$STFS" commit -q m.safetensors
meant m.safetensors <<-'END'
	put("model.a.w", shape=[24])
	move("lm_head.weight", "head.weight")
	move("model.a.b", "aside"), move("model.scale", "model.a.b"), move("aside", "model.scale")
	whole = open("old.safetensors", "rb").read()
	put("put.b", "U8", [len(whole)], whole)
END
[ ! -e .m.safetensors.stage ] || fail "left after a commit of the other layout"
# A deleted name that is another path in the other layout.
"$PYTHON" - <<-'END'
	from refwriter import Tensor, write
	write("odd.safetensors", [Tensor(name, "U8", [1], b"x") for name in ("a/b.c", "kept")], {})
END
mount_it odd.safetensors m -o flat
rm -r m/a%2Fb.c
"$STFS" umount m
expect 0 "" "$STFS" discard odd.safetensors a/b.c
[ ! -e .odd.safetensors.stage ] || fail "a name that was deleted in the flat layout is not discarded"

# A file that is removed while it is open goes on for whoever has it, and is nothing after a remount.
begin
"$PYTHON" - <<-'END'
	import os
	fd = os.open("m/tmp", os.O_RDWR | os.O_CREAT | os.O_EXCL)
	os.unlink("m/tmp")
	assert os.fstat(fd).st_nlink == 0
	os.write(fd, b"x" * 10000)
	os.ftruncate(fd, 5000)
	os.fchmod(fd, 0o600)
	assert os.fstat(fd).st_size == 5000 and os.pread(fd, 9000, 1) == b"x" * 4999
	data = os.open("m/model/a/b/data", os.O_RDWR)
	os.rename("m/model/scale/data", "m/model/a/b/data")
	os.pwrite(data, b"gone", 0)
	assert os.pread(data, 9, 0) == b"gones" and os.fstat(data).st_size == 5
END
kill -9 "$(daemons)"
until_true 100 no_daemons
"$STFS" umount m
mount_it m.safetensors m
[ ! -e m/tmp ] && [ "$(od -An -tx1 m/model/a/b/data | tr -d ' ')" = 803f ] || fail "after a removed file was written"
mv m/model/a/b/data m/model/scale/data
printf bytes >m/model/a/b/data
echo commit >m/.safetensors/commit
meant </dev/null
finish

# One writer: a second mount is read-only and says who holds the model.
begin
mkdir second
expect 0 "${WARN}it is edited at \"$T/m\"" "$STFS" m.safetensors second
touch second/x 2>/dev/null && fail "a second mount is writable"
cat second/model/a/b/data >/dev/null
echo one >m/__metadata__/note
[ "$(cat second/__metadata__/note)" = "hello world" ] || fail "a second mount shows what is staged"
commit
[ "$(cat second/__metadata__/note)" = "hello world" ] || fail "a second mount lost the old model"
"$STFS" umount second
expect 0 "${WARN}it is edited at \"$T/m\"" "$STFS" m.safetensors second
[ "$(cat second/__metadata__/note)" = one ] || fail "the lock did not move to the new file"
finish
mkdir third
expect 0 "" "$STFS" m.safetensors third
echo two >third/__metadata__/note
"$STFS" umount third
"$STFS" umount second
rm -r $STAGE

# Somewhere else.
mkdir -m 700 stage
begin stage=stage
echo elsewhere >m/__metadata__/note
[ -e stage/journal ] && [ ! -e $STAGE ] || fail "-o stage=DIR is not used"
"$STFS" umount m
mount_it m.safetensors m -o stage="$T/stage"
[ "$(cat m/__metadata__/note)" = elsewhere ] || fail "-o stage=DIR is not found again"
commit
meant <<<'meta["note"] = "elsewhere"'
finish
[ -z "$(ls -A stage)" ] || fail "left in the user's directory: $(ls -A stage)"
echo precious >stage/file
expect 6 'the staging area .*stage is neither empty nor was used as one: it holds "file"' "$STFS" m.safetensors m -o stage=stage
[ "$(cat stage/file)" = precious ] || fail "a directory of the user's was cleared"
mkdir -p out/stage
chmod 700 out/stage
expect 4 'the mountpoint ".*/out" would hide the staging area "out/stage"' "$STFS" m.safetensors out -o stage=out/stage

# Another version of the model: shown as it is, and nothing is lost.
begin
edit_all
"$STFS" umount m
cp -r $STAGE kept
mkdir before
cp -p m.safetensors before/
touch -d '2001-01-01' m.safetensors
expect 0 "$WARN.*edits for another version of .* wait in .*; nothing is lost: .*'safetensorsfs discard .*' drops them, 'safetensorsfs commit .*--output .*" \
	"$STFS" m.safetensors m
[ "$(cat m/__metadata__/note)" = "hello world" ] || fail "edits for another version are shown"
(echo x >m/__metadata__/note) 2>/dev/null && fail "a mount with edits for another version is writable"
"$STFS" umount m
diff -r kept $STAGE || fail "edits for another version were touched"
expect 0 "" "$STFS" discard -o stage=$STAGE before/m.safetensors half.tensor half
expect 0 "" "$STFS" commit -q -o stage=$STAGE --output taken.safetensors before/m.safetensors
meant taken.safetensors <<<"$mean_all"
touch -r old.safetensors m.safetensors
rm -r $STAGE kept

# A journal that is damaged, or torn at its end.
begin
edit_all
state >want
"$STFS" umount m
cp $STAGE/journal good
head -c 30 /dev/urandom >>$STAGE/journal
expect 0 "" "$STFS" m.safetensors m
state | diff want - || fail "after a torn journal"
"$STFS" umount m
cp good $STAGE/journal
printf X | dd of=$STAGE/journal bs=1 seek=200 conv=notrunc status=none
expect 0 "$WARN.*" "$STFS" m.safetensors m
[ "$(cat m/__metadata__/note)" = "hello world" ] || fail "a damaged journal is shown"
"$STFS" umount m
cp good $STAGE/journal
expect 0 "" "$STFS" m.safetensors m
state | diff want - || fail "after a damaged journal"
complete

# Read-only when asked, and where what is there cannot be told from what is broken.
for options in ro lax partial; do
	begin $options
	grep -q " $T/m ro" /proc/self/mountinfo || grep " $T/m " /proc/self/mountinfo | grep -q ' ro,' || fail "$options is writable"
	touch m/x 2>/dev/null && fail "$options: an edit is accepted"
	"$STFS" umount m
done

# A folder that cannot be written to: an error at the first edit, and a line in the log.
mkdir folder
cp old.safetensors folder/m.safetensors
if [ "$(id -u)" = 0 ]; then
	mount -t tmpfs -o size=20M none folder
	cp old.safetensors folder/m.safetensors
	mount -o remount,ro folder
	error="Read-only file system"
else
	chmod 500 folder
	error="Permission denied"
fi
start folder/m.safetensors m
(echo x >m/__metadata__/note) 2>err && fail "an edit of what cannot be written is accepted"
grep -q "$error" err || fail "the first edit says $(cat err)"
grep -q "nothing can be edited: the staging area .* cannot be made: $error" "$LOG" || fail "the log says $(cat "$LOG")"
[ "$(cat m/__metadata__/note)" = "hello world" ] || fail "a refused edit is shown"
stop m
expect 6 "nothing can be edited: the staging area .* cannot be made: $error" "$STFS" set-metadata folder/m.safetensors note=x
mkdir -m 700 writable
start folder/m.safetensors m -o stage=writable
echo x >m/__metadata__/note || fail "with -o stage an edit works"
stop m
expect 6 "folder/m.safetensors: .*: $error" "$STFS" commit -o stage=writable folder/m.safetensors
expect 0 "" "$STFS" commit -q -o stage=writable --output elsewhere.safetensors folder/m.safetensors
meant elsewhere.safetensors <<<'meta["note"] = "x"'
[ "$(id -u)" != 0 ] || umount folder
