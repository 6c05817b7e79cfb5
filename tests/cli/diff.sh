#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# status and diff: what is staged, in words and as JSON.
. "$(dirname "$0")/common.sh"

printf 12345678 >eight.bin
head -c 20 /dev/zero >twenty.bin
cp small.safetensors m.safetensors
code 0 diff m.safetensors
echo "# nothing is staged" >want
same want out "diff of nothing"
code 0 diff --json m.safetensors
python3 -c 'import json; assert json.load(open("out")) == {"changes": []}' || fail "diff --json of nothing"

code 0 put m.safetensors model.norm.weight twenty.bin
code 0 put m.safetensors packed eight.bin --dtype F16 --shape 2,2
code 0 put m.safetensors new eight.bin --dtype F64 --shape '[]'
code 0 mv m.safetensors model.layers.0 L0
code 0 rm m.safetensors $'esc\e[31mred'
code 0 set-metadata m.safetensors $'format=t\e[31mf' "n=$(printf 'x%.0s' {1..500})"
code 0 rm-metadata m.safetensors long
code 0 diff m.safetensors
lacks out $'\e'
sed -E 's/x{20}x*…?/x/' out >shown
cat >want <<'END'
M model.norm.weight
    data   replaced: 20 bytes
R model.layers.0.w -> L0.w
M packed
    dtype  F4 -> F16
    shape  [3, 2] -> [2, 2]
    data   3 bytes -> 8 bytes
A new
    F64 [], 8 bytes
D esc\x1b[31mred
    U8 [3], 3 bytes
M __metadata__/format
    "pt" -> "t\x1b[31mf"
A __metadata__/n
    "x"
D __metadata__/long
    "x"
END
same want shown diff

code 0 diff --json m.safetensors
python3 - <<'END' || fail "diff --json"
import json
changes = json.load(open("out"))["changes"]
tensors = {c["tensor"] or c["name_before"]: c for c in changes if "tensor" in c}
keys = {c["key"]: c for c in changes if "key" in c}
assert tensors["packed"] == {"tensor": "packed", "dtype": "F16", "shape": [2, 2], "bytes": 8, "bytes_changed": 8,
                             "name_before": "packed", "dtype_before": "F4", "shape_before": [3, 2], "bytes_before": 3}
assert tensors["new"] == {"tensor": "new", "dtype": "F64", "shape": [], "bytes": 8, "bytes_changed": 8}
assert tensors["L0.w"]["name_before"] == "model.layers.0.w" and tensors["L0.w"]["bytes_changed"] == 0
assert tensors["esc\x1b[31mred"]["tensor"] is None
assert keys["format"] == {"key": "format", "value": "t\x1b[31mf", "value_before": "pt"}
assert keys["long"] == {"key": "long", "value": None} and keys["n"]["value"] == "x" * 500
assert len(changes) == 8
END
code 0 status --json m.safetensors
python3 - <<'END' || fail "status --json"
import json
status = json.load(open("out"))
assert status["changed"] == 8 and status["incomplete"] == 0 and status["scratch"] == [] and len(status["changes"]) == 8
END
code 2 diff
code 2 status m.safetensors m.safetensors
code 3 status nowhere
code 1 diff hole.safetensors
finish
