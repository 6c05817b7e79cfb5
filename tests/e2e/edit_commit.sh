#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commits and discards asked for in the mount: their words, outcomes, refusals; open files and maps; sharded models.
. "$(dirname "$0")/lib.sh"
. "$HERE/edit.sh"
C=m/.safetensors

# The words, and only those; answered by the write itself.
begin
for word in nonsense "commit now" COMMIT " commit" ""; do
	(echo "$word" >$C/commit) 2>err && fail "$word: accepted"
	grep -q "Invalid argument" err || fail "$word: $(cat err)"
done
: >$C/commit
truncate -s 0 $C/commit
touch $C/commit
for file in status tensors.tsv header.json result progress; do
	[ "$(stat -c %a $C/$file)" = 444 ] || fail "$file looks writable"
	"$PYTHON" -c 'import os, sys; os.open(sys.argv[1], os.O_WRONLY)' $C/$file 2>err && fail "$file can be opened for writing"
	grep -q "Permission denied" err || fail "$file: $(cat err)"
done
[ ! -e .m.safetensors.stage ] || fail "words that are none are staged"
rm $C/commit 2>/dev/null && fail "a control file is removed"
touch $C/new 2>/dev/null && fail "a control file is made"
before=$(stat -c %i m.safetensors)
for words in "commit" "commit\n"; do
	printf "$words" >$C/commit || fail "a commit of nothing"
	grep -q "nothing is staged" $C/result || fail "result: $(cat $C/result)"
done
echo commit | tee -a $C/commit >/dev/null || fail "tee -a"
[ "$(stat -c %i m.safetensors)" = "$before" ] || fail "a commit of nothing wrote a file"
finish

# What came of words is read from where they were written to, whatever others have asked for since.
begin
"$PYTHON" - $C <<-'END' || fail "the answer to words"
	import os, sys
	commit, discard = (os.open(sys.argv[1] + "/" + name, os.O_RDWR) for name in ("commit", "discard"))
	assert os.pread(commit, 5, 0) == b"Write"
	os.write(commit, b"commit dry-run\n")
	try:
	    sys.exit("discarded: %d" % os.write(discard, b"no/such/path\n"))
	except FileNotFoundError:
	    pass
	assert os.pread(commit, 1000, 0).startswith(b"nothing is staged"), os.pread(commit, 1000, 0)
	assert os.pread(discard, 1000, 0).startswith(b'"no/such/path": '), os.pread(discard, 1000, 0)
	assert os.pread(commit, 9, 8) == b"is staged" and os.pread(commit, 9, 1000) == b""
	try:
	    sys.exit("accepted: %d" % os.write(commit, b"nonsense\n"))
	except OSError:
	    assert os.pread(commit, 1000, 0) == b"", "words that are none have an answer"
	assert open(sys.argv[1] + "/commit").read().startswith("Write")
END
finish

# What is not complete is refused as a whole, and named.
begin
echo good >m/__metadata__/note
rm m/model/a/w/dtype
refused 'model\.a\.w.*dtype'
echo F32 >m/model/a/w/dtype
printf toolong >m/model/a/b/data
refused 'model\.a\.b.*7 bytes'
(echo U9 >m/model/a/b/dtype) 2>/dev/null && fail "a dtype that is none is accepted"
[ "$(cat m/model/a/b/dtype)" = U8 ] || fail "a refused dtype took the old one's place"
printf U >m/model/a/b/dtype
printf 9 >>m/model/a/b/dtype
mkdir m/incomplete
printf x >m/incomplete/data
refused 'model\.a\.b'
refused 'incomplete'
[ "$(grep -c '^!' $C/status)" = 2 ] || fail "status: $(cat $C/status)"
rm -r m/incomplete
echo U8 >m/model/a/b/dtype
echo 7 >m/model/a/b/shape
commit
meant <<-'END'
	meta["note"] = "good"
	put("model.a.b", shape=[7], data=b"toolong")
