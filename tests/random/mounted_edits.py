# SPDX-License-Identifier: Apache-2.0
"""Random edits in a mount, of a model that commands edit as well."""
import os
import shutil
import subprocess

import naive_names as naive
from command_plans import NAMES
from naive_names import encode


class Mounted:
    def check_mounted(self, point):
        """What a command staged is what the mount shows."""
        for name, tensor in self.tensors.items():
            with open(f"{point}/{encode(name)}/data", "rb") as file:
                assert file.read() == tensor.data, f"data of {name!r} in the mount"
            with open(f"{point}/{encode(name)}/dtype") as file:
                assert file.read().rstrip("\n") == tensor.dtype, f"dtype of {name!r} in the mount"
        for name, data in self.scratch.items():
            with open(f"{point}/{name}", "rb") as file:
                assert file.read() == data, f"{name} in the mount"
        assert len(os.listdir(f"{point}/__metadata__")) == len(self.metadata), "metadata in the mount"

    def prune(self, point, path):
        while path:
            try:
                os.rmdir(f"{point}/{path}")
            except OSError:
                return
            path = os.path.dirname(path)

    def in_write(self, point):
        name = self.random.choice(list(self.tensors) or [None])
        if name is None or not self.tensors[name].data:
            return None
        old = self.tensors[name]
        at, data = self.random.randrange(len(old.data)), self.random.randbytes(20)
        data = data[:len(old.data) - at]
        with open(f"{point}/{encode(name)}/data", "r+b") as file:
            file.seek(at)
            file.write(data)
        self.tensors = {**self.tensors, name: old._replace(data=old.data[:at] + data + old.data[at + len(data):])}
        return name, at

    def in_make(self, point):
        name, tensor = self.random.choice(NAMES), self.make_tensor()
        folder = f"{point}/{encode(name)}"
        os.makedirs(folder, exist_ok=True)
        for file, text in ("shape", " ".join(map(str, tensor.shape)).encode()), ("data", tensor.data), ("dtype", tensor.dtype.encode()):
            with open(f"{folder}/{file}", "wb") as f:
                f.write(text)
        self.tensors = self.with_tensor(name, tensor)[0]
        return name

    def in_rename(self, point):
        old, new = (self.random.choice([n for n in NAMES]) for _ in range(2))
        moving = [n for n in self.tensors if naive.is_in_tree_below(n, old)]
        if not moving or new.startswith(old + ".") or old == new or any(
                naive.is_in_tree_below(n, new) or naive.is_in_tree_below(new, n) for n in self.tensors):
            return None
        os.makedirs(os.path.dirname(f"{point}/{encode(new)}"), exist_ok=True)
        os.rename(f"{point}/{encode(old)}", f"{point}/{encode(new)}")
        self.prune(point, os.path.dirname(encode(old)))
        self.tensors = {(new + n[len(old):] if n in moving else n): t for n, t in self.tensors.items()}
        return old, new

    def in_remove(self, point):
        name = self.random.choice(list(self.tensors) or [None])
        if name is None:
            return None
        shutil.rmtree(f"{point}/{encode(name)}")
        self.prune(point, os.path.dirname(encode(name)))
        self.tensors = {n: t for n, t in self.tensors.items() if not naive.is_in_tree_below(n, name)}
        return name

    def in_copy(self, point):
        old, new = self.random.choice(list(self.tensors) or [None]), self.random.choice(NAMES)
        if old is None or new in self.tensors:
            return None
        os.makedirs(f"{point}/{encode(new)}", exist_ok=True)
        files = [f"{point}/{encode(old)}/{file}" for file in ("data", "dtype", "shape")]
        subprocess.run(["cp", *files, f"{point}/{encode(new)}/"], check=True)
        self.tensors = {**self.tensors, new: self.tensors[old]._replace(origin=None)}
        return old, new

    def in_metadata(self, point):
        with open(f"{point}/__metadata__/k1", "w") as file:
            file.write("mounted\n")
        self.metadata = {**self.metadata, "k1": "mounted"}

    def in_scratch(self, point):
        name, data = self.random.choice(["notes.txt", "script~"]), self.random.randbytes(50)
        with open(f"{point}/{name}", "wb") as file:
            file.write(data)
        self.scratch = {**self.scratch, name: data}
        return name

    IN_MOUNT = [in_write, in_make, in_rename, in_rename, in_remove, in_copy, in_metadata, in_scratch]
