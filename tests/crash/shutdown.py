#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commits killed at a system call, and the filesystem cut off at that moment.

usage: shutdown.py BINARY FILESYSTEM [POINTS] [SEED]        (default: 50 points, seed 1)

FILESYSTEM is xfs or ext4. Points take in turn: a model of one file and one in shards, a shutdown that writes the log of
the filesystem and one that does not, a command that is killed and one that has just returned. Exit 77 where something is
missing.
"""
import contextlib
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from powercut import Commands, Fault, Test, inside, mounted, new_boot, numbers, run, skip  # noqa: E402

CALLS = "openat pwrite64 fallocate copy_file_range fchmod fsync fdatasync mkdirat renameat2 unlinkat ioctl close".split()


class Shutdown(Test):
    def __init__(self, binary, filesystem, shards, seed, folder):
        super().__init__(binary, filesystem, folder, seed)
        self.workload = Commands(self, shards)

    def prepare(self):
        self.make_base()
        self.tries = {}

    def calls_of(self, command, folder):
        """What a command calls, as (name, number)."""
        trace = self.path("trace")
        self.workload.do(command, folder, "strace", "-qq", "-o", trace, "-e", "trace=" + ",".join(CALLS))
        with open(trace) as lines:
            made = [line.split("(")[0] for line in lines]
        return [(name, number) for name in CALLS for number in range(1, made.count(name) + 1)]

    def cut_off(self, folder, step, log, point):
        """All commands before `step`, that one up to a point or to its end, then nothing more reaches the disk."""
        for command in self.workload.commands[:step]:
            self.workload.do(command, folder)
        killing = []
        if point:
            killing = "strace -qq -o /dev/null -e trace={0} -e inject={0}:signal=KILL:when={1}".format(*point).split()
        with contextlib.suppress(*[Fault] if point else []):
            self.workload.do(self.workload.commands[step], folder, *killing)
        run("xfs_io", "-x", "-c", "shutdown -f" if log else "shutdown", self.path("disk"))

    def try_one(self, number):
        image, folder = self.path("image"), self.path("disk/model")
        step = self.random.randrange(len(self.workload.commands))
        killed, log = number % 2, number // 2 % 2
        if step not in self.tries:
            self.copy()
            with mounted(self.filesystem, image, self.path("disk")):
                for command in self.workload.commands[:step]:
                    self.workload.do(command, folder)
                self.tries[step] = self.calls_of(self.workload.commands[step], folder)
        point = self.random.choice(self.tries[step]) if killed else None
        what = "%s, %s, shutdown%s" % (self.workload.commands[step][0], "killed at %s %d" % point if point else "done",
                                       " -f" if log else "")
        self.copy()
        new_boot(self.work)
        with mounted(self.filesystem, image, self.path("disk")):
            self.cut_off(folder, step, log, point)
        new_boot(self.work)
        try:
            with mounted(self.filesystem, image, self.path("disk")):
                self.workload.check(folder, 2 * step + 1 if killed else 2 * step + 2)
        except (Fault, OSError) as error:
            print("  %s: %s" % (what, error), flush=True)
            return 1
        return 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binary, filesystem = os.path.abspath(sys.argv[1]), sys.argv[2]
    points, seed = numbers(sys.argv[3:5], 50, 1)
    for tool in ("xfs_io", "strace"):
        if not shutil.which(tool):
            skip(tool + " is not installed")
    with inside(filesystem) as work:
        faults, tests = 0, []
        for shards in (False, True):
            folder = os.path.join(work, "shards" if shards else "file")
            os.mkdir(folder)
            tests.append(Shutdown(binary, filesystem, shards, seed + shards, folder))
            tests[-1].prepare()
        for number in range(points):
            faults += tests[number // 4 % 2].try_one(number)
    print("%s: killed or done, then cut off: %d points, %d faults" % (filesystem, points, faults))
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