END
# Nor is a header of more than the format allows.
head -c 100000001 /dev/zero | tr '\0' a >m/__metadata__/huge
refused 'header .* would have 1000[0-9]* bytes, the limit is 100000000'
rm m/__metadata__/huge
[ "$(cat $C/status)" = "# nothing is staged" ] || fail "after the huge key: $(cat $C/status)"
# Nor the name that the format keeps for itself.
cp -r m/model/a/w m/%5F_metadata__
refused 'no tensor can be called __metadata__'
rm -r m/%5F_metadata__
touch -d 2001-01-01 m.safetensors
echo more >m/__metadata__/note
refused 'm\.safetensors.* was written to'
"$PYTHON" - <<-'END'
	import errno, os
	fd = os.open("m/.safetensors/commit", os.O_WRONLY)
	try:
	    os.write(fd, b"commit\n")
	    raise SystemExit("a commit over a file of somebody else")
	except OSError as error:
	    assert error.errno == errno.ESTALE, error
END
"$STFS" umount m
rm -r .m.safetensors.stage

# Discarding.
begin
echo x >m/__metadata__/note
echo x >m/__metadata__/new
rm -r m/model/a
printf x >m/lm_head/weight/data
mv m/model/big m/big
echo scratch >m/file
echo __metadata__/note >$C/discard
[ "$(cat m/__metadata__/note)" = "hello world" ] || fail "discard of a key"
printf 'model/a\nlm_head\n' >$C/discard
cmp m/model/a/w/data <("$STFS" cat old.safetensors model.a.w) || fail "discard of a module"
[ "$(stat -c %s m/lm_head/weight/data)" = 128 ] || fail "discard of data"
[ -e m/big ] && [ -e m/file ] && [ -e m/__metadata__/new ] || fail "discard took too much"
echo no/such/path >$C/discard 2>/dev/null && fail "discard of nothing"
# A list that is written in pieces would name what nobody listed: model/a is staged, and model/a/b alone is meant.
printf BYTES >m/model/a/b/data
printf x >>m/model/a/w/data
"$PYTHON" - $C/discard <<-'END' || fail "a list in pieces"
	import os, sys
	def refused(fd, words):
	    try:
	        sys.exit("%r: accepted: %d" % (words, os.write(fd, words)))
	    except OSError as error:
	        assert error.errno == 22, error
	for pieces in [b"no/such\n" * 64 + b"model/a", b"/b\n"], [b"model/a/b".rjust(5000, b"/"), b"\nno/such\n"]:
	    fd = os.open(sys.argv[1], os.O_WRONLY)
	    for piece in pieces:
	        refused(fd, piece)
END
[ "$(stat -c %s m/model/a/w/data)" = 97 ] && [ "$(cat m/model/a/b/data)" = BYTES ] || fail "a list in pieces dropped something"
printf 'lm_head\nmodel/a/b' >$C/discard
[ "$(stat -c %s m/model/a/w/data)" = 97 ] && [ "$(cat m/model/a/b/data)" = bytes ] || fail "a line without an end"
echo all >$C/discard
"$PYTHON" "$HERE/tree.py" m old.safetensors
[ ! -e m/file ] || fail "discard of all leaves a scratch file"
[ "$(cat $C/status)" = "# nothing is staged" ] || fail "status after a discard: $(cat $C/status)"
finish

# Who stands in a module that stays has a path all along.
begin
for word in discard:all commit:commit; do
	(
		cd m/model
		mv a "${word%:*}"
		ls -l >/dev/null
		echo "${word#*:}" >../.safetensors/"${word%:*}"
		[ "$("$PYTHON" -c 'import os; print(os.getcwd())')" = "$T/m/model" ]
	) || fail "${word%:*}: who stands in the mount has no path"
done
finish

# What status, header.json and tensors.tsv say is what a commit makes.
begin
echo x >m/__metadata__/note
mv m/model/a m/b
cp -r m/lm_head m/model/copy
rm -r m/empty
echo '[2, 12]' >m/b/w/shape
echo s >m/scratch
cat $C/status >got
cat >want <<-'END'
	A model.copy.weight
	D empty
	M __metadata__/note
	R model.a.b -> b.b
	R model.a.w -> b.w (shape)
	? scratch
