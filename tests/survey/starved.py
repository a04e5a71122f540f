"""What is left of a survey when a process of it runs out of memory.

usage: starved.py PROGRAM SOURCE_ROOT CASE MODULE REPORT
MODULE lets allocations of a rank fail (starve.c).
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import starving  # noqa: E402
from harness import HANGS_S, check, command, environment, field, main, node, workers_that_stay, write_fleet  # noqa: E402

MODULE, REPORT = pathlib.Path(sys.argv[4]).resolve(), pathlib.Path(sys.argv[5]).resolve()
RANKS = 4
FLAGS = ("--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", "20", "--probes", "main.latency")


def inventory(folder):
    """What the survey left: its inventory, otherwise the one made from the spool."""
    path = folder / "out.yaml"
    if not path.exists():
        done = subprocess.run([REPORT, "merge", "-o", path, folder / "out.yaml.spool"], env=environment(),
                              capture_output=True, text=True)
        check(done.returncode in (0, 3, 4), f"merge returned {done.returncode}: {done.stderr}")
    return path.read_text()


def starve_rank(folder, rank):
    """One of four ranks, under mpirun as it is by default, has no memory from when its GPU is being measured. So is
    the GPU of the next rank, which hangs: that rank reports it later than the other is out of memory."""
    hangs = ", ".join(f"{{gpu: {gpu}, kind: hang, after: 1}}" for gpu in (rank, rank + 1))
    write_fleet(folder, [node("n1", RANKS, hangs)])
    begin = folder / "begin"
    env = environment(LD_PRELOAD=str(MODULE), GPUMEMTOPO_TEST_STARVES=str(begin), GPUMEMTOPO_TEST_RANK=str(rank))
    with open(folder / "said", "w") as said:
        run = subprocess.Popen(command(RANKS, *FLAGS), cwd=folder, env=env, stdin=subprocess.DEVNULL, stderr=said)
    workers_that_stay(2)
    begin.touch()
    run.wait(timeout=HANGS_S)
    text, said = inventory(folder), (folder / "said").read_text()
    check(field(text, "measured") == str(RANKS - 2) and "status: timed_out" in text, text + said)
    check(said.count("out of memory") == 1 and "the other ranks go on" in said, said)


def case_rank(folder):
    starve_rank(folder, 2)


def case_rank0(folder):
    starve_rank(folder, 0)


def case_alone(folder):
    """Whatever the limit of memory: the survey is whole, or a GPU is unmeasured, or one line says why there is
    none. Some limits must be too low, and some enough."""
    write_fleet(folder, [node("n1", 2)])
    for code, what in starving.limits(command(0, *FLAGS), folder, environment(), (0, 4)):
        text = (folder / "out.yaml").read_text() if code in (0, 4) else ""
        listed = "uuid: null, status: failed" not in text  # or the worker that lists was out of memory
        if text and listed:
            check(field(text, "gpus") == "2", what)
        if text and not listed:
            check(code == 4 and ("out of memory" in text or "Cannot allocate memory" in text), what)


main(globals())
