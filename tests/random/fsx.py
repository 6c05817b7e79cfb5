#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random input and output on open files of a mount, as fsx does it, against byte arrays in memory.

usage: fsx.py BINARY [OPERATIONS] [SEED]      (default: 4000 operations of seed 1, divided among the options below)

On a tensor's data, a scratch file and a data.npy: every way to read, write and resize, through several descriptors of the same
file at once, each read compared and now and then the whole; between them commits, discards, remounts and kills. What a failure
prints starts with what repeats it. Exit 77 without /dev/fuse.
"""
import ctypes, errno, mmap, os, random, shutil, signal, struct, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
import refwriter  # noqa: E402

OPTIONS = ["", "direct_io", "io=pread", "flat"]
LARGEST = 200000
FLAGS = [os.O_RDWR, os.O_RDWR, os.O_RDONLY, os.O_RDWR | os.O_APPEND, os.O_RDWR | os.O_DIRECT, os.O_RDONLY | os.O_DIRECT]
LIBC = ctypes.CDLL(None, use_errno=True)


def fallocate(fd, mode, offset, size):
    if LIBC.fallocate(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(size)):
        raise OSError(ctypes.get_errno(), "fallocate")


class File:
    """A file with its descriptors, and what must be in it."""

    def __init__(self, name, content, head=0):
        self.name, self.content = name, bytearray(content)
        self.head = head  # bytes at the start that cannot change, in a file that cannot be resized; 0: a common file
        self.fds = {}  # descriptor: flags

    def put(self, offset, data):
        self.content.extend(bytes(max(0, offset - len(self.content))))
        self.content[offset:offset + len(data)] = data

    def resize(self, size):
        del self.content[size:]
        self.content.extend(bytes(size - len(self.content)))


class Run:
    def __init__(self, binary, option, seed, folder):
        self.binary, self.option, self.folder = binary, option, folder
        self.random, self.log = random.Random(f"{seed} {option}"), []
        self.source, self.mountpoint = os.path.join(folder, "m.safetensors"), os.path.join(folder, "mnt")
        os.mkdir(self.mountpoint)
        self.saved = {"layer.w": self.random.randbytes(LARGEST // 2), "layer.n": self.random.randbytes(80000)}
        refwriter.write(self.source, [refwriter.Tensor(n, "U8", [len(d)], d) for n, d in self.saved.items()])
        folders = ["layer.w", "layer.n"] if option == "flat" else ["layer/w", "layer/n"]
        self.mount()
        with open(self.path(folders[1] + "/data.npy"), "rb") as file:
            npy = file.read()
        head = len(npy) - len(self.saved["layer.n"])
        assert npy[head:] == self.saved["layer.n"]
        self.data = File(folders[0] + "/data", self.saved["layer.w"])
        self.npy = File(folders[1] + "/data.npy", npy, head)
        self.scratch = File("scratch", b"")
        self.shape = folders[0] + "/shape"
        self.files = [self.data, self.scratch, self.npy]
        self.make_scratch()

    # -- helpers

    def path(self, name):
        return os.path.join(self.mountpoint, name)

    def mount(self):
        options = ["-o", self.option] if self.option else []
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.daemon = subprocess.Popen([self.binary, self.source, self.mountpoint, "-f", *options], stderr=log)
        while not os.path.ismount(self.mountpoint):
            if self.daemon.poll() is not None:
                raise AssertionError("the mount did not come up: " + open(os.path.join(self.folder, "log")).read())
            try:
                self.daemon.wait(0.005)
            except subprocess.TimeoutExpired:
                pass

    def control(self, name, words):
        with open(self.path(".safetensors/" + name), "wb", 0) as file:
            file.write(words)

    def make_scratch(self):
        with open(self.path("scratch"), "xb"):
            self.scratch.content = bytearray()

    def close_all(self):
        for file in self.files:
            for fd in file.fds:
                os.close(fd)
            file.fds.clear()

    def open_one(self, file):
        flags = self.random.choice(FLAGS)
        fd = os.open(self.path(file.name), flags)
        file.fds[fd] = flags
        return fd

    def pick(self, file, need=0, without=0):
        """A descriptor, whose flags have some and have not others."""
        fds = [fd for fd, flags in file.fds.items() if flags & need == need and not flags & without]
        return self.random.choice(fds) if fds else None

    def size(self, largest):
        """Small sizes are as likely as large ones."""
        return min(self.random.randrange(1 << self.random.randrange(1, 18)), largest)

    def area(self, file):
        """Where to write: anywhere, or where a file that cannot be resized has bytes."""
        if not file.head:
            offset = self.random.randrange(len(file.content) + 1 + self.size(5000))
            return offset, 1 + self.size(max(LARGEST - offset - 1, 0))
        offset = self.random.randrange(file.head, len(file.content))
        return offset, 1 + self.size(len(file.content) - offset - 1)

    def same(self, what, file, offset, got, size):
        want = bytes(file.content[offset:offset + size])
        if got != want:
            at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
            raise AssertionError(f"{what} of {file.name}: from {offset}, {len(got)} bytes of {len(want)}, differ at {offset + at}: "
                                 f"{got[at:at + 8].hex()} should be {want[at:at + 8].hex()}")

    # -- operations: each works on the mount and on the byte array, and returns what the log shows

    def op_read(self, file):
        fd, offset, size = self.pick(file), self.random.randrange(len(file.content) + 100), 1 + self.size(LARGEST)
        self.same("read", file, offset, os.pread(fd, size, offset), size)
        return fd, offset, size

    def op_write(self, file):
        fd = self.pick(file, os.O_RDWR, os.O_APPEND)
        if fd is None:
            return None
        offset, size = self.area(file)
        data = self.random.randbytes(size)
        if file.head and self.random.random() < 0.2:
            offset, data = offset % file.head, file.content[offset % file.head:file.head] + data[:100]
        assert os.pwrite(fd, data, offset) == len(data)
        file.put(offset, data)
        return fd, offset, len(data)

    def op_append(self, file):
        fd = self.pick(file, os.O_RDWR | os.O_APPEND)
        if file.head or fd is None or len(file.content) > LARGEST:
            return None
        data = self.random.randbytes(1 + self.size(20000))
        assert os.write(fd, data) == len(data)
        file.content.extend(data)
        return fd, len(data)

    def op_map_read(self, file):
        fd = self.pick(file)
        if not file.content:
            return None
        share = self.random.choice([mmap.MAP_SHARED, mmap.MAP_PRIVATE])
        with self.map(fd, share, mmap.PROT_READ) as view:
            offset, size = self.random.randrange(len(view)), 1 + self.size(LARGEST)
            self.same("map", file, offset, view[offset:offset + size], size)
        return fd, offset, size

    def map(self, fd, share, prot):
        try:
            return mmap.mmap(fd, 0, share, prot)
        except OSError as error:
            if self.option != "direct_io" or error.errno != errno.ENODEV:
                raise
        return mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)

    def op_map_write(self, file):
        fd = self.pick(file, os.O_RDWR)
        if fd is None or not file.content or self.option == "direct_io":
            return None
        offset, size = self.area(file)
        offset = min(offset, len(file.content) - 1)
        data = self.random.randbytes(min(size, len(file.content) - offset))
        flush = self.random.random() < 0.7
        with self.map(fd, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as view:
            view[offset:offset + len(data)] = data
            if flush:
                view.flush()
        file.put(offset, data)
        return fd, offset, len(data), flush

    def op_truncate(self, file):
        fd, size = self.pick(file, os.O_RDWR), self.size(LARGEST)
        if file.head:
            return None
        by = self.path(file.name) if fd is None or self.random.random() < 0.3 else fd
        os.truncate(by, size)
        file.resize(size)
        return by, size

    def op_allocate(self, file):
        fd, offset, size = self.pick(file, os.O_RDWR), self.size(LARGEST // 2), 1 + self.size(LARGEST // 2)
        if fd is None or file.head:
            return None
        mode = self.random.choice([0, 0, 1, 3, 16])  # plain, KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE
        try:
            fallocate(fd, mode, offset, size)
        except OSError as error:
            if mode == 0 or error.errno != errno.EOPNOTSUPP:
                raise
            return fd, mode, "refused"
        assert mode == 0, f"fallocate of mode {mode} said yes"
        file.resize(max(len(file.content), offset + size))
        return fd, offset, size

    def op_copy(self, file):
        source = self.random.choice(self.files)
        fd, to = self.pick(source), self.pick(file, os.O_RDWR, os.O_APPEND)
        if to is None or file is source or not source.content:
            return None
        start, (offset, size) = self.random.randrange(len(source.content)), self.area(file)
        if self.random.random() < 0.2 and not file.head:
            os.truncate(to, 0)
            file.resize(0)
            start, offset, size = 0, 0, LARGEST
        done = os.copy_file_range(fd, to, size, start, offset)
        assert 0 < done <= min(size, len(source.content) - start), done
        file.put(offset, source.content[start:start + done])
        return fd, to, start, offset, size, done

    def op_send(self, file):
        fd, offset = self.pick(file), self.random.randrange(len(file.content) + 1)
        size = 1 + self.size(60000)
        end, start = os.pipe()
        try:
            done = os.sendfile(start, fd, offset, min(size, 4096))
            self.same("sendfile", file, offset, os.read(end, 4096) if done else b"", done)
            assert done or offset >= len(file.content)
        finally:
            os.close(end), os.close(start)
        return fd, offset, size

    def op_sync(self, file):
        fd = self.pick(file)
        self.random.choice([os.fsync, os.fdatasync])(fd)
        return fd

    def op_reopen(self, file):
        fd = self.pick(file)
        if len(file.fds) > 3 or self.random.random() < 0.5:
            os.close(fd)
            del file.fds[fd]
        return fd, self.open_one(file)

    def op_stat(self, file):
        size = os.fstat(self.pick(file)).st_size
        assert size == len(file.content) == os.stat(self.path(file.name)).st_size, f"{size} is not {len(file.content)}"
        return size

    def op_commit(self, file):
        # A tensor is as large as its shape says.
        with open(self.path(self.shape), "w") as shape:
            shape.write(f"{len(self.data.content)}\n")
        self.control("commit", b"commit\n")
        self.saved = {"layer.w": bytes(self.data.content), "layer.n": bytes(self.npy.content[self.npy.head:])}
        tensors, _ = refwriter.read(self.source)
        for tensor in tensors:
            assert tensor.data == self.saved[tensor.name], f"{tensor.name} was committed with other bytes"
        return True

    def op_discard(self, file):
        self.control("discard", b"all\n")
        self.data.content = bytearray(self.saved["layer.w"])
        self.npy.content[self.npy.head:] = self.saved["layer.n"]
        for fd in self.scratch.fds:
            os.close(fd)
        self.scratch.fds.clear()
        self.make_scratch()
        # For splice and sendfile the kernel goes by the size it knows; who has a file open must ask to learn of another.
        for file in self.files:
            for fd in file.fds:
                os.fstat(fd)
        return True

    def op_remount(self, file):
        self.close_all()
        kill = self.random.random() < 0.5
        if kill:
            self.daemon.kill()
        else:
            subprocess.run([self.binary, "umount", self.mountpoint], check=True)
        if self.daemon.wait(60) != (-signal.SIGKILL if kill else 0):
            raise AssertionError(f"the daemon exited {self.daemon.returncode}")
        if kill:
            subprocess.run([self.binary, "umount", self.mountpoint], check=True)
        self.mount()
        return "kill" if kill else "umount"

    OPS = [(op_read, 200), (op_write, 200), (op_append, 40), (op_map_read, 100), (op_map_write, 100), (op_truncate, 60),
           (op_allocate, 30), (op_copy, 40), (op_send, 40), (op_sync, 20), (op_reopen, 60), (op_stat, 30), (op_commit, 6),
           (op_discard, 2), (op_remount, 2)]

    def check(self, file):
        fd, size = self.pick(file), max(len(file.content), 1)
        self.same("the whole", file, 0, os.pread(fd, size + 1, 0), size + 1)

    def go(self, steps):
        ops, weights = zip(*self.OPS)
        for step in range(steps):
            for file in self.files:
                if not file.fds:
                    self.open_one(file)
            file, op = self.random.choice(self.files), self.random.choices(ops, weights)[0]
            self.log = self.log[-30:] + [[step, file.name, op.__name__]]
            self.log[-1].append(op(self, file))
            if step % 20 == 19 and file.fds:
                self.check(file)
        self.op_remount(None)
        for file in self.files:
            self.open_one(file)
            self.check(file)
        self.close_all()
        subprocess.run([self.binary, "umount", self.mountpoint], check=True)
        assert self.daemon.wait(60) == 0, "the daemon exited with an error"

    def clean_up(self):
        self.close_all()
        if self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        subprocess.run(["umount", "-l", self.mountpoint], capture_output=True)


def main():
    binary = os.path.abspath(sys.argv[1])
    operations, seed = (int(a) for a in (sys.argv[2:] + ["4000", "1"][len(sys.argv) - 2:]))
    if not os.path.exists("/dev/fuse"):
        print("skipped: no /dev/fuse")
        return 77
    failed = 0
    for option in OPTIONS:
        folder, run = tempfile.mkdtemp(prefix="stfs-fsx-"), None
        try:
            run = Run(binary, option, seed, folder)
            run.go(operations // len(OPTIONS))
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"fsx.py {sys.argv[1]} {operations} {seed}, with options '{option}': {type(error).__name__}: {error}")
            for entry in run.log if run else []:
                print("   ", *entry)
        finally:
            if run:
                run.clean_up()
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{operations} operations, {failed} of {len(OPTIONS)} runs failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
