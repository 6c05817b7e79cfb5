# SPDX-License-Identifier: Apache-2.0
"""Many processes edit one mount at once.

usage: edit_many_clients.py PROGRAM MODEL MOUNT ROUNDS

Every write makes a file one whole version, so that what a commit or a reader may find is one of those that were written. An
owner has a module that nobody else changes and knows what must be in it; after it has discarded a file, that is a version no
older than the last it saw committed. All write to the shared tensors. A last owner of nothing discards everything, again and
again, in a second part, in which only whole versions are asked for.
"""

import errno
import itertools
import json
import os
import random
import subprocess
import sys
import time
import traceback

from refwriter import Tensor, read, write

program, model, mount = sys.argv[1:4]
rounds = int(sys.argv[4])
OWNERS = 4
SIZES = {"text": 1000, "small": 30000, "large": 100000}
CONTROL = mount + "/.safetensors/"
GONE = (errno.ENOENT, errno.ESTALE, errno.ENOTDIR)


def version(size, owner, number):
    """Bytes that tell whose they are, all through."""
    word = b"%02d:%09d;" % (owner, number)
    return (word * (size // len(word) + 1))[:size]


def number_of(data, size):
    """The version that `data` is, or None if it is no whole one."""
    if len(data) != size or data[2:3] != b":":
        return None
    return int(data[3:12]) if data == version(size, int(data[:2]), int(data[3:12])) else None


def slurp(path):
    with open(path, "rb", 0) as file:
        return file.read()


def put(path, data, flags=os.O_WRONLY):
    fd = os.open(path, flags)
    try:
        assert os.write(fd, data) == len(data)
    finally:
        os.close(fd)


def control(name, words):
    """Returns whether it was done: while somebody's tensor is half made a commit is refused."""
    try:
        put(CONTROL + name, words)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADMSG, errno.ENOENT):
            raise
        return False
    return True


class Owner:
    def __init__(self, number):
        self.number, self.random = number, random.Random(number)
        self.module = "c%d" % number
        self.now = dict.fromkeys(SIZES, 0)  # the version that each tensor has
        self.kept = dict(self.now)  # the last that is known to be in the model
        self.last = 0
        self.fd = os.open(self.path("large"), os.O_RDWR)

    def path(self, name, file="data"):
        return "%s/%s/%s/%s" % (mount, self.module, name, file)

    def next(self, name):
        self.last += 1
        return version(SIZES[name], self.number, self.last)

    def check(self, name, data):
        got = number_of(data, SIZES[name])
        assert got == self.now[name], "%s of owner %d is version %s, not %d" % (name, self.number, got, self.now[name])

    def overwrite(self, name):
        put(self.path(name), self.next(name))
        self.now[name] = self.last

    def replace(self, name):
        new = self.path(name, "data.tmp")
        put(new, self.next(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.rename(new, self.path(name))
        self.now[name] = self.last
        if name == "large":
            self.reopen()

    def reopen(self):
        os.close(self.fd)
        self.fd = os.open(self.path("large"), os.O_RDWR)

    def through_handle(self, name):
        data = self.next("large")
        assert os.pwrite(self.fd, data, 0) == len(data)
        self.now["large"] = self.last
        self.check("large", os.pread(self.fd, SIZES["large"] + 1, 0))

    def move(self, name):
        new = ("d%d" if self.module[0] == "c" else "c%d") % self.number
        os.rename("%s/%s" % (mount, self.module), "%s/%s" % (mount, new))
        self.module = new

    def read(self, name):
        self.check(name, slurp(self.path(name)))
        npy = slurp(self.path(name, "data.npy"))
        self.check(name, npy[len(npy) - SIZES[name]:])
        assert slurp(self.path(name, "dtype")) == b"U8\n"

    def sync(self, name):
        os.fsync(self.fd)

    def share(self, name):
        put("%s/shared/%s/data" % (mount, name), self.next(name))

    def note(self, name):
        path = "%s/__metadata__/note%d" % (mount, self.number)
        put(path, b"%09d\n" % self.last, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        assert slurp(path) == b"%09d\n" % self.last

    def make_and_remove(self, name):
        folder = "%s/e%d/x" % (mount, self.number)
        try:
            os.makedirs(folder, exist_ok=True)
            put(folder + "/data", b"abc", os.O_WRONLY | os.O_CREAT)
        except OSError as error:
            # A commit takes empty directories away, and mkdir does not ask again when the kernel had not heard of it yet.
            if error.errno not in (errno.ENOENT, errno.ESTALE):
                raise
            return
        put(folder + "/dtype", b"U8\n", os.O_WRONLY | os.O_CREAT)
        put(folder + "/shape", b"3\n", os.O_WRONLY | os.O_CREAT)
        for file in "shape", "data", "dtype":
            os.unlink(folder + "/" + file)

    def commit(self, name):
        if control("commit", b"commit\n"):
            self.kept = dict(self.now)

    def discard(self, name):
        control("discard", b"%s/%s/data\n" % (self.module.encode(), name.encode()))
        got = number_of(slurp(self.path(name)), SIZES[name])
        assert got is not None and self.kept[name] <= got <= self.now[name], \
            "%s of owner %d is version %s after a discard: %d was committed, %d written" % (
                name, self.number, got, self.kept[name], self.now[name])
        self.now[name] = self.kept[name] = got
        if name == "large":
            # What was renamed over the model's file is another one, and gone.
            if os.fstat(self.fd).st_ino != os.stat(self.path(name)).st_ino:
                self.reopen()
            self.check("large", os.pread(self.fd, SIZES["large"] + 1, 0))

    OPS = [(overwrite, 8), (replace, 4), (through_handle, 6), (read, 8), (sync, 1), (share, 4), (note, 3), (move, 2),
           (make_and_remove, 1), (commit, 1), (discard, 2)]

    def work(self):
        ops, weights = zip(*self.OPS)
        for _ in range(rounds):
            self.random.choices(ops, weights)[0](self, self.random.choice(list(SIZES)))


def ask(until):
    """Lists and reads all there is, and what .safetensors says of it; until that file is there."""
    while not os.path.exists(until):
        names = os.listdir(mount)
        for n in range(OWNERS):
            assert ("c%d" % n in names) != ("d%d" % n in names), "a module that moves is there once, not: %s" % names
        for folder, _, files in os.walk(mount):
            for name in files:
                try:
                    slurp(folder + "/" + name)
                except OSError as error:
                    if error.errno not in GONE:
                        raise
        for name in "status", "diff", "result", "progress", "tensors.tsv", "header.json":
            slurp(CONTROL + name)
        json.loads(slurp(CONTROL + "status.json"))
        control("commit", b"commit\n")


def open_shared():
    """Others who began before may have it under another name, for a moment or for good."""
    for name in itertools.cycle(("shared", "moved")):
        try:
            return os.open("%s/%s/large/data" % (mount, name), os.O_RDWR)
        except OSError as error:
            if error.errno not in GONE:
                raise


def spoil(n):
    """Edits and discards of everything; what is written to may go away at any time."""
    words = random.Random(n)
    fd = open_shared()
    for number in range(rounds):
        name = words.choice(list(SIZES))
        try:
            act = words.randrange(8)
            if act == 0:
                control("discard", b"all\n")
            elif act == 1:
                control("commit", b"commit\n")
            elif act == 2:
                os.rename("%s/shared" % mount, "%s/moved" % mount)
                os.rename("%s/moved" % mount, "%s/shared" % mount)
            elif act == 3:
                assert number_of(os.pread(fd, SIZES["large"], 0)[:12], 12) is not None
                os.pwrite(fd, version(SIZES["large"], n, number), 0)
            elif act == 4:
                put("%s/scratch" % mount, b"x" * 10000, os.O_WRONLY | os.O_CREAT)
            else:
                put("%s/shared/%s/data" % (mount, name), version(SIZES[name], n, number))
        except OSError as error:
            if error.errno not in GONE:
                raise


def run(*bodies):
    """Each in a process of its own; all must end well."""
    pids = []
    for body in bodies:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                body()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        pids.append(pid)
    return pids


def ended(pids):
    return all([os.waitpid(pid, 0)[1] == 0 for pid in pids])


def check_model(owners):
    tensors = {tensor.name: tensor.data for tensor in read(model)[0]}
    assert len(tensors) == len(SIZES) * (OWNERS + 1), sorted(tensors)
    shared = "moved" if "moved.text" in tensors else "shared"
    for name, size in SIZES.items():
        assert number_of(tensors["%s.%s" % (shared, name)], size) is not None, "%s.%s is no whole version" % (shared, name)
        for module, now in owners:
            got = number_of(tensors["%s.%s" % (module, name)], size)
            assert got == now[name], "%s.%s was committed as version %s, not %d" % (module, name, got, now[name])


def own(n):
    owner = Owner(n)
    owner.work()
    with open("owner%d" % n, "w") as file:
        json.dump([owner.module, owner.now], file)


def main():
    names = ["c%d.%s" % (n, s) for n in range(OWNERS) for s in SIZES] + ["shared." + s for s in SIZES]
    write(model, [Tensor(name, "U8", [SIZES[name.split(".")[1]]], version(SIZES[name.split(".")[1]], 0, 0)) for name in names])
    os.mkdir(mount)
    subprocess.run([program, model, mount], check=True)
    askers = run(*[lambda: ask("over")] * 2)
    good = ended(run(*[lambda n=n: own(n) for n in range(OWNERS)]))
    open("over", "w").close()
    good = ended(askers) and good
    if good:
        assert control("commit", b"commit\n"), slurp(CONTROL + "result")
        owners = [json.load(open("owner%d" % n)) for n in range(OWNERS)]
        check_model(owners)
        good = ended(run(*[lambda n=n: spoil(n) for n in range(OWNERS)]))
        assert control("discard", b"all\n"), slurp(CONTROL + "result")
        check_model(owners)
    subprocess.run([program, "umount", mount], check=True)
    left = [name for name in os.listdir(".") if name.endswith((".stage", "-commit"))]
    assert not good or not left, [left, os.listdir(left[0])]
    sys.exit(not good)


main()
