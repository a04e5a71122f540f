"""Healthy ranks that start slowly, on a busy machine: no rank is lost, and there is no word about MPI.

usage: starts.py PROGRAM SOURCE_ROOT CASE [RUNS]
"""
import random
import re
import subprocess
import sys
import time

from harness import FAST, check, command, environment, field, main, node, write_fleet

RUNS = int(sys.argv[4]) if len(sys.argv) > 4 else 1


def start(folder, ranks, *before):
    write_fleet(folder, [node("n1", ranks)])
    ask = command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--no-progress", *FAST)
    return subprocess.Popen(["mpirun", "--oversubscribe", "-n", str(ranks), *before, *ask], cwd=folder,
                            env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def check_whole(folder, run, ranks):
    said = run.communicate(timeout=900)[1]
    text = (folder / "out.yaml").read_text()
    check(run.returncode == 0 and field(text, "measured") == str(ranks), f"{run.returncode} {said} {text}")
    check(field(text, "lost_ranks") == "0" and not re.search(r"\bMPI\b|lost", said), said)
    check(sorted(p.name for p in folder.iterdir()) == ["fleet.yaml", "out.yaml"], list(folder.iterdir()))
    (folder / "out.yaml").unlink()


def case_delays(folder):
    """64 ranks, each with a delay of its own, up to 90 s."""
    for number in range(RUNS):
        generator = random.Random(number)
        delays = [generator.uniform(0, 90) for _ in range(64)]
        table = "\n".join(f"{rank}) sleep {delay:.2f} ;;" for rank, delay in enumerate(delays))
        begin = time.monotonic()
        run = start(folder, 64, "sh", "-c",
                    f'case $OMPI_COMM_WORLD_RANK in\n{table}\nesac\nexec "$@"', "sh")
        check_whole(folder, run, 64)
        print(f"run {number + 1}: delays up to {max(delays):.1f} s, {time.monotonic() - begin:.1f} s in all",
              flush=True)


def case_busy(folder):
    """16 ranks beside a load of 8, again and again."""
    load = [subprocess.Popen(["sh", "-c", "while :; do :; done"], env=environment()) for _ in range(8)]
    took_s = []
    try:
        for _ in range(RUNS):
            begin = time.monotonic()
            check_whole(folder, start(folder, 16), 16)
            took_s.append(time.monotonic() - begin)
    finally:
        for process in load:
            process.kill()
            process.wait()
    print(f"{RUNS} runs whole, {min(took_s):.1f} to {max(took_s):.1f} s each")


main(globals())
