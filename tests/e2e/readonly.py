# SPDX-License-Identifier: Apache-2.0
"""Makes each modifying call on a mount and wants EROFS from it."""

import errno
import os
import sys

mount = sys.argv[1]
folder = os.path.join(mount, "model/norm/weight")
data = os.path.join(folder, "data")
new = os.path.join(folder, "new")
top = os.path.join(mount, "new")
key = os.path.join(mount, "__metadata__/format")

CALLS = {
    "open for writing": lambda: os.open(data, os.O_WRONLY),
    "open for both": lambda: os.open(data, os.O_RDWR),
    "open to truncate": lambda: os.open(key, os.O_WRONLY | os.O_TRUNC),
    "open to append": lambda: os.open(key, os.O_WRONLY | os.O_APPEND),
    "create": lambda: os.open(new, os.O_WRONLY | os.O_CREAT, 0o644),
    "create at the top": lambda: os.open(top, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644),
    "truncate": lambda: os.truncate(data, 0),
    "mkdir": lambda: os.mkdir(new),
    "mkdir at the top": lambda: os.mkdir(top),
    "unlink": lambda: os.unlink(data),
    "unlink a key": lambda: os.unlink(key),
    "rmdir": lambda: os.rmdir(folder),
    "rename": lambda: os.rename(data, new),
    "rename a folder": lambda: os.rename(folder, top),
    "rename over": lambda: os.rename(data, os.path.join(folder, "shape")),
    "symlink": lambda: os.symlink("x", new),
    "link": lambda: os.link(data, new),
    "mkfifo": lambda: os.mkfifo(new),
    "chmod": lambda: os.chmod(data, 0o600),
    "chmod the top": lambda: os.chmod(mount, 0o700),
    "chown": lambda: os.chown(data, 1, 1),
    "utime": lambda: os.utime(data, (1, 1)),
    "setxattr": lambda: os.setxattr(data, "user.x", b"1"),
}
# Without extended attributes the kernel says so before it looks at the mount's flags, unless these say read-only.
ALSO = {"setxattr": errno.EOPNOTSUPP}

for name, call in CALLS.items():
    try:
        call()
    except OSError as error:
        if error.errno not in (errno.EROFS, ALSO.get(name)):
            sys.exit("readonly.py: %s: %s" % (name, error))
    else:
        sys.exit("readonly.py: %s was not refused" % name)
