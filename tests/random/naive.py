# SPDX-License-Identifier: Apache-2.0
"""A naive model of a mount: nested dicts and byte strings, with nothing clever in it."""
import copy

DTYPES = {"U8": 1, "I16": 2, "F32": 4, "F64": 8}
SLOTS = ("data", "dtype", "shape")


def shape_text(shape):
    return (" ".join(map(str, shape)) + "\n").encode()


def parse_shape(text):
    words = text.decode("latin-1").replace(",", " ").split()
    if not all(w.isdigit() for w in words):
        return None
    return [int(w) for w in words]


def parse_dtype(text):
    word = text.decode("latin-1").strip(" \t\r\n")
    return word if word in DTYPES else None


def is_key(name):
    return not (name[0] in ".#" or name.endswith("~"))


class Naive:
    """`root` is the tree as the mount shows it: a dict is a directory, a bytearray a file."""

    def __init__(self, tensors, metadata):
        self.tensors = dict(tensors)  # name -> (dtype, shape, bytes), as committed
        self.metadata = dict(metadata)
        self.root = self.fresh_tree()

    def fresh_tree(self):
        root = {"__metadata__": {k: bytearray(v.encode() + b"\n") for k, v in self.metadata.items()}}
        for name, (dtype, shape, data) in self.tensors.items():
            self.add_tensor(root, name, dtype, shape, data)
        return root

    @staticmethod
    def add_tensor(root, name, dtype, shape, data):
        folder = root
        for piece in name.split("."):
            folder = folder.setdefault(piece, {})
        folder["data"] = bytearray(data)
        folder["dtype"] = bytearray(dtype.encode() + b"\n")
        folder["shape"] = bytearray(shape_text(shape))

    def folder(self, path):
        node = self.root
        for piece in path:
            node = node[piece]
        return node

    def walk(self, node=None, path=()):
        """Every directory with its path, parents first."""
        node = self.root if node is None else node
        yield path, node
        for name, child in list(node.items()):
            if isinstance(child, dict):
                yield from self.walk(child, path + (name,))

    def files(self):
        """Every file: its folder, its name, its path."""
        for path, node in self.walk():
            for name, child in node.items():
                if not isinstance(child, dict):
                    yield node, name, path + (name,)

    def staged_tensor(self, path, node):
        """What a directory would be in a commit: None (no tensor), False (incomplete) or (dtype, shape, bytes)."""
        if path in ((), ("__metadata__",)) or not any(s in node for s in SLOTS):
            return None
        if any(s not in node for s in SLOTS):
            return False
        dtype, shape = parse_dtype(bytes(node["dtype"])), parse_shape(bytes(node["shape"]))
        if dtype is None or shape is None:
            return False
        size = DTYPES[dtype]
        for dim in shape:
            size *= dim
        return (dtype, shape, bytes(node["data"])) if size == len(node["data"]) else False

    def committed(self):
        """What a commit must write, or None when it must refuse."""
        tensors, metadata = {}, {}
        for path, node in self.walk():
            staged = self.staged_tensor(path, node)
            if staged is False:
                return None
            if staged:
                tensors[".".join(path)] = staged
        for key, text in self.root["__metadata__"].items():
            if is_key(key):
                value = bytes(text)
                value = value[:-1] if value.endswith(b"\n") else value
                try:
                    metadata[key] = value.decode()
                except UnicodeDecodeError:
                    return None
        return tensors, metadata

    def commit(self):
        """Takes the new model over: canonical texts, no empty folders; scratch files stay."""
        self.tensors, self.metadata = self.committed()
        fresh = self.fresh_tree()
        for folder, name, path in self.files():
            if self.is_scratch(path):
                target = fresh
                for piece in path[:-1]:
                    target = target.setdefault(piece, {})
                target[name] = folder[name]
        self.root = fresh

    @staticmethod
    def is_scratch(path):
        if path[0] == "__metadata__":
            return not is_key(path[-1])
        return len(path) == 1 or path[-1] not in SLOTS

    def discard(self):
        self.root = self.fresh_tree()

    def snapshot(self):
        return copy.deepcopy(self.root)
