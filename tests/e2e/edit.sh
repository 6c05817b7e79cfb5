# SPDX-License-Identifier: Apache-2.0
# Sourced after lib.sh by the tests of editing: a small model of many kinds, mounted at m, edited, committed, and compared with
# what was meant.
need_python

"$PYTHON" - <<-'END'
	import random
	from refwriter import Tensor, write
	r = random.Random(7)
	tensors = [
	    Tensor("model.a.w", "F32", [4, 6], r.randbytes(96)),
	    Tensor("model.a.b", "U8", [5], b"bytes"),
	    Tensor("model.big", "U8", [3000000], r.randbytes(3000000)),
	    Tensor("model.scale", "BF16", [], b"\x80?"),
	    Tensor("empty", "I32", [0, 4], b""),
	    Tensor("lm_head.weight", "F16", [8, 8], r.randbytes(128)),
	]
	write("old.safetensors", tensors, {"format": "pt", "note": "hello world", "config": '{\n "a": [1, 2]\n}\n'})
END

# begin [OPTIONS]: the model, fresh, mounted at m.
begin() {
	cp old.safetensors m.safetensors
	mount_it m.safetensors m ${1:+-o "$1"}
}

# quiet COMMAND...: it works, and says nothing.
quiet() {
	local code=0
	"$@" >"$T/.log/out" 2>&1 </dev/null || code=$?
	[ $code = 0 ] || fail "exit $code: $* ($(head -3 "$T/.log/out"))"
	[ ! -s "$T/.log/out" ] || fail "$* says: $(head -3 "$T/.log/out")"
}

# commit: what is staged becomes the model, without a warning, and nothing stays.
commit() {
	echo commit >m/.safetensors/commit || fail "commit: $(cat m/.safetensors/result m/.safetensors/status)"
	grep -q '^wrote ' m/.safetensors/result || fail "commit: $(cat m/.safetensors/result)"
	! grep -i warning m/.safetensors/result || fail "commit warns"
	[ "$(cat m/.safetensors/status)" = "# nothing is staged" ] || fail "after a commit: $(cat m/.safetensors/status)"
	[ "$(cat m/.safetensors/progress)" = idle ] || fail "progress after a commit"
	[ ! -e .m.safetensors.stage ] || fail "the staging area is still there"
}

# meant [NEW] <STATEMENTS: the model is the old one but for that, is sound, and is what the mount shows.
meant() {
	"$PYTHON" "$HERE/edited.py" old.safetensors "${1:-m.safetensors}" || fail "not what was meant"
	expect 0 "" "$STFS" check "${1:-m.safetensors}"
	[ $# = 1 ] || "$PYTHON" "$HERE/tree.py" m m.safetensors || fail "the mount shows something else"
}

# finish: unmounts; nothing is left beside the model.
finish() {
	"$STFS" umount m || fail "umount m exited $?"
	[ ! -e .m.safetensors.stage ] || fail "left: $(find .m.safetensors.stage)"
	! ls -A | grep -q '^\.stfs\|\.tmp' || fail "left: $(ls -A)"
}

# refused PATTERN: the commit fails, names the culprit, and changes nothing.
refused() {
	local before code=0
	before=$(cat m.safetensors | sha256sum; cat m/.safetensors/status)
	echo commit >m/.safetensors/commit 2>/dev/null || code=1
	[ $code = 1 ] || fail "a commit that cannot be is done"
	grep -qE "$1" m/.safetensors/result || fail "result does not say $1: $(cat m/.safetensors/result)"
	[ "$before" = "$(cat m.safetensors | sha256sum; cat m/.safetensors/status)" ] || fail "a refused commit changed something"
}
