# SPDX-License-Identifier: Apache-2.0
"""Reads a mount with many threads at once, each in its own order, and compares.

usage: readers.py MOUNT MODEL THREADS
"""

import os
import random
import sys
import threading

from refwriter import read

mount, model, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
tensors, _ = read(model)
faults = []


def read_all(seed):
    rand = random.Random(seed)
    for tensor in rand.sample(tensors, len(tensors)):
        path = os.path.join(mount, *tensor.name.split("."))
        with open(path + "/data", "rb", buffering=0) as file:
            for _ in range(20):
                spot, length = rand.randrange(len(tensor.data) + 1), rand.choice((1, 100, 5000, 200000))
                if os.pread(file.fileno(), length, spot) != tensor.data[spot : spot + length]:
                    faults.append((tensor.name, spot, length))
        with open(path + "/dtype") as file:
            if file.read().strip() != tensor.dtype:
                faults.append((tensor.name, "dtype"))
        if sorted(os.listdir(path))[:3] != ["data", "dtype", "shape"]:
            faults.append((tensor.name, "listing"))
        if not os.path.samefile(os.path.join(mount, tensor.name), path):
            faults.append((tensor.name, "dotted name"))


threads = [threading.Thread(target=read_all, args=(seed,)) for seed in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if faults:
    sys.exit("readers.py: %d faults, the first: %r" % (len(faults), faults[0]))
