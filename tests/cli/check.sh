#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check: verdicts, all findings, exit status, JSON.
. "$(dirname "$0")/common.sh"

code 0 check layers.safetensors shards
printf '%s\n' "layers.safetensors: ok, 102 tensors, 1.5 GB" "shards: ok, 4 tensors, 68 B" >want
same want out "sound models"
code 0 check -q layers.safetensors shards
[ ! -s out ] || fail "-q speaks of sound models"

code 0 check odd.safetensors
grep -q '^odd.safetensors: warning: .*"note"' out || fail "no warning"
has out "odd.safetensors: ok, 1 tensor, 8 B, 1 warning"
code 0 check -q odd.safetensors
has out "warning: "
lacks out "ok,"

code 1 check hole.safetensors
grep -q '^hole.safetensors: error: .*"b"' out || fail "no error"
lacks out "ok,"
code 1 check missing
has out "model-00002-of-00002.safetensors: error: "
code 1 check page.safetensors
has out HTML

# What is wrong with a file of a directory names that file, however the directory was named.
mkdir -p one/snapshots/rev
head -c 100 layers.safetensors >one/snapshots/rev/model.safetensors
for path in one one/snapshots/rev one/snapshots/rev/model.safetensors; do
	code 1 check "$path"
	grep -q '^one/snapshots/rev/model.safetensors: error: ' out || fail "check $path does not name the file: $(cat out)"
done
code 1 check missing/model.safetensors.index.json
has out "missing/model-00002-of-00002.safetensors: error: "
(cd missing && code 1 check model.safetensors.index.json && exit $failures) || fail "an index in the working directory"
grep -q "^model-00002-of-00002.safetensors: error: " missing/out || fail "an index in the working directory: $(cat missing/out)"

# All findings up to a bound, then how many more.
code 1 check many.safetensors
[ "$(grep -c '^many.safetensors: error: tensor ' out)" -eq 100 ] || fail "not 100 sentences"
has out "many.safetensors: error: and 150 more of this kind"

code 1 check nul.safetensors tail.safetensors
code 0 check -o lax nul.safetensors tail.safetensors
has out "warning: "

# More shards than a process may open at first, and than it may open at all.
(ulimit -Sn 5 && code 0 check shards && exit $failures) || fail "shards under a soft limit"
(ulimit -n 5 && code 3 check shards && exit $failures) || fail "shards under a hard limit"
has out "Too many open files"

# The worst of all paths, and every path is judged.
code 3 check hole.safetensors nowhere layers.safetensors
has out "hole.safetensors: error: "
has out "nowhere: error: "
has out "layers.safetensors: ok"
code 3 check /dev/null
# A directory that was removed under us has no path, and no model.
mkdir gone
(cd gone && rmdir ../gone && out=$("$program" check . 2>&1); [ $? = 1 ] && grep -q "^\.: error: no .safetensors file" <<<"$out") ||
	fail "a directory without a path"
mkfifo pipe
code 3 check pipe
code 2 check
code 2 check --what layers.safetensors
code 2 check -o what layers.safetensors
code 3 check ''
code 3 check $'no\e[31mne'
lacks out $'\e'

code 3 check --json layers.safetensors many.safetensors odd.safetensors nowhere $'b\xff'
python3 - <<'END' || fail "check --json"
import json
raw = open("layers.safetensors", "rb")
data = raw.seek(0, 2) - raw.seek(0) - 8 - int.from_bytes(raw.read(8), "little")
sound, many, odd, nowhere, broken = json.load(open("out", encoding="utf-8"))
assert sound == {"path": "layers.safetensors", "findings": [], "errors": 0, "warnings": 0, "ok": True, "readable": True,
                 "tensors": 102, "bytes": data}, sound
assert not many["ok"] and many["readable"] and many["errors"] == 250 and len(many["findings"]) == 100
assert all(f["severity"] == "error" and f["file"] == "many.safetensors" and f["message"] for f in many["findings"])
assert odd["ok"] and [f["severity"] for f in odd["findings"]] == ["warning"]
assert not nowhere["ok"] and not nowhere["readable"]
assert broken["path"] == "b\\xff"
END
finish
