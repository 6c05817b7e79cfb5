#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tools people have edit a mounted model, without a word, and the commit is what they meant.
. "$(dirname "$0")/lib.sh"
. "$HERE/edit.sh"
M=m/__metadata__

tools=0
# Where they were installed to be tried, none may be left out.
for tool in ${NEED_TOOLS:-}; do
	command -v "$tool" >/dev/null || fail "$tool is not installed"
done
# has TOOL: whether to try it.
has() {
	if command -v "$1" >/dev/null; then
		tools=$((tools + 1))
		return 0
	fi
	echo "not tried: $1 is not installed"
	return 1
}

# The shell itself.
begin
echo two words >$M/note
printf %s pt-x >$M/format
echo more >>$M/note
# Nonsense is refused, and what was there stays, however it was emptied.
(echo nonsense >m/model/a/w/shape) 2>/dev/null && fail "a shape that is none"
"$PYTHON" - 2>/dev/null <<-'END' && fail "a shape that is none, as vim writes it"
	import os
	fd = os.open("m/model/a/w/shape", os.O_WRONLY | os.O_CREAT)
	os.ftruncate(fd, 0)
	os.write(fd, b"nonsense\n")
END
[ "$(cat m/model/a/w/shape)" = "4 6" ] || fail "a refused text took the old one: $(cat m/model/a/w/shape)"
"$PYTHON" - <<-'END' || fail "a shape that is none, in a map"
	import mmap, sys
	with open("m/model/a/w/shape", "r+b") as file:
	    pages = mmap.mmap(file.fileno(), 0)
	    pages[:] = b"x y\n"
	    try:
	        sys.exit("msync: %r" % pages.flush())
	    except OSError:
	        pass
END
is_old() { [ "$(cat m/model/a/w/shape)" = "4 6" ]; }
until_true 50 is_old || fail "a refused text is still shown: $(cat m/model/a/w/shape)"
{ echo -n 3; true; echo ' 8'; } >m/model/a/w/shape
mkdir -p m/model/new/x
printf 'U8\n' >m/model/new/x/dtype
echo 4 >m/model/new/x/shape
printf abcd >m/model/new/x/data
printf ef >>m/model/new/x/data
echo 6 >m/model/new/x/shape
# However it is spelt: after a commit a name has one place.
mkdir -p m/model.dotted.name m/mo.dule m/mo/dule/part
for dir in m/model.dotted.name m/mo.dule m/mo/dule/part; do
	echo I8 >$dir/dtype
	echo >$dir/shape
	printf x >$dir/data
done
quiet mv m/lm_head m/other.head
commit
meant <<-'END'
	meta["note"], meta["format"] = "two words\nmore", "pt-x"
	put("model.dotted.name", "I8", [], b"x")
	put("mo.dule", "I8", [], b"x")
	put("mo.dule.part", "I8", [], b"x")
	move("lm_head.weight", "other.head.weight")
	put("model.a.w", shape=[3, 8])
	put("model.new.x", "U8", [6], b"abcdef")
END
finish

# cp: within the mount, over, and from another mount in another layout.
begin
quiet cp -r m/model/a m/model/c
quiet cp -a m/model/big m/big2
quiet cp m/model/a/b/data m/model/a/b/data.copy
quiet cmp m/model/big/data m/big2/data
quiet rm m/model/a/b/data.copy
printf 12345 >five
quiet cp five m/model/a/b/data
commit
meant <<-'END'
	put("model.a.b", data=b"12345")
	put("model.c.w", *t["model.a.w"][1:])
	put("model.c.b", "U8", [5], b"bytes")
	put("big2", *t["model.big"][1:])
END
cp old.safetensors other.safetensors
mount_it other.safetensors other -o flat
rm -r m/model/a
quiet cp -r other/model.a.w m/
quiet cp -a other/lm_head.weight m/second
commit
finish
meant m.safetensors <<-'END'
	take("model.a.b")
	put("model.c.w", *t["model.a.w"][1:])
	put("model.c.b", "U8", [5], b"bytes")
	put("big2", *t["model.big"][1:])
	put("second", *t["lm_head.weight"][1:])
END
"$STFS" umount other

