# SPDX-License-Identifier: Apache-2.0
"""Goes through the rules of the tree at a mount of the model that edit.sh makes.

usage: edit_tree.py MOUNT
"""

import ctypes
import errno
import fcntl
import os
import stat
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
os.chdir(sys.argv[1])


def fails(error, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except OSError as failure:
        assert failure.errno == getattr(errno, error), "%s%r: %s, not %s" % (call, args, failure, error)
    else:
        raise AssertionError("%s%r works, not %s" % (call, args, error))


def write(path, data=b""):
    with open(path, "wb", 0) as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tensor(path, dtype, shape, data):
    os.makedirs(path)
    write(path + "/dtype", dtype.encode() + b"\n")
    write(path + "/shape", shape.encode() + b"\n")
    write(path + "/data", data)


def renameat2(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def names():
    fails("EPERM", os.symlink, "target", "link")
    fails("EPERM", os.link, "model/a/b/data", "hard")
    fails("EPERM", os.mkfifo, "fifo")
    fails("EPERM", os.mkdir, "__metadata__/dir")
    fails("EPERM", os.mkdir, ".Trash-0")
    fails("EPERM", os.mkdir, "bad%escape")
    fails("EPERM", os.mkdir, "model/%41")
    fails("EPERM", write, "__metadata__/bad%escape")
    fails("EILSEQ", os.mkdir, b"bad\xff")
    fails("ENAMETOOLONG", os.mkdir, "x" * 256)
    fails("ENAMETOOLONG", write, "y" * 256)
    fails("ENAMETOOLONG", os.stat, "z" * 256)
    fails("EEXIST", os.mkdir, "model/a")
    fails("EEXIST", os.mkdir, "model.a")
    fails("EEXIST", os.mkdir, "model.a.w")
    fails("EEXIST", os.mkdir, ".safetensors")
    fails("ENOENT", os.mkdir, "no/such")
    fails("ENOTDIR", os.mkdir, "model/a/b/data/x")
    fails("EACCES", os.mkdir, ".safetensors/x")
    fails("EACCES", os.rename, ".safetensors/commit", "x")
    fails("EACCES", os.rmdir, ".safetensors")
    fails("ENOTEMPTY", os.rmdir, "__metadata__")
    fails("EBUSY", os.rename, "__metadata__", "meta")
    fails("ENOTEMPTY", os.rmdir, "model/a")
    fails("ENOTDIR", os.rmdir, "model/a/b/data")
    fails("EISDIR", os.unlink, "model/a")
    fails("EINVAL", os.rename, "model", "model/a/x")
    fails("ENOTEMPTY", os.rename, "lm_head", "model")
    fails("EISDIR", os.rename, "model/a/b/data", "model/a/w")
    fails("ENOTDIR", os.rename, "model/a/w", "model/a/b/data")
    fails("EEXIST", renameat2, "model/a/b/data", "model/a/w/data", 1)
    fails("EINVAL", renameat2, "model/a/b/data", "model/a/w/data", 2)
    assert os.readlink("model.a.w") == "model/a/w" and os.path.isdir("model.a")
    assert read("model.a.b/data") == b"bytes"


def calls():
    fd = os.open("model/a/b/data", os.O_RDWR)
    fails("EOPNOTSUPP", os.getxattr, "model/a/b/data", "user.x")
    fails("EOPNOTSUPP", os.setxattr, "model/a/b/data", "user.x", b"1")
    assert libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(2)) < 0 and ctypes.get_errno() == errno.EOPNOTSUPP
    fcntl.flock(fd, fcntl.LOCK_EX)
    other = os.open("model/a/b/data", os.O_RDONLY)
    fails("EAGAIN", fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
    fails("EEXIST", os.open, "model/a/b/data", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    fails("EISDIR", os.open, "model", os.O_WRONLY)
    append = [os.open("log", os.O_CREAT | os.O_APPEND | os.O_WRONLY) for _ in range(2)]
    for n in range(100):
        os.write(append[n % 2], b"%02d" % n)
    assert read("log") == b"".join(b"%02d" % n for n in range(100))
    os.posix_fallocate(append[0], 0, 1000)
    assert os.stat("log").st_size == 1000
    os.unlink("log")
    for each in append + [fd]:
        os.close(each)
    sync = os.open("sync", os.O_CREAT | os.O_SYNC | os.O_WRONLY)
    os.write(sync, b"x")
    os.fdatasync(sync)
    os.fsync(os.open(".", os.O_RDONLY))
    os.unlink("sync")
    space = os.statvfs(".")
    assert space.f_bavail > 0 and space.f_namemax == 255
    # A hole reads as zeros.
    hole = os.open("hole", os.O_CREAT | os.O_RDWR)
    os.pwrite(hole, b"end", 10 << 20)
    assert os.pread(hole, 100000, 5 << 20) == bytes(100000) and os.fstat(hole).st_size == (10 << 20) + 3
    os.ftruncate(hole, 3 << 20)
    os.ftruncate(hole, 11 << 20)
    assert os.pread(hole, 3, 10 << 20) == bytes(3)
    os.close(hole)
    os.unlink("hole")


def times():
    path, folder = "model/a/b/data", "model/a/b"
    before, around = os.stat(path).st_mtime_ns, os.stat(folder).st_mtime_ns
    read(path), os.listdir(folder), os.stat(path)
    assert os.stat(path).st_mtime_ns == before and os.stat(folder).st_mtime_ns == around
    write(path, b"BYTES")
    after = os.stat(path).st_mtime_ns
    assert after > before
    assert os.stat(folder).st_mtime_ns == around, "writing to a file ages its directory"
    write(folder + "/scratch", b"x")
    assert os.stat(folder).st_mtime_ns > around
    os.utime(path, ns=(1, 1234567890123456789))
    os.chmod(path, 0o640)
    assert os.stat(path).st_mtime_ns == 1234567890123456789 and stat.S_IMODE(os.stat(path).st_mode) == 0o640
    os.chown(path, os.getuid(), os.getgid())
    os.rename(path, folder + "/away")
    assert os.stat(folder + "/away").st_mtime_ns == 1234567890123456789
    inode = os.stat(folder + "/away").st_ino
    os.rename(folder + "/away", path)
    assert os.stat(path).st_ino == inode
    os.utime(folder, ns=(1, 1234567890000000000))
    os.chmod(folder, 0o700)
    assert os.stat(folder).st_mtime_ns == 1234567890000000000 and stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    os.chmod(folder, 0o755)
    os.utime(path)
    assert abs(os.stat(path).st_mtime - time.time()) < 60
    write(path, b"bytes")
    os.unlink(folder + "/scratch")
    assert os.stat("model").st_nlink == 2 + sum(os.path.isdir("model/" + name) for name in os.listdir("model"))


def texts():
    path = "model/a/w/shape"
    for good in b"4 6", b"4,6\n", b"[4, 6]", b"(4, 6)\n", b"4x6", b"24\n":
        write(path, good)
        assert read(path) == good, "a text does not read back as it was written"
    for bad in b"four six\n", b"4 -6\n", b"4.0\n":
        fails("EINVAL", write, path, bad)
        assert read(path) == b"24\n", "the old text is gone: %r" % read(path)
    write(path, b"what comes in pie")
    with open(path, "r+b", 0) as file:
        file.truncate(0)
        file.write(b"4 ")
        file.write(b"6\n")
    assert read(path) == b"4 6\n"
    fails("EINVAL", write, "model/a/w/dtype", b"F33\n")
    fails("EINVAL", write, "model/a/w/dtype", b"f32\n")
    assert read("model/a/w/dtype") == b"F32\n"
    os.unlink("model/a/w/dtype")
    write("model/a/w/dtype", b"F32")
    # dtype and shape stay when data goes for a moment.
    data = read("model/a/w/data")
    os.unlink("model/a/w/data")
    write("model/a/w/data", data)
    assert sorted(os.listdir("model/a/w"))[:1] == ["data"] and read(path) == b"4 6\n"


def build():
    tensor("new/deep/tensor", "F64", "2", bytes(16))
    tensor("spelt.in.one", "U8", "1", b"x")
    tensor("with%2Fslash", "U8", "1", b"y")
    tensor("%_", "U8", "1", b"z")
    for n, text in enumerate(["2 3", "2,3", "[2, 3]", "(2, 3)", "2x3", "2 3"]):
        tensor("forms/f%d" % n, "I8", text, bytes(6))
    tensor("forms/scalar1", "I8", "", b"1")
    tensor("forms/scalar2", "I8", "[]", b"2")
    for name in os.listdir("__metadata__"):
        os.unlink("__metadata__/" + name)
    for name, text in {
        "plain": b"x\n",
        "two": b"a\nb\n\n",
        "none": b"",
        "%25": b"percent",
        "%2Edot": b"dot",
        "a%2Fb": b"slash\n",
        "sedAbCdEf": b"litter",
        ".hidden": b"scratch",
        "#lock#": b"scratch",
        "backup~": b"scratch",
    }.items():
        write("__metadata__/" + name, text)
    os.makedirs("nothing/in/here")
    for place in "scratch", "model/scratch", "model/a/b/data~", "model/a/b/.data.swp", "new/deep/tensor/part.npy":
        write(place, os.urandom(20000))
        assert len(read(place)) == 20000
    assert "? scratch\n" in read(".safetensors/status").decode()


def main():
    names()
    calls()
    times()
    texts()
    status = read(".safetensors/status").decode()
    assert all(line in ("M model.a.w (data)", "M model.a.b (data)") for line in status.splitlines()[:-1]), status
    build()


main()
