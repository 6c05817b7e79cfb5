#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# convert: other files for the same model.
. "$(dirname "$0")/common.sh"

code 0 convert small.safetensors copy.safetensors
grep -qE "^copy.safetensors: wrote 1 file, 3.2 MB \($ways\) in [0-9]+\.[0-9]+ s\$" out || fail "the line: $(cat out)"
witness "a copy" <<'END'
old, new = read("small.safetensors"), committed("copy.safetensors")
assert list(new.tensors.items()) == list(old.tensors.items()) and new.metadata == old.metadata
END
code 0 convert -q --max-shard-size 3.2MB small.safetensors big
[ ! -s out ] || fail "convert -q speaks"
code 0 convert -q --max-shard-size 1kb small.safetensors split/
code 0 check split
witness "shards" <<'END'
old, new = read("small.safetensors"), read("split")
assert new.tensors == old.tensors and new.metadata == old.metadata
files = sorted(f for f in os.listdir("split") if f.endswith(".safetensors"))
assert files == [f"small-0000{i}-of-0000{len(files)}.safetensors" for i in range(1, len(files) + 1)] and len(files) == 2, files
assert read_file("big").tensors == old.tensors
END
code 0 convert --single split one.safetensors
witness "one file of shards" <<'END'
total = json.load(open("split/small.safetensors.index.json"))["metadata"]["total_size"]
assert total == sum(len(t.data) for t in read("split").tensors.values())
assert committed("one.safetensors").tensors == read("small.safetensors").tensors
END
code 0 convert --sort -o format=pt odd.safetensors sorted.safetensors
witness "--sort and format=pt" <<'END'
assert committed("sorted.safetensors").metadata == {"format": "pt"}
END
code 0 convert --sort small.safetensors order.safetensors
witness "the reference's order" <<'END'
import refwriter
model = read("small.safetensors")
refwriter.write("want.safetensors", [refwriter.Tensor(n, *t) for n, t in model.tensors.items()], model.metadata)
assert open("want.safetensors", "rb").read() == open("order.safetensors", "rb").read()
END
code 0 convert shards again
witness "the same shards" <<'END'
assert read("again") == read("shards") and sorted(os.listdir("again")) == sorted(os.listdir("shards"))
END
# What is lax comes out strict.
code 0 convert -o lax nul.safetensors strict.safetensors
sound strict.safetensors

# What is staged plays no part, and an output never replaces anything.
cp small.safetensors m.safetensors
code 0 rm m.safetensors big
code 0 convert m.safetensors whole.safetensors
cmp -s copy.safetensors whole.safetensors || fail "staged changes were converted"
code 6 convert m.safetensors whole.safetensors
code 6 convert m.safetensors m.safetensors
code 6 convert m.safetensors shards
code 6 convert m.safetensors nowhere/x
[ -z "$(find . -name '*stfs-commit*')" ] || fail "temporary files"
code 1 convert hole.safetensors x
code 3 convert nowhere x
code 2 convert m.safetensors
code 2 convert --max-shard-size 0 m.safetensors x
code 2 convert -o new nowhere x

# A progress bar on a terminal, when it takes a while, and nothing of it in the end.
python3 - "$program" <<'END' || fail "the progress bar"
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "convert", "layers.safetensors", "slow.safetensors"])
out = b""
try:
    while chunk := os.read(fd, 65536):
        out += chunk
except OSError:
    pass
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, out
assert out.endswith(b" s\r\n") and b"slow.safetensors: wrote 1 file, 1.5 GB" in out, out[-300:]
if float(out.split()[-2]) > 1 or b"[#" in out or b"[." in out:
    assert b"\r\x1b[K" in out and b"left\x1b[K" in out and b" GB  " in out, out[:300]
END
rm -f slow.safetensors

# Interrupted: nothing is left.
if ! "$program" convert layers.safetensors quick.safetensors | grep -q cloned; then
	"$program" convert layers.safetensors stopped.safetensors >out 2>err &
	pid=$!
	sleep 0.1
	kill -INT $pid 2>/dev/null && kill -TERM $pid 2>/dev/null
	wait $pid
	[ ! -e stopped.safetensors ] || has out "wrote"
	[ -z "$(find . -name '*stfs-commit*')" ] || fail "temporary files of an interrupted command"

	# Under nohup a hangup stops nothing.
	(trap '' HUP && exec "$program" convert layers.safetensors hung.safetensors) >out 2>err &
	pid=$!
	sleep 0.1
	kill -HUP $pid 2>/dev/null
	wait $pid || fail "a hangup under nohup: exit $?: $(cat err)"
fi

# A limit on the size of files is an error that is told, and leaves nothing.
cp small.safetensors limited.safetensors
for words in "convert small.safetensors large.safetensors" "set-metadata --commit limited.safetensors a=b"; do
	# shellcheck disable=SC2086
	(ulimit -f 1000 && exec "$program" $words) >out 2>err
	got=$?
	[ $got -gt 0 ] && [ $got -lt 128 ] || fail "a limit on the size of files: $words: exit $got"
	has err "File too large"
	[ -z "$(find . -name '*stfs-commit*')" ] || fail "temporary files at a limit on the size of files"
done
finish
