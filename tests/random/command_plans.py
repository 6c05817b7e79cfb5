# SPDX-License-Identifier: Apache-2.0
"""Random commands that edit, and what each of them means: the odd names are chosen to be mistaken for one another."""
import json
import re

import naive_names as naive
from naive_names import BITS, Refused, Tensor, encode

NAMES = ["a", "a.b", "a.b.w", "a.bb", "b", "b.w", "c.a.b.w", "data", "x.dtype", "shape.w", "data.npy", "with space.w", "per%cent",
         "%64ata", "ünï.w", "日本.w", ".lead", "..", "a..b", "trail.", "-dash", "slash/y.w", "slash/z", "A.b", "__metadata__.x",
         "x.__metadata__", "new\nline", "tab\tx.w", "'quote\".w", "back\\1", ".safetensors", "commit", "safetensorsfs-mv-0", "%_", "#"]
KEYS = ["format", "k1", "k2", ".hidden", "#x", "old~", "sp ace", "per%", "ü", "a/b", "data", "new\nline", ""]
VALUES = ["", "pt", "x=y", "two\nlines\n", "é", "v" * 5000, "%41"]
COUNTS = [0, 1, 3, 40, 1024, 5001]
EXPRESSIONS = [("^a", "z", ""), ("w$", "v", ""), (r"\.", "_", ""), (r"\.", "/", "g"), ("([a-z])[.]w", r"\1.q.w", ""), ("b", "&&", "g"),
               ("^", "p.", ""), ("^p[.]", "", ""), ("z|x", "y", ""), ("A", "a", "i"), ("[^.]+$", "t", ""), ("no such", "x", "")]
NPY = {"U8": "|u1", "I16": "<i2", "F32": "<f4", "F64": "<f8", "F16": "<f2", "BOOL": "|b1"}


