#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat: every byte of every tensor, by each kind of path.
. "$(dirname "$0")/common.sh"

# Each tensor, also those whose name looks like a path or like a slot, as another reader finds it.
python3 - "$program" "$here" <<'END' || fail "bytes of all tensors"
import subprocess, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
import model
rows = model.read("small.safetensors")
assert len(rows) == 13
for name, dtype, shape, want in rows:
    got = subprocess.run([sys.argv[1], "cat", "small.safetensors", name], capture_output=True)
    assert got.returncode == 0 and got.stdout == want, (name, got.stderr)
END

text() { # WANT PATH...
	printf "$1" >want
	code 0 cat small.safetensors "${@:2}"
	same want out "${*:2}"
}
text 'BF16\n' model.layers.0.w/dtype
text 'BF16\n' model/layers/0/w/dtype
text '2 3\n' model.layers/0.w/shape
text '\n' scalar/shape
text '0 4\n' empty/shape
text '' empty
text '2\n' %64ata/shape
text 'pt\n' __metadata__/format
text 'one\ntwo\e[0m\n' '__metadata__/two%09lines'
text 'U8\n7\n' params%2Fdense%2Fkernel/dtype params%2Fdense%2Fkernel/shape

for path in model.norm.weight/data model/norm/weight model/norm.weight model/norm/weight/data /model//norm/./weight/; do
	python3 "$here/model.py" bytes small.safetensors model.norm.weight >want
	code 0 cat small.safetensors "$path"
	same want out "$path"
done
python3 "$here/model.py" bytes shards/model-00002-of-00002.safetensors part2.a >want
code 0 cat shards part2.a
same want out "a tensor of the second shard"

code 0 cat small.safetensors model.norm.weight/data.npy
python3 - "$here/model.py" <<'END' || fail "data.npy"
import ast, struct, subprocess, sys
raw = open("out", "rb").read()
assert raw[:8] == b"\x93NUMPY\x01\x00"
n = struct.unpack("<H", raw[8:10])[0]
head = ast.literal_eval(raw[10:10 + n].decode())
assert head == {"descr": "<f4", "fortran_order": False, "shape": (5,)} and (10 + n) % 64 == 0
want = subprocess.run([sys.executable, sys.argv[1], "bytes", "small.safetensors", "model.norm.weight"], capture_output=True).stdout
assert raw[10 + n:] == want
END
code 1 cat small.safetensors packed/data.npy

code 0 cat small.safetensors .safetensors/header.json
python3 -c 'import json; assert json.load(open("out"))["big"]["shape"] == [3 << 20]' || fail "header.json"
code 0 cat small.safetensors .safetensors/tensors.tsv
[ "$(wc -l <out)" -eq 14 ] || fail "tensors.tsv has $(wc -l <out) lines"

# What is not there is named; the rest is written all the same.
code 1 cat small.safetensors nope model.norm.weight/dtype model
has out F32
has err 'no tensor or file "nope"'
has err '"model" is a module'
code 1 cat small.safetensors $'b\e[31mad'
has err '"b\x1b[31mad"'
code 1 cat hole.safetensors a
[ ! -s out ] || fail "bytes of a broken model"
code 3 cat nowhere a
code 2 cat small.safetensors

on_terminal 24 80 cat small.safetensors '__metadata__/two%09lines'
printf 'one\ntwo\\x1b[0m\n' >want
same want out "metadata on a terminal"

# A file that is cut short between two chunks is an error, never a short success.
python3 - "$program" <<'END' || fail "a source cut while it is read"
import os, shutil, subprocess, sys, time
shutil.copy("small.safetensors", "cut.safetensors")
p = subprocess.Popen([sys.argv[1], "cat", "cut.safetensors", "big"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
p.stdout.read(1)  # the first chunk was read, and the pipe holds it up
os.truncate("cut.safetensors", os.path.getsize("cut.safetensors") - 1)
rest = p.stdout.read()
sentence = p.stderr.read()
assert p.wait() == 3 and len(rest) + 1 < 3 << 20 and b"cut.safetensors" in sentence, (p.returncode, len(rest), sentence)
END
finish
