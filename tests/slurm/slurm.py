"""Surveys on a real Slurm of four nodes, all on this machine, and what can go wrong there.

usage: slurm.py PROGRAM SOURCE_ROOT CASE REPORT_PROGRAM SLOW_START STARVE
SLOW_START is slow_start.c as a library, STARVE is tests/survey/starve.c.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "tests" / "survey"))
from harness import (MARK, PROGRAM, ROOT, SKIP, busy, check, counted, environment, field,  # noqa: E402
                     impatient, main, marked, node, write_fleet)
import cluster as slurm  # noqa: E402

REPORT, SLOW_START, STARVE = (pathlib.Path(name).resolve() for name in sys.argv[4:7])
SCRIPTS = ROOT / "slurm"
RANKS = slurm.NODES * slurm.GPUS
# What slurm/README.md gives for every srun; SLURM_PMIX_FENCE=ring besides.
SRUN = ("srun", "--mpi=pmix", "--no-kill", "--kill-on-bad-exit=0", "--wait=0")
WHOLE = ("-N", str(slurm.NODES), f"--ntasks-per-node={slurm.GPUS}")
FAST = ("--probes", "main.latency", "--time-limit", "6", "--no-progress")
HANG = "{gpu: 1, kind: hang, after: 1}"
LIMIT_S = 6
STARTING_S = 10  # Slurm's and MPI's own, on a busy machine


def fleet(folder, faults=""):
    return write_fleet(folder, [node(f"n{i + 1}", slurm.GPUS, faults if i == 1 else "")
                                for i in range(slurm.NODES)])


def rank_processes():
    found = {}
    for pid, name in marked():
        if not name.endswith(b"gpumemtopo-survey"):
            continue
        try:
            env = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        rank = re.search(rb"(?:^|\0)SLURM_PROCID=(\d+)", env)
        if rank:
            found.setdefault(int(rank[1]), pid)  # a worker that is just born looks like it
    return found


class Step:
    """A survey by srun, on its way."""

    def __init__(self, cluster, folder, *before, faults=HANG, more=()):
        self.output = folder / "out.yaml"
        self.spool = folder / "out.yaml.spool"
        fleet(folder, faults)
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [*SRUN, *WHOLE, *before, PROGRAM, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST,
             *more], cwd=folder, env=cluster.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.cluster = cluster

    def until_measuring(self):
        """All but the GPU that hangs are done."""
        self.cluster.until(lambda: len(list(self.spool.glob("gpu-*.spool"))) == RANKS - 1
                           if self.spool.exists() else False, "results")

    def end(self, within_s):
        try:
            said = self.process.communicate(timeout=240)[1]
        except subprocess.TimeoutExpired:
            self.cluster.show_logs()
            check(False, f"srun does not end: {marked()}")
        took_s = time.monotonic() - self.begun
        check(took_s < within_s * busy(), f"took {took_s:.1f} s: {said}")
        return said

    def check_counts(self, measured, lost_ranks, text=None):
        text = text or self.output.read_text()
        check(field(text, "measured") == str(measured), text)
        check(field(text, "unmeasured") == str(RANKS - measured), text)
        check(field(text, "lost_ranks") == str(lost_ranks), text)
        check(field(text, "exit_code") == "4", text)


def merged(cluster, folder, *paths, code):
    done = subprocess.run([REPORT, "merge", *paths], cwd=folder, env=environment(),
                          capture_output=True, text=True)
    check(done.returncode == code, f"merge: {done.returncode}, {done.stderr}")
    return done.stdout


def part_srun(cluster, folder):
    """The demo fleet."""
    demo = ROOT / "configs/fleets/demo.yaml"
    gpus, unmeasured = counted(demo)
    done = cluster.run(*SRUN, *WHOLE, "--gpus-per-task=1", PROGRAM, "--simulate", demo, "-o",
                       "out.yaml", "--profile", "quick", cwd=folder)
    text = (folder / "out.yaml").read_text()
    check(unmeasured > 0 and done.returncode == 4 and field(text, "exit_code") == "4", done.stderr)
    check(field(text, "ranks") == str(RANKS) and field(text, "gpus") == str(gpus), text)
    check(field(text, "measured") == str(gpus - unmeasured), text)
    check(field(text, "unmeasured") == str(unmeasured), text)
    check(sorted(p.name for p in folder.iterdir()) == ["out.yaml"], "left-overs")


def part_simplest(cluster, folder):
    """The line without any setting, whichever MPI is Slurm's default. What it lacks is said in one line."""
    for mpi in ("pmix", "none", "pmi2"):
        there = folder / mpi
        there.mkdir()
        fleet(there)
        env = {name: value for name, value in cluster.env.items() if name != "SLURM_PMIX_FENCE"}
        done = cluster.run("srun", f"--mpi={mpi}", *WHOLE, "--gpus-per-task=1", PROGRAM, "--simulate", "fleet.yaml",
                           "--probes", "main.latency", cwd=there, env=env)
        made = list(there.glob("gpumemtopo-*.yaml"))
        check(done.returncode == 0 and len(made) == 1, f"{mpi}: {done.returncode} {made} {done.stderr}")
        text = made[0].read_text()
        check(field(text, "measured") == str(RANKS) and field(text, "ranks") == str(RANKS), text)
        check(sorted(p.name for p in there.iterdir()) == ["fleet.yaml", made[0].name], "left-overs")
        line = f"make the inventory with: gpumemtopo-report merge -o {made[0].name} {made[0].name}.spool\n"
        check(done.stderr.count(line) == 1, f"{mpi}: {done.stderr}")
        # Where there is no MPICH, pmi2 goes on without MPI.
        check(mpi == "pmi2" or ("Slurm may end this step" in done.stderr) == (mpi == "pmix"), f"{mpi}: {done.stderr}")
    if pathlib.Path("/proc/driver/nvidia").exists():
        return  # below, no GPU must be seen
    for mpi in ("pmix", "none"):
        done = cluster.run("srun", f"--mpi={mpi}", "-N2", "-n2", PROGRAM, cwd=folder)
        check(done.returncode == 2 and done.stderr.count("was given no GPUs: add --gpus-per-task=1") == 1,
              f"{mpi}: {done.returncode} {done.stderr}")
        check(sorted(p.name for p in folder.iterdir()) == ["none", "pmi2", "pmix"], "left-overs")


