#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon killed at its system calls, while a client edits and once more while it puts the staging area in order.

usage: killpoints.py BINARY [POINTS] [SEED]        (default: 75 points, seed 1)

What a call of the client returned from must be there afterwards, also if nobody synced it. What was found at
each point is kept in the folder that the environment calls KEEP. Exit 77 where something is missing.
"""
import collections
import errno
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import edits  # noqa: E402
from powercut import Fault, run, served, skip  # noqa: E402

CALLS = ("openat,read,write,pread64,pwrite64,preadv,pwritev,readv,writev,splice,copy_file_range,ftruncate,fallocate,fchmod,"
         "fsync,fdatasync,mkdirat,renameat2,unlinkat,fstat,newfstatat,flock,ioctl,close,mmap,munmap,getdents64")
STEPS = 25
GONE = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENOENT)


class Test:
    def __init__(self, binary, seed, folder):
        self.binary, self.seed, self.folder = binary, seed, folder
        self.random, self.untouched = random.Random(seed), None
        self.model, self.point = os.path.join(folder, "m.safetensors"), os.path.join(folder, "mnt")
        self.stage = os.path.join(folder, ".m.safetensors.stage")
        os.mkdir(self.point)

    def strace(self, *args):
        return ["strace", "-f", "-qq", "-o", os.path.join(self.folder, "trace"), *args, self.binary]

    def edit(self, command):
        """Edits until all is done or the daemon dies, at best before it is mounted. Returns what may be found."""
        shutil.rmtree(self.stage, ignore_errors=True)
        edits.make_model(self.model, self.seed)
        work = None
        try:
            with served(command, self.model, self.point, dies=True):
                work = edits.Edits(self.point, self.seed, settle=True)
                self.untouched = self.untouched or work.state()
                for _ in work.run(STEPS):
                    pass
        except (Fault, OSError) as error:
            if isinstance(error, OSError) and error.errno not in GONE:
                raise
        return work.state() if work else self.untouched

    def recover(self, command):
        try:
            with served(command, self.model, self.point, dies=True):
                pass
        except Fault:
            pass  # killed before it was mounted

    def check(self, allowed):
        with served([self.binary], self.model, self.point) as said:
            if said:
                raise Fault(" ".join(said))
            wrong = list(edits.differences(edits.read_tree(self.point), allowed))
            if wrong:
                raise Fault("; ".join(wrong))
            with open(os.path.join(self.point, ".safetensors/discard"), "w") as file:
                file.write("all\n")
        left = set(os.listdir(self.folder)) - {"m.safetensors", "mnt", "trace"}
        if left:
            raise Fault("left: %s" % left)

    def points_of(self, work):
        """The calls that a run makes, as (name, number): numbers count within a thread, as strace does."""
        work(self.strace("-e", "trace=" + CALLS))
        count = collections.Counter()
        with open(os.path.join(self.folder, "trace")) as trace:
            for line in trace:
                call = re.match(r"(\d+) +([a-z0-9_]+)\(", line)
                if call:
                    count[call.groups()] += 1
        most = collections.Counter()
        for (_, name), number in count.items():
            most[name] = max(most[name], number)
        return [(name, number) for name in sorted(most) for number in range(1, most[name] + 1)]

    def killing(self, point):
        name, number = point
        return self.strace("-e", "trace=" + name, "-e", "inject=%s:signal=KILL:when=%d" % (name, number))

    def keep(self, name):
        if "KEEP" in os.environ:
            shutil.copytree(self.folder, os.path.join(os.environ["KEEP"], name), ignore=shutil.ignore_patterns("mnt"))

    def try_all(self, points):
        """Returns the number of faults."""
        editing = self.points_of(self.edit)
        recovering, faults = self.points_of(self.recover), 0
        print("%d calls while editing, %d while recovering" % (len(editing), len(recovering)))
        for number in range(points):
            first, second = self.random.choice(editing), self.random.choice(recovering)
            try:
                allowed = self.edit(self.killing(first))
                self.keep("%d.edited" % number)
                self.recover(self.killing(second))
                self.keep("%d.recovered" % number)
                self.check(allowed)
            except (Fault, OSError) as error:
                faults += 1
                self.keep("%d.checked" % number)
                print("  killed at %s %d, then at %s %d: %s" % (*first, *second, error), flush=True)
        return faults


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    points, seed = (int(arg) for arg in (sys.argv[2:4] + ["75", "1"][len(sys.argv[2:4]):]))
    if not os.path.exists("/dev/fuse") or not shutil.which("strace"):
        skip("needs /dev/fuse and strace")
    with tempfile.TemporaryDirectory(prefix="stfs-crash.") as folder:
        faults = Test(os.path.abspath(sys.argv[1]), seed, folder).try_all(points)
    print("%d times killed while editing and again while recovering, %d faults" % (points, faults))
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