class Plans:
    """A plan is a command with its options and words, the tensors and metadata after it, and its exit code."""

    def make_tensor(self, dtype=None):
        dtype = dtype or self.random.choice(list(BITS))
        count = self.random.choice(COUNTS) // 2 * 2 if dtype == "F4" else self.random.choice(COUNTS)
        shape = self.random.choice([(count,), (1, count), (count, 1, 1)])
        if count == 1 and self.random.random() < 0.5:
            shape = ()
        return Tensor(dtype, shape, self.random.randbytes(count * BITS[dtype] // 8))

    def pick(self, there=0.7):
        """A name of the model, a module of it, or any."""
        if self.tensors and self.random.random() < there:
            name = self.random.choice(list(self.tensors))
            return name.rsplit(".", self.random.randrange(2))[0] or name
        return self.random.choice(NAMES)

    def typed(self, name):
        """A way to say a name: itself, or its path."""
        if "/" in name and name not in self.tensors:
            return "./" + encode(name)
        return self.random.choice([name, name, encode(name), encode(name) + "/"]) if "." in name else name

    def options(self):
        """With --commit or without it."""
        return ("--commit", "-q") if self.random.random() < 0.15 else ()

    def plan(self, command, options, words, change, records=2):
        """`change` gives (tensors, metadata). `records` is 1 if the command is one step, which a kill cannot halve."""
        try:
            return command, options, words, change(), 0, records
        except Refused as refused:
            return command, options, words, (self.tensors, self.metadata), refused.code, records

    def plan_put(self):
        name = self.random.choice(list(self.tensors) or NAMES) if self.random.random() < 0.5 else self.random.choice(NAMES)
        old, tensor = self.tensors.get(name), self.make_tensor()
        if old and self.random.random() < 0.4:
            tensor = Tensor(old.dtype, old.shape, self.random.randbytes(len(old.data)))
            options = []
        else:
            options = ["--dtype", tensor.dtype, "--shape", self.random.choice([",", " ", "x"]).join(map(str, tensor.shape)) or "[]"]
        data, code = tensor.data, 0
        if self.random.random() < 0.1:
            data, code = data + b"z", 2
        with open(self.path("raw"), "wb") as file:
            file.write(data)
        word = name if old or "/" not in name else "./" + encode(name)
        return self.plan("put", [*options, *self.options()], [word, self.path("raw")], lambda: self.with_tensor(name, tensor, code))

    def with_tensor(self, name, tensor, code=0):
        if code:
            raise Refused(code)
        old = self.tensors.get(name)
        return {**self.tensors, name: tensor._replace(origin=old and old.origin)}, self.metadata

    def plan_put_npy(self):
        name = self.random.choice(NAMES)
        tensor = self.make_tensor(self.random.choice(list(NPY)))
        head = repr({"descr": NPY[tensor.dtype], "fortran_order": False, "shape": tensor.shape}).encode()
        head += b" " * (-(len(head) + 11) % 64) + b"\n"
        with open(self.path("file.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + tensor.data)
        options = []
        if tensor.dtype == "F16" and self.random.random() < 0.5:
            options, tensor = ["--dtype", "BF16"], tensor._replace(dtype="BF16")
        word = name if name in self.tensors or "/" not in name else "./" + encode(name)
        return self.plan("put", [*options, *self.options()], [word, self.path("file.npy")], lambda: self.with_tensor(name, tensor))

    def moved(self, result):
        return result[0], self.metadata

    def plan_mv(self):
        old, new = self.typed(self.pick(0.9)), self.typed(self.pick(0.2))
        return self.plan("mv", self.options(), [old, new], lambda: self.moved(naive.move(self.tensors, old, new)))

    def plan_mv_regex(self):
        pattern, new, flags = self.random.choice(EXPRESSIONS)
        options = ["--regex", f"s|{pattern}|{new}|{flags}" if "|" not in pattern else f"s,{pattern},{new},{flags}", *self.options()]
        return self.plan("mv", options, [], lambda: self.moved(naive.move_regex(self.tensors, pattern, new, flags)))

    def make_map(self):
        names = self.random.sample(list(self.tensors), min(len(self.tensors), self.random.randrange(1, 5)))
        if self.random.random() < 0.5:
            lines = dict(zip(names, names[1:] + names[:1]))  # a ring
        else:
            lines = {name: self.random.choice(NAMES) for name in names}
        if self.random.random() < 0.1:
            lines["nowhere"] = "x"
        return {old: new if "/" not in new or "/" in old else "./" + encode(new) for old, new in lines.items()}

    def plan_mv_map(self):
        lines = self.make_map() if self.tensors else {"nowhere": "x"}
        text = json.dumps(lines, ensure_ascii=self.random.random() < 0.5)
        if not any(c in text for c in ("\\t", "\\n")) and self.random.random() < 0.5:
            text = "".join(f"{old}\t{new}\n" for old, new in lines.items())
        with open(self.path("map"), "w") as file:
            file.write(text)
        return self.plan("mv", ["--map", self.path("map"), *self.options()], [],
                         lambda: self.moved(naive.move_map(self.tensors, lines)))

    def plan_rm(self):
        words = [self.typed(self.pick(0.9)) for _ in range(self.random.choice([1, 1, 2]))]
        return self.plan("rm", self.options(), words, lambda: self.moved(naive.remove(self.tensors, words)))

    def plan_rm_regex(self):
        regex = self.random.choice(["^a[.]", "w$", "[^a-z.]", "^.$", "no such"])
        return self.plan("rm", ["--regex", regex, *self.options()], [], lambda: self.moved(self.removed_by(regex)))

    def removed_by(self, regex):
        kept = {n: t for n, t in self.tensors.items() if not re.search(regex.replace("$", r"\Z"), n, re.S)}
        if len(kept) == len(self.tensors):
            raise Refused(1)
        return kept, None

    def plan_set_metadata(self):
        pairs = {self.random.choice(KEYS): self.random.choice(VALUES) for _ in range(self.random.choice([1, 1, 3]))}
        return self.plan("set-metadata", self.options(), [f"{k}={v}" for k, v in pairs.items()],
                         lambda: (self.tensors, {**self.metadata, **pairs}))

    def plan_rm_metadata(self):
        keys = self.random.sample(list(self.metadata) + KEYS[:1], 1)
        return self.plan("rm-metadata", self.options(), keys, lambda: (self.tensors, self.without_keys(keys)), 1)

    def without_keys(self, keys):
        if any(key not in self.metadata for key in keys):
            raise Refused(1)
        return {k: v for k, v in self.metadata.items() if k not in keys}

    def plan_discard(self):
        if self.random.random() < 0.2:
            return self.plan("discard", (), [], lambda: self.base)
        if self.random.random() < 0.3:
            key = self.random.choice(list({**self.metadata, **self.base[1]}) + KEYS[:1])
            return self.plan("discard", (), ["__metadata__/" + naive.encode_key(key)], lambda: (self.tensors, self.discarded(key)), 1)
        name = self.random.choice([n for n in NAMES if "/" not in n])
        if self.random.random() < 0.7 and self.base[0]:
            name = self.random.choice([n for n in self.base[0] if "/" not in n] or [name])
        return self.plan("discard", (), [name], lambda: (naive.discard(self.base[0], self.tensors, name), self.metadata))

    def discarded(self, key):
        if key not in self.metadata and key not in self.base[1]:
            raise Refused(1)
        return {**{k: v for k, v in self.metadata.items() if k != key}, **{k: v for k, v in self.base[1].items() if k == key}}

    EDITS = [plan_put] * 4 + [plan_put_npy] * 2 + [plan_mv] * 5 + [plan_mv_regex] * 2 + [plan_mv_map] * 4 + [plan_rm] * 2 + [
        plan_rm_regex, plan_set_metadata, plan_set_metadata, plan_rm_metadata, plan_discard, plan_discard]
