#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who may see a mount: modes no wider than the source's, other users only with allow_other, mounts of ordinary users.
. "$(dirname "$0")/lib.sh"
need_root
need setpriv
as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
chmod 755 "$T"
as_nobody test -x "$STFS" || skip "an ordinary user cannot reach the program"
DATA=model/norm/weight/data

cp "$MODEL" model.safetensors
chmod 640 model.safetensors
mount_it model.safetensors m
[ "$(stat -c %a m/$DATA)" = 640 ] || fail "mode of a file: $(stat -c %a m/$DATA)"
[ "$(stat -c %a m/model)" = 750 ] || fail "mode of a folder: $(stat -c %a m/model)"
as_nobody cat m/$DATA >/dev/null 2>&1 && fail "another user is let in"
"$STFS" umount m

# The owner is the source's, not whoever mounted it.
chown 1234:5678 model.safetensors
mount_it model.safetensors m
[ -z "$(find m '(' ! -uid 1234 -o ! -gid 5678 ')')" ] || fail "owner: $(stat -c %u:%g m/$DATA)"
"$STFS" umount m
chown 0:0 model.safetensors

# allow_other opens the door, and the modes still hold.
mount_it model.safetensors m -o allow_other
as_nobody cat m/$DATA >/dev/null 2>&1 && fail "another user reads what the source does not let him read"
"$STFS" umount m
chmod 644 model.safetensors
mount_it model.safetensors m -o allow_other
as_nobody cat m/$DATA | cmp - m/$DATA || fail "allow_other does not let another user in"
"$STFS" umount m

# What stat calls the group's rights is the mask where there is an access control list. This one denies them to the group.
chmod 640 model.safetensors
chgrp 65534 model.safetensors
if command -v setfacl >/dev/null && setfacl -m u:1234:r,g::- model.safetensors 2>/dev/null; then
	mount_it model.safetensors m -o allow_other
	as_nobody cat m/$DATA >/dev/null 2>&1 && fail "a group reads what the source's list denies it"
	"$STFS" umount m
	cp -p model.safetensors listed.safetensors
	"$STFS" set-metadata -q --commit listed.safetensors k=v
	as_nobody cat listed.safetensors >/dev/null 2>&1 && fail "a commit lets a group in that the source's list kept out"
	"$STFS" convert -q model.safetensors converted.safetensors
	chgrp 65534 converted.safetensors
	as_nobody cat converted.safetensors >/dev/null 2>&1 && fail "a copy lets a group in that the source's list kept out"
	setfacl -b model.safetensors
else
	echo "not tried: access control lists (setfacl, and a filesystem that has them)"
fi
chgrp 0 model.safetensors
chmod 644 model.safetensors

# A folder that may be passed but not listed, as homes are, is no reason to refuse a model whose name is known.
mkdir passage
cp model.safetensors passage
chmod 711 passage
as_nobody "$STFS" check -q passage/model.safetensors || fail "check in a folder that cannot be listed: $?"
as_nobody "$STFS" cat passage/model.safetensors model.norm.weight | cmp - <("$STFS" cat "$MODEL" model.norm.weight) ||
	fail "cat in a folder that cannot be listed"
! as_nobody "$STFS" check passage >found || fail "a folder was listed"
grep -q "^passage: error: cannot be opened: Permission denied" found || fail "a folder that cannot be listed: $(cat found)"

# An ordinary user mounts through fusermount3. Where the device is closed to him he gets one of his own, in a mount
# namespace of its own.
need fusermount3 unshare
[ -e /etc/mtab ] || skip "fusermount3 needs /etc/mtab (the rest was tested)"
mkdir home
chown 65534:65534 home "$T/.log"
mkdir roots
run_as_user() {
	if as_nobody test -w /dev/fuse; then
		as_nobody bash "$HERE/users_own.sh"
		return
	fi
	mknod "$T/fuse" c 10 229 2>/dev/null && chmod 666 "$T/fuse" && as_nobody test -w "$T/fuse" ||
		skip "ordinary users may not open /dev/fuse here (the rest was tested)"
	unshare -m bash -c 'mount --bind "$T/fuse" /dev/fuse && exec setpriv --reuid=65534 --regid=65534 --clear-groups \
		bash "$HERE/users_own.sh"'
}
export T HERE STFS MODEL
run_as_user
