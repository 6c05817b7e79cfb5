#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What people browse with sees the model, whole and nothing else.
. "$(dirname "$0")/lib.sh"
need_python

cp -p "$MODEL" model.safetensors
start model.safetensors a -o ro
"$PYTHON" "$HERE/tree.py" a model.safetensors

# ls, find, stat: what is listed, and that stat tells the truth.
[ "$(ls a)" = "$(ls a | sort)" ] || fail "ls"
ls -lR a >/dev/null
files=$(find a -type f | wc -l)
dirs=$(find a -type d | wc -l)
[ "$(find a ! -type f ! -type d | wc -l)" = 0 ] || fail "something that is neither file nor directory is listed"
[ "$(find a -printf '%i\n' | sort | uniq -d | wc -l)" = 0 ] || fail "two entries have one inode number"
[ "$(find a -type f ! -links 1 | wc -l)" = 0 ] || fail "link counts of files"
[ "$(find a -type f -size +0 -printf '%b\n' | grep -cx 0)" = 0 ] || fail "a file with content has no blocks"
[ "$(find a -perm /222 | wc -l)" = 0 ] || fail "something looks writable"
[ "$(find a -newermt "$(stat -c %y model.safetensors)" | wc -l)" = 0 ] || fail "something is newer than the model"
[ "$(stat -c %o a/model/embed_tokens/weight/data)" = 1048576 ] || fail "preferred block size"
for dir in a a/model a/model/layers; do
	[ "$(stat -c %h $dir)" = $((2 + $(find $dir -mindepth 1 -maxdepth 1 -type d | wc -l))) ] || fail "links of $dir"
done

# The kernel reads ahead by a MiB where we may say so.
ahead=/sys/class/bdi/$(mountpoint -d a)/read_ahead_kb
[ ! -w "$ahead" ] || [ "$(cat "$ahead")" -ge 1024 ] || fail "readahead: $(cat "$ahead") KiB"

# du and df count the bytes.
bytes=$(find a -type f -printf '%s\n' | awk '{ n += $1 } END { print n }')
[ "$(du -sb --apparent-size a | cut -f1)" -ge "$bytes" ] || fail "du -b"
[ "$(du -sk a | cut -f1)" -ge $((bytes / 1024)) ] || fail "du"
[ "$(stat -f -c %c a)" -ge "$files" ] || fail "statfs files"
[ "$(df -k --output=size a | tail -1)" -gt 300 ] || fail "df"

# A second mount is the same, to the inode numbers.
mount_it model.safetensors b -o ro
diff -r a b || fail "diff -r of two mounts"
diff <(cd a && find . -printf '%p %i %s %m %T@ %n\n' | sort) <(cd b && find . -printf '%p %i %s %m %T@ %n\n' | sort) ||
	fail "two mounts of one file differ"
"$STFS" umount b
mount_it model.safetensors b -o ro
diff <(cd a && find . -printf '%i %p\n' | sort) <(cd b && find . -printf '%i %p\n' | sort) ||
	fail "inode numbers change from mount to mount"

# Copies are whole: cp, tar (also sparse), rsync (which has nothing to do the second time).
cp -r a copy
diff -r a copy || fail "cp -r"
cp -a a/model/layers/0 layer
diff -r a/model/layers/0 layer || fail "cp -a of a module"
mkdir t1 t2
tar -cf - -C a . | tar -xf - -C t1
diff -r a t1 || fail "tar"
tar -cSf - -C a . | tar -xf - -C t2
diff -r a t2 || fail "tar -S"
if command -v rsync >/dev/null; then
	rsync -a a/ r/
	diff -r a r || fail "rsync"
	[ -z "$(rsync -ai a/ r/)" ] || fail "rsync -a has something to do again: $(rsync -ai a/ r/ | head -3)"
fi
[ "$(cd copy && find . -type f | wc -l)" = "$files" ] || fail "a copy holds more than the model"
[ "$(cd copy && find . -type d | wc -l)" = "$dirs" ] || fail "a copy holds more than the model"

# grep, wc, sums, and readers of the end.
[ "$(grep -rl '^BF16$' a --include=dtype | wc -l)" -gt 10 ] || fail "grep -r dtype"
[ "$(grep -rl . a --include=shape | wc -l)" -gt 10 ] || fail "grep -r shape"
data=model/embed_tokens/weight/data
[ "$(sha256sum <a/$data)" = "$(sha256sum <copy/$data)" ] || fail "sha256sum"
[ "$(wc -c <a/$data)" = "$(stat -c %s a/$data)" ] || fail "wc -c"
cmp <(tail -c 1000 a/$data) <(tail -c 1000 copy/$data) || fail "tail -c"
cmp -s a/$data a/model/layers/0/mlp/up_proj/weight/data && fail "cmp calls different tensors equal"

# Names as Python writes them lead to the place; unlisted entries open by name.
[ "$(cat a/model.embed_tokens.weight/dtype)" = BF16 ] || fail "dotted name"
[ -L a/model.layers.0 ] && [ -d a/model.layers.0/ ] || fail "dotted name of a module"
[ "$(realpath a/model.layers.0)" = "$T/a/model/layers/0" ] || fail "target of a dotted name"
[ -f a/model/embed_tokens/weight/data.npy ] || fail "data.npy"
[ "$(ls -A a | grep -c safetensors)" = 0 ] || fail ".safetensors is listed"
[ "$(grep -vc '^#' a/.safetensors/tensors.tsv)" = "$(find a -name data | wc -l)" ] || fail "tensors.tsv"
"$PYTHON" -m json.tool a/.safetensors/header.json >/dev/null || fail "header.json is no JSON"
for name in nosuch .git a/nosuch model.nosuch model/layers/0/nosuch "$(printf 'x%.0s' {1..255})"; do
	[ ! -e "a/$name" ] || fail "$name is there"
done
"$PYTHON" - <<-'END'
	import errno, os
	for name, want in (("x" * 256, errno.ENAMETOOLONG), ("\udcff", errno.ENOENT), ("model/layers/0/x/y", errno.ENOENT),
	                   ("model/embed_tokens/weight/data/x", errno.ENOTDIR)):
	    try:
	        os.stat("a/" + name)
	    except OSError as error:
	        assert error.errno == want, (name, error)
	    else:
	        raise SystemExit("%r is there" % name)
END

# git: adds all, and finds nothing changed afterwards.
if command -v git >/dev/null; then
	git=(git -c core.fileMode=true --git-dir="$T/git" --work-tree="$T/a")
	git init -q --bare git
	git --git-dir="$T/git" config core.bare false
	"${git[@]}" add -A
	[ "$("${git[@]}" ls-files | wc -l)" = "$files" ] || fail "git add"
	[ -z "$("${git[@]}" status --porcelain | grep -v '^A ')" ] || fail "git sees changes"
fi

"$STFS" umount b
stop a
