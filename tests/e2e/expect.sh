# SPDX-License-Identifier: Apache-2.0
# The checks that need nothing but $T, for lib.sh and for scripts that run as somebody else.

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

# expect CODE PATTERN COMMAND...: it exits so, and its first line on stderr is the sentence (a regular expression).
expect() {
	local want=$1 pattern=$2 code=0
	shift 2
	timeout 60 "$@" >"$T/.log/stdout" 2>"$T/.log/stderr" || code=$?
	[ $code = "$want" ] || fail "exit $code, not $want: $* ($(head -3 "$T/.log/stderr"))"
	if [ -z "$pattern" ]; then
		[ ! -s "$T/.log/stderr" ] || fail "stderr is not empty: $* ($(head -3 "$T/.log/stderr"))"
		return
	fi
	head -1 "$T/.log/stderr" | grep -qxE "safetensorsfs: $pattern" ||
		fail "no such sentence: $pattern: $* ($(head -3 "$T/.log/stderr"))"
}
