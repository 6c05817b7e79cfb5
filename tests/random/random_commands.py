#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random commands on a model that is not mounted, now and then mounted in between, against a naive model of names.

usage: random_commands.py BINARY [RUNS] [STEPS] [FIRST_SEED]      (default: 8 runs of 25 steps from seed 1)
Each run has its own seed, which a failure names; but when a command is killed is a matter of time. Every second run is of a sharded model. Without /dev/fuse no run mounts.
"""
import json, os, random, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import naive_names as naive  # noqa: E402
from command_plans import KEYS, NAMES, VALUES, Plans  # noqa: E402
from mounted_edits import Mounted  # noqa: E402
from naive_names import Refused  # noqa: E402
import refwriter  # noqa: E402


class Run(Plans, Mounted):
    def __init__(self, binary, seed, folder, mounts):
        self.binary, self.random, self.folder, self.mounts = binary, random.Random(seed), folder, mounts
        self.log, self.scratch = [], {}
        self.sharded = seed % 2 == 0
        self.source = os.path.join(folder, "in", "shards" if self.sharded else "m.safetensors")
        os.mkdir(os.path.join(folder, "in"))
        names = self.random.sample(NAMES, 9)
        self.tensors = {name: self.make_tensor()._replace(origin=name) for name in names}
        self.metadata = {key: self.random.choice(VALUES) for key in self.random.sample(KEYS, 3)}
        self.write_source(names)
        self.base = self.tensors, self.metadata
        self.check_source()

    # -- helpers

    def write_source(self, names):
        parts = [("", names)]
        if self.sharded:
            os.mkdir(self.source)
            parts = [(f"/model-{i + 1:05}-of-00003.safetensors", names[i::3]) for i in range(3)]
        for i, (name, part) in enumerate(parts):
            # A key that only one shard has, and others that all have.
            metadata = {k: v for n, (k, v) in enumerate(self.metadata.items()) if not self.sharded or n or i == 1}
            refwriter.write(self.source + name, [refwriter.Tensor(n, *self.tensors[n][:3]) for n in part], metadata)
        if self.sharded:
            where = {n: name[1:] for name, part in parts for n in part}
            with open(self.source + "/model.safetensors.index.json", "w") as file:
                json.dump({"metadata": {}, "weight_map": where}, file)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def call(self, command, *words, options=(), kill=False):
        """The exit code, or None for one that was killed; what it wrote is in self.out and self.err."""
        words = [self.binary, command, *options, "--", self.source, *words]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"})
        if kill:
            try:
                process.wait(self.random.uniform(0.002, 0.012))
            except subprocess.TimeoutExpired:
                process.kill()
        self.out, self.err = (text.decode() for text in process.communicate(timeout=60))
        if "Sanitizer" in self.err or "runtime error" in self.err:
            raise AssertionError(self.err)
        return None if process.returncode == -9 else process.returncode

    # -- steps

    def step_edit(self, plan=None, kill=False):
        command, options, words, after, want, records = plan or self.random.choice(Plans.EDITS)(self)
        committing, before, base = "--commit" in options, (self.tensors, self.metadata), self.base
        if want == 0 and committing and self.sharded and not after[0]:
            want, committing = 1, False  # a model of no tensors: staged, and not committed
        got = self.call(command, *words, options=options, kill=kill)
        self.log[-1] += (command, *options, *(w[:40] for w in words), f"exit {got}")
        if "--map" in options:
            with open(self.path("map")) as file:
                self.log[-1] += (file.read(),)
        if got is None:
            return self.after_kill(before, after, base, committing, records)
        if got != want:
            raise AssertionError(f"exit {got} instead of {want}: {self.err}")
        self.tensors, self.metadata = after
        if command == "discard" and not words:
            self.scratch = {}
        if committing and want == 0:
            self.committed()

    def committed(self):
        self.tensors = {name: tensor._replace(origin=name) for name, tensor in self.tensors.items()}
        self.base = self.tensors, self.metadata
        self.check_source()

    def step_kill(self):
        self.step_edit(kill=True)

    def step_kill_commit(self):
        before, base = (self.tensors, self.metadata), self.base
        if self.sharded and not self.tensors:
            return
        got = self.call("commit", "-q", kill=True)
        self.log[-1] += (f"exit {got}",)
        self.after_kill(before, before, base, True, 1)

    def after_kill(self, before, after, base, committing, records):
        """The model is the old or the new one; what is staged is the state before, after, or, of several steps, between."""
        if self.call("status", options=["--json"]) != 0:  # whoever comes next puts the model in order
            raise AssertionError(f"status after a kill: {self.err}")
        status = json.loads(self.out)
        self.scratch = {name: data for name, data in self.scratch.items() if name in status["scratch"]}
        found = naive.read(self.source)
        if found != base and not (committing and found == after):
            raise AssertionError("a killed command left another model")
        state = found if found != base else self.staged_state()
        self.log[-1] += ("killed", "before" if state == before else "after" if state == after else "between")
        if state in (before, after):
            self.tensors, self.metadata = before if state == before else after
            if found != base:
                self.committed()
            return
        if records == 1:
            raise AssertionError("one step is done by half")
        if state is not None:
            values = [*before[0].values(), *after[0].values()]
            for name, tensor in state[0].items():
                assert tensor in values, f"{name!r} is nothing that was there before or should be after"
        if self.call("discard") != 0:
            raise AssertionError(f"discard: {self.err}")
        self.scratch = {}
        self.tensors, self.metadata = self.base

    def staged_state(self):
        """What a commit would make, read without the program; None when it would refuse."""
        target = self.path("state")
        code = self.call("commit", options=("-q", "--single", "--output", target))
        if code == 1:
            return None
        if code != 0:
            raise AssertionError(f"commit --output exit {code}: {self.err}")
        state = naive.read(target)
        os.unlink(target)
        return state

    def step_commit(self):
        options = self.random.choice([[], [], ["-q"], ["--sort"], ["--dry-run"]])
        want = 1 if self.sharded and not self.tensors else 0
        got = self.call("commit", options=options)
        self.log[-1] += (*options, f"exit {got}")
        if got != want:
            raise AssertionError(f"commit exit {got} instead of {want}: {self.err}")
        if want == 0 and "--dry-run" not in options:
            self.committed()
            if not self.scratch and os.path.exists(self.stage()):
                raise AssertionError("the staging area is left after a commit: " + " ".join(os.listdir(self.stage())))
        self.check_source(sorted_too="--sort" in options)

    def step_elsewhere(self):
        """commit --output, and convert, which knows nothing of what is staged."""
        command, (tensors, metadata) = "commit", (self.tensors, self.metadata)
        if self.random.random() < 0.4:
            command, (tensors, metadata) = "convert", self.base
        if self.sharded and not tensors:
            return
        options = self.random.choice([[], ["--sort"], ["--max-shard-size", "4kB"], ["--max-shard-size", "1GB"], ["--single"]])
        target = self.path("out") + self.random.choice(["", "/"])
        words = [target] if command == "convert" else []
        got = self.call(command, *words, options=["-q", *options, *([] if words else ["--output", target])])
        self.log[-1] += (command, *options, target[-4:], f"exit {got}")
        if got != 0:
            raise AssertionError(f"exit {got}: {self.err}")
        if os.path.isdir(target) and (options[:1] != ["--max-shard-size"] and not self.sharded or "--single" in options):
            target = os.path.join(target, *os.listdir(target))
        self.compare((tensors, metadata), naive.read(target), "the output", "--sort" in options and not os.path.isdir(target))
        shutil.rmtree(self.path("out")) if os.path.isdir(self.path("out")) else os.unlink(self.path("out"))

    def step_dry_run(self):
        old, new = self.typed(self.pick(0.9)), self.typed(self.pick(0.1))
        try:
            want, pairs = 0, naive.move(self.tensors, old, new)[1]
        except Refused as refused:
            want, pairs = refused.code, []
        got = self.call("mv", old, new, options=["--dry-run"])
        self.log[-1] += (old, new, f"exit {got}")
        lines = sorted(f"{a} -> {b}" for a, b in pairs)
        plain = all(c not in a + b for a, b in pairs for c in "\n\t\\")
        if got != want or len(self.out.splitlines()) != len(pairs) or (plain and sorted(self.out.splitlines()) != lines):
            raise AssertionError(f"exit {got} instead of {want}: {self.out!r} instead of {lines}: {self.err}")

    # -- with a mount in between

    def step_mount(self):
        point = self.path("mnt")
        os.makedirs(point, exist_ok=True)
        if self.call("mount", point) != 0:
            raise AssertionError(f"mount: {self.err}")
        try:
            self.check_mounted(point)
            for _ in range(self.random.randrange(1, 5)):
                change = self.random.choice(Mounted.IN_MOUNT)
                self.log[-1] += (change.__name__[3:],)
                self.log[-1] += (change(self, point),)
            if self.call("set-metadata", "a=b") != 4:
                raise AssertionError("a mounted model was edited from outside")
        finally:
            done = subprocess.run([self.binary, "umount", point], capture_output=True, timeout=60)
        if done.returncode:
            raise AssertionError(done.stderr.decode())

    STEPS = [step_edit] * 16 + [step_kill] * 4 + [step_kill_commit, step_commit, step_commit, step_elsewhere, step_elsewhere,
                                                  step_dry_run, step_mount, step_mount]

    # -- checks

    def stage(self):
        folder, name = os.path.split(self.source)
        return os.path.join(folder, f".{name}.stage")

    def compare(self, want, have, what, in_order=False):
        for name in sorted(set(want[0]) | set(have[0])):
            a, b = want[0].get(name), have[0].get(name)
            if a != b:
                show = lambda t: t and (t.dtype, t.shape, t.data[:20], len(t.data), t.origin)
                raise AssertionError(f"{what}: {name!r} is {show(b)} instead of {show(a)}")
        if want[1] != have[1]:
            raise AssertionError(f"{what}: metadata {have[1]!r:.300} instead of {want[1]!r:.300}")
        if in_order:
            order = sorted(have[0], key=lambda n: (refwriter.ORDER.index(have[0][n].dtype), n.encode()))
            if list(have[0]) != order:
                raise AssertionError(f"{what}: not in order: {list(have[0])}")

    def check_source(self, sorted_too=False):
        self.compare(self.base, naive.read(self.source), "the model", sorted_too and not self.sharded)

    def check_status(self):
        """status and diff, put together with the old model, give the new one."""
        if self.call("status", options=["--json"]) != 0:
            raise AssertionError(f"status: {self.err}")
        status = json.loads(self.out)
        if self.call("diff", options=["--json"]) != 0:
            raise AssertionError(f"diff: {self.err}")
        changes = json.loads(self.out)["changes"]
        names, keys = set(self.base[0]), dict(self.base[1])
        for c in changes:
            if "key" not in c:
                names.discard(c.get("name_before"))
        for c in changes:
            if "key" in c:
                keys.pop(c["key"], None) if c["value"] is None else keys.update({c["key"]: c["value"]})
            elif c["tensor"] is not None:
                names.add(c["tensor"])
                tensor = self.tensors.get(c["tensor"])
                if not tensor or (tensor.dtype, list(tensor.shape), len(tensor.data)) != (c["dtype"], c["shape"], c["bytes"]):
                    raise AssertionError(f"diff: {c} instead of {tensor and tensor[:2]}")
        if names != set(self.tensors) or keys != self.metadata:
            raise AssertionError(f"diff: {changes}: {names ^ set(self.tensors)}, {keys} instead of {self.metadata}")
        told = sorted(c["key"] if "key" in c else c["tensor"] or c["name_before"] for c in changes)
        if told != sorted(c["key"] if "key" in c else c["tensor"] for c in status["changes"]) or len(told) != status["changed"]:
            raise AssertionError(f"status {status} differs from diff {changes}")
        if status["incomplete"] or sorted(status["scratch"]) != sorted(self.scratch):
            raise AssertionError(f"status {status}, scratch {sorted(self.scratch)}")
        if not changes and (self.tensors, self.metadata) != self.base:
            raise AssertionError("nothing is staged")

    def check(self):
        self.check_source()
        self.check_status()
        self.compare((self.tensors, self.metadata), self.staged_state() or ({}, {}), "what is staged")

    def go(self, steps):
        for number in range(steps):
            step = self.random.choice(self.STEPS)
            if step is Run.step_mount and not self.mounts:
                step = Run.step_edit
            self.log.append((number, step.__name__))
            step(self)
            self.check()
        self.log.append(("end",))
        if self.tensors:
            self.step_commit()
        if self.call("discard") != 0:
            raise AssertionError(f"discard: {self.err}")
        if os.listdir(os.path.dirname(self.source)) != [os.path.basename(self.source)]:
            raise AssertionError(f"left beside the model: {os.listdir(os.path.dirname(self.source))}")

    def clean_up(self):
        if os.path.ismount(self.path("mnt")):
            subprocess.run(["umount", "-l", self.path("mnt")], capture_output=True)


def main():
    binary = os.path.abspath(sys.argv[1])
    runs, steps, first = (int(a) for a in (sys.argv[2:] + ["8", "25", "1"][len(sys.argv) - 2:]))
    mounts = os.path.exists("/dev/fuse")
    if not mounts:
        print("without mounts: there is no /dev/fuse")
    failed = 0
    for seed in range(first, first + runs):
        folder, run = tempfile.mkdtemp(prefix="stfs-random-"), None
        try:
            run = Run(binary, seed, folder, mounts)
            run.go(steps)
        except (AssertionError, OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
            failed += 1
            print(f"seed {seed}: {type(error).__name__}: {error}")
            for entry in run.log[-12:] if run else []:
                print("   ", entry)
        finally:
            if run:
                run.clean_up()
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{runs - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
