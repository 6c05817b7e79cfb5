#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command with its stdout on a terminal and copies what that shows to stdout; stderr stays where it is.

usage: terminal.py ROWS COLUMNS COMMAND...
"""
import fcntl
import os
import pty
import struct
import sys
import termios


def main():
    rows, columns = int(sys.argv[1]), int(sys.argv[2])
    stderr = os.dup(2)
    pid, fd = pty.fork()
    if pid == 0:
        os.dup2(stderr, 2)
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.environ.setdefault("TERM", "xterm")
        os.execv(sys.argv[3], sys.argv[3:])
    shown = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:  # the other side is closed
            piece = b""
        if not piece:
            break
        shown += piece
    sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


main()
