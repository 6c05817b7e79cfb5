#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Power cuts: what a disk can hold at any moment of edits and commits must be a model, and all that was promised.

usage: powercut.py BINARY LOGDISK FILESYSTEM WORK [CUTS] [SEED] [FAULT]        (default: 100 cuts, seed 1)

FILESYSTEM is ext4, xfs or btrfs, under which logdisk notes all writes and flushes; also ext2, mended after each cut,
which keeps no order of its own and so shows what is not synced, but also bytes of other files where nothing was. WORK is
  file    edits and commits by commands, of one file
  shards  the same of a model in shards
  mount   edits in a mount, with fsync
Cuts are spread over the log of that work. In each, writes before the last flush are kept, and of the later ones all or
some blocks; every fifth disk is cut again while it is put in order. After that the model must be the one before or after
what was under way, what a command or an fsync promised must be there, and nothing may be left over. With FAULT, which is
model, journal or folder, these are not synced: then it is an error when no cut shows it, and the first one that does is
the last. Disks with faults are kept, as they were after the first cut, in the folder that the environment calls KEEP. Exit
77 where something is missing.
"""
import contextlib
import ctypes
import hashlib
import mmap
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import edits  # noqa: E402

WRITE, FLUSH, MARK = 1, 2, 3
CHANCES = [1, 1, 0.5, 0.5, 0.9, 0.1]  # of a block that was not flushed
BLOCK = 4096
MIB = 1 << 20
SIZES = {"ext2": 24 * MIB, "ext4": 48 * MIB, "xfs": 320 * MIB, "btrfs": 128 * MIB}
MKFS = {"ext2": "mkfs.ext2 -q", "ext4": "mkfs.ext4 -q", "xfs": "mkfs.xfs -q", "btrfs": "mkfs.btrfs -q -m single"}
STAGES = [".m.safetensors.stage", ".set.stage"]
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
HERE = os.path.dirname(os.path.abspath(__file__))
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Fault(Exception):
    """The program broke its word."""


def skip(why):
    print("skip:", why)
    sys.exit(77)


def run(*args, check=True):
    done = subprocess.run(args, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if check and done.returncode:
        raise Fault("%s: exit %d: %s" % (" ".join(args), done.returncode, (done.stderr or done.stdout).strip()))
    return done


@contextlib.contextmanager
def mounted(filesystem, image, point):
    run("mount", "-t", filesystem, "-o", "loop", image, point)
    try:
        yield
    finally:
        run("umount", point)


def new_boot(folder):
    """What a staging area is told after a power cut: another boot. Only this process and its children see it."""
    path = os.path.join(folder, "boot_id")
    with open(path, "w") as file:
        file.write(str(uuid.uuid4()) + "\n")
    if open(BOOT_ID).read() != open(path).read():
        run("mount", "--bind", path, BOOT_ID)


@contextlib.contextmanager
def served(command, model, point, dies=False):
    """A mount by a daemon that is gone afterwards, or dies before; gives what else it said when it was mounted."""
    daemon = subprocess.Popen([*command, model, point, "-f"], stderr=subprocess.PIPE, text=True)
    said, ready = [], False
    try:
        for line in daemon.stderr:
            ready = "mounted " in line and " at " in line and "read-only: " not in line
            if ready:
                break
            said.append(line.strip())
        if not ready:
            raise Fault("exit %d: %s" % (daemon.wait(), " ".join(said)))
        yield said
    finally:
        run("umount", *(["-l"] if dies else []), point, check=ready and not dies)
        daemon.communicate(timeout=300)  # a busy disk makes the last sync slow


@contextlib.contextmanager
def syncing(folder):
    """Now and then all that is on its way reaches the disk, so that half-made states are seen too."""
    libc, fd, stop = ctypes.CDLL(None), os.open(folder, os.O_RDONLY), threading.Event()

    def sync():
        while not stop.wait(random.choice([0.005, 0.1]) * random.random()):
            libc.syncfs(fd)

    thread = threading.Thread(target=sync)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        os.close(fd)


def model_files(folder):
    """What the model consists of: names to checksums, hidden files left out."""
    return {name: hashlib.sha256(open(os.path.join(folder, name), "rb").read()).hexdigest()
            for name in sorted(os.listdir(folder)) if name[0] != "."}


# -- the log


class Log:
    def __init__(self, path):
        with open(path, "rb") as file:
            empty = os.fstat(file.fileno()).st_size == 0
            self.bytes = memoryview(b"" if empty else mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        self.entries, at = [], 0
        while at < len(self.bytes):
            kind, offset, length = struct.unpack_from("=QQQ", self.bytes, at)
            self.entries.append((kind, offset, self.bytes[at + 24:at + 24 + length]))
            at += 24 + length

    def cuts(self, kind):
        """Moments once the work has begun: behind each write, or as soon as something was done."""
        first = next((n for n, entry in enumerate(self.entries) if entry[0] == MARK), 0)
        return [n + 1 for n, entry in enumerate(self.entries) if n >= first and entry[0] == kind]

    def steps(self, cut):
        """How many steps of the work were begun by then."""
        return sum(kind == MARK for kind, _, _ in self.entries[:cut])

    def make(self, base, out, cut, chance, rand):
        """The disk after `cut` entries: what was not flushed is there, block by block, with this chance."""
        run("cp", "--sparse=always", base, out)
        entries = self.entries[:cut]
        flushed = max((n for n, entry in enumerate(entries) if entry[0] == FLUSH), default=0)
        fd = os.open(out, os.O_RDWR)
        for n, (kind, offset, data) in enumerate(entries):
            if kind == WRITE and n < flushed:
                os.pwrite(fd, data, offset)
            elif kind == WRITE:
                for at in range(0, len(data), BLOCK):
                    if rand.random() < chance:
                        os.pwrite(fd, data[at:at + BLOCK], offset + at)
        os.close(fd)


# -- the work


class Commands:
    """Edits and commits, each by a command."""

    def __init__(self, test, shards):
        self.test, self.shards, self.commands, self.states = test, shards, [], []

    def prepare(self, folder):
        model = os.path.join(folder, "m.safetensors")
        edits.make_model(model, self.test.seed)
        if self.shards:
            tool = os.path.join(HERE, "..", "models", "make_sharded.py")
            run(sys.executable, tool, model, os.path.join(folder, "set"), "2")
            os.unlink(model)

    def source(self, folder):
        return os.path.join(folder, "set" if self.shards else "m.safetensors")

    def folder(self, folder):
        return self.source(folder) if self.shards else folder

    def data(self, size, rand):
        path = self.test.path("data%d" % rand.getrandbits(32))
        with open(path, "wb") as file:
            file.write(rand.randbytes(size))
        return path

    def make_commands(self):
        rand = random.Random(self.test.seed)
        for n in range(3):
            yield ["set-metadata", None, "round=%d" % n]
            yield ["put", None, "model.big", self.data(60000, rand)]
            yield ["put", None, "model.a.w", self.data(96, rand)]
            yield ["mv", None, "lm_head" + ".again" * n, "lm_head" + ".again" * (n + 1)]
            yield ["commit", "-q", None]
            yield ["put", "--commit", "-q", "--dtype=U8", "--shape=30000", None, "new%d" % n, self.data(30000, rand)]
            yield ["rm", "--commit", "-q", None, "new%d" % n]
            yield ["rm-metadata", "--commit", "-q", None, "round"]

    def do(self, command, folder, *before):
        run(*before, self.test.binary, *(self.source(folder) if word is None else word for word in command))

    def look(self, folder):
        """The model, and what it would be after a commit."""
        copy = folder + ".copy"
        run("cp", "-a", folder, copy)
        self.do(["commit", "-q", None], copy)
        state = model_files(self.folder(folder)), model_files(self.folder(copy))
        shutil.rmtree(copy)
        return state

    def rehearse(self, folder):
        """The same on a filesystem of the same kind, for how files are laid out depends on that."""
        self.commands = list(self.make_commands())
        self.states = [self.look(folder)]
        for command in self.commands:
            self.do(command, folder)
            self.states.append(self.look(folder))

    def run(self, folder):
        for command in self.commands:
            yield
            self.do(command, folder, *self.test.fault)
            yield

    def recover(self, folder):
        run(self.test.binary, "status", self.source(folder))

    def commit_rest(self, folder, step):
        """Commits what is staged. What a command was writing, which nobody was told is there, may be refused."""
        source = self.source(folder)
        done = run(self.test.binary, "commit", "-q", source, check=False)
        if done.returncode == 0:
            return
        command = self.commands[step // 2]
        name = command[command.index(None) + 1] if "put" in command and step % 2 else None
        if not name or 'tensor "%s": ' % name not in done.stderr or done.stderr.count("\n") > 1:
            raise Fault("what is staged is refused: " + done.stderr)
        run(self.test.binary, "discard", source, name)
        run(self.test.binary, "commit", "-q", source)

    def check(self, folder, step):
        """Before and after each command there is a step."""
        states = self.states[step // 2 : step // 2 + 1 + step % 2]
        status = run(self.test.binary, "status", self.source(folder)).stdout
        model = model_files(self.folder(folder))
        if model not in [state[0] for state in states]:
            raise Fault("the model is neither that before nor that after the command: %s" % model)
        left = [name for name in os.listdir(self.folder(folder)) if name.endswith(".stfs-commit")]
        if left:
            raise Fault("left after recovery: %s" % left)
        self.commit_rest(folder, step)
        now = model_files(self.folder(folder))
        # A command that commits may have staged all, and committed nothing.
        if (model, now) not in [*states, (states[0][0], states[-1][1])]:
            raise Fault("a commit makes another model than what was staged; it was: " + status)
        left = set(os.listdir(folder)) | set(os.listdir(self.folder(folder)))
        left -= {"set", *self.states[0][0]}
        if left:
            raise Fault("left after a commit: %s; status was: %s" % (left, status))


class Mount:
    """Edits in a mount."""

    STEPS = 40

    def __init__(self, test):
        self.test, self.states = test, []

    def prepare(self, folder):
        edits.make_model(os.path.join(folder, "m.safetensors"), self.test.seed)

    def rehearse(self, folder):
        """Expects what the edits themselves foretell."""

    def run(self, folder):
        point = self.test.path("mnt")
        os.mkdir(point)
        with served([*self.test.fault, self.test.binary], os.path.join(folder, "m.safetensors"), point) as said:
            if said:
                raise Fault(" ".join(said))
            work = edits.Edits(point, self.test.seed)
            for _ in work.run(self.STEPS):
                self.states.append(work.state())
                yield

    def recover(self, folder):
        with served([self.test.binary], os.path.join(folder, "m.safetensors"), self.test.path("mnt")):
            pass

    def check(self, folder, step):
        point = self.test.path("mnt")
        with served([self.test.binary], os.path.join(folder, "m.safetensors"), point) as said:
            if said:
                raise Fault(" ".join(said))
            allowed = self.states[step - 1]
            wrong = list(edits.differences(edits.read_tree(point, allowed), allowed))
        if wrong:
            raise Fault("; ".join(wrong))
        left = set(os.listdir(folder)) - {"m.safetensors", ".m.safetensors.stage"}
        if left:
            raise Fault("left after recovery: %s" % left)


class Test:
    """A filesystem with a model, in a folder of the test's own."""

    def __init__(self, binary, filesystem, folder, seed):
        self.binary, self.filesystem, self.seed = binary, filesystem, seed
        self.work, self.random, self.fault = folder, random.Random(seed), []

    def path(self, name):
        return os.path.join(self.work, name)

    def copy(self):
        """The filesystem as it was before the work, as "image"."""
        run("cp", "--sparse=always", self.path("base"), self.path("image"))

    def make_base(self):
        folder = self.path("disk/model")
        with open(self.path("base"), "wb") as file:
            file.truncate(SIZES[self.filesystem])
        run(*MKFS[self.filesystem].split(), self.path("base"))
        os.mkdir(self.path("disk"))
        with mounted(self.filesystem, self.path("base"), self.path("disk")):
            os.mkdir(folder)
            self.workload.prepare(folder)
        self.copy()
        with mounted(self.filesystem, self.path("image"), self.path("disk")):
            self.workload.rehearse(folder)