END
diff <(grep -v '^#' got | sort) <(sort want) || fail "status"
rm m/scratch
cut -f 1-4,7 $C/tensors.tsv | grep -v '^#' | sort >tsv
cp $C/header.json header
cp -r m shown
commit
"$PYTHON" - <<-'END'
	import json
	text = open("m.safetensors", "rb").read()
	length = int.from_bytes(text[:8], "little")
	assert text[8:8 + length].decode().strip() == open("header").read().strip(), "header.json"
END
diff <(cut -f 1-4,7 $C/tensors.tsv | grep -v '^#' | sort) tsv || fail "tensors.tsv"
# At once, with what the kernel had in its caches.
[ "$(cat m/b/w/shape)" = "2 12" ] && [ "$(stat -c %s m/b/w/shape)" = 5 ] || fail "a canonical text is not shown at once"
echo '2 12' >shown/b/w/shape
diff -r shown m || fail "the mount shows something else than before the commit"
finish

# Files that are open or mapped keep the old bytes; inode numbers stay; what is written afterwards is staged.
begin
"$PYTHON" -W ignore - <<-'END'
	import mmap, os, subprocess
	def sh(line): subprocess.run(line, shell=True, check=True)
	def ino(path): return os.stat("m/" + path).st_ino
	paths = ["model/a/b/data", "model/a/b", "model/big/data", "__metadata__/note", "lm_head/weight/data", "model/scale/shape"]
	inos = list(map(ino, paths))
	stats = os.stat("m/model/scale/data")
	gone, kept = os.open("m/lm_head/weight/data", os.O_RDONLY), os.open("m/model/big/data", os.O_RDWR)
	gone_map = mmap.mmap(gone, 0, prot=mmap.PROT_READ)
	kept_map = mmap.mmap(kept, 0)
	note = os.open("m/__metadata__/note", os.O_RDWR)
	old, big = os.pread(gone, 200, 0), os.pread(kept, 3000000, 0)
	assert len(old) == 128 and len(big) == 3000000
	sh("rm -r m/lm_head; printf 12345 >m/model/a/b/data; mv m/model/a m/a; echo commit >m/.safetensors/commit")
	paths[0:2] = ["a/b/data", "a/b"]
	del paths[4], inos[4]
	assert list(map(ino, paths)) == inos, "inode numbers"
	now = os.stat("m/model/scale/data")
	assert (now.st_ino, now.st_mtime_ns, now.st_size) == (stats.st_ino, stats.st_mtime_ns, stats.st_size)
	assert os.pread(gone, 200, 0) == old and gone_map[:] == old, "a removed file that is open"
	assert os.pread(kept, 3000000, 0) == big and kept_map[:] == big
	os.pwrite(kept, b"fd", 10)
	kept_map[20:23] = b"map"
	kept_map.flush()
	os.pwrite(note, b"HELLO", 0)
	sh("echo commit >m/.safetensors/commit")
	os.pwrite(kept, b"again", 30)
	os.fsync(kept)
	sh("echo commit >m/.safetensors/commit")
	assert open("m/model/big/data", "rb").read() == big[:10] + b"fd" + big[12:20] + b"map" + big[23:30] + b"again" + big[35:]
END
meant <<-'END'
	take("lm_head.weight")
	move("model.a.w", "a.w")
	move("model.a.b", "a.b")
	put("a.b", data=b"12345")
	big = t["model.big"].data
	put("model.big", data=big[:10] + b"fd" + big[12:20] + b"map" + big[23:30] + b"again" + big[35:])
	meta["note"] = "HELLO world"
END
finish

# Scratch files live on, over commits and mounts.
begin
head -c 100000 m/model/big/data >m/keep
cp m/model/big/data m/model/keep2
sum=$(sha256sum <m/keep)
printf 12345 >m/model/a/b/data
echo commit >$C/commit
[ "$(sha256sum <m/keep)" = "$sum" ] && cmp m/model/keep2 m/model/big/data || fail "a scratch file after a commit"
meant m.safetensors <<<'put("model.a.b", data=b"12345")'
"$STFS" umount m
mount_it m.safetensors m
[ "$(sha256sum <m/keep)" = "$sum" ] && cmp m/model/keep2 m/model/big/data || fail "a scratch file after a remount"
rm m/keep m/model/keep2
finish