def part_slow_start(cluster, folder):
    """Task 0 is the last to leave MPI_Init. The others do not speak to it before, whether Slurm's
    fence holds them back or, where it does not, they themselves."""
    for name, pause_ms in (("ring", 1500), ("tree", 250)):
        there = folder / name
        there.mkdir()
        fleet(there)
        done = cluster.run(*SRUN, *WHOLE, PROGRAM, "--simulate", "fleet.yaml", "-o", "out.yaml",
                           *FAST, cwd=there, env={**cluster.env, "LD_PRELOAD": str(SLOW_START),
                                                  "SLURM_PMIX_FENCE": name,
                                                  "SLOW_START_MS": str(pause_ms)})
        check(done.returncode == 0, f"{name}: {done.returncode} {done.stderr}")
        text = (there / "out.yaml").read_text()
        check(field(text, "measured") == str(RANKS) and field(text, "lost_ranks") == "0", text)


def part_sbatch(cluster, folder):
    fleet(folder, "{gpu: 2, kind: crash, after: 1}")
    done = cluster.run("sbatch", "--wait", *WHOLE, "--gpus-per-task=1", SCRIPTS / "survey.sbatch",
                       "--simulate", "fleet.yaml", *FAST, cwd=folder)
    out = list(folder.glob("gpumemtopo-*.yaml"))
    check(done.returncode == 4 and len(out) == 1, f"{done.returncode} {done.stderr}")
    text = out[0].read_text()
    check(field(text, "measured") == str(RANKS - 1) and field(text, "ranks") == str(RANKS), text)


def part_task_killed(cluster, folder):
    """Any other rank: the rest goes on."""
    step = Step(cluster, folder)
    step.until_measuring()
    os.kill(rank_processes()[5], signal.SIGKILL)  # the one whose GPU hangs
    step.end(LIMIT_S + 10 + STARTING_S)
    step.check_counts(RANKS - 1, 1)
    check("rank 5 on" in step.output.read_text(), step.output.read_text())


