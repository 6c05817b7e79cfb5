# SPDX-License-Identifier: Apache-2.0
"""Runs a program at a terminal and types what it is told to. It must exit 0 within 30 seconds, without a warning on the screen.

usage: terminal.py KEYS... -- COMMAND...      (\\r, \\x18 and the like as in Python)
"""

import os
import pty
import re
import select
import sys
import time

at = sys.argv.index("--")
keys = [key.encode().decode("unicode_escape").encode() for key in sys.argv[1:at]]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[at + 1], sys.argv[at + 1 :])
screen, end = b"", time.monotonic() + 30
while True:
    # A program that has said its piece waits for a key.
    ready = select.select([fd], [], [], 0.3)[0]
    if not ready and keys:
        os.write(fd, keys.pop(0))
    if ready:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        screen += part
    if time.monotonic() > end:
        os.kill(pid, 9)
        sys.exit("terminal.py: it does not end: %r" % screen[-600:])
status = os.waitpid(pid, 0)[1]
if status != 0 or re.search(rb"(?i)warning|error|E\d+:|modified since", screen):
    sys.exit("terminal.py: exit %#x: %r" % (status, screen[-2000:]))
