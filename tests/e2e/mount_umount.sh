#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Mounting and unmounting: every exit code with its sentence, and what is left behind.
. "$(dirname "$0")/lib.sh"

cp "$MODEL" model.safetensors

# Without a mountpoint: made where we are, removed afterwards.
expect 0 "" "$STFS" model.safetensors
is_mounted model || fail "not mounted at ./model"
[ "$(cat model/__metadata__/format)" = pt ] || fail "the mount does not answer"
line=$(grep " $T/model " /proc/self/mountinfo)
[[ $line == *" - fuse.safetensorsfs $T/model.safetensors "* ]] || fail "type or source: $line"
[[ $line == *" rw,nosuid,nodev"* ]] || fail "flags: $line"
[[ $line == *default_permissions* ]] || fail "default_permissions: $line"

# What is a mount already is refused, by every name of it.
expect 4 '".*/model" is a mount already, of ".*/model.safetensors": unmount it first.*' "$STFS" model.safetensors
expect 4 '".*/model" is a mount already, .*' "$STFS" model.safetensors model
expect 4 '".*/model" is a mount already, .*' "$STFS" model.safetensors "$T/./model//"
ln -s model link
expect 4 '".*/model" is a mount already, .*' "$STFS" model.safetensors link
expect 0 "" "$STFS" umount link
[ ! -e model ] || fail "the mountpoint was not removed"
until_true 20 no_daemons || fail "the daemon lives on"

# Who mounts there while another is about to waits for him, and is refused.
if [ "$(id -u)" = 0 ] && command -v flock >/dev/null; then
	mkdir turn
	exec 8<turn
	flock -x 8
	"$STFS" model.safetensors turn 2>late 8<&- &
	sleep 0.5
	mount -t tmpfs none turn
	exec 8<&-
	code=0
	wait $! || code=$?
	umount turn
	[ "$code" = 4 ] && grep -q 'turn" is a mount already, of type "tmpfs"' late || fail "two mounts at once: exit $code"
	[ -z "$(mounts)" ] || fail "two mounts at once: one is left"
fi

# Where autofs waits for a mount, the mount is made. Not all kernels have it: the list of mounts only says that it is there.
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	mkdir awaited
	cat >awaited.sh <<-'END'
		sed "\$ a 999 1 0:99 / $T/awaited rw,relatime - autofs systemd-1 rw,direct" /proc/self/mountinfo >list
		mount --bind list /proc/$$/mountinfo
		exec "$STFS" model.safetensors awaited -f
	END
	env STFS="$STFS" T="$T" unshare -m bash awaited.sh 2>awaited.log &
	until_true 100 grep -q "mounted \|already" awaited.log || fail "autofs: $(cat awaited.log)"
	[ -d "/proc/$!/root$T/awaited/model" ] || fail "autofs: not mounted: $(cat awaited.log)"
	kill -TERM $!
	wait $! || fail "autofs: exit $?"
fi

# An empty directory is used, and kept.
mkdir model
expect 0 "" "$STFS" model.safetensors
expect 0 "" "$STFS" umount model/
[ -d model ] || fail "a directory that was there was removed"
# Who has waited for the end may edit the model.
for i in 1 2 3 4 5; do
	expect 0 "" "$STFS" model.safetensors
	"$STFS" umount model
	flock -n model.safetensors true || fail "the model is locked though it is not mounted any more"
done

# A name clash is an error that names it.
touch model/x
expect 4 '"\./model" is there already and not empty: name another mountpoint' "$STFS" model.safetensors
rm -r model
touch model
expect 4 '"\./model" is there already and not a directory: name another mountpoint' "$STFS" model.safetensors
rm model

# Mountpoints that cannot be used.
mkdir -p dir/sub
cp model.safetensors dir/
expect 4 'the mountpoint "nowhere" does not exist' "$STFS" model.safetensors nowhere
expect 4 'the mountpoint ".*/model.safetensors" is not a directory' "$STFS" dir/model.safetensors model.safetensors
expect 4 'the mountpoint ".*/dir" would hide the source ".*/dir/model.safetensors"' "$STFS" dir/model.safetensors dir
expect 4 'the mountpoint ".*" would hide the source .*' "$STFS" dir/model.safetensors .
expect 4 '"/proc" is a mount already, of type "proc"' "$STFS" model.safetensors /proc
expect 0 "" "$STFS" dir/model.safetensors dir/sub
expect 0 "" "$STFS" umount dir/sub

# A source that cannot be read, or is no model.
expect 3 '.*nosuch\.safetensors.*' "$STFS" nosuch.safetensors
[ ! -e nosuch ] || fail "a mountpoint was left behind"
head -c 1000 model.safetensors >short.safetensors
expect 1 '.*short\.safetensors: .*' "$STFS" short.safetensors
[ "$(wc -l <"$T/.log/stderr")" = 1 ] || fail "more than one sentence"
[ ! -e short ] || fail "a mountpoint was left behind"

