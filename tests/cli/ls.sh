#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ls: names, columns, prefixes, JSON, and what a terminal is spared.
. "$(dirname "$0")/common.sh"

python3 "$here/model.py" names small.safetensors >want
code 0 ls small.safetensors
same want out "names"

code 0 ls -l layers.safetensors odd.10 lm_head
printf '%s\n' "BF16         32000,2048  131072000  lm_head.weight" "F32          11                 44  odd.10.bias" >want
same want out "columns"
code 0 ls -lh layers.safetensors lm_head
has out "131 MB  lm_head.weight"
code 0 ls -l small.safetensors scalar empty packed
printf '%s\n' "F64          -    8  scalar" "F32          0,4  0  empty" "F4           3,2  3  packed" >want
same want out "columns of scalar, empty and packed tensors"

# A piece counts whole: layers.1 is not layers.10. A tree path means the same as the dotted name.
echo model.layers.1.w >want
code 0 ls small.safetensors model.layers.1
same want out "dotted prefix"
code 0 ls small.safetensors model/layers/1/
same want out "tree path"
echo params/dense/kernel >want
code 0 ls small.safetensors params/dense
same want out "prefix of a name with slashes"
code 0 ls small.safetensors params%2Fdense%2Fkernel
same want out "escaped path"
code 1 ls small.safetensors model.lay
has err 'has no tensor "model.lay"'
code 1 ls small.safetensors scalar 'no
pe'
has out scalar
has err 'has no tensor "no\x0ape"'

code 0 ls --json small.safetensors
python3 "$here/model.py" json small.safetensors >want.json
python3 - <<'END' || fail "ls --json"
import json
got, want = json.load(open("out")), json.load(open("want.json"))
assert [{k: t[k] for k in ("name", "dtype", "shape", "bytes")} for t in got] == want, got
raw = open("small.safetensors", "rb").read()
assert [t["path"] for t in got if t["name"] == "data"] == ["%64ata"]
assert got[1]["offset"] == got[0]["offset"] + got[0]["bytes"] and got[-1]["offset"] + got[-1]["bytes"] == len(raw)
END
code 0 ls --json shards part2
python3 -c 'import json; t = json.load(open("out")); assert [x["name"] for x in t] == ["part2.a", "part2.b"]; \
assert t[0]["file"].endswith("model-00002-of-00002.safetensors")' || fail "ls --json of shards"
code 0 ls --json small.safetensors
code 1 ls --json small.safetensors nothing
python3 -c 'import json; assert json.load(open("out")) == []' || fail "ls --json of nothing"

on_terminal 24 80 ls small.safetensors
has out 'esc\x1b[31mred'
has out 'two\x0alines'
lacks out $'\e['

code 3 ls nowhere.safetensors
has err nowhere.safetensors
code 1 ls hole.safetensors
has err 'tensor "b"'
code 1 ls tail.safetensors
code 0 ls -o lax tail.safetensors
echo abc >want
same want out "a lax model"
code 1 ls missing
code 0 ls missing -o partial
has out part1.a
lacks out part2.a
code 0 ls -o index=model.safetensors.index.json shards
code 1 ls -o index=none.json shards
has err none.json
finish
