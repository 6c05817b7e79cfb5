#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# status, diff, commit and discard of a mounted model, by its mount or by its name; the other commands leave it alone.
. "$(dirname "$0")/lib.sh"
need_python

cp "$MODEL" model.safetensors
cp model.safetensors old.safetensors
start model.safetensors m
echo 1 >m/__metadata__/new
mv m/model/layers m/model/blocks

# The same answer by every name.
"$STFS" status m >status
grep -qx 'A __metadata__/new' status || fail "status: $(cat status)"
grep -q '^R model\.layers\..* -> model\.blocks\.' status || fail "status: $(cat status)"
cmp status m/.safetensors/status
for name in model.safetensors ./m/ m/model/blocks "$T/model.safetensors"; do
	"$STFS" status "$name" | cmp - status
done
ln -s model.safetensors link.safetensors
"$STFS" status link.safetensors | cmp - status
for command in status diff; do
	"$STFS" $command --json m >out.json
	"$PYTHON" -c 'import json; assert json.load(open("out.json"))["changes"]'
done
"$STFS" diff model.safetensors | grep -A1 -x 'A __metadata__/new' | grep -qx '    "1"' || fail "diff"

# Edits belong into the mount.
for words in "set-metadata model.safetensors a=b" "rm-metadata model.safetensors new" "rm model.safetensors model" \
	"mv model.safetensors model x" "put model.safetensors x $T/status"; do
	# shellcheck disable=SC2086
	expect 4 ".* is mounted at \"$T/m\": change it there, .*" "$STFS" $words
done
expect 4 ".* change it there, .*" "$STFS" set-metadata m a=b
expect 3 ".* is a mount: .*" "$STFS" convert m x.safetensors
expect 0 "" "$STFS" convert -q model.safetensors unstaged.safetensors

# Written elsewhere by the mount: nothing is committed.
expect 0 "" "$STFS" commit --dry-run m
grep -q "^$T/m: would write 1 file, " .log/stdout || fail "dry run"
expect 0 "" "$STFS" commit --output "a new.safetensors" m
expect 6 '.*/a new.safetensors" is there already: .*' "$STFS" commit --output "a new.safetensors" m
expect 0 "" "$STFS" commit --sort --output sorted.safetensors model.safetensors
expect 0 "" "$STFS" commit --max-shard-size 100KB --output shards/ m
[ -f shards/model.safetensors.index.json ] || fail "no shards: $(ls shards)"
cmp model.safetensors old.safetensors
"$STFS" status m | cmp - status
"$STFS" convert -q --sort "a new.safetensors" order.safetensors
! cmp -s order.safetensors "a new.safetensors" || fail "the order was the reference's already"
cmp order.safetensors sorted.safetensors || fail "--sort by a mount"
"$STFS" check -q "a new.safetensors" sorted.safetensors shards unstaged.safetensors
"$PYTHON" - <<'END'
import errno, os
for line in ("commit now", "commits", "commit output=x", "commit max-shard-size=0", "commit max-shard-size=1x", "commit\ncommit",
             "commit sort\0", "commit single output=", "\n", "sort"):
    fd = os.open("m/.safetensors/commit", os.O_WRONLY)
    try:
        os.write(fd, line.encode())
    except OSError as e:
        assert e.errno == errno.EINVAL, (line, e)
    else:
        raise AssertionError(f"{line!r} was taken")
    os.close(fd)
END
cmp model.safetensors old.safetensors

# Refused: every culprit is named, the write fails, nothing is changed.
mkdir m/half m/other
printf ab >m/half/data
echo F32 >m/other/dtype
expect 1 '.*' "$STFS" commit m
grep -q '"half"' .log/stderr && grep -q '"other"' .log/stderr || fail "culprits: $(cat .log/stderr)"
cmp model.safetensors old.safetensors
"$STFS" discard m half other
"$STFS" status m | cmp - status

# Committed: the mount and the file are the same.
expect 0 "" "$STFS" commit model.safetensors
grep -q "^$T/m: wrote 1 file, " .log/stdout || fail "what was written: $(cat .log/stdout)"
expect 0 "" "$STFS" commit -q m
[ ! -s .log/stdout ] || fail "commit -q speaks"
touch m/__metadata__/4913
expect 0 'warning: model.safetensors: .*"4913" looks like a tool.s leftover.*' "$STFS" commit -q m
[ ! -s .log/stdout ] || fail "commit -q speaks of what it warns of"
rm m/__metadata__/4913
expect 0 "" "$STFS" commit -q m
grep -qx "# nothing is staged" m/.safetensors/status
"$PYTHON" "$HERE/tree.py" m model.safetensors
cat m/__metadata__/new | grep -qx 1
"$STFS" convert model.safetensors again.safetensors >/dev/null
cmp "a new.safetensors" again.safetensors