def part_task_starved(cluster, folder):
    """Any other rank runs out of memory: it stands aside, the rest goes on."""
    begin = folder / "begin"
    cluster.env.update(LD_PRELOAD=str(STARVE), GPUMEMTOPO_TEST_STARVES=str(begin), GPUMEMTOPO_TEST_RANK="5")
    try:
        step = Step(cluster, folder)
        step.until_measuring()
        begin.touch()
        said = step.end(LIMIT_S + 10 + STARTING_S)
    finally:
        for name in ("LD_PRELOAD", "GPUMEMTOPO_TEST_STARVES", "GPUMEMTOPO_TEST_RANK"):
            del cluster.env[name]
    step.check_counts(RANKS - 1, 1)
    check("out of memory" in said and "the other ranks go on" in said, said)


def part_task_starting(cluster, folder):
    """It dies before MPI is up: the others measure without MPI, and the last one makes the inventory. One
    that is done first does not end the others. (A task that dies when it has spoken to Slurm costs the
    step: Slurm ends that.)"""
    patience_s = 5
    for number in (6, 0):
        there = folder / str(number)
        there.mkdir()
        step = Step(cluster, there, "sh", "-c",
                    f'[ "$SLURM_PROCID" != {number} ] || kill -KILL $$; exec "$@"', "sh",
                    more=("--config", impatient(there, patience_s)))
        said = step.end(LIMIT_S + 10 + STARTING_S + 2 * patience_s)
        check("MPI did not start within" in said, said)
        step.check_counts(RANKS - 2, 1)
        check(f"rank {number} did not start" in step.output.read_text(), step.output.read_text())
        cluster.until(lambda: cluster.idle() == slurm.NODES, "idle nodes")


def part_no_mpi(cluster, folder):
    """Without any MPI, under Slurm's own launcher alone."""
    fleet(folder, "{gpu: 2, kind: crash, after: 1}")
    done = cluster.run("srun", "--mpi=pmix", *WHOLE, PROGRAM, "--no-mpi", "--simulate", "fleet.yaml", *FAST,
                       cwd=folder)
    made = list(folder.glob("gpumemtopo-*.yaml"))
    check(done.returncode == 4 and len(made) == 1, f"{done.returncode} {made} {done.stderr}")
    text = made[0].read_text()
    check(field(text, "measured") == str(RANKS - 1) and field(text, "ranks") == str(RANKS), text)
    check(field(text, "lost_ranks") == "0" and field(text, "nodes") == str(slurm.NODES), text)
    check(sorted(p.name for p in folder.iterdir()) == ["fleet.yaml", made[0].name], "left-overs")


def part_unshared(cluster, folder):
    """Without MPI, n2 has a folder of its own under the same name."""
    there, patience_s = folder / "there", 8
    there.mkdir()
    path = write_fleet(folder, [node(f"n{i + 1}", 1) for i in range(3)])
    flags = ("--simulate", path, "-o", there / "out.yaml", "--config", impatient(folder, patience_s), *FAST)
    alone = "saw no task of another node here: "

    def survey(nodes, *before):
        begun = time.monotonic()
        done = cluster.run("srun", "--mpi=none", f"-w{nodes}", "--ntasks-per-node=2", *before, PROGRAM, *flags, cwd=folder)
        check(time.monotonic() - begun < patience_s + STARTING_S * busy(), f"{nodes} takes {time.monotonic() - begun:.1f} s")
        return done

    def late(seconds):
        return "sh", "-c", f'[ "$SLURM_NODEID" = 0 ] || sleep {seconds}; exec "$@"', "sh"
    try:
        cluster.hide("n2", there)
        # Each of two nodes is alone. Each says so once, and keeps what it has measured.
        done = survey("n1,n2")
        check(done.returncode == 2 and done.stderr.count(alone) == 2, f"{done.returncode} {done.stderr}")
        check(f"error: {there}/out.yaml.spool: node n1 {alone}" in done.stderr, done.stderr)
        check("lost" not in done.stderr and not (there / "out.yaml").exists(), done.stderr)
        text = merged(cluster, there, there / "out.yaml.spool", code=4)
        check(field(text, "measured") == "2" and field(text, "lost_ranks") == "2", text)
        # Neither does the batch script make an inventory of a part.
        done = cluster.run("sbatch", "--wait", "-wn1,n2", "--ntasks-per-node=2", "-o", folder / "log", SCRIPTS / "survey.sbatch", "--no-mpi",
                           *flags, cwd=folder)
        said = (folder / "log").read_text()
        check(done.returncode == 2 and said.count(alone) == 2 and "making it" not in said, f"{done.returncode} {said}")
        check(not (there / "out.yaml").exists(), said)
        # Of three nodes one is alone.
        done = survey("n1,n2,n3")
        text = (there / "out.yaml").read_text()
        check(done.returncode == 4 and done.stderr.count(alone) == 1, f"{done.returncode} {done.stderr}")
        check(field(text, "lost_ranks") == "2" and text.count("did not start") == 2, text)
    finally:
        cluster.unhide("n2")
    # A node that is late is waited for. One that is later still makes the inventory: nothing was lost.
    (there / "out.yaml").unlink()
    for seconds, code in ((2, 0), (patience_s + 3, 2)):
        done = survey("n1,n2", *late(seconds))
        text = (there / "out.yaml").read_text()
        check(done.returncode == code and done.stderr.count(alone) == (code == 2), f"{done.returncode} {done.stderr}")
        check(field(text, "measured") == "3" and field(text, "lost_ranks") == "0", text)
        (there / "out.yaml").unlink()


