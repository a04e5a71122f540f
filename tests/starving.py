"""Runs a program under lower and higher limits of memory: it works, or says in one line that memory is out.

usage: starving.py PROGRAM [ARG...]
"""
import os
import resource
import subprocess
import sys


def end_of(command, folder, env, kilobytes):
    """Exit code, and what it said, with so much address space."""
    size = kilobytes << 10
    run = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=300, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
    return run.returncode, run.stderr


def limits(command, folder, env, good=(0,)):
    """Finds how much memory is enough, then yields exit code and a text for limits below. Asserts how each ended:
    well, or with one line that says why, and some with that line."""
    low, high = 1 << 10, 8 << 20
    while high - low > 16:  # KiB
        middle = (low + high) // 2
        if end_of(command, folder, env, middle)[0] == good[0]:
            high = middle
        else:
            low = middle
    starved = 0
    for kilobytes in (high - step for step in (16, 32, 64, 100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2400, 3200)):
        code, words = end_of(command, folder, env, kilobytes)
        what = f"{kilobytes} KiB: returned {code}: {words}"
        # The loader, the C library and MPI's libraries say so in their own words.
        foreign = "shared libraries" in words or "not allocate" in words or "annot open" in words or not words.strip()
        assert foreign or code in good or code == 1 and "out of memory" in words.strip().splitlines()[-1], what
        starved += "out of memory" in words
        yield code, what
    assert starved, f"{high} KiB are enough, and below nothing said that memory is out"


if __name__ == "__main__":
    for _, said in limits(sys.argv[1:], None, {**os.environ, "LC_ALL": "C"}):
        print(said)
