# SPDX-License-Identifier: Apache-2.0
# Sourced by every test of this folder. The contract:
#   STFS    the program under test            SRC     the root of the source tree
#   PYTHON  a Python 3 (default python3)
# A test gets an empty directory, $T, and stands in it. It exits 0, or 77 with a reason when something it needs is
# missing. Whatever it mounted is unmounted when it ends, however it ends; a daemon that is left over, or that was
# reported by a sanitizer, fails it. Nothing waits by the clock: the command returns when the mount is ready.
set -euo pipefail

: "${STFS:?the program under test}" "${SRC:?the root of the source tree}"
PYTHON=${PYTHON:-python3}
STFS=$(realpath "$STFS")
SRC=$(realpath "$SRC")
MODEL=$SRC/tests/models/tiny-llama.safetensors
HERE=$SRC/tests/e2e
T=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/stfs-e2e.XXXXXX")")
LOG=$T/.log/daemon

# The tag finds our daemons among all processes, whatever their arguments look like.
export STFS_E2E_TAG=$T
export PYTHONPATH=$SRC/tests/models:$HERE PYTHONDONTWRITEBYTECODE=1
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:log_path=$T/.log/sanitizer
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-}:print_stacktrace=1:log_path=$T/.log/sanitizer
export TSAN_OPTIONS=${TSAN_OPTIONS:-}:log_path=$T/.log/sanitizer
mkdir "$T/.log"
. "$HERE/expect.sh"

skip() {
	echo "skip: $*"
	exit 77
}

need() {
	local tool
	for tool; do
		command -v "$tool" >/dev/null || skip "$tool is not installed"
	done
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

need_python() {
	"$PYTHON" -c "import ${1:-sys}" 2>/dev/null || skip "$PYTHON has no ${1:-sys}"
}

# daemons: the pids of the programs under test that this test started.
daemons() {
	local dir
	for dir in /proc/[0-9]*; do
		[ "$(readlink "$dir/exe")" = "$STFS" ] || continue
		grep -qF "STFS_E2E_TAG=$T" "$dir/environ" && echo "${dir#/proc/}"
	done 2>/dev/null || true
}

# mounts: the mountpoints below $T, the newest first, as the kernel escapes them.
mounts() {
	awk -v dir="$T/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | tac
}

# until_true TENTHS COMMAND...: waits for something that is about to happen.
until_true() {
	local n=$1
	shift
	while ! "$@"; do
		[ $((n--)) -gt 0 ] || return 1
		sleep 0.1
	done
}

no_daemons() {
	[ -z "$(daemons)" ]
}

clean_up() {
	local code=$? point pid
	trap - EXIT
	set +eu
	cd /
	for pid in $(daemons); do kill -CONT "$pid"; done 2>/dev/null
	for point in $(mounts); do umount -l "$(printf '%b' "${point//\\/\\0}")"; done
	if ! until_true 100 no_daemons; then
		echo "FAIL: a daemon is left: $(daemons)" >&2
		for pid in $(daemons); do kill -9 "$pid"; done
		code=1
	fi
	if grep -hE 'ERROR: [A-Za-z]+Sanitizer|WARNING: ThreadSanitizer|runtime error:' -r "$T/.log" >&2; then
		code=1
	fi
	if [ $code != 0 ] && [ $code != 77 ]; then
		head -c 20000 "$T"/.log/* >&2 2>/dev/null
	fi
	rm -rf --one-file-system "$T"
	exit $code
}
trap clean_up EXIT
cd "$T"

# mount_it SOURCE MOUNTPOINT [OPTIONS...]: makes the mountpoint and mounts in the background.
mount_it() {
	mkdir -p "$2"
	"$STFS" "$@"
}

# start SOURCE MOUNTPOINT [OPTIONS...]: the same in the foreground, with the log in $LOG and the pid in $DAEMON.
start() {
	mkdir -p "$2"
	: >"$LOG"
	"$STFS" "$@" -f 2>>"$LOG" &
	DAEMON=$!
	until_true 100 is_ready || fail "the daemon did not get ready"
}

is_ready() {
	grep -q "mounted " "$LOG" || ! kill -0 "$DAEMON" 2>/dev/null
}

# stop MOUNTPOINT: unmounts; a foreground daemon must end well.
stop() {
	"$STFS" umount "$1" || fail "umount $1 exited $?"
	if [ -n "${DAEMON:-}" ]; then
		wait "$DAEMON" || fail "the daemon exited $?"
		DAEMON=
	fi
}

is_mounted() {
	mounts | grep -qxF "$T/$1"
}

# FUSE must be there and allowed; only then is a refusal of it a failure.
if [ ! -c /dev/fuse ]; then
	skip "there is no /dev/fuse"
fi
probe_code=0
mount_it "$MODEL" "$T/.probe" -o ro 2>"$T/.log/probe" || probe_code=$?
case $probe_code in
0) "$STFS" umount "$T/.probe" && rmdir "$T/.probe" ;;
5) skip "FUSE is not permitted here: $(cat "$T/.log/probe")" ;;
*) fail "the model cannot be mounted: exit $probe_code" ;;
esac
rm "$T/.log/probe"
