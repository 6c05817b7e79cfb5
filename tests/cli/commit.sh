#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# commit: in place and elsewhere, in the reference's order, in shards; what stands in the way; what it leaves alone.
. "$(dirname "$0")/common.sh"

printf '%08d' {1..3} >eight3.bin
cp small.safetensors m.safetensors

# Nothing staged: the file is not touched.
before=$(stat -c '%i %Y' m.safetensors)
code 0 commit m.safetensors
echo "m.safetensors: nothing is staged, and no file was written" >want
same want out "a commit of nothing"
[ "$(stat -c '%i %Y' m.safetensors)" = "$before" ] || fail "a commit of nothing touched the file"

# A crash right after the staging area was made leaves nothing in it.
mkdir -m 700 .m.safetensors.stage
: >.m.safetensors.stage/journal
code 0 commit m.safetensors
same want out "a commit of nothing after a crash"
unstaged m.safetensors

# Dry runs change nothing, and a commit by another path is the same one.
code 0 mv m.safetensors scalar s
code 0 commit --dry-run m.safetensors
grep -qx 'm.safetensors: would write 1 file, 3.2 MB' out || fail "dry run: $(cat out)"
[ "$(stat -c '%i %Y' m.safetensors)" = "$before" ] || fail "a dry run touched the file"
mkdir -p sub/dir
chmod 640 m.safetensors
code 0 commit sub/dir/../../m.safetensors
grep -qE "^sub/dir/../../m.safetensors: wrote 1 file, 3.2 MB \($ways\) in [0-9]+\.[0-9]+ s\$" out || fail "the line: $(cat out)"
[ "$(stat -c %a m.safetensors)" = 640 ] || fail "the mode was not kept"
unstaged m.safetensors
[ -z "$(find . -name '*stfs-commit*')" ] || fail "temporary files"

# Elsewhere: the model and what is staged stay.
cp small.safetensors m.safetensors
code 0 rm m.safetensors big
code 0 commit --output new.safetensors m.safetensors
has out "new.safetensors: wrote 1 file"
cmp -s m.safetensors small.safetensors || fail "--output changed the model"
code 0 status m.safetensors
has out "D big"
witness "--output" <<'END'
old, new = read("small.safetensors"), committed("new.safetensors")
assert list(new.tensors.items()) == [i for i in old.tensors.items() if i[0] != "big"] and new.metadata == old.metadata
END
code 6 commit --output new.safetensors m.safetensors
has err "is there already"
code 6 commit --output nowhere/new.safetensors m.safetensors
code 0 commit --output dir/ m.safetensors
cmp -s dir/m.safetensors new.safetensors || fail "--output DIR/: $(ls dir)"

# In the reference's order, byte for byte as its writer makes it.
code 0 commit --sort --output sorted.safetensors m.safetensors
witness "--sort" <<'END'
import refwriter
model = read("new.safetensors")
refwriter.write("want.safetensors", [refwriter.Tensor(n, *t) for n, t in model.tensors.items()], model.metadata)
assert open("want.safetensors", "rb").read() == open("sorted.safetensors", "rb").read()
try:
    import numpy
    from safetensors.numpy import save_file
except ImportError:
    sys.exit()
kinds = {"F32": "<f4", "U8": "u1", "F64": "<f8"}
save_file({n: numpy.frombuffer(t.data, kinds[t.dtype]).reshape(t.shape) for n, t in model.tensors.items() if t.dtype in kinds},
          "theirs.safetensors")
theirs = list(read_file("theirs.safetensors").tensors)
assert theirs == [n for n in read_file("sorted.safetensors").tensors if n in theirs], theirs
END
code 0 discard m.safetensors
code 0 commit --sort m.safetensors
has out "wrote 1 file"

# The official writer makes the same bytes, with the one key of metadata whose order it cannot choose.
"${PYTHON:-python3}" - "$here" <<'END' || fail "a model of many kinds"
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import model
kinds = ["U8", "F16", "BOOL", "F64", "I64", "F32"]
tensors = [(f"{name}.{kind}", kind, (2, n)) for n, name in enumerate(["z", "a", "é", "a.b", 'q"\\'], 1) for kind in kinds]
model.write("kinds.safetensors", *model.layout(tensors, {"format": "np"}))
END
code 0 mv kinds.safetensors z last
code 0 commit --sort kinds.safetensors
witness "the official writer" <<'END'
try:
    import numpy
    from safetensors.numpy import save_file
except ImportError:
    sys.exit()
kinds = {"U8": "u1", "F16": "<f2", "BOOL": "?", "F64": "<f8", "I64": "<i8", "F32": "<f4"}
model = committed("kinds.safetensors")
save_file({n: numpy.frombuffer(t.data, kinds[t.dtype]).reshape(t.shape) for n, t in model.tensors.items()}, "theirs.safetensors",
          model.metadata)
assert len(model.tensors) == 30
assert open("theirs.safetensors", "rb").read() == open("kinds.safetensors", "rb").read()
END

