# SPDX-License-Identifier: Apache-2.0
"""Edits in a mount, and what must be found of them after a crash.

For each file of the mount there is a list of the contents that may be found, the last being what it was given last (None:
no file). What is synced has one; with `settle`, for crashes of the daemon alone, so has all that was accepted.
"""
import errno
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from refwriter import Tensor, write  # noqa: E402


BLOCK = 4096


def make_model(path, seed):
    r = random.Random(seed)
    tensors = [
        Tensor("model.a.w", "F32", [4, 6], r.randbytes(96)),
        Tensor("model.a.b", "U8", [5], r.randbytes(5)),
        Tensor("model.big", "U8", [60000], r.randbytes(60000)),
        Tensor("lm_head.weight", "F16", [8, 8], r.randbytes(128)),
    ]
    write(path, tensors, {"format": "pt", "note": "hello"})


def raise_it(error):
    raise error


def read_around(path, versions):
    """A file of which bytes are lost that were never synced: those cannot be read, all others can."""
    size, at = os.path.getsize(path), 0
    found = bytearray(next(version for version in reversed(versions) if version is not None))
    if {len(version) for version in versions if version is not None} != {size}:
        raise OSError(errno.EIO, "a size that was synced is lost", path)
    known = [len({version[i] for version in versions if version is not None}) == 1 for i in range(size)]
    with open(os.open(path, os.O_RDONLY | os.O_DIRECT), "rb", buffering=0) as file:
        while at < size:
            end = next((i for i in range(at, size) if known[i] != known[at]), size)
            try:
                found[at:end] = os.pread(file.fileno(), end - at, at)
            except OSError:
                if known[at]:
                    raise
            at = end
    return bytes(found)


def read_tree(top, allowed=None):
    """All files of a mount: path to bytes. With what is allowed after a crash, unsynced bytes may be unreadable."""
    found = {}
    for folder, _, names in os.walk(top, onerror=raise_it):
        for name in names:
            full = os.path.join(folder, name)
            path = os.path.relpath(full, top)
            try:
                with open(full, "rb") as file:
                    found[path] = file.read()
            except OSError:
                if len(set((allowed or {}).get(path, []))) < 2:
                    raise
                found[path] = read_around(full, allowed[path])
    return found


def could_be(content, versions):
    """Whether each byte is that of some version: writes within a file reach the disk in any order. Or all are lost."""
    if content in versions or (content == b"" and len(versions) > 1):
        return True
    whole = [v for v in versions if v is not None]
    # Of what is not synced the size may be that of the blocks.
    most = max(map(len, whole), default=0)
    most += -most % BLOCK if len(whole) > 1 else 0
    if content is None or not whole or not min(map(len, whole)) <= len(content) <= most:
        return False
    zero = any(len(v) < len(content) for v in whole)
    return all(any(i < len(v) and v[i] == b for v in whole) or (zero and b == 0) for i, b in enumerate(content))


def differences(found, allowed):
    """What of `found`, the files of a mount, cannot be: sentences."""
    for path in sorted(set(found) | set(allowed)):
        versions = allowed.get(path, [None])
        content = found.get(path)
        if not could_be(content, versions):
            yield "%s is %s, may be %s" % (path, show(content), " or ".join(map(show, versions)))


def show(content):
    return "absent" if content is None else "%d bytes %s" % (len(content), content[:12].hex())