# Of several at once each is told what came of its own.
for round in 5 4 3 2 1; do
	echo "$round" >m/__metadata__/new
	pids=()
	for n in 1 2 3 4; do
		"$STFS" commit m >"said.$n" &
		pids+=($!)
	done
	wait "${pids[@]}"
	[ "$(grep -l ': wrote 1 file, ' said.? | wc -l)" = 1 ] || fail "several commits at once: $(cat said.?)"
	[ "$(grep -l ': nothing is staged' said.? | wc -l)" = 3 ] || fail "several commits at once: $(cat said.?)"
done

# Dropped by dotted name, by path through the mount, all of it.
rm -r m/model/blocks m/model/norm
echo 2 >m/__metadata__/new
"$STFS" discard m model.blocks
[ -d m/model/blocks ] || fail "a module was not put back"
"$STFS" discard m/__metadata__/new
grep -qx 1 m/__metadata__/new
"$STFS" discard model.safetensors
grep -qx "# nothing is staged" m/.safetensors/status
expect 1 '"nothing.here": there is nothing .*' "$STFS" discard m nothing.here
# What is called "all" is not all there is, and a dotted name means what it leads to from where it stands.
mkdir -p m/all/w
printf U8 >m/all/w/dtype
printf 1 >m/all/w/shape
printf x >m/all/w/data
echo 5 >m/__metadata__/new
"$STFS" discard m all
[ ! -e m/all/w/data ] && grep -qx 5 m/__metadata__/new || fail "what is called all: $("$STFS" status m)"
mkdir m/all
"$STFS" discard m/all
[ ! -e m/all ] && grep -qx 5 m/__metadata__/new || fail "what is called all: $("$STFS" status m)"
rm -r m/model/blocks/0/input_layernorm m/model/blocks/1/input_layernorm
printf x >>m/model/blocks/0/post_attention_layernorm/weight/data
"$STFS" discard m model/blocks.0.post_attention_layernorm.weight
"$STFS" status m | grep -qx "# 3 changes, 0 incomplete, .*" || fail "a link in a module: $("$STFS" status m)"
# A list of any length.
"$PYTHON" - "$STFS" <<-'END' || fail "many paths"
	import subprocess, sys
	paths = ["no" + "/such" * 20 + "/%d" % i for i in range(3000)] + ["model/blocks/0"]
	process = subprocess.run([sys.argv[1], "discard", "m", *paths], capture_output=True, text=True)
	assert process.returncode == 1 and process.stderr.count("there is nothing of that path") == 3000, process
END
"$STFS" status m | grep -qx "# 2 changes, 0 incomplete, .*" || fail "many paths: $("$STFS" status m)"
"$STFS" discard m
# Somebody took away what was staged: that is no read-only mount.
echo 3 >m/__metadata__/new
rm -r .model.safetensors.stage
expect 6 "model.safetensors: .*: No such file or directory" "$STFS" commit m
expect 0 "" "$STFS" discard m
expect 1 'there is nothing called ""' "$STFS" discard m ""
stop m

# Read-only mounts have nothing to commit, and show nothing of what is staged.
"$STFS" set-metadata model.safetensors new=3
mount_it model.safetensors m -o ro
expect 4 ".* read-only.*" "$STFS" commit m
"$STFS" status m | grep -qx "read-only: what is staged is not shown"
for words in "status --json" diff "diff --json" discard; do
	# shellcheck disable=SC2086
	expect 4 '".*/m" is mounted read-only: name the model instead' "$STFS" $words m
done
"$STFS" status model.safetensors | grep -qx 'M __metadata__/new'
expect 0 "" "$STFS" discard model.safetensors
"$STFS" umount m

# A mount whose daemon is dead has nothing to say; the model has.
start model.safetensors m
echo 4 >m/__metadata__/new
kill -9 "$DAEMON"
wait "$DAEMON" || true
DAEMON=
for command in status diff commit discard; do
	expect 4 '".*/m".*: Transport endpoint is not connected' "$STFS" $command m
done
"$STFS" status model.safetensors | grep -q '__metadata__/new'
"$STFS" umount m
"$STFS" discard model.safetensors