def part_task_0_paused(cluster, folder):
    """It stands still until all others have left, and goes on: what they spooled is in its inventory."""
    step = Step(cluster, folder)
    step.until_measuring()
    rank0 = rank_processes()[0]
    os.kill(rank0, signal.SIGSTOP)
    cluster.until(lambda: list(rank_processes()) == [0], "the end of the others")
    os.kill(rank0, signal.SIGCONT)
    step.end(120)
    step.check_counts(RANKS - 1, 0)
    check("status: timed_out" in step.output.read_text(), step.output.read_text())


def part_suspended(cluster, folder):
    """The whole job, for longer than a GPU may take: that counts for nobody."""
    step = Step(cluster, folder, faults="{gpu: 1, kind: wait, seconds: 4}")
    step.until_measuring()
    job = cluster.run("squeue", "-h", "-o", "%i").stdout.split()[0]
    done = cluster.run("scontrol", "suspend", job)
    check(done.returncode == 0, done.stderr)
    time.sleep(LIMIT_S + 6)
    cluster.run("scontrol", "resume", job)
    said = step.end(120)
    text = step.output.read_text()
    check(field(text, "measured") == str(RANKS) and field(text, "lost_ranks") == "0", said + text)


def part_same_output(cluster, folder):
    """A second survey with the same output is refused; a third, when the first is over, is not."""
    step = Step(cluster, folder)
    step.until_measuring()
    done = cluster.run(*SRUN, "--overlap", "--jobid",
                       cluster.run("squeue", "-h", "-o", "%i").stdout.split()[0], "-N1", "-n1", PROGRAM,
                       "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST, cwd=folder)
    check("another survey is running with this output" in done.stderr, done.stderr)
    check("job " in done.stderr, done.stderr)
    step.end(LIMIT_S + 10 + STARTING_S)
    step.check_counts(RANKS - 1, 0)
    done = cluster.run(*SRUN, "-N1", "-n1", PROGRAM, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST,
                       "--time-limit", "5", cwd=folder)
    check("another survey" not in done.stderr, done.stderr)


def part_task_stopped(cluster, folder):
    """It is there and does nothing, for ever: srun would wait for it, the job does not."""
    fleet(folder, HANG)
    done = cluster.run("sbatch", "--parsable", *WHOLE, "--gpus-per-task=1",
                       SCRIPTS / "survey.sbatch", "--simulate", "fleet.yaml", *FAST, cwd=folder)
    begun, job = time.monotonic(), done.stdout.strip()

    def ended():
        shown = cluster.run("scontrol", "show", "job", job).stdout
        return re.search(r"JobState=(?:COMPLETED|FAILED).* ExitCode=(\d+):", shown, re.S)
    cluster.until(lambda: len(list(folder.glob("*.spool/gpu-*.spool"))) == RANKS - 1, "results")
    os.kill(rank_processes()[5], signal.SIGSTOP)  # the one whose GPU hangs
    cluster.until(ended, "the job's end")
    took_s = time.monotonic() - begun
    text = next(folder.glob("gpumemtopo-*.yaml")).read_text()
    check(ended()[1] == "4" and field(text, "measured") == str(RANKS - 1), f"{ended()[1]} {text}")
    check(field(text, "lost_ranks") == "1" and "rank 5 on" in text, text)
    check(took_s < LIMIT_S + (10 + STARTING_S) * busy(), f"took {took_s:.1f} s")


def part_task_0_killed(cluster, folder):
    """The others measure to the end, and the last of them makes the inventory."""
    step = Step(cluster, folder)
    step.until_measuring()
    os.kill(rank_processes()[0], signal.SIGKILL)
    said = step.end(LIMIT_S + 10 + STARTING_S)
    check("made from what the others had spooled" in said, said)
    step.check_counts(RANKS - 1, 0)
    check("status: timed_out" in step.output.read_text(), step.output.read_text())


def part_interrupted(cluster, folder):
    """scancel sends SIGTERM to all tasks, then kills them after KillWait."""
    step = Step(cluster, folder)
    step.until_measuring()
    jobs = cluster.run("squeue", "-h", "-o", "%i").stdout.split()
    at = time.monotonic()
    cluster.run("scancel", *jobs)
    cluster.until(step.output.exists, "inventory", limit_s=5 * busy())
    check(time.monotonic() - at < 5 * busy(), "too late")
    step.end(LIMIT_S + 10 + STARTING_S)
    step.check_counts(RANKS - 1, 0)
    check("the survey was interrupted" in step.output.read_text(), "reason")


def part_time_limit(cluster, folder):
    """Slurm's limit counts in minutes; scontrol shortens the job's to what is almost over."""
    fleet(folder, HANG)
    done = cluster.run("sbatch", "--parsable", *WHOLE, "--time=1", SCRIPTS / "survey.sbatch",
                       "--simulate", "fleet.yaml", "--probes", "main.latency", "--time-limit", "300",
                       cwd=folder)
    job = done.stdout.strip()
    output = folder / f"gpumemtopo-{job}.yaml"
    cluster.until(output.exists, "inventory", limit_s=120)
    text = output.read_text()
    check(field(text, "measured") == str(RANKS - 1), text)
    check("the survey was interrupted" in text, text)
    cluster.until(lambda: not cluster.run("squeue", "-h").stdout.strip(), "end of the job")


def part_node_lost(cluster, folder):
    """slurmd and all tasks of one node are gone at once."""
    step = Step(cluster, folder)
    step.until_measuring()
    here = rank_processes()
    cluster.stop_daemon("n2", signal.SIGKILL)
    for rank in range(4, 8):  # of n2
        os.kill(here[rank], signal.SIGKILL)
    step.end(LIMIT_S + 10 + STARTING_S)
    step.check_counts(RANKS - 1, 1)
    cluster.start_node("n2")
    cluster.until(lambda: cluster.idle() == slurm.NODES, "idle nodes")


def part_slurmd_stopped(cluster, folder):
    """The node's daemon goes, its tasks do not: nothing is lost."""
    step = Step(cluster, folder)
    step.until_measuring()
    cluster.stop_daemon("n3", signal.SIGKILL)
    step.end(LIMIT_S + 10 + STARTING_S)
    step.check_counts(RANKS - 1, 0)
    cluster.start_node("n3")
    cluster.until(lambda: cluster.idle() == slurm.NODES, "idle nodes")


def part_rolling(cluster, folder):
    """Idle nodes only; a busy one is met another time."""
    fleet(folder)
    hold = subprocess.Popen(["srun", "-w", "n4", "--exclusive", "-N1", "-n1", "sleep", "100"],
                            env=cluster.env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cluster.until(lambda: cluster.idle() == slurm.NODES - 1, "node in use")
    done = cluster.run(SCRIPTS / "rolling.sh", "-p", "gpu", "-j", "2", "--", "--simulate",
                       "fleet.yaml", *FAST, cwd=folder)
    surveyed = sorted(p.stem for p in (folder / "gpumemtopo-rolling").glob("*.yaml"))
    check(surveyed == ["n1", "n2", "n3"] and done.returncode == 0, f"{surveyed}: {done.stderr}")
    check(field((folder / "gpumemtopo-rolling.yaml").read_text(), "ranks") == "3", "merged")
    hold.terminate()
    hold.wait()
    cluster.until(lambda: cluster.idle() == slurm.NODES, "idle nodes")


def part_health(cluster, folder):
    """By hand, with nothing in the environment, as each of the three."""
    cases = [("", 0, 0), ("{gpu: 1, kind: slow_dram, share: 0.4}", 0, 1),
             ("{gpu: 1, kind: remap, failed: true}", 0, 1),
             ("{gpu: 2, kind: crash, after: 1}", 0, 1),
             ("{gpu: all, kind: remap, pending: true}", 0, 1), ("{gpu: all, kind: busy}", 1, 1),
             ("{gpu: 2, kind: crash, after: 1, tries: 1}", 0, 0), ("{gpu: 2, kind: hang, after: 1}", 0, 1),
             ("{gpu: 5, kind: missing}", 0, 1), ("{gpu: all, kind: dead_driver}", 0, 1)]
    conf = folder / "health.conf"
    bins = folder / "bin"
    bins.mkdir()
    for program in (PROGRAM, REPORT):
        (bins / program.name).symlink_to(program)
    for number, (faults, health, prolog) in enumerate(cases):
        there = folder / str(number)
        there.mkdir()
        path = write_fleet(there, [node("n1", 8, faults)])
        probes = "" if number < 2 else "--probes main.latency"  # after these, only who is not measured counts
        conf.write_text(f"bin={bins}\nlast={there}/last\ngpus=8\nlimit={15 if 'hang' in faults else 40}\n"
                        f"measure=node\nlock={folder}/lock\nflags=(--simulate {path} -c {ROOT}/configs/survey.yaml {probes})\n")
        for context, code in ((None, health), ("prolog_slurmd" if number % 2 else "epilog_slurmd", prolog)):
            env = {"GPUMEMTOPO_HEALTH_CONF": str(conf), "SLURMD_NODENAME": "n1"}
            if context:
                env["SLURM_SCRIPT_CONTEXT"] = context
            begin = time.monotonic()
            done = subprocess.run([SCRIPTS / "health.sh"], env=env, cwd="/", capture_output=True,
                                  text=True, timeout=240)
            check(done.returncode == code, f"{faults} {context}: {done.returncode} {done.stderr}")
            check(time.monotonic() - begin < 30 * busy(), "slow")
        text = (there / "last/n1.yaml").read_text()
        check("busy" not in faults or field(text, "measured") == "0", text)
        check(cluster.run("sinfo", "-h", "-n", "n1", "-o", "%T").stdout.strip() == "idle", "drained")
    # Only where the site wants it so does a health check drain.
    env = {"GPUMEMTOPO_HEALTH_CONF": str(conf), "SLURMD_NODENAME": "n1",
           "SLURM_CONF": cluster.env["SLURM_CONF"]}

    def drained(path, *settings):
        conf.write_text("\n".join((f"bin={bins}", f"lock={folder}/lock", "drain=yes", "limit=40", *settings,
                                   f"flags=(--simulate {path} -c {ROOT}/configs/survey.yaml)\n")))
        done = subprocess.run([SCRIPTS / "health.sh"], env=env, cwd="/", capture_output=True, text=True)
        check(done.returncode == 0, f"{done.returncode} {done.stderr}")
        reason = cluster.run("sinfo", "-h", "-n", "n1", "-o", "%T %E").stdout
        cluster.run("scontrol", "update", "NodeName=n1", "State=RESUME")
        return reason if "drain" in reason else ""

    reason = drained(folder / "1/fleet.yaml")
    check("gpumemtopo:degraded:" in reason, reason)
    check("failing" in drained(folder / "3/fleet.yaml"), "a GPU that crashes its worker")
    # Four GPUs are too few to compare; the last inventory of all nodes tells which is slow, or missing.
    small = folder / "small"
    small.mkdir()
    baseline = f"baseline={small}/fleet.yaml"
    faults = {"": "", "degraded": "{gpu: 1, kind: slow_dram, share: 0.2}", "failing": "{gpu: 3, kind: missing}"}
    path = write_fleet(small, [node(f"n{i}", 4) for i in (1, 2, 3)])
    subprocess.run([PROGRAM, "--simulate", path, "-c", ROOT / "configs/survey.yaml", "--profile", "quick",
                    "--quiet", "-o", small / "all.yaml"], check=True)
    for kind, fault in faults.items():
        path = write_fleet(small, [node("n1", 4, fault)])
        path = path.rename(small / "node.yaml")
        check(drained(path) == "", f"{kind} without a baseline")
        (small / "all.yaml").rename(small / "fleet.yaml")
        reason = drained(path, baseline)
        check(f"gpumemtopo:{kind}:" in reason if kind else not reason, f"{kind}: {reason}")
        (small / "fleet.yaml").rename(small / "all.yaml")


def run_parts(folder, names, **settings):
    why = slurm.missing()
    if why:
        print(why)
        sys.exit(SKIP)
    cluster = slurm.Cluster(mark=MARK, **settings)
    cluster.env.update(SLURM_PMIX_FENCE="ring", GPUMEMTOPO_CONFIG_DIR=str(ROOT / "configs"), ASAN_OPTIONS="detect_leaks=0",
                       GPUMEMTOPO_SURVEY=str(PROGRAM), GPUMEMTOPO_REPORT=str(REPORT))
    try:
        for number, part in enumerate(names):
            name, *args = part if isinstance(part, tuple) else (part,)
            there = folder / f"{number}-{name}"
            there.mkdir()
            begin = time.monotonic()
            globals()[f"part_{name}"](cluster, there, *args)
            print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
            cluster.until(lambda: cluster.idle() == slurm.NODES, "idle nodes")
    except SystemExit:
        cluster.show_logs()
        raise
    finally:
        cluster.stop()


def case_use(folder):
    run_parts(folder, ["srun", "simplest", "slow_start", "no_mpi", "sbatch", "rolling", "health"])


def case_loss(folder):
    run_parts(folder, ["task_starting", "task_killed", "task_starved", "task_stopped", "task_0_killed", "interrupted",
                       "node_lost", "slurmd_stopped", "time_limit"])


def case_pauses(folder):
    run_parts(folder, ["unshared", "task_0_paused", "suspended", "same_output"])


def case_starts(folder):
    """64 healthy tasks on this machine, so many times, quiet and beside a load: all whole."""
    runs, loads = int(sys.argv[7]), [int(load) for load in sys.argv[8:]]
    # Slurm itself must not take a node that answers slowly for lost.
    run_parts(folder, [("starts", runs, load) for load in loads],
              more="SlurmdTimeout=0\nMessageTimeout=100")


def part_starts(cluster, folder, runs, load):
    tasks = 64
    write_fleet(folder, [node(f"n{i + 1}", tasks // slurm.NODES) for i in range(slurm.NODES)])
    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"], env=environment()) for _ in range(load)]
    took_s = []
    try:
        for number in range(runs):
            begin = time.monotonic()
            done = cluster.run(*SRUN, "-N", str(slurm.NODES), "-n", str(tasks), "--overcommit", PROGRAM,
                               "--simulate", "fleet.yaml", "-o", "out.yaml", "--probes", "main.latency",
                               "--no-progress", cwd=folder, timeout=600)
            took_s.append(time.monotonic() - begin)
            check((folder / "out.yaml").exists(), f"run {number + 1}: {done.returncode} {done.stderr}")
            text = (folder / "out.yaml").read_text()
            check(done.returncode == 0 and field(text, "measured") == str(tasks) and
                  field(text, "lost_ranks") == "0" and not re.search(r"\bMPI\b|lost", done.stderr),
                  f"run {number + 1}: {done.returncode} {done.stderr} {text[:600]}")
            check(sorted(p.name for p in folder.iterdir()) == ["fleet.yaml", "out.yaml"], "left-overs")
            (folder / "out.yaml").unlink()
    finally:
        for process in burners:
            process.kill()
            process.wait()
    print(f"load {load}: {runs} of {runs} starts whole, {min(took_s):.1f} to {max(took_s):.1f} s each")


def case_part(folder):
    """Parts by name, for people: slurm.py ... part REPORT SLOW_START STARVE NAME..."""
    run_parts(folder, sys.argv[7:])


main(globals())
