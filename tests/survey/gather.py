"""What collecting costs rank 0, and how a survey's time grows with its ranks.

usage: gather.py PROGRAM SOURCE_ROOT CASE BENCH_GATHER
"""
import pathlib
import re
import subprocess
import sys

from harness import (FAST, ROOT, check, command, environment, field, main, node, survey,
                     write_fleet)

BENCH = pathlib.Path(sys.argv[4]).resolve()


def case_senders(folder):
    """1k, 10k and 100k senders in one process: linear, the last under 6 s and 1 GiB."""
    model = ROOT / "configs/sim/h200.yaml"
    write_fleet(folder, [f"{{name: n1, model: {model}, gpus: 1}}"])
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--spool",
                           "spool")
    check(code == 0, said)
    spooled = next((folder / "spool").glob("gpu-*"))
    print("senders  gather s  MiB  MB in  MB out  judge s  print s  MB file  MiB in all")
    times = {}
    for senders in (1000, 10000, 100000):
        done = subprocess.run([BENCH, spooled, str(senders)], env=environment(), check=True,
                              capture_output=True, text=True)
        print(done.stdout, end="", flush=True)
        figures = done.stdout.split()
        times[senders] = float(figures[1])
        mebibytes = float(figures[2])
    check(times[100000] < 6, "100k results take more than 6 s")
    check(mebibytes < 1024, "100k results take more than 1 GiB")
    check(times[100000] < 15 * times[10000], "the cost does not grow linearly")


def case_real(folder):
    """What rank 0 itself spends, by its own word, on ranks that are processes."""
    print("ranks  CPU s  MiB  bytes  messages")
    for ranks in (16, 64, 128):
        write_fleet(folder, [node("n1", ranks)])
        # mpirun's own code aside: so many ranks on few cores may not all come to their finalize.
        done = subprocess.run(command(ranks, "--simulate", "fleet.yaml", "-o", "out.yaml",
                                      "--verbose", *FAST), cwd=folder, env=environment(),
                              capture_output=True, text=True)
        said = done.stderr
        found = re.search(r"rank 0: (\S+) s of CPU, (\d+) MiB, (\d+) bytes in (\d+) messages", said)
        check(found and field((folder / "out.yaml").read_text(), "measured") == str(ranks), said)
        check(int(found[4]) >= 2 * (ranks - 1), "announcement and result of each")
        print(ranks, *found.groups(), flush=True)


def case_wall(folder):
    """GPUs that each need 5 s, waiting: 1 rank and 64 take the same time."""
    walls = {}
    for ranks in (1, 4, 16, 64):
        write_fleet(folder, [node("n1", ranks, "{gpu: all, kind: wait, seconds: 5}")])
        code, _, said = survey(folder, ranks, "--simulate", "fleet.yaml", "-o", "out.yaml",
                               "--probes", "main.latency")
        check(code == 0, said)
        walls[ranks] = float(field((folder / "out.yaml").read_text(), "wall_s"))
        print(f"{ranks} ranks: {walls[ranks]} s", flush=True)
    check(walls[64] < 1.1 * walls[1], f"{walls}")


main(globals())
