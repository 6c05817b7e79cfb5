# SPDX-License-Identifier: Apache-2.0
"""A client of a daemon whose allocations fail now and then.

out_of_memory.py read MOUNT PID: reads everything again and again while they fail.
out_of_memory.py edit MOUNT PID: edits, each until it is accepted, and commits half-way.
out_of_memory.py check MOUNT: looks whether the edits are there.
"""
import errno
import os
import random
import signal
import sys
import time

mount = sys.argv[2]
SECONDS = 1
counts = {"done": 0, "refused": 0}


def no_memory(error):
    return error.errno == errno.ENOMEM


def insist(action, already=()):
    """Tries until there is memory. `already` are the errors of what happened in a try whose answer was lost."""
    tries = 0
    while True:
        try:
            result = action()
            counts["done"] += 1
            return result
        except OSError as error:
            if tries and error.errno in already:
                return None
            if not no_memory(error):
                raise
            counts["refused"] += 1
            tries += 1


def read_file(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        text = b""
        while chunk := os.read(fd, 1 << 20):
            text += chunk
        return text
    finally:
        os.close(fd)


def drop_cache(path):
    """Bytes that the kernel keeps are no answer of the daemon's."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def walk(top, visit):
    for name in sorted(visit(lambda: os.listdir(top))):
        path = f"{top}/{name}"
        if visit(lambda path=path: os.lstat(path)).st_mode & 0o040000:
            yield path, None
            yield from walk(path, visit)
        else:
            yield path, visit(lambda path=path: read_file(path))


def steady(entries):
    return {path: text for path, text in entries if "/.safetensors/" not in path or path.endswith((".tsv", "header.json"))}


def toggle(pid):
    if os.path.exists("state"):
        os.unlink("state")
    os.kill(pid, signal.SIGUSR2)
    end = time.monotonic() + 30
    while not (os.path.exists("state") and open("state").read() in ("on", "off")):
        if time.monotonic() > end:
            sys.exit("the daemon does not say whether its allocations fail")
        time.sleep(0.001)


def read_all(pid):
    wanted = steady(walk(mount, lambda action: action()))
    end = time.monotonic() + SECONDS
    rounds = 0
    toggle(pid)
    while time.monotonic() < end:
        found = steady(walk(mount, insist))
        if found != wanted:
            bad = [path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path)]
            sys.exit(f"not as it was without memory failing: {bad[:5]}")
        for path, text in wanted.items():
            if text is not None:
                insist(lambda path=path: drop_cache(path))
        rounds += 1
    toggle(pid)
    print(f"{rounds} rounds")


def tensor_bytes(number):
    return random.Random(number).randbytes(200 if number % 2 else 20000)


def write_file(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        at = 0
        while at < len(text):
            at += os.write(fd, text[at:])
    finally:
        os.close(fd)


def make_tensor(number):
    top = f"{mount}/new{number}"
    insist(lambda: os.mkdir(top), [errno.EEXIST])
    text = tensor_bytes(number)
    insist(lambda: write_file(f"{top}/data", text))
    insist(lambda: write_file(f"{top}/dtype", b"U8\n"))
    insist(lambda: write_file(f"{top}/shape", b"%d\n" % len(text)))
    insist(lambda: write_file(f"{mount}/__metadata__/key{number}", b"value %d" % number))
    if number % 3 == 0:
        insist(lambda: os.rename(top, f"{mount}/moved{number}"), [errno.ENOENT])
    if number % 5 == 0:
        insist(lambda: os.unlink(f"{mount}/__metadata__/key{number}"), [errno.ENOENT])


def commit():
    write_file(f"{mount}/.safetensors/commit", b"commit\n")


N = 40


def edit_all(pid):
    toggle(pid)
    for number in range(N):
        make_tensor(number)
        if number == N // 2:
            # With memory: one that is on disk and cannot be shown stops edits, as it should.
            toggle(pid)
            commit()
            toggle(pid)
    toggle(pid)
    check_all()


def check_all():
    for number in range(N):
        top = f"{mount}/{'moved' if number % 3 == 0 else 'new'}{number}"
        text = tensor_bytes(number)
        assert read_file(f"{top}/data") == text, top
        assert read_file(f"{top}/dtype").strip() == b"U8", top
        assert read_file(f"{top}/shape").strip() == b"%d" % len(text), top
        key = f"{mount}/__metadata__/key{number}"
        if number % 5 == 0:
            assert not os.path.exists(key), key
        else:
            assert read_file(key).strip() == b"value %d" % number, key


if sys.argv[1] == "read":
    read_all(int(sys.argv[3]))
elif sys.argv[1] == "edit":
    edit_all(int(sys.argv[3]))
else:
    check_all()
if sys.argv[1] != "check":
    print(counts)
    assert counts["refused"] > 10, "hardly any allocation failed"
