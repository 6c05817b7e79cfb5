#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# info: the figures, the folded tree, one screen on a terminal, plain text elsewhere.
. "$(dirname "$0")/common.sh"

code 0 info layers.safetensors
has out "layers.safetensors: one file"
has out "parameters  731M (730902606)"
grep -qE '^  size +1.5 GB \([0-9]+ bytes\)$' out || fail "size"
grep -qE '^  BF16 +68 tensors +1.5 GB +100.0%$' out || fail "dtype row"
grep -qE '^    layers\.\{0\.\.21\} +22 × 54\.5 MB +1\.2 GB +82\.1%$' out || fail "folded layers"
grep -qE '^      self_attn\.q_proj\.weight +22 × 8\.4 MB' out || fail "joined modules"
lacks out $'\e'
lacks out "█"
LC_ALL=C code 0 info layers.safetensors
grep -qE 'layers\.\{0\.\.21\} +22 x 54\.5 MB' out || fail "plain ASCII"
! grep -q '[^ -~]' out || fail "ASCII locale, other characters"

code 0 info small.safetensors
grep -qE '^    layers\.\{0,1,10\}\.w +3 × 12 B' out || fail "numbers with a gap"
grep -qE '^  format +pt$' out || fail "metadata"
has out 'esc\x1b[31mred'
[ "$(wc -L <out)" -le 80 ] || fail "lines of $(wc -L <out) columns"
COLUMNS=60 code 0 info small.safetensors
[ "$(wc -L <out)" -le 60 ] || fail "lines of $(wc -L <out) columns instead of 60"

code 0 info shards
has out "shards: 2 shards"
code 0 info missing -o partial
has out "damaged"

# One screen: 24 rows, 80 columns, colours and bars; no colours with NO_COLOR.
on_terminal 24 80 info layers.safetensors
[ "$(wc -l <out)" -le 23 ] || fail "$(wc -l <out) lines on 24 rows"
sed 's/\x1b\[[0-9]*m//g' out >plain
[ "$(wc -L <plain)" -le 80 ] || fail "lines of $(wc -L <plain) columns on a terminal"
has out $'\e[36m'
has out "█"
NO_COLOR=1 on_terminal 24 80 info layers.safetensors
lacks out $'\e'
has out "█"
same plain out "with and without colours"
TERM=dumb on_terminal 24 80 info layers.safetensors
lacks out $'\e'
on_terminal 60 120 info layers.safetensors
has out "down_proj.weight"

code 0 info --json layers.safetensors
python3 - <<'END' || fail "info --json"
import json, os
i = json.load(open("out"))
assert i["tensors"] == 102 and i["parameters"] == 730902606 and not i["sharded"] and not i["damaged"]
assert i["file_bytes"] == os.path.getsize("layers.safetensors") == i["files"][0]["bytes"]
assert i["dtypes"]["BF16"] == {"tensors": 68, "parameters": 730857472, "bytes": 1461714944}
assert i["metadata"] == {"format": "pt"}
END
code 0 info --json small.safetensors
python3 -c 'import json; assert json.load(open("out"))["metadata"]["two\tlines"] == "one\ntwo\x1b[0m"' || fail "metadata"
code 1 info hole.safetensors
code 2 info
code 2 info small.safetensors shards
finish