# Whole modules from one mount to another and back, whatever the layout of the other.
came=(model/a/w model/a/b model/big model/scale)
for layout in "" "-o flat"; do
	begin
	cp old.safetensors other.safetensors
	mount_it other.safetensors other $layout
	if [ -z "$layout" ]; then
		mkdir other/came
		quiet cp -r m/model other/came/
		quiet mv m/model/a other/came/moved
	else
		for path in "${came[@]}"; do quiet cp -r m/$path other/came.${path//\//.}; done
		for name in w b; do quiet mv m/model/a/$name other/came.moved.$name; done
		quiet rmdir m/model/a
	fi
	expect 0 "" "$STFS" commit -q other
	"$PYTHON" "$HERE/edited.py" old.safetensors other.safetensors <<-'END' || fail "modules of another mount"
		for name in list(t):
		    if name.startswith("model."):
		        put("came." + name, *t[name][1:])
		put("came.moved.w", *t["model.a.w"][1:])
		put("came.moved.b", *t["model.a.b"][1:])
	END
	if [ -z "$layout" ]; then
		quiet mv other/came/moved m/model/back
	else
		mkdir m/model/back
		for name in w b; do quiet mv other/came.moved.$name m/model/back/$name; done
	fi
	commit
	meant <<-'END'
		put("model.back.w", *take("model.a.w")[1:])
		put("model.back.b", *take("model.a.b")[1:])
	END
	expect 0 "" "$STFS" commit -q other
	! "$STFS" ls other.safetensors | grep moved || fail "mv to another mount left something behind"
	finish
	"$STFS" umount other
done

# mv: a module, a tensor, over, from outside, backups.
begin
quiet mv m/model/a m/model/z
quiet mv m/lm_head/weight m/head
quiet rmdir m/lm_head
head -c 2 /dev/zero >/dev/shm/stfs-e2e.$$
quiet mv /dev/shm/stfs-e2e.$$ m/model/scale/data
printf 54321 >five
quiet mv -b five m/model/z/b/data
quiet rm m/model/z/b/data~
commit
meant <<-'END'
	move("model.a.w", "model.z.w")
	move("model.a.b", "model.z.b")
	move("lm_head.weight", "head")
	put("model.z.b", data=b"54321")
	put("model.scale", data=b"\0\0")
END
quiet mv m/model n
[ ! -e m/model ] && [ -e n/big/data ] || fail "mv out of the mount"
commit
meant <<-'END'
	take("model.a.w"), take("model.a.b"), take("model.big"), take("model.scale")
	move("lm_head.weight", "head")
END
quiet mv n m/model
commit
finish
meant m.safetensors <<-'END'
	move("lm_head.weight", "head")
	rest = {name.replace("model.a", "model.z"): take(name) for name in list(t) if name.startswith("model")}
	for name in sorted(rest, key=lambda name: ["model.z.w", "model.z.b", "model.big", "model.scale"].index(name)):
	    put(name, *rest[name][1:])
	put("model.z.b", data=b"54321")
	put("model.scale", data=b"\0\0")
	t = t
END

# rm.
begin
quiet rm -r m/model/a
quiet rm $M/note
quiet rm -r m/empty
commit
meant <<-'END'
	take("model.a.w"), take("model.a.b"), take("empty")
	del meta["note"]
END
quiet rm -rf m/model m/lm_head
quiet find $M -type f -delete
commit
meant <<-'END'
	t.clear()
	meta.clear()
END
finish

# dd, tee, truncate, touch, fallocate.
begin
quiet dd if=/dev/zero of=m/model/big/data bs=1 count=7 seek=1000003 conv=notrunc status=none
quiet dd if=/dev/zero of=m/model/a/w/data bs=4 count=1 seek=23 conv=notrunc,fsync status=none
quiet sh -c 'echo via tee | tee $1 >/dev/null; echo and more | tee -a $1 >/dev/null' sh $M/note
quiet truncate -s 2000000 m/model/big/data
echo 2000000 >m/model/big/shape
quiet touch m/lm_head/weight/data $M/format
quiet fallocate -l 8 m/model/a/b/data
echo 8 >m/model/a/b/shape
commit
meant <<-'END'
	big = t["model.big"].data
	put("model.big", shape=[2000000], data=big[:1000003] + bytes(7) + big[1000010:2000000])
	put("model.a.w", data=t["model.a.w"].data[:92] + bytes(4))
	put("model.a.b", shape=[8], data=b"bytes\0\0\0")
	meta["note"] = "via tee\nand more"
END
finish

# Filters that write a sibling and rename it.
begin
quiet sed -i s/hello/goodbye/ $M/note
quiet sed -i 's/4 6/6 4/' m/model/a/w/shape
quiet sed -i.bak s/pt/tf/ $M/format
quiet rm $M/format.bak
commit
meant <<-'END'
	meta["note"], meta["format"] = "goodbye world", "tf"
	put("model.a.w", shape=[6, 4])
END
finish
if has perl; then
	begin
	quiet perl -pi -e s/hello/goodbye/ $M/note
	quiet perl -pi -e 's/4 6/24/' m/model/a/w/shape
	commit
	meant <<-'END'
		meta["note"] = "goodbye world"
		put("model.a.w", shape=[24])
	END
	finish
fi
if has gawk; then
	begin
	quiet gawk -i inplace '{ sub("hello", "goodbye") } 1' $M/note
	quiet gawk -i inplace '{ print 24 }' m/model/a/w/shape
	commit
	meant <<-'END'
		meta["note"] = "goodbye world"
		put("model.a.w", shape=[24])
	END
	finish
fi
if has busybox; then
	begin
	quiet busybox sed -i s/hello/goodbye/ $M/note
	quiet busybox sed -i 's/4 6/24/' m/model/a/w/shape
	quiet busybox rm -r m/model/a/b
	mkdir m/aside
	"$PYTHON" -c 'for n in range(3000): open("m/aside/key%d" % n, "w").close()'
	quiet busybox rm -r m/aside
	commit
	meant <<-'END'
		meta["note"] = "goodbye world"
		put("model.a.w", shape=[24])
		take("model.a.b")
	END
	finish
fi
if has patch; then
	begin
	cat >p <<-'END'
		--- m/__metadata__/note
		+++ m/__metadata__/note
		@@ -1 +1 @@
		-hello world
		+patched world
	END
	quiet patch -s -p0 -i p
	commit
	meant <<<'meta["note"] = "patched world"'
	finish
fi
if has sponge; then
	begin
	quiet sh -c 'sed s/hello/soaked/ $1 | sponge $1' sh $M/note
	commit
	meant <<<'meta["note"] = "soaked world"'
	finish
fi
if has ed; then
	begin
	printf '%s\n' s/hello/edited/ w q | ed -s $M/note || fail "ed"
	commit
	meant <<<'meta["note"] = "edited world"'
	finish
fi

# install, tar, rsync, git.
begin
printf ABCDE >five
quiet install -m 644 five m/model/a/b/data
commit
meant <<<'put("model.a.b", data=b"ABCDE")'
finish
if has tar; then
	begin
	quiet tar -cf whole.tar -C m .
	quiet tar -cSf sparse.tar -C m model
	mkdir out
	tar -xf sparse.tar -C out
	quiet diff -r out/model m/model
	quiet rm -r m/model/a m/empty m/__metadata__/note
	printf other >m/model/big/data
	quiet tar -xf whole.tar -C m
	quiet tar -xf whole.tar -C m
	[ "$(cat m/.safetensors/status)" = "# nothing is staged" ] || echo commit >m/.safetensors/commit || fail "tar -x"
	"$PYTHON" - <<-'END'
		from refwriter import read
		old, new = read("old.safetensors"), read("m.safetensors")
		assert {t.name: t for t in old[0]} == {t.name: t for t in new[0]} and old[1] == new[1]
	END
	finish
	rm -r out
fi
if has rsync; then
	begin
	mkdir from
	quiet rsync -a m/ from/
	printf RSYNC >from/model/a/b/data
	touch -d '2020-02-02 02:02:02' from/model/a/b/data # of the same size: rsync goes by the second
	echo synced >from/__metadata__/note
	cp -r from/model/a from/model/r
	quiet rsync -a from/ m/
	[ -z "$(rsync -ai from/ m/)" ] || fail "a second rsync has something to do: $(rsync -ain from/ m/)"
	rm -r from/lm_head
	quiet rsync -a --delete from/ m/
	quiet rsync -a --inplace from/model/a/b/data m/model/r/b/data
	commit
	meant <<-'END'
		put("model.a.b", data=b"RSYNC")
		put("model.r.w", *t["model.a.w"][1:])
		put("model.r.b", *t["model.a.b"][1:])
		take("lm_head.weight")
		meta["note"] = "synced"
	END
	finish
	rm -r from
fi
if has git; then
	begin
	export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x
	mygit() { git --git-dir="$T/git" --work-tree="$T/m" -c core.fileMode=false "$@"; }
	quiet mygit init -q
	(cd m && mygit add __metadata__ model/a) || fail "git add"
	mygit commit -qm first || fail "git commit"
	(cd m && [ -z "$(mygit add -v __metadata__ model/a)" ]) || fail "a second git add has something to do"
	[ -z "$(mygit status --short -uno)" ] || fail "git sees changes: $(mygit status --short -uno)"
	echo changed >$M/note
	echo 24 >m/model/a/w/shape
	commit
	[ "$(mygit status --short -uno | wc -l)" = 2 ] || fail "git sees: $(mygit status --short -uno)"
	quiet mygit -C m checkout -q -- __metadata__/note model/a/w/shape
	commit
	meant </dev/null
	finish
fi

# Files of another owner, for root.
if [ "$(id -u)" = 0 ]; then
	begin
	mkdir foreign
	cp -r m/model/a foreign/b
	chown -R 12345:54321 foreign
	chmod 640 foreign/b/w/data
	tar -C foreign -cf foreign.tar b
	quiet cp -a foreign/b m/model/copied
	quiet tar -C m/model -xf foreign.tar
	[ "$(stat -c %u:%g:%a m/model/b/w/data)" = 12345:54321:640 ] || fail "owner and mode are not kept"
	commit
	meant <<-'END'
		for place in "copied", "b":
		    put("model.%s.w" % place, *t["model.a.w"][1:])
		    put("model.%s.b" % place, *t["model.a.b"][1:])
	END
	finish
	rm -r foreign
fi
if has make; then
	begin
	printf 'm/scratch/sum: m/model/a/w/data\n\t@mkdir -p m/scratch; cksum $< >$@; echo made\n' >makefile
	[ "$(make -s)" = made ] && [ -z "$(make -s)" ] || fail "make twice"
	printf x >>m/model/a/w/data
	[ "$(make -s)" = made ] && [ -z "$(make -s)" ] || fail "make after an edit"
	"$STFS" umount m
	rm -r .m.safetensors.stage makefile
fi

# Editors, without and with a terminal.
drive() {
	"$PYTHON" "$HERE/terminal.py" "$@" || fail "$*"
}
if has vim; then
	begin
	quiet vim -u NONE -es -c 's/hello/vimmed/' -c wq $M/note
	quiet vim -es -c 's/4 6/24/' -c wq m/model/a/w/shape
	drive ':s/pt/typed/\r' ':w\r' ':s/typed/twice/\r' ':wq\r' -- vim $M/format
	[ -z "$(find m -name '*~' -o -name '.*.sw?' -o -name 4913)" ] || fail "vim leaves $(find m -name '*~' -o -name '.*.sw?')"
	commit
	meant <<-'END'
		meta["note"], meta["format"] = "vimmed world", "twice"
		put("model.a.w", shape=[24])
	END
	finish
fi
if has nano; then
	begin
	drive 'typed ' '\x0f\r' 'twice ' '\x0f\r' '\x18' -- nano -R $M/note
	drive 'typed ' '\x0f' '\r' '\x18' -- nano $M/format
	commit
	meant <<-'END'
		meta["note"] = "typed twice hello world"
		meta["format"] = "typed pt"
	END
	finish
fi
if has emacs; then
	begin
	emacs -Q --batch $M/note --eval '(progn (insert "batch ") (save-buffer) (insert "twice ") (save-buffer))' >.log/out 2>&1 || fail "emacs: $(cat .log/out)"
	emacs -Q --batch m/model/a/w/shape --eval '(progn (erase-buffer) (insert "24\n") (save-buffer))' >.log/out 2>&1 ||
		fail "emacs: $(cat .log/out)"
	! grep -i 'changed\|warning' .log/out || fail "emacs warns"
	find m -name '*~' -delete
	commit
	meant <<-'END'
		meta["note"] = "batch twice hello world"
		put("model.a.w", shape=[24])
	END
	finish
fi
echo "$tools optional tools"