class PowerCut(Test):
    def __init__(self, binary, logdisk, filesystem, folder, work, cuts, seed, fault):
        super().__init__(binary, filesystem, folder, seed)
        self.logdisk, self.cuts = logdisk, cuts
        self.fault = plant(fault, self.path("disk/model")) if fault else []
        self.workload = Mount(self) if work == "mount" else Commands(self, work == "shards")

    @contextlib.contextmanager
    def logged(self, log):
        """Mounts "image" at "disk", and notes all that is written."""
        os.makedirs(self.path("logged"), exist_ok=True)
        run(self.logdisk, self.path("image"), self.path(log), self.path("logged"))
        try:
            with mounted(self.filesystem, self.path("logged/disk"), self.path("disk")), syncing(self.path("disk")):
                yield
        finally:
            run("umount", self.path("logged"))

    def record(self):
        self.make_base()
        self.copy()
        new_boot(self.work)
        with self.logged("log"):
            for _ in self.workload.run(self.path("disk/model")):
                with open(self.path("logged/mark"), "w") as mark:
                    mark.write("x")

    def cut_again(self, rand):
        """A second power cut, while "image" is put in order after the first one."""
        run("cp", "--sparse=always", self.path("image"), self.path("cut"))
        self.mend()
        new_boot(self.work)
        with self.logged("second.log"):
            self.workload.recover(self.path("disk/model"))
        log = Log(self.path("second.log"))
        cut = rand.choice(log.cuts(WRITE) or [0])
        log.make(self.path("cut"), self.path("image"), cut, rand.choice(CHANCES), rand)

    def mend(self):
        if self.filesystem == "ext2":
            run("e2fsck", "-fy", self.path("image"), check=False)

    def try_one(self, log, cut):
        self.mend()
        new_boot(self.work)
        with mounted(self.filesystem, self.path("image"), self.path("disk")):
            self.workload.check(self.path("disk/model"), log.steps(cut))

    def try_all(self):
        """Returns the number of faults."""
        log, faults, few = Log(self.path("log")), 0, self.cuts // 3
        points = self.random.choices(log.cuts(WRITE), k=self.cuts - few)
        points += self.random.choices(log.cuts(MARK), k=few)
        self.random.shuffle(points)
        for number, cut in enumerate(points):
            chance, rand = self.random.choice(CHANCES), random.Random(number)
            disk = self.path("base"), self.path("image"), cut, chance
            log.make(*disk, rand)
            try:
                if number % 5 == 4 and not self.fault:
                    self.cut_again(rand)
                self.try_one(log, cut)
            except (Fault, OSError) as error:
                faults += 1
                if faults <= 5:
                    where = "cut %d, at %d of %d, %g of the blocks" % (number, cut, len(log.entries), chance)
                    print("  %s: %s" % (where, error), flush=True)
                if self.fault:
                    break
                if "KEEP" in os.environ:
                    log.make(*disk, random.Random(number))
                    kept = os.path.join(os.environ["KEEP"], "cut%d.%s" % (cut, self.filesystem))
                    run("cp", "--sparse=always", self.path("image"), kept)
        return faults


