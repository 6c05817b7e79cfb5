#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ends of all kinds: signals, a killed daemon, unmounting what is in use, an aborted connection, a stopped daemon.
. "$(dirname "$0")/lib.sh"
need_python
cp "$MODEL" model.safetensors
DATA=model/embed_tokens/weight/data
NORM=model/norm/weight/data

nothing_mounted() {
	[ -z "$(mounts)" ]
}

gone() {
	until_true 100 no_daemons || fail "$1: the daemon lives on"
	nothing_mounted || fail "$1: the mount is still there"
	[ ! -e model ] || fail "$1: the mountpoint we made is still there"
}

# A signal unmounts, and removes the directory that was made for it. Also while a file is open.
for signal in TERM INT HUP; do
	"$STFS" model.safetensors
	kill -$signal "$(daemons)"
	gone "SIG$signal"

	"$STFS" model.safetensors
	exec 9<model/$DATA
	head -c 100 <&9 >/dev/null
	kill -$signal "$(daemons)"
	gone "SIG$signal while a file is open"
	cat <&9 >/dev/null 2>&1 && fail "a file of a mount that is gone can be read to the end"
	exec 9<&-
done

# In the foreground the daemon exits 0.
start model.safetensors m
kill -TERM "$DAEMON"
wait "$DAEMON" || fail "SIGTERM: exit $?"
[ -z "$(mounts)" ] || fail "SIGTERM: the mount is still there"

# Under nohup a hangup ends neither a mount in the foreground nor a commit; a daemon has no terminal, and heeds it.
for options in "" "-o ro"; do
	: >"$LOG"
	mkdir -p m
	(trap '' HUP && exec "$STFS" model.safetensors m -f $options) 2>>"$LOG" &
	DAEMON=$!
	until_true 100 is_ready || fail "the daemon did not get ready"
	kill -HUP "$DAEMON"
	[ -s m/$NORM ] || fail "an ignored SIGHUP ended a mount"
	stop m
	(trap '' HUP && exec "$STFS" model.safetensors $options)
	kill -HUP "$(daemons)"
	gone "SIGHUP of a daemon that nohup started"
done

# A daemon killed outright: the mount is dead, is refused as a mountpoint, and can be unmounted.
"$STFS" model.safetensors
kill -9 "$(daemons)"
until_true 100 no_daemons
cat model/$DATA >/dev/null 2>&1 && fail "a dead mount answers"
expect 4 '".*/model" is a mount already, .*' "$STFS" model.safetensors
expect 4 '".*/model" is a mount already, .*' "$STFS" model.safetensors model
expect 0 "" "$STFS" umount model
[ -d model ] && rmdir model
expect 4 'cannot unmount "model": No such file or directory' "$STFS" umount model

# umount returns when the daemon is gone, not before.
"$STFS" model.safetensors
pid=$(daemons)
kill -STOP "$pid"
(sleep 0.5 && kill -CONT "$pid") &
"$STFS" umount model
[ ! -e model ] || fail "umount did not wait for the daemon"
wait $!

# Nor does it wait for who mounts there next.
if [ "$(id -u)" = 0 ]; then
	"$STFS" model.safetensors
	pid=$(daemons)
	kill -STOP "$pid"
	timeout 20 "$STFS" umount model &
	until_true 100 nothing_mounted || fail "not unmounted while the daemon is stopped"
	mount -t tmpfs none model
	wait $! || fail "umount waits for the next mount: exit $?"
	umount model
	kill -CONT "$pid"
	gone "umount, and another mount"
fi

# What is mounted elsewhere too goes on there, and nobody waits for that.
if [ "$(id -u)" = 0 ] && mkdir second && "$STFS" model.safetensors && mount --bind model/model second; then
	timeout 20 "$STFS" umount model || fail "umount waits for a second mount: exit $?"
	[ -f second/norm/weight/data ] || fail "unmounting one place took the other away"
	umount second
	gone "umount of the second place"
fi

# Unmounting while busy: refused and still there; lazily, those who read finish.
"$STFS" model.safetensors
exec 9<model/$DATA
expect 4 '".*/model" is busy: .*' "$STFS" umount model
[ -f model/$DATA ] || fail "a refused unmount took the mount away"
expect 0 "" "$STFS" umount -l model
[ -z "$(mounts)" ] || fail "umount -l: the mount is still there"
cmp - <(cat <&9) < <("$STFS" cat model.safetensors model.embed_tokens.weight) || fail "umount -l cut off a reader"
exec 9<&-
gone "umount -l"

# Somebody stands in it.
"$STFS" model.safetensors
(cd model/model && expect 4 '".*/model" is busy: .*' "$STFS" umount "$T/model")
"$STFS" umount model
gone "umount"

# The kernel's own way out.
if [ "$(id -u)" = 0 ] && [ -d /sys/fs/fuse/connections ]; then
	start model.safetensors m
	device=$(awk -v point="$T/m" '$5 == point { split($3, a, ":"); print a[2] }' /proc/self/mountinfo)
	if [ -w /sys/fs/fuse/connections/"$device"/abort ]; then
		echo 1 >/sys/fs/fuse/connections/"$device"/abort
		until_true 100 no_daemons || fail "abort: the daemon lives on"
		wait "$DAEMON" || true
		DAEMON=
		! is_mounted m || "$STFS" umount m || fail "abort: cannot unmount"
	else
		stop m
	fi
fi

# A stopped daemon: a reader can be killed, nothing stays in the kernel, and it goes on when continued.
# Only once every thread stands still: one that takes a request on its way to the stop keeps the reader waiting for it.
all_stopped() {
	! grep -h '^State:' /proc/"$DAEMON"/task/*/status | grep -qv 'T (stopped)'
}
# Names and attributes that a listing brought are the kernel's to keep in a read-only mount: nobody is asked again.
start model.safetensors m -o ro
ls m/model/norm/weight m/model/norm m/model m >/dev/null
sleep 1.5
kill -STOP "$DAEMON"
until_true 50 all_stopped || fail "SIGSTOP: the daemon goes on"
timeout 10 test -s m/$NORM || fail "the kernel asks again for what it was told"
kill -CONT "$DAEMON"
stop m

start model.safetensors m
kill -STOP "$DAEMON"
until_true 50 all_stopped || fail "SIGSTOP: the daemon goes on"
cat m/$DATA >/dev/null &
reader=$!
until_true 50 grep -q . /proc/$reader/wchan || true
kill -9 $reader
wait $reader 2>/dev/null || true
[ ! -d /proc/$reader ] || fail "a killed reader of a stopped daemon hangs"
kill -CONT "$DAEMON"
[ "$(wc -c <m/$DATA)" = "$(cat m/$DATA | wc -c)" ] || fail "the daemon did not go on"
stop m