# A Hugging Face cache: the link is replaced, the blob is not touched.
mkdir -p hub/blobs hub/snapshots/rev
cp old.safetensors hub/blobs/abc123
ln -s ../../blobs/abc123 hub/snapshots/rev/m.safetensors
for source in hub/snapshots/rev/m.safetensors hub; do
	rm hub/snapshots/rev/m.safetensors
	ln -s ../../blobs/abc123 hub/snapshots/rev/m.safetensors
	mount_it $source m
	echo cached >m/__metadata__/note
	echo commit >$C/commit || fail "$(cat $C/result)"
	grep -q "its link into a cache is a file of its own now, .*(--output PATH leaves both alone)" $C/result ||
		fail "result: $(cat $C/result)"
	echo again >m/__metadata__/format
	echo commit >$C/commit || fail "$(cat $C/result)"
	"$STFS" umount m
	cmp hub/blobs/abc123 old.safetensors || fail "a blob was written"
	[ ! -L hub/snapshots/rev/m.safetensors ] || fail "the link is still one"
	meant hub/snapshots/rev/m.safetensors <<<'meta["note"], meta["format"] = "cached", "again"'
	[ "$(find hub -type f | wc -l)" = 2 ] || fail "left: $(find hub)"
done

# The new file looks as the old one did, also one that may not be written.
begin
chmod 440 m.safetensors
echo mode >m/__metadata__/note
echo commit >$C/commit
[ "$(stat -c %a m.safetensors)" = 440 ] || fail "the mode changed: $(stat -c %a m.safetensors)"
"$STFS" umount m
rm -f m.safetensors

# Sharded: only what changed is written, and the index follows.
"$PYTHON" "$SRC/tests/models/make_sharded.py" old.safetensors set 3
cp -r set old
inos() { ls -i set | grep safetensors$ | sort -k2; }
mount_it set m
inos >before
first=$(awk -F '\t' '$1 == "model.a.b" { print $5 }' $C/tensors.tsv)
printf 54321 >m/model/a/b/data
echo commit >$C/commit || fail "$(cat $C/result)"
[ "$(inos | diff before - | grep '^>' | awk '{ print $3 }')" = "$first" ] || fail "which shards were written: $(inos | diff before -)"
mv m/lm_head m/head
mkdir m/model/a/more
echo U8 >m/model/a/more/dtype
echo 3 >m/model/a/more/shape
printf xyz >m/model/a/more/data
rm -r m/model/scale
echo commit >$C/commit || fail "$(cat $C/result)"
[ "$(awk -F '\t' '$1 == "model.a.more" { print $5 }' $C/tensors.tsv)" = "$first" ] || fail "a new tensor is not with its sibling"
"$STFS" umount m
"$PYTHON" - <<-'END'
	from edited import check_layout, check_official, files_of, load
	from refwriter import read
	want, meta = load("old")
	want["model.a.b"] = want["model.a.b"]._replace(data=b"54321")
	want["head.weight"] = want.pop("lm_head.weight")._replace(name="head.weight")
	del want["model.scale"]
	got, got_meta = load("set")
	more = got.pop("model.a.more")
	assert (more.dtype, more.shape, more.data) == ("U8", [3], b"xyz")
	assert got == want and got_meta == meta, "the sharded model is not what was meant"
	got["model.a.more"] = more
	for path in files_of("set"):
	    check_layout(path)
	    check_official(path, got, read(path)[1])
	import json
	index = json.load(open("set/model.safetensors.index.json"))
	assert set(index["weight_map"]) == set(want) | {"model.a.more"}
	assert index["metadata"]["total_size"] == sum(len(tensor.data) for tensor in want.values()) + 3
END
expect 0 "" "$STFS" check set
[ ! -e .set.stage ] || fail "left: .set.stage"
