# SPDX-License-Identifier: Apache-2.0
"""What the commands mean, by names alone: a model is a dict of tensors and a dict of metadata, and a command gives new ones."""
import json
import os
import re
from collections import namedtuple

import refwriter



class Tensor(namedtuple("Tensor", "dtype shape data origin", defaults=[None])):
    """The shape is a tuple. `origin` is the name of the tensor of the model that this one is, through all renaming."""

    def __eq__(self, other):
        return isinstance(other, Tensor) and self[:3] == other[:3]

    def __ne__(self, other):
        return not self == other


BITS = {"U8": 8, "I16": 16, "F32": 32, "F64": 64, "BF16": 16, "F16": 16, "BOOL": 8, "F4": 4}
TAKEN = ("data", "data.npy", "dtype", "shape")


class Refused(Exception):
    """The command must change nothing, and exit with this code."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


# -- names and paths


def encode(name):
    """The path of a tensor in the tree. None of our pieces is so long that it is cut."""
    pieces = []
    for piece in name.split("."):
        piece = "".join("%%%02X" % ord(c) if c in "%/\x7f" or c < " " else c for c in piece)
        if piece in TAKEN or (not pieces and piece == "__metadata__"):
            piece = "%%%02X" % ord(piece[0]) + piece[1:]
        pieces.append(piece or "%_")
    return "/".join(pieces)


def decode(path):
    """The name that a path spells, or None."""
    path = path[2:] if path.startswith("./") else path
    unescape = lambda piece: "" if piece == "%_" else re.sub("%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), piece)
    name = ".".join(unescape(piece) for piece in path.split("/"))
    return name if encode(name) == path else None


def is_below(name, prefix):
    return name == prefix or (name.startswith(prefix) and (name[len(prefix)] in "./" or prefix[-1:] in (".", "/")))


def is_in_tree_below(name, prefix):
    return name == prefix or name.startswith(prefix + ".")


def encode_key(key):
    """The name of the file of a metadata key."""
    name = "".join("%%%02X" % ord(c) if c in "%/\x7f" or c < " " else c for c in key)
    if name[:1] in (".", "#"):
        name = "%%%02X" % ord(name[0]) + name[1:]
    if name[-1:] == "~":
        name = name[:-1] + "%7E"
    return name or "%_"


# -- reading, with nothing of the program


def read_file(path):
    tensors, metadata = refwriter.read(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
    assert length % 8 == 0, f"{path}: the data is not aligned"
    assert os.path.getsize(path) == 8 + length + sum(len(t.data) for t in tensors), f"{path}: gaps, or bytes of nobody"
    return {t.name: Tensor(t.dtype, tuple(t.shape), t.data) for t in tensors}, metadata or {}


def read(path):
    """Tensors in their order, and metadata, of a file or of a directory of shards: the first file's word counts."""
    if not os.path.isdir(path):
        return read_file(path)
    files = sorted(f for f in os.listdir(path) if f.endswith(".safetensors"))
    index = [f for f in os.listdir(path) if f.endswith(".index.json")]
    assert len(index) == 1 or (len(files) == 1 and not index), f"{path}: {files} {index}"
    tensors, metadata, where = {}, {}, {}
    for file in files:
        part, its = read_file(os.path.join(path, file))
        assert not set(part) & set(tensors), f"{path}: a tensor is in two files"
        tensors.update(part)
        where.update(dict.fromkeys(part, file))
        metadata = {**its, **metadata}
    if index:
        with open(os.path.join(path, index[0])) as file:
            assert json.load(file)["weight_map"] == where, f"{path}: the index says something else"
    return tensors, metadata


# -- what commands do: each returns new tensors, or new metadata


def resolve(tensors, typed):
    """The name or beginning that an operand means."""
    typed = typed.rstrip("/") or typed[:1]
    for name in (typed, decode(typed)):
        if name is not None and any(is_below(t, name) for t in tensors):
            return name
    raise Refused(1)


def spell(typed, old=""):
    """The name that an operand gives."""
    if "/" in old:
        return typed
    typed = typed.rstrip("/")
    name = decode(typed) if "/" in typed else typed
    if not name:
        raise Refused(2)
    return name


def rename(tensors, pairs):
    """Renames by a list of (old, new); they may trade places."""
    pairs = [(old, new) for old, new in pairs if old != new]
    moving = [old for old, _ in pairs]
    names = [name for name in tensors if name not in moving] + [new for _, new in pairs]
    if len(set(moving)) < len(moving) or len(set(names)) < len(names) or "__metadata__" in names:
        raise Refused(1)
    renames = dict(pairs)
    return {renames.get(name, name): tensor for name, tensor in tensors.items()}, pairs


def pairs_of(tensors, typed, to):
    prefix = resolve(tensors, typed)
    new = spell(to, prefix)
    return [(name, new + name[len(prefix):]) for name in tensors if is_below(name, prefix)]


def move(tensors, typed, to):
    return rename(tensors, pairs_of(tensors, typed, to))


def move_map(tensors, lines):
    pairs, code = [], 0
    for old, new in lines.items():
        try:
            pairs += [(old, spell(new, old))] if old in tensors else pairs_of(tensors, old, new)
        except Refused as refused:
            code = max(code, refused.code)
    if code:
        raise Refused(code)
    return rename(tensors, pairs)


def move_regex(tensors, pattern, new, flags):
    regex = re.compile(pattern.replace("$", r"\Z"), re.S | (re.I if "i" in flags else 0))
    if not any(regex.search(name) for name in tensors):
        raise Refused(1)
    new = new.replace("&", r"\g<0>")
    return rename(tensors, [(name, regex.sub(new, name, count=0 if "g" in flags else 1)) for name in tensors])


def remove(tensors, operands):
    doomed = set()
    for typed in operands:
        prefix = resolve(tensors, typed)
        doomed.update(name for name in tensors if is_below(name, prefix))
    return {name: tensor for name, tensor in tensors.items() if name not in doomed}, doomed


def discard(base, tensors, typed):
    """What is below one name becomes what it was; what was moved there goes back to its old name, if that is free."""
    for name in (typed, decode(typed)):
        if name is not None and any(is_in_tree_below(t, name) for t in (*tensors, *base)):
            break
    else:
        raise Refused(1)
    below = lambda n: is_in_tree_below(n, name)
    kept = {n: t._replace(origin=None) if t.origin and below(t.origin) else t for n, t in tensors.items() if not below(n)}
    kept.update({n: t for n, t in base.items() if below(n)})
    for tensor in (t for n, t in tensors.items() if below(n) and t.origin):
        kept.setdefault(tensor.origin, base[tensor.origin])
    return kept
