"""Kills one task of a survey under a real Slurm at each point of its life, and looks for the inventory.

usage: survival.py PROGRAM SOURCE_ROOT CASE REPORT_PROGRAM MISHAPS [ROUNDS [MPI,... [WHEN,...]]]
CASE is how Slurm tracks processes: cgroup, pgid, linuxproc. MISHAPS is tests/survey/mishaps.c as a library. Without ROUNDS: some runs, each
of which must end well. With it: so many runs of every kind, and what came of them as the rows of a table.
"""
import collections
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "tests" / "survey"))
from harness import (CASE, MARK, PROGRAM, ROOT, SKIP, check, environment, field, impatient, main, marked,  # noqa: E402
                     node, write_fleet)
import cluster as slurm  # noqa: E402

REPORT, MISHAPS = (pathlib.Path(name).resolve() for name in sys.argv[4:6])
ROUNDS = int(sys.argv[6]) if len(sys.argv) > 6 else 0
MPIS = sys.argv[7].split(",") if len(sys.argv) > 7 else ("pmix", "none")
POINTS = ("start", "init", "listing", "measuring", "gather", "report")
WHENS = sys.argv[8].split(",") if len(sys.argv) > 8 else POINTS
LAYOUTS = ((4, 1), (2, 4))  # nodes, tasks per node
PATIENCE_S = 4  # start_timeout_s; a task that never starts is waited for twice
LIMIT_S = 6     # --time-limit
WITHIN_S = 2 * PATIENCE_S + 2 * LIMIT_S + 30
WAIT = "{{gpu: {}, kind: wait, seconds: 3}}"


def rank_process(number):
    for pid, name in marked():
        if name.endswith(b"gpumemtopo-survey"):
            try:
                env = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            if re.search(rb"(?:^|\0)SLURM_PROCID=%d\0" % number, env):
                return pid
    return None