# The command line.
expect 2 'nothing to do: .*' "$STFS"
expect 2 'the model to mount is missing' "$STFS" mount
expect 2 'too many arguments: "c"' "$STFS" model.safetensors b c
expect 2 'unknown option "-x"' "$STFS" model.safetensors -x
expect 2 'option "-o" needs a value' "$STFS" model.safetensors -o
expect 2 'unknown option -o "bad"' "$STFS" model.safetensors -o flat,bad
expect 2 'option -o npy=hide\|list\|off cannot be "maybe"' "$STFS" model.safetensors -o npy=maybe
expect 2 'option -o npy=hide\|list\|off needs a value' "$STFS" model.safetensors -o npy
expect 2 'option -o flat takes no value' "$STFS" model.safetensors -o flat=1
expect 2 'options -o allow_other and -o allow_root exclude each other' \
	"$STFS" model.safetensors -o allow_other,allow_root
expect 2 'the mountpoint is missing' "$STFS" umount
expect 2 'unknown option "--now"' "$STFS" umount --now

# umount on what is no mount of ours.
mkdir plain
expect 4 '"plain" is not a safetensorsfs mount' "$STFS" umount plain
expect 4 '"/proc" is not a safetensorsfs mount' "$STFS" umount /proc
expect 4 'cannot unmount "nowhere/at/all": No such file or directory' "$STFS" umount nowhere/at/all

# A source named like a command.
cp model.safetensors ls
expect 0 "" "$STFS" ./ls plain
expect 0 "" "$STFS" umount plain
expect 0 "" "$STFS" mount ls plain
expect 0 "" "$STFS" umount plain

# Names that need escapes on their way into and out of the kernel's list.
mkdir $'odd, dir \\134\nx'
cp model.safetensors $'odd, dir \\134\nx/a,b \\c.safetensors'
expect 0 "" "$STFS" $'odd, dir \\134\nx/a,b \\c.safetensors' -o noexec
expect 4 '".*" is a mount already, of ".*/odd, dir .*/a,b .*c\.safetensors".*' \
	"$STFS" $'odd, dir \\134\nx/a,b \\c.safetensors'
[ -d $'a,b \\c/model' ] || fail "odd mount does not answer"
expect 0 "" "$STFS" umount $'a,b \\c'
mkdir $'odd, dir \\134\nx/mp'
expect 0 "" "$STFS" model.safetensors $'odd, dir \\134\nx/mp'
expect 0 "" "$STFS" umount $'odd, dir \\134\nx/mp'

# As mount(8) and /etc/fstab say it.
expect 0 "" "$STFS" model.safetensors plain -o rw,suid,dev,noatime,max_read=65536
expect 0 "" umount plain
until_true 50 no_daemons || fail "the daemon lives on after umount(8)"

# Nothing of ours holds the caller's descriptors; closed ones do no harm.
[ -z "$(timeout 20 "$STFS" model.safetensors plain 2>&1)" ] || fail "the daemon held the pipe, or talked"
expect 0 "" "$STFS" umount plain
timeout 20 "$STFS" model.safetensors plain <&- >&- 2>&-
[ -d plain/model ] || fail "not mounted with closed descriptors"
expect 0 "" "$STFS" umount plain

# No permission, no device.
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	cat >no_device.sh <<-'END'
		mount -t tmpfs none /dev
		exec "$STFS" model.safetensors
	END
	expect 5 'FUSE refused the mount: there is no /dev/fuse.*' env STFS="$STFS" unshare -m sh no_device.sh
	[ ! -e model ] || fail "a mountpoint was left behind"
fi

# --help knows every option, and each command has its own.
expect 0 "" "$STFS" mount --help
for option in flat 'npy=hide|list|off' 'control=hide|list' lax partial index=NAME 'io=map|pread' direct_io \
	allow_other; do
	grep -qF "  $option  " "$T/.log/stdout" || fail "--help does not name $option"
done
for command in mount umount ls info cat check; do
	expect 0 "" "$STFS" $command --version
	grep -qxE 'safetensorsfs [0-9.]+' "$T/.log/stdout" || fail "$command --version"
	expect 0 "" "$STFS" help $command
	grep -q "^Usage: safetensorsfs .*" "$T/.log/stdout" || fail "no usage for $command"
	grep -q "^  5  *FUSE refused" "$T/.log/stdout" || fail "no exit codes for $command"
done
expect 0 "" "$STFS" --version
grep -qxE 'safetensorsfs [0-9.]+' "$T/.log/stdout" || fail "--version"
