"""What the system around the ranks does to them, one case each: a rank 0 that stands still for a while.

usage: mishaps.py PROGRAM SOURCE_ROOT CASE
"""
import os
import pathlib
import signal
import subprocess
import time

from harness import (FAST, check, command, environment, field, main, marked, node, workers,
                     write_fleet)


def rank_process(number):
    for pid, name in marked():
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        if name.endswith(b"gpumemtopo-survey") and \
                f"\0OMPI_COMM_WORLD_RANK={number}\0".encode() in variables:
            return pid
    check(False, f"no rank {number}")


def the_worker_that_stays():
    """Of the GPU that hangs, when all others are done."""
    for _ in range(60):
        before = workers()
        time.sleep(1)
        if len(before) == 1 and workers() == before:
            return before[0]
    check(False, "the hanging worker was not found")


def case_paused(folder):
    """Rank 0 waits for a file system, say, longer than a silence: rank 1, all done, waits for it."""
    write_fleet(folder, [node("n1", 4, "{gpu: 0, kind: hang, after: 1}")])
    (folder / "code").touch()
    with open(folder / "said", "w") as said:
        run = subprocess.Popen(
            command(2, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", "60", *FAST),
            cwd=folder, env=environment(GPUMEMTOPO_EXIT_FILE=str(folder / "code")),
            stdin=subprocess.DEVNULL, stderr=said)
    hanging, rank0 = the_worker_that_stays(), rank_process(0)
    os.kill(rank0, signal.SIGSTOP)
    time.sleep(9)
    os.kill(rank0, signal.SIGCONT)
    time.sleep(1)
    os.kill(hanging, signal.SIGKILL)
    check(run.wait(timeout=60) == 0, f"{run.returncode}: {(folder / 'said').read_text()}")
    text = (folder / "out.yaml").read_text()
    check(field(text, "measured") == "3" and field(text, "lost_ranks") == "0", text)
    check("status: crashed" in text and (folder / "code").read_text() == "4\n", text)
    check("lost" not in (folder / "said").read_text(), (folder / "said").read_text())


main(globals())