# {"format":"pt"} where it is asked for, and not over another one.
cp odd.safetensors plain.safetensors
code 0 rm plain.safetensors a
code 0 commit -o format=pt plain.safetensors
witness "format=pt" <<'END'
assert committed("plain.safetensors") == Model({}, {"format": "pt"})
END
code 0 set-metadata -o format=pt --commit -q plain.safetensors format=tf
witness "a format of its own" <<'END'
assert committed("plain.safetensors").metadata == {"format": "tf"}
END

# Shards: of the Hub's names and sizes, and back into one file.
cp -r shards s
code 0 put s part2.c eight3.bin --dtype I64 --shape 3
code 2 commit --max-shard-size 12XB --output x/ s
has err '"12XB" is no size'
code 1 commit --single s
has err "only at another place"
code 0 commit --max-shard-size 50b --output five s
has out "five: wrote"
witness "shards of 50 bytes" <<'END'
new = read("five")
files = sorted(f for f in os.listdir("five") if f.endswith(".safetensors"))
assert files == [f"model-{i + 1:05}-of-{len(files):05}.safetensors" for i in range(len(files))] and len(files) > 1, files
assert all(sum(len(t.data) for t in read_file("five/" + f).tensors.values()) <= 50 for f in files)
old = read("shards").tensors
assert new.tensors == dict(old, **{"part2.c": Tensor("I64", (3,), open("eight3.bin", "rb").read())})
END
code 0 check five
code 0 commit --single --output one.safetensors s
witness "one file" <<'END'
assert committed("one.safetensors").tensors == read("five").tensors
END
code 0 commit -q s
witness "shards in place" <<'END'
assert read("s").tensors == read("five").tensors
END

# All that stands in the way is named, and nothing is changed.
code 0 rm s part1.a
code 6 commit --output five s
cp small.safetensors m.safetensors
code 0 mv m.safetensors scalar s
code 0 put m.safetensors t eight3.bin --dtype U8 --shape 24
# Another version of the model: what is staged waits.
cp m.safetensors keep.safetensors
cp layers.safetensors m.safetensors 2>/dev/null
for command in "commit m.safetensors" "status m.safetensors" "set-metadata m.safetensors a=b" "diff m.safetensors"; do
	# shellcheck disable=SC2086
	code 1 $command
	has err "edits for another version"
	has err "discard"
done
code 1 discard m.safetensors scalar
has err "only be dropped as a whole"
[ -d .m.safetensors.stage ] || fail "edits for another version are gone"
code 0 discard m.safetensors
unstaged m.safetensors
code 0 status m.safetensors
has out "# nothing is staged"

# A name in the way: a cached file behind a link is never written.
mkdir -p hub/blobs hub/snapshots
mv keep.safetensors hub/blobs/0123
ln -s ../blobs/0123 hub/snapshots/model.safetensors
code 0 set-metadata --commit hub/snapshots/model.safetensors format=tf
has out "the cached file was not touched (--output PATH leaves both alone)"
cmp -s hub/blobs/0123 small.safetensors || fail "the blob was written"
[ -f hub/snapshots/model.safetensors ] && [ ! -L hub/snapshots/model.safetensors ] || fail "the link is there"
witness "the link replaced" <<'END'
assert committed("hub/snapshots/model.safetensors").metadata["format"] == "tf"
END

# The totals of an index are counted anew where they are there; what else its metadata has stays.
code 0 convert small.safetensors counted/ --max-shard-size 200
python3 - <<'END'
import json
path = "counted/small.safetensors.index.json"
index = json.load(open(path))
index["metadata"].update(total_parameters=7, other={"x": [1]})
json.dump(index, open(path, "w"))
END
code 0 rm --commit counted scalar
witness "the totals of an index" <<'END'
index = json.load(open("counted/small.safetensors.index.json"))
tensors = {}
for name in set(index["weight_map"].values()):
    tensors.update(read_file("counted/" + name).tensors)
sizes = [len(t.data) for t in tensors.values()]
assert "scalar" not in index["weight_map"] and set(index["weight_map"]) == set(tensors)
assert index["metadata"]["other"] == {"x": [1]}
assert index["metadata"]["total_size"] == sum(sizes), (index["metadata"], sum(sizes))
parameters = 0
for t in tensors.values():
    n = 1
    for dim in t.shape:
        n *= dim
    parameters += n
assert index["metadata"]["total_parameters"] == parameters, (index["metadata"], parameters)
END

# Who holds the model is told.
cp small.safetensors held.safetensors
python3 - "$program" <<'END' || fail "a model that is held"
import fcntl, subprocess, sys
with open("held.safetensors") as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    for words in ["set-metadata", "held.safetensors", "a=b"], ["commit", "held.safetensors"], ["status", "held.safetensors"]:
        p = subprocess.run([sys.argv[1], *words], capture_output=True)
        assert p.returncode == 4 and b"another process is editing" in p.stderr, (words, p)
END

# A damaged model is written anew elsewhere, as far as it is whole.
code 0 commit -o partial --output whole/ missing
witness "what is whole of a damaged set" <<'END'
assert sorted(n for f in os.listdir("whole") if f.endswith(".safetensors") for n in read_file("whole/" + f).tensors) == [
    "part1.a", "part1.b"], os.listdir("whole")
END
code 2 commit -o partial missing

code 2 commit
code 2 commit m.safetensors s
code 3 commit nowhere
code 1 commit hole.safetensors
finish
