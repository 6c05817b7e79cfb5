# SPDX-License-Identifier: Apache-2.0
"""What calls answer that neither read bytes nor change anything, on a read-only mount of the tiny model.

usage: calls.py MOUNT
"""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import sys
import termios

mount = sys.argv[1]
folder = os.path.join(mount, "model/norm/weight")
data = os.path.join(folder, "data")
link = os.path.join(mount, "model.norm.weight")
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    """A call that Python would dress up; returns its result or raises OSError."""
    result = getattr(libc, name)(*args)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def opened(path, flags):
    os.close(os.open(path, flags))


def is_ready(fd):
    return select.select([fd], [], [], 0)[0] == [fd]


fd = os.open(data, os.O_RDONLY)
directory = os.open(folder, os.O_RDONLY)
out = os.open("out", os.O_RDWR | os.O_CREAT, 0o600)
FICLONE, FIEMAP = 0x40049409, 0xC020660B

# What is called, how it is called, and what it must answer: an errno by its name, or a value.
CASES = [
    ("access R_OK", lambda: call("access", data.encode(), os.R_OK), 0),
    ("access W_OK", lambda: call("access", data.encode(), os.W_OK), "EROFS"),
    ("access X_OK of a file", lambda: call("access", data.encode(), os.X_OK), "EACCES"),
    ("access X_OK of a directory", lambda: call("access", folder.encode(), os.X_OK), 0),
    ("execve", lambda: os.execv(data, [data]), "EACCES"),
    ("getxattr", lambda: os.getxattr(data, "user.x"), "EOPNOTSUPP"),
    ("listxattr", lambda: os.listxattr(data), "EOPNOTSUPP"),
    ("open a directory to write", lambda: os.open(folder, os.O_RDWR), "EISDIR"),
    ("read a directory", lambda: os.read(directory, 1), "EISDIR"),
    ("O_DIRECTORY", lambda: os.open(data, os.O_DIRECTORY), "ENOTDIR"),
    ("list a file", lambda: os.listdir(data), "ENOTDIR"),
    ("O_NOFOLLOW", lambda: os.open(link, os.O_NOFOLLOW), "ELOOP"),
    ("O_PATH", lambda: opened(data, os.O_PATH), None),
    ("O_CREAT of what is there", lambda: opened(data, os.O_RDONLY | os.O_CREAT), None),
    ("O_EXCL of what is there", lambda: os.open(data, os.O_RDONLY | os.O_CREAT | os.O_EXCL), "EEXIST"),
    ("O_TRUNC", lambda: os.open(data, os.O_RDONLY | os.O_TRUNC), "EROFS"),
    ("O_TMPFILE", lambda: os.open(folder, os.O_RDWR | os.O_TMPFILE), "EROFS"),
    ("readlink", lambda: os.readlink(link), "model/norm/weight"),
    ("readlink from below", lambda: os.readlink(os.path.join(mount, "model/layers.0")), "layers/0"),
    ("readlink of a file", lambda: os.readlink(data), "EINVAL"),
    ("write", lambda: os.write(fd, b"x"), "EBADF"),
    ("ftruncate", lambda: os.ftruncate(fd, 0), "EINVAL"),
    ("fallocate", lambda: os.posix_fallocate(fd, 0, 1), "EBADF"),
    ("fsync", lambda: os.fsync(fd), None),
    ("fsync of a directory", lambda: os.fsync(directory), None),
    ("syncfs", lambda: call("syncfs", fd), 0),
    ("posix_fadvise", lambda: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED), None),
    ("flock", lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB), None),
    ("fcntl lock to read", lambda: fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB), None),
    ("fcntl lock to write", lambda: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB), "EBADF"),
    ("ioctl", lambda: fcntl.ioctl(fd, termios.TCGETS, bytes(64)), "ENOTTY"),
    ("FIEMAP", lambda: fcntl.ioctl(fd, FIEMAP, bytes(32)), "EOPNOTSUPP"),
    ("FICLONE", lambda: fcntl.ioctl(out, FICLONE, fd), "EXDEV"),
    ("poll", lambda: is_ready(fd), True),
    ("read beyond the end", lambda: os.pread(fd, 10, 1 << 40), b""),
    ("mmap to run", lambda: len(mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)), 256),
    ("mmap shared to write", lambda: mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE), "EACCES"),
]


def answer(function):
    try:
        return function()
    except OSError as error:
        return errno.errorcode[error.errno]


def check_locks_exclude():
    """Locks are real among the processes of this machine, though the daemon has no part in them."""
    other = os.open(data, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    got = answer(lambda: fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB))
    os.close(other)
    return [] if got == "EAGAIN" else ["a second flock: " + str(got)]


def check_positions():
    """A position told by one reader of a directory is good for another, and rewinding starts anew."""
    names = os.listdir(folder)
    again = os.listdir(directory)
    return [] if names == again == os.listdir(directory) else ["listings differ: %s %s" % (names, again)]


def check_statvfs():
    want = os.ST_RDONLY | os.ST_NOSUID | getattr(os, "ST_NODEV", 4)
    got = os.statvfs(mount)
    faults = []
    if got.f_flag & want != want:
        faults.append("statvfs flags: %#x" % got.f_flag)
    if got.f_bavail or got.f_ffree or got.f_namemax != 255:
        faults.append("statvfs: %s" % (got,))
    return faults


def main():
    # The kernel and Python have two names for it.
    same = {"ENOTSUP": "EOPNOTSUPP", "EWOULDBLOCK": "EAGAIN"}
    faults = []
    for name, function, want in CASES:
        got = answer(function)
        if same.get(got, got) != want:
            faults.append("%s: %s instead of %s" % (name, got, want))
    faults += check_locks_exclude() + check_positions() + check_statvfs()
    print("%d calls, %d faults" % (len(CASES), len(faults)))
    sys.exit("\n".join(faults) or 0)


main()