class Edits:
    def __init__(self, top, seed, settle=False):
        self.top, self.random, self.settle = top, random.Random(seed), settle
        self.allowed = {path: [content] for path, content in read_tree(top).items()}
        self.names = iter(range(1000000))

    def state(self):
        return {path: list(versions) for path, versions in self.allowed.items()}

    # -- what may be found

    def expect(self, path, *contents):
        self.allowed.setdefault(path, [None]).extend(contents)

    def now(self, path):
        return self.allowed.get(path, [None])[-1]

    def is_now(self, *paths):
        for path in paths:
            self.allowed[path] = self.allowed[path][-1:]

    def existing(self, end):
        return sorted(path for path in self.allowed if path.endswith(end) and self.now(path) is not None)

    # -- single edits; each tells first what may be found from here on

    def full(self, path):
        return os.path.join(self.top, path)

    def sync(self, path):
        fd = os.open(self.full(path), os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    def put(self, path, offset, data, flags=0, sync=True):
        old = b"" if flags & os.O_TRUNC else self.now(path) or b""
        self.expect(path, old[:offset] + data + old[offset + len(data):])
        yield
        fd = os.open(self.full(path), os.O_RDWR | flags)
        done = 0
        while done < len(data):
            done += os.pwrite(fd, data[done:], offset + done)
        if self.settle:
            self.is_now(path)
        if sync:
            os.fsync(fd)
            self.is_now(path)
        os.close(fd)

    def rename(self, old, new, pairs):
        for a, b in pairs:
            self.expect(b, self.now(a))
            self.expect(a, None)
        yield
        os.rename(self.full(old), self.full(new))
        self.sync("")
        self.is_now(*(path for pair in pairs for path in pair))

    def remove(self, paths, folder=None):
        for path in paths:
            self.expect(path, None)
        yield
        for path in paths:
            os.unlink(self.full(path))
        if folder:
            os.rmdir(self.full(folder))
        self.sync("")
        self.is_now(*paths)

    # -- kinds of edits

    def some_bytes(self):
        """Over a part of the data of a tensor; now and then not synced."""
        path = self.random.choice(self.existing("data"))
        size = len(self.now(path))
        offset = self.random.randrange(size)
        old = self.now(path)[offset:offset + self.random.choice([1, 50, 5000, 20000])]
        data = bytes(byte ^ self.random.randrange(1, 256) for byte in old)  # another one everywhere
        yield from self.put(path, offset, data, sync=self.random.random() < 0.7)

    def all_bytes(self):
        path = self.random.choice(self.existing("data"))
        yield from self.put(path, 0, self.random.randbytes(len(self.now(path))), os.O_TRUNC)

    def metadata(self):
        """A short text, which is in the journal alone."""
        path = "__metadata__/" + self.random.choice(["note", "k1", "k2"])
        text = ("%x" % self.random.getrandbits(160) * self.random.choice([1, 1, 40])).encode() + b"\n"
        yield from self.put(path, 0, text, os.O_TRUNC | os.O_CREAT, sync=self.random.random() < 0.7)

    def scratch(self):
        path = "scratch%d" % next(self.names)
        data = self.random.randbytes(self.random.choice([10, 5000, 150000]))
        yield from self.put(path, 0, data, os.O_CREAT | os.O_EXCL)

    def longer(self):
        """More at the end of what may have been short: from somewhere on its bytes are in a file of their own."""
        path = self.random.choice([path for path in self.existing("") if path.startswith("scratch")] or [None])
        if not path:
            return
        data = self.random.randbytes(self.random.choice([10, 3000, 20000, 60000]))
        yield from self.put(path, len(self.now(path)), data, sync=self.random.random() < 0.7)

    def replaced(self):
        """As editors do: a new file, synced, that takes the name of the old one."""
        temp = "__metadata__/note~"
        yield from self.put(temp, 0, b"%d\n" % self.random.getrandbits(60), os.O_CREAT)
        yield from self.rename(temp, "__metadata__/note", [(temp, "__metadata__/note")])

    def new_tensor(self):
        folder = "new%d" % next(self.names)
        os.mkdir(self.full(folder))
        size = self.random.choice([3, 9000])
        for name, text in (("dtype", b"U8\n"), ("shape", b"%d\n" % size), ("data", self.random.randbytes(size))):
            yield from self.put(folder + "/" + name, 0, text, os.O_CREAT)

    def moved(self):
        folder = os.path.dirname(self.random.choice(self.existing("/data")))
        new = "moved%d" % next(self.names)
        pairs = [(path, new + path[len(folder):]) for path in self.existing("") if path.startswith(folder + "/")]
        if any(len(self.allowed[path]) > 1 for path, _ in pairs):
            return
        yield from self.rename(folder, new, pairs)

    def removed(self):
        folders = [os.path.dirname(path) for path in self.existing("/data")]
        if len(folders) > 3:
            folder = self.random.choice(folders)
            yield from self.remove([path for path in self.existing("") if path.startswith(folder + "/")], folder)

    def commit(self):
        yield
        with open(self.full(".safetensors/commit"), "w") as file:
            file.write("commit\n")
        self.is_now(*(path for path in self.allowed if self.settle or not path.startswith("scratch")))

    def run(self, steps):
        """Yields before and after each edit, whenever a crash from here on may leave something else."""
        kinds = [self.some_bytes] * 4 + [self.metadata] * 3 + [self.longer] * 2
        kinds += [self.all_bytes, self.scratch, self.replaced, self.new_tensor, self.moved, self.removed, self.commit]
        for _ in range(steps):
            yield from self.random.choice(kinds)()
            yield