def plant(fault, folder):
    """A command that runs another one without the syncs of the new model, of the journal, or of folders."""
    names = {
        "model": [".m.safetensors.stfs-commit", *("set/.%s.stfs-commit" % name for name in SHARDS)],
        "journal": [stage + "/journal" + end for stage in STAGES for end in ("", ".next")],
        "folder": ["", "set", *STAGES],
    }[fault]
    command = "strace -f -qq -o /dev/null -e trace=fsync,fdatasync -e inject=fsync,fdatasync:retval=0".split()
    for name in names:
        command += ["-P", os.path.join(folder, name).rstrip("/")]
    return command


@contextlib.contextmanager
def inside(filesystem):
    """
    Gives a folder in memory. Mounts are seen by this process alone and go when it does; so another boot can be simulated.
    """
    if os.getuid() != 0 or not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
        skip("needs root, /dev/fuse and loop devices")
    tools = [MKFS[filesystem].split()[0]] + ["e2fsck"] * (filesystem == "ext2")
    for tool in tools:
        if not shutil.which(tool):
            skip(tool + " is not installed")
    if shutil.which("modprobe"):
        run("modprobe", filesystem, check=False)
    with open("/proc/filesystems") as known:
        if filesystem not in known.read().split():
            skip("the kernel has no " + filesystem)
    for probe in ("unshare -m true", "losetup -f"):
        if run(*probe.split(), check=False).returncode:
            skip(probe + " fails")
    if not os.environ.get("STFS_CRASH_INSIDE"):
        os.environ["STFS_CRASH_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory(prefix="stfs-crash.") as folder:
        run("mount", "-t", "tmpfs", "-o", "size=4G", "none", folder)
        try:
            yield folder
        finally:
            run("umount", "-l", folder)


def numbers(given, *otherwise):
    return [int(word) for word in given] + list(otherwise[len(given):])


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    binary, logdisk = (os.path.abspath(path) for path in sys.argv[1:3])
    filesystem, work = sys.argv[3:5]
    cuts, seed = numbers(sys.argv[5:7], 100, 1)
    fault = sys.argv[7] if len(sys.argv) > 7 else None
    if fault and not shutil.which("strace"):
        skip("strace is not installed")
    with inside(filesystem) as folder:
        test = PowerCut(binary, logdisk, filesystem, folder, work, cuts, seed, fault)
        test.record()
        faults = test.try_all()
    if fault:
        print("%s, %s: a %s that is not synced is %s" % (filesystem, work, fault, "found" if faults else "not found"))
    else:
        print("%s, %s: %d power cuts, %d faults" % (filesystem, work, cuts, faults))
    sys.exit((faults > 0) != bool(fault))


if __name__ == "__main__":
    main()
