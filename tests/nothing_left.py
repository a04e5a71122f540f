#!/usr/bin/env python3
"""Runs a test and fails it when processes that it started outlive it. Every test runs under this.

usage: nothing_left.py COMMAND [ARGUMENT...]

With TEST_TIMES=FILE it appends a line to FILE: seconds of CPU time, seconds of wall time, the command. CPU time
tells what a test costs on a busy machine too. It is started once for each test, so it imports only what it needs.
"""
import ctypes
import os
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 5


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


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
    os.environ.setdefault("FAKE_CUDA_TEST", str(os.getpid()))
    # Python ignores these two; the test does not.
    process = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == process:
            return os.waitstatus_to_exitcode(status)


def describe(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().replace(b"\0", b" ")
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
    import resource
    import shlex
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
