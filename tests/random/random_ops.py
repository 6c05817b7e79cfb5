#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random operations on a real mount against a naive model of it.

usage: random_ops.py BINARY [RUNS] [STEPS] [FIRST_SEED]      (default: 20 runs of 100 steps from seed 1)
Each run has its own seed, which a failure names. Exit 77 without /dev/fuse.
"""
import mmap, os, random, shutil, signal, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from naive import DTYPES, SLOTS, Naive, shape_text  # noqa: E402
import refwriter  # noqa: E402

NAMES = ["a", "b", "c", "w"]
SCRATCH = ["tmp1", ".swp", "x~"]
KEYS = ["format", "k1", "k2", ".hidden", "old~"]
SIZES = [0, 1, 7, 40, 4090, 4096, 4097, 10000, 70001]


class Run:
    def __init__(self, binary, seed, folder):
        self.binary, self.random = binary, random.Random(seed)
        self.folder, self.log = folder, []
        self.source = os.path.join(folder, "m.safetensors")
        self.mountpoint = os.path.join(folder, "mnt")
        os.mkdir(self.mountpoint)
        tensors = {n: self.make_tensor() for n in ("a.w", "a.b.w", "b", "c.a.b.w")}
        metadata = {"format": "pt", "k1": "one\n"}
        refwriter.write(self.source, [refwriter.Tensor(n, *t) for n, t in tensors.items()], metadata)
        self.naive = Naive(tensors, metadata)
        self.daemon = None
        self.mount()

    # -- helpers

    def make_tensor(self):
        dtype = self.random.choice(list(DTYPES))
        count = self.random.choice(SIZES) // DTYPES[dtype]
        return dtype, [count], self.random.randbytes(count * DTYPES[dtype])

    def path(self, parts):
        return os.path.join(self.mountpoint, *parts)

    def call(self, *args, check=True):
        done = subprocess.run([self.binary, *args], capture_output=True, timeout=60)
        if check and done.returncode:
            raise AssertionError(f"{args} exit {done.returncode}: {done.stderr.decode()}")
        return done

    def mount(self):
        self.daemon = subprocess.Popen([self.binary, self.source, self.mountpoint, "-f"],
                                       stderr=open(os.path.join(self.folder, "log"), "ab"))
        for _ in range(1000):
            if os.path.ismount(self.mountpoint):
                return
            if self.daemon.poll() is not None:
                break
            try:
                self.daemon.wait(0.005)
            except subprocess.TimeoutExpired:
                pass
        raise AssertionError("the mount did not come up: " + open(os.path.join(self.folder, "log")).read())

    def unmount(self):
        self.call("umount", self.mountpoint)
        if self.daemon.wait(60):
            raise AssertionError(f"daemon exit {self.daemon.returncode}")

    def pick_folder(self, metadata=True):
        folders = [(p, n) for p, n in self.naive.walk() if metadata or p != ("__metadata__",)]
        return self.random.choice(folders)

    def pick_file(self):
        files = list(self.naive.files())
        return self.random.choice(files) if files else None

    # -- operations: each does a thing on the mount and on the model

    def op_create(self):
        path, node = self.pick_folder()
        name = self.random.choice(KEYS if path == ("__metadata__",) else list(SLOTS) + SCRATCH)
        if name in node:
            return None
        data = self.content_for(path, name)
        with open(self.path(path + (name,)), "xb") as f:
            f.write(data)
        node[name] = bytearray(data)
        return path + (name,), len(data)

    def content_for(self, path, name):
        if path == ("__metadata__",):
            return self.random.choice([b"pt\n", b"", b"two\nlines\n\n", "\u00e9".encode(), b"x" * 5000])
        if path and name == "dtype":
            return self.random.choice(list(DTYPES)).encode() + self.random.choice([b"\n", b""])
        if path and name == "shape":
            dims = [self.random.choice([0, 1, 2, 10, 4097]) for _ in range(self.random.randrange(3))]
            return shape_text(dims)
        return self.random.randbytes(self.random.choice(SIZES))

    def op_rewrite(self):
        picked = self.pick_file()
        if not picked:
            return None
        node, name, path = picked
        data = self.content_for(path[:-1], name)
        with open(self.path(path), "wb") as f:
            f.write(data)
        node[name][:] = data
        return path, len(data)

    def op_write_at(self):
        picked = self.pick_file()
        if not picked or picked[1] in ("dtype", "shape") or picked[2][0] == "__metadata__":
            return None
        node, name, path = picked
        data = self.random.randbytes(self.random.choice([1, 10, 5000]))
        at = self.random.randrange(len(node[name]) + 3000)
        with open(self.path(path), "r+b", buffering=0) as f:
            f.seek(at)
            f.write(data)
            if self.random.random() < 0.2:
                os.fsync(f.fileno())
        self.naive_write(node[name], data, at)
        return path, at, len(data)

    @staticmethod
    def naive_write(content, data, at):
        content.extend(bytes(max(0, at - len(content))))
        content[at:at + len(data)] = data

    def op_append(self):
        picked = self.pick_file()
        if not picked or picked[1] in ("dtype", "shape"):
            return None
        node, name, path = picked
        data = b"q" * self.random.choice([1, 4096])
        with open(self.path(path), "ab") as f:
            f.write(data)
        node[name].extend(data)
        return path, len(data)

    def op_truncate(self):
        picked = self.pick_file()
        if not picked:
            return None
        node, name, path = picked
        size = self.random.choice(SIZES + [max(0, len(node[name]) - 1)])
        os.truncate(self.path(path), size)
        if size < len(node[name]):
            del node[name][size:]
        else:
            node[name].extend(bytes(size - len(node[name])))
        return path, size

    def op_mmap(self):
        picked = self.pick_file()
        if not picked or not len(picked[0][picked[1]]) or picked[2][-1] in ("dtype", "shape"):
            return None
        node, name, path = picked
        at = self.random.randrange(len(node[name]))
        with open(self.path(path), "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
            m[at] = 0x7f
            m.flush()
        node[name][at] = 0x7f
        return path, at

    def op_refused(self):
        attrs = [f for f in self.naive.files() if f[1] in ("dtype", "shape") and len(f[2]) > 1]
        if not attrs:
            return None
        node, name, path = self.random.choice(attrs)
        try:
            with open(self.path(path), "wb", buffering=0) as f:
                f.write(b"nonsense\n")
        except OSError:
            return path
        raise AssertionError("nonsense was accepted")

    def op_unlink(self):
        picked = self.pick_file()
        if not picked:
            return None
        node, name, path = picked
        os.unlink(self.path(path))
        del node[name]
        return path

    def op_mkdir(self):
        path, node = self.pick_folder(metadata=False)
        name = self.random.choice(NAMES)
        if name in node or len(path) > 4:
            return None
        os.mkdir(self.path(path + (name,)))
        node[name] = {}
        return path + (name,)

    def op_rmdir(self):
        path, node = self.pick_folder(metadata=False)
        if not path:
            return None
        try:
            os.rmdir(self.path(path))
        except OSError:
            if node:
                return path, "not empty"
            raise
        if node:
            raise AssertionError("a directory that was not empty went away")
        del self.naive.folder(path[:-1])[path[-1]]
        return path

    def op_rename_file(self):
        picked = self.pick_file()
        if not picked:
            return None
        node, name, path = picked
        to, target = self.pick_folder()
        new = self.random.choice(KEYS if to == ("__metadata__",) else list(SLOTS) + SCRATCH)
        if isinstance(target.get(new), dict):
            return None
        os.rename(self.path(path), self.path(to + (new,)))
        content = node.pop(name)
        target[new] = content
        return path, to + (new,)

    def op_rename_dir(self):
        path, node = self.pick_folder(metadata=False)
        to, target = self.pick_folder(metadata=False)
        new = self.random.choice(NAMES)
        if not path or to[:len(path)] == path or (new in target and target[new]) or to + (new,) == path:
            return None
        if new in target and not isinstance(target[new], dict):
            return None
        os.rename(self.path(path), self.path(to + (new,)))
        del self.naive.folder(path[:-1])[path[-1]]
        target[new] = node
        return path, to + (new,)

    def op_commit(self):
        expected = self.naive.committed()
        done = self.call("commit", "-q", self.mountpoint, check=False)
        if (done.returncode == 0) != (expected is not None):
            raise AssertionError(f"commit exit {done.returncode}, expected {expected is not None}: {done.stderr.decode()}")
        if expected is not None:
            same, before = expected == (self.naive.tensors, self.naive.metadata), self.naive.snapshot()
            self.naive.commit()
            # When nothing means anything else the file may be left alone, and then the texts stay as they were written.
            if same and self.read_tree(self.mountpoint) != self.naive.root:
                self.naive.root = before
        self.check_source()
        return expected is not None

    def op_discard(self):
        self.call("discard", self.mountpoint)
        self.naive.discard()
        return True

    def op_remount(self):
        self.unmount()
        self.mount()
        return True

    def op_kill(self):
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait(60)
        self.call("umount", self.mountpoint)
        self.mount()
        return True

    OPS = [(op_create, 14), (op_rewrite, 10), (op_write_at, 14), (op_append, 5), (op_truncate, 7), (op_mmap, 4),
           (op_refused, 2), (op_unlink, 5), (op_mkdir, 6), (op_rmdir, 4), (op_rename_file, 10), (op_rename_dir, 8),
           (op_commit, 5), (op_discard, 1), (op_remount, 2), (op_kill, 2)]

    # -- checks

    def check_tree(self):
        seen = self.read_tree(self.mountpoint)
        if seen != self.naive.root:
            raise AssertionError("the tree differs: " + describe(self.naive.root, seen))

    def read_tree(self, path):
        tree = {}
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                tree[entry.name] = self.read_tree(entry.path)
            else:
                with open(entry.path, "rb") as f:
                    tree[entry.name] = bytearray(f.read())
        return tree

    def check_source(self):
        tensors, metadata = refwriter.read(self.source)
        want = {n: (d, list(s), bytes(b)) for n, (d, s, b) in self.naive.tensors.items()}
        have = {t.name: (t.dtype, list(t.shape), bytes(t.data)) for t in tensors}
        if have != want or (metadata or {}) != self.naive.metadata:
            raise AssertionError(f"the file differs: {sorted(have)} {metadata} against {sorted(want)} {self.naive.metadata}")

    def go(self, steps):
        ops, weights = zip(*self.OPS)
        for step in range(steps):
            op = self.random.choices(ops, weights)[0]
            self.log.append((step, op.__name__))
            self.log[-1] += (op(self),)
            if step % 10 == 9:
                self.check_tree()
        self.check_tree()
        self.check_source()
        self.unmount()

    def clean_up(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        subprocess.run(["umount", "-l", self.mountpoint], capture_output=True)


def describe(want, have, path=""):
    for name in sorted(set(want) | set(have)):
        at = f"{path}/{name}"
        if name not in have or name not in want:
            return f"{at} is {'missing' if name in want else 'too much'}"
        if isinstance(want[name], dict) and isinstance(have[name], dict):
            if want[name] != have[name]:
                return describe(want[name], have[name], at)
        elif want[name] != have[name]:
            return f"{at}: {bytes(want[name])[:60]!r} ({len(want[name])}) against {bytes(have[name])[:60]!r} ({len(have[name])})"
    return "not at all"


def main():
    binary = os.path.abspath(sys.argv[1])
    runs, steps, first = (int(a) for a in (sys.argv[2:] + ["20", "100", "1"][len(sys.argv) - 2:]))
    if not os.path.exists("/dev/fuse"):
        print("skipped: no /dev/fuse")
        return 77
    failed = 0
    for seed in range(first, first + runs):
        folder = tempfile.mkdtemp(prefix="stfs-random-")
        run = None
        try:
            run = Run(binary, seed, folder)
            run.go(steps)
        except (AssertionError, OSError, subprocess.SubprocessError, KeyError) as error:
            failed += 1
            print(f"seed {seed}: {type(error).__name__}: {error}")
            for entry in (run.log[-15:] if run else []):
                print("   ", entry)
        finally:
            if run:
                run.clean_up()
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{runs - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
