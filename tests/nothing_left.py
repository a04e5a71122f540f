#!/usr/bin/env python3
"""Runs a test and fails it when processes that it started outlive it. Every test runs under this.

usage: nothing_left.py COMMAND [ARGUMENT...]

With TEST_TIMES=FILE it appends a line to FILE: seconds of CPU time, seconds of wall time, the command. CPU time
tells what a test costs on a busy machine too.
"""
import ctypes
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 5


def children():
    path = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(pid) for pid in path.read_text().split()]


def reap():
    """Takes note of the dead; true when nobody is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return True
    return False


def run(command):
    """Also takes note of others that die meanwhile, as init does: Slurm waits for that (proctrack/pgid)."""
    process = subprocess.Popen(command)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == process.pid:
            return os.waitstatus_to_exitcode(status)


def describe(pid):
    try:
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        command = b"?"
    return f"{pid}: {command.decode(errors='replace')}"


# Whoever loses its parent becomes a child of this process.
if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
    sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
begin = time.monotonic()
code = run(sys.argv[1:])
end = time.monotonic() + PATIENCE_S
while not reap() and time.monotonic() < end:
    time.sleep(0.02)
if os.environ.get("TEST_TIMES"):
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.environ["TEST_TIMES"], "a") as file:
        file.write(f"{used.ru_utime + used.ru_stime:.2f} {time.monotonic() - begin:.2f} {shlex.join(sys.argv[1:])}\n")
left = children()
if left:
    print("processes left behind:", *map(describe, left), sep="\n  ", file=sys.stderr)
    while children():
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        reap()
    sys.exit(1)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