class Run:
    """A survey whose task `victim` dies. Every task has one GPU."""

    def __init__(self, cluster, folder, layout, who, when):
        self.cluster, self.folder, self.when = cluster, folder, when
        self.nodes, self.per_node = layout
        self.tasks = self.nodes * self.per_node
        self.victim = 0 if who == "rank 0" else self.tasks - 1
        self.output, self.spool = folder / "out.yaml", folder / "out.yaml.spool"
        # A GPU that takes long: of the victim if that is to die while it measures, or to be the last one and make the
        # report; of another one if the victim is to die when it has measured.
        slow = {"measuring": self.victim, "report": self.victim, "gather": 1}.get(when, -1)
        folder.mkdir(parents=True)
        write_fleet(folder, [node(f"n{n}", self.per_node, WAIT.format(slow % self.per_node)
                                  if slow // self.per_node == n else "") for n in range(self.nodes)])
        self.flags = ("--simulate", "fleet.yaml", "-o", "out.yaml", "--probes", "main.latency", "--time-limit",
                      str(LIMIT_S), "--no-progress", "--config", impatient(folder, PATIENCE_S))
        self.shape = ("-N", str(self.nodes), f"--ntasks-per-node={self.per_node}")
        self.env = {**cluster.env, "LD_PRELOAD": str(MISHAPS), "GPUMEMTOPO_TEST_DIES": when,
                    "GPUMEMTOPO_TEST_RANK": str(self.victim)}

    def start(self, *command):
        self.begun = time.monotonic()
        self.process = subprocess.Popen(command, cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if self.when in ("measuring", "gather"):
            self.kill()

    def kill(self):
        """When all GPUs but the slow one are spooled."""
        while self.process.poll() is None and len(list(self.spool.glob("gpu-*.spool"))) < self.tasks - 1:
            time.sleep(0.02)
        time.sleep(0.3)
        pid = rank_process(self.victim)
        if pid:
            os.kill(pid, signal.SIGKILL)

    def end(self):
        """(what came of it, how many GPUs were measured, seconds, stderr)"""
        try:
            said = self.process.communicate(timeout=WITHIN_S)[1]
        except subprocess.TimeoutExpired:
            self.cluster.run("scancel", "--user=root")
            return "hangs", 0, WITHIN_S, self.process.communicate()[1]
        took_s = time.monotonic() - self.begun
        how = "inventory"
        if not self.output.exists():
            line = re.search(r"make the inventory with: gpumemtopo-report (merge .*)$", said, re.M)
            if not line:
                return "nothing", 0, took_s, said
            done = subprocess.run([REPORT, *shlex.split(line[1])], cwd=self.folder, env=environment(),
                                  capture_output=True, text=True)
            how, said = "by command", said + done.stderr
        if not self.output.exists():
            return "nothing", 0, took_s, said
        text = self.output.read_text()
        measured, unmeasured = int(field(text, "measured")), int(field(text, "unmeasured"))
        # A task that died before it had listed its GPU is a row without UUID.
        how = how if measured + unmeasured == self.tasks else "GPUs missing"
        return how, measured, took_s, said + text[:1500]


def left_behind(cluster):
    """The names of our processes that stay when the step is over."""
    cluster.until(lambda: cluster.idle() == slurm.NODES, "idle nodes")
    end = time.monotonic() + 5
    while (left := sorted({name.decode() for _, name in marked() if b"gpumemtopo" in name})) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def one_run(cluster, folder, mpi, who, when, layout):
    run = Run(cluster, folder, layout, who, when)
    run.start("srun", f"--mpi={mpi}", *run.shape, PROGRAM, *run.flags)
    how, measured, took_s, said = run.end()
    left = left_behind(cluster)
    return (f"left: {', '.join(left)}" if left else how), measured, took_s, said


def some_runs(cluster, folder):
    """One task per node, where Slurm ends most; without MPI nothing may be lost but the victim's."""
    for mpi, who, when in (("pmix", "other", "init"), ("pmix", "rank 0", "measuring"), ("pmix", "other", "listing"),
                           ("pmi2", "rank 0", "gather"), ("none", "rank 0", "start"), ("none", "other", "measuring"),
                           ("none", "rank 0", "report")):
        how, measured, took_s, said = one_run(cluster, folder / f"{mpi}-{when}", mpi, who, when, LAYOUTS[0])
        print(f"{mpi} {who} {when}: {how}, {measured} measured, {took_s:.1f} s", flush=True)
        check(how in ("inventory", "by command"), f"{mpi} {who} {when}: {how}: {said}")
        if mpi == "none":
            check(how == "inventory" and measured == 4 - (when != "report"), f"{who} {when}: {how} {measured}: {said}")
    # The batch script surveys once more, without MPI.
    run = Run(cluster, folder / "batch", LAYOUTS[0], "other", "measuring")
    run.env.update(GPUMEMTOPO_OUTPUT="out.yaml", GPUMEMTOPO_SURVEY=str(PROGRAM), GPUMEMTOPO_REPORT=str(REPORT))
    run.start("sh", "-c", 'job=$(sbatch --parsable "$@") && while squeue -h -j "$job" | grep -q .; do sleep 0.2; done',
              "sh", *run.shape, ROOT / "slurm/survey.sbatch", *run.flags)
    how, measured, took_s, said = run.end()
    said += "".join(path.read_text() for path in run.folder.glob("slurm-*.out"))
    print(f"survey.sbatch: {how}, {measured} measured, {took_s:.1f} s", flush=True)
    again = "surveying once more, without MPI" in said  # or the step went on without the victim
    check(how == "inventory" and measured == (4 if again else 3), f"survey.sbatch: {how} {measured}: {said}")
    check(left_behind(cluster) == [], "processes left behind")


def all_runs(cluster, folder):
    for mpi in MPIS:
        for when in WHENS:
            for who in ("rank 0", "other") if mpi != "none" or when != "init" else ():
                ends, slowest_s = collections.Counter(), 0
                for number in range(ROUNDS):
                    layout = LAYOUTS[(number + (who == "other")) % 2]
                    how, measured, took_s, said = one_run(cluster, folder / f"{mpi}-{when}-{who}-{number}", mpi, who,
                                                          when, layout)
                    ends[f"{how}, {measured} of {layout[0] * layout[1]}"] += 1
                    slowest_s = max(slowest_s, took_s)
                    if how not in ("inventory", "by command"):
                        print(said, file=sys.stderr, flush=True)
                print(f"{CASE:<9} {mpi:<4} {who:<6} {when:<9} {slowest_s:5.1f} s  " +
                      "; ".join(f"{count}x {end}" for end, count in sorted(ends.items())), flush=True)


def case_of_proctrack(folder):
    why = slurm.missing() or slurm.missing_proctrack(CASE)
    if why:
        print(why)
        sys.exit(SKIP)
    cluster = slurm.Cluster(mark=MARK, proctrack=CASE)
    cluster.env.update(GPUMEMTOPO_CONFIG_DIR=str(ROOT / "configs"), ASAN_OPTIONS="detect_leaks=0")
    try:
        (all_runs if ROUNDS else some_runs)(cluster, folder)
    except SystemExit:
        cluster.show_logs()
        raise
    finally:
        cluster.stop()


case_cgroup = case_pgid = case_linuxproc = case_of_proctrack
main(globals())
