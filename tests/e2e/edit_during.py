# SPDX-License-Identifier: Apache-2.0
"""Edits of every kind while a commit runs, and ends of commits of every kind.

usage: edit_during.py PROGRAM MODEL MOUNT
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

program, model, mount = sys.argv[1:]
CONTROL = mount + "/.safetensors/"


def text(path):
    with open(path) as file:
        return file.read()


def write(path, data):
    with open(path, "wb", 0) as file:
        file.write(data)


def start():
    os.makedirs(mount, exist_ok=True)
    subprocess.run([program, model, mount], check=True)


def stop():
    subprocess.run([program, "umount", mount], check=True)


def run(*command):
    subprocess.run(command, check=True)


class Commit(threading.Thread):
    """A commit that runs by itself; running() waits until it writes. The longest one took `longest` seconds."""

    longest = 0

    def __init__(self):
        super().__init__()
        self.error = None
        self.start()

    def run(self):
        fd = os.open(CONTROL + "commit", os.O_WRONLY)
        began = time.monotonic()
        try:
            assert os.write(fd, b"commit\n") == 7
        except OSError as error:
            self.error = error
        Commit.longest = max(Commit.longest, time.monotonic() - began)
        os.close(fd)

    def running(self):
        while self.is_alive():
            words = text(CONTROL + "progress").split()
            if words[0] == "commit" and int(words[1]) > 0:
                return True
        return False


def header():
    with open(model, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little")))


def tensor(name):
    with open(model, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length))[name]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        return file.read(end - begin)


def tries(what):
    """A machine may be too fast to be caught in the act; a commit that takes its time must be seen."""
    Commit.longest = 0
    for n in range(20):
        if what(n):
            return
        assert Commit.longest < 0.5, "%s: a commit of %.1f s was never seen" % (what.__name__, Commit.longest)
    print("not seen: a commit was always over before %s" % what.__name__)


def edits(n):
    """One edit of each kind, each in a thread, since each of them waits."""
    base = "%s/dir%d" % (mount, n)
    os.makedirs(base + "/old")
    write(base + "/old/file", b"scratch")
    write(base + "/gone", b"gone")
    handle = os.open(mount + "/small/data", os.O_RDWR)
    write(mount + "/__metadata__/note", b"before %d" % n)
    # Names that the kernel knows: it holds a directory in which a name waits to be made, and a new look-up there waits too.
    text(mount + "/large/dtype"), os.listdir(mount + "/large"), os.stat(mount + "/large/data")
    commit = Commit()
    if not commit.running():
        commit.join()
        return False
    done, failed = [], []

    def edit(name, function, *args):
        def body():
            try:
                function(*args)
                done.append(name)
            except BaseException as error:
                failed.append((name, error))

        thread = threading.Thread(target=body)
        thread.start()
        return thread

    # In a process of its own: msync would hold up every thread of this one.
    store = "import mmap; file = open('%s/small/data', 'r+b'); map = mmap.mmap(file.fileno(), 0); map[100:105] = b'store'; map.flush()"
    big = [os.urandom(1 << 20) for _ in range(4)]
    threads = [
        edit("write", write, mount + "/__metadata__/note", b"during %d" % n),
        edit("create", write, base + "/new", b"new"),
        edit("mkdir", os.mkdir, base + "/made"),
        edit("rename", os.rename, base + "/old", base + "/renamed"),
        edit("unlink", os.unlink, base + "/gone"),
        edit("truncate", os.truncate, mount + "/tiny/data", 3),
        edit("chmod", os.chmod, mount + "/tiny/data", 0o600),
        edit("utime", os.utime, mount + "/tiny/data", (5, 5)),
        edit("pwrite", os.pwrite, handle, b"pwrite", 200),
        edit("store", run, sys.executable, "-W", "ignore", "-c", store % mount),
        edit("copy", run, "cp", "-r", mount + "/small", mount + "/small%d" % n),
        edit("sed", run, "sed", "-i", "s/5/3/", mount + "/tiny/shape"),
    ] + [edit("big%d" % i, write, base + "/big%d" % i, big[i % 4]) for i in range(40)]
    reads = waiting = 0
    while commit.running():
        assert text(mount + "/large/dtype") == "U8\n"
        with open(mount + "/large/data", "rb") as file:
            file.seek(reads << 12)
            assert file.read(4096) == bytes(range(256)) * 16
        os.listdir(mount + "/large"), os.stat(mount + "/tiny/data")
        reads += 1
        waiting = len(threads) - len(done)
    for thread in threads:
        thread.join()
    commit.join()
    assert commit.error is None, (commit.error, text(CONTROL + "result"))
    assert not failed, failed
    # "cp -r" of a tensor that is not complete yet is of no interest here.
    assert text(mount + "/__metadata__/note") == "during %d" % n
    assert text(base + "/new") == "new" and text(base + "/renamed/file") == "scratch"
    assert os.path.isdir(base + "/made") and not os.path.exists(base + "/gone")
    status = os.stat(mount + "/tiny/data")
    assert (status.st_size, status.st_mode & 0o777) == (3, 0o600), status
    for i in range(40):
        with open(base + "/big%d" % i, "rb") as file:
            assert file.read() == big[i % 4], "data that waited"
    with open(mount + "/small/data", "rb") as file:
        small = file.read()
    assert small[200:206] == b"pwrite" and small[100:105] == b"store"
    committed = header()["__metadata__"].get("note")
    assert committed == "before %d" % n, (committed, text(CONTROL + "result"), text(CONTROL + "status"), os.listdir("."))
    again = Commit()
    again.join()
    assert again.error is None, text(CONTROL + "result")
    assert header()["__metadata__"]["note"] == "during %d" % n
    assert tensor("small")[:300] == small[:300] and tensor("tiny") == b"tin"
    assert tensor("small%d" % n)[300:] == small[300:]
    # As it was, for the next.
    os.close(handle)
    write(mount + "/tiny/data", b"tiny!")
    write(mount + "/tiny/shape", b"5\n")
    run("rm", "-r", mount + "/small%d" % n)
    assert reads > 5, "reads wait for the commit too"
    print("edits during a commit: %d waited, %d reads meanwhile" % (waiting, reads))
    return True


def two_at_once(n):
    write(mount + "/__metadata__/note", b"two %d" % n)
    first = Commit()
    if not first.running():
        first.join()
        return False
    second = Commit()
    first.join(), second.join()
    assert first.error is None and second.error is None, (first.error, second.error)
    assert header()["__metadata__"]["note"] == "two %d" % n
    return True


def interrupted(n):
    """Ctrl-C stops a commit: nothing is changed, everything is still staged."""
    write(mount + "/__metadata__/note", b"interrupted %d" % n)
    before = os.stat(model).st_ino, os.listdir(".")
    child = subprocess.Popen(["sh", "-c", "echo commit >%scommit" % CONTROL], stderr=subprocess.DEVNULL)
    while child.poll() is None:
        words = text(CONTROL + "progress").split()
        if words[0] == "commit" and int(words[1]) > 0:
            child.send_signal(signal.SIGINT)
            break
    if child.wait() == 0:
        return False
    while text(CONTROL + "progress") != "idle\n":
        time.sleep(0.01)
    assert (os.stat(model).st_ino, os.listdir(".")) == before, "a stopped commit left something"
    assert "M __metadata__/note" in text(CONTROL + "status")
    again = Commit()
    again.join()
    assert again.error is None and header()["__metadata__"]["note"] == "interrupted %d" % n
    return True


def bar():
    """The command for a mount shows on a terminal how far it is, when that takes a while."""
    write(mount + "/__metadata__/note", b"bar")
    ours, theirs = os.openpty()
    began = time.monotonic()
    child = subprocess.Popen([program, "commit", mount], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other side is closed
        pass
    assert child.wait() == 0, shown
    os.close(ours)
    if time.monotonic() - began > 1.5:
        assert b" GB  " in shown and b"/s  " in shown and b" left" in shown, shown
    else:
        print("no bar is looked at: the commit was over at once")


def daemons():
    """The daemon of our mount, by its executable and the tag of this test."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/exe" % pid) == program and os.environ["STFS_E2E_TAG"].encode() in open(
                "/proc/%s/environ" % pid, "rb"
            ).read():
                found.append(int(pid))
        except OSError:
            pass
    return found


def ended(n, number):
    """A daemon that is told to go, or is killed, during a commit: the model is the old or the new one, and the edit is there."""
    note = b"ended %d %d" % (number, n)
    write(mount + "/__metadata__/note", note)
    commit = Commit()
    caught = commit.running()
    for pid in daemons():
        os.kill(pid, number)
    commit.join()
    while daemons():
        time.sleep(0.01)
    subprocess.run([program, "umount", mount], stderr=subprocess.DEVNULL)
    start()
    assert text(mount + "/__metadata__/note").strip() == note.decode()
    with open(mount + "/large/data", "rb") as file:
        assert file.read(256) == bytes(range(256))
    again = Commit()
    again.join()
    assert again.error is None and header()["__metadata__"]["note"].encode() == note
    left = [name for name in os.listdir(".") if name not in (model, mount, ".log")]
    assert not left, left
    return caught


def terminated(n):
    return ended(n, signal.SIGTERM)


def killed(n):
    return ended(n, signal.SIGKILL)


start()
tries(edits)
run("sh", "-c", "rm -r %s/dir*" % mount)
bar()
for what in two_at_once, interrupted, terminated, killed:
    tries(what)
stop()
