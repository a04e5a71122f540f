"""Daily operation on a real Slurm of four nodes: prolog, epilog, health check, rolling survey, job array, sweep.

usage: operation.py PROGRAM SOURCE_ROOT CASE REPORT_PROGRAM SCRIPTS
SCRIPTS is the folder of the shipped scripts.
"""
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "tests" / "survey"))
from harness import (MARK, PROGRAM, ROOT, SKIP, check, field, main, node, write_fleet)  # noqa: E402
import cluster as slurm  # noqa: E402

REPORT, SCRIPTS = pathlib.Path(sys.argv[4]).resolve(), pathlib.Path(sys.argv[5]).resolve()
MAX_ARRAY = 2  # nodes in a job array
FAILING = "{gpu: 1, kind: remap, failed: true}"
CONF = """bin={folder}/bin
limit=100
gpus=slurm
last={folder}/last
baseline={folder}/none
lock={folder}/lock.$node
flags=(--simulate {folder}/$node/fleet.yaml -c {root}/configs/survey.yaml)
"""


class Site:
    """A cluster with these scripts in slurm.conf (see slurm.Cluster). Each node has simulated GPUs of its own."""

    def __init__(self, folder, hooks):
        self.folder = folder
        folder.chmod(0o755)
        self.cluster = slurm.Cluster(mark=MARK, hooks=hooks, more=f"SlurmdTimeout=20\nMaxArraySize={MAX_ARRAY}")
        self.run, self.until, self.state = self.cluster.run, self.cluster.until, self.cluster.state
        (folder / "bin").mkdir()
        for program in (PROGRAM, REPORT):
            (folder / "bin" / program.name).symlink_to(program)
        # Jobs see the simulated GPUs of the node that they run on.
        self.script("survey", f'exec {PROGRAM} --simulate {folder}/$SLURMD_NODENAME/job/fleet.yaml "$@"')
        self.script("bin/scontrol", f'echo "$*" >>{folder}/scontrol.calls\nexec {slurm.find("scontrol")} "$@"')
        self.cluster.env.update(GPUMEMTOPO_CONFIG_DIR=str(ROOT / "configs"), ASAN_OPTIONS="detect_leaks=0",
                                GPUMEMTOPO_SURVEY=str(folder / "survey"), GPUMEMTOPO_REPORT=str(REPORT),
                                GPUMEMTOPO_STATE=str(folder / "state"))
        self.settings()
        for name in self.cluster.nodes:
            self.plant(name)

    def script(self, name, text):
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / name).chmod(0o755)

    def settings(self, *more):
        text = CONF.format(folder=self.folder, root=ROOT) + "".join(f"{line}\n" for line in more)
        new = self.cluster.folder / "health.conf.new"
        new.write_text(text)
        new.rename(self.cluster.health_conf)

    def plant(self, name, faults="", in_jobs=""):
        """The GPUs of a node, as prolog, epilog and health check see them, and as jobs do."""
        for folder, planted in ((self.folder / name, faults), (self.folder / name / "job", in_jobs)):
            folder.mkdir(exist_ok=True)
            path = write_fleet(folder, [node(name, slurm.GPUS, planted)])
            path.write_text(path.read_text().replace("seed: 1\n", f"seed: {name[1:]}\n"))  # other GPUs on each node

    def scontrol_calls(self):
        path = self.folder / "scontrol.calls"
        return path.read_text() if path.exists() else ""

    def job(self, name, *flags):
        """A job on one node with all its GPUs that writes a file when it runs. Returns its number and the file."""
        said = self.folder / f"ran.{time.monotonic_ns()}"
        done = self.run("sbatch", "--parsable", "-w", name, "-N1", "-n1", "-o", "/dev/null", "--wrap", f"echo >{said}",
                        *(flags or [f"--gres=gpu:{slurm.GPUS}"]), cwd=self.folder)
        check(done.returncode == 0, done.stderr)
        return done.stdout.strip(), said

    def quiet(self):
        return not self.run("squeue", "-h").stdout.strip() and self.cluster.idle() == slurm.NODES

    def end_jobs(self):
        self.run("scancel", "--user=root")
        self.until(lambda: not self.run("squeue", "-h").stdout.strip(), "end of all jobs")

    def recover(self, name):
        """The node is healthy again, and used again."""
        self.end_jobs()
        self.plant(name)
        self.until(lambda: "draining" not in self.state(name), f"end of draining {name}")
        self.cluster.resume(name)


def part_prolog(site):
    """A healthy node runs its job. One with a GPU that is failing or could not be measured does not. Whoever skips the
    prolog gets the failing GPU, and the epilog drains the node then."""
    site.plant("n2", FAILING)
    site.plant("n3", FAILING)
    site.plant("n4", "{gpu: all, kind: busy}")
    said = {name: site.job(name)[1] for name in ("n1", "n3", "n4")}
    said["n2"] = site.job("n2", "--gres=gpu:1", "--comment=project 7,gpumemtopo=skip")[1]
    for name, reason in (("n2", "Epilog error"), ("n3", "Prolog error"), ("n4", "Prolog error")):
        site.until(lambda: site.state(name).startswith("drain"), f"drained {name}")
        check(reason in site.state(name) and said[name].exists() == (name == "n2"), f"{name}: {site.state(name)}")
    site.until(said["n1"].exists, "job on n1")
    check(field((site.folder / "last/n1.yaml").read_text(), "measured") == str(slurm.GPUS), "n1 was not measured")
    check(site.scontrol_calls() == "", f"scontrol in a prolog: {site.scontrol_calls()}")
    for name in ("n2", "n3", "n4"):
        site.recover(name)


def part_health(site):
    """drain=yes that cannot drain is told in slurmd's log. With SLURM_CONF it drains; then the node is healthy again."""
    log = site.cluster.folder / "slurmd.n1.log"
    site.plant("n1", FAILING)
    site.settings("drain=yes", "gpus=4", "SLURM_CONF=/nonexistent/slurm.conf")
    site.cluster.watch("n1")
    site.until(lambda: "COULD NOT DRAIN n1: scontrol:" in log.read_text(), "complaint in slurmd's log")
    check(site.state("n1").startswith("idle"), site.state("n1"))
    site.settings("drain=yes", f"SLURM_CONF={site.cluster.env['SLURM_CONF']}")
    site.until(lambda: "gpumemtopo:failing:GPU-" in site.state("n1"), "drained n1")
    # A survey from before, and one that still shows it: no line.
    check(undrained(site) == "", "undrained at once")
    time.sleep(1.1)  # times of drains have whole seconds
    site.plant("n1")
    there = site.folder / "last/n1.yaml"
    site.until(lambda: "\noutliers: []" in there.read_text(), "healthy inventory")
    line = undrained(site)
    check(line == "scontrol update NodeName=n1 State=RESUME\n", line)
    site.cluster.watch("n1", on=False)
    site.run("sh", "-c", line)
    site.until(lambda: site.state("n1").startswith("idle"), "idle n1")
    check(undrained(site) == "", "undrained twice")
    site.settings()


def undrained(site):
    """The commands that docs/cluster.md gives."""
    listed = site.run("sinfo", "-h", "-N", "-t", "drain", "-o", "%N|%H|%E",
                      env={**site.cluster.env, "SLURM_TIME_FORMAT": "%s"})
    path = site.folder / "drained.txt"
    path.write_text(listed.stdout)
    done = site.run(REPORT, "undrain", "--drained", path, *sorted((site.folder / "last").glob("*.yaml")))
    check(done.returncode == 0, done.stderr)
    return done.stdout


def rolling(site, *flags):
    done = site.run(SCRIPTS / "rolling.sh", "-p", "gpu", *flags, "--", "--probes", "main.latency", cwd=site.folder)
    inventory = site.folder / "gpumemtopo-rolling.yaml"
    return done, inventory.read_text() if inventory.exists() else ""


def part_rolling(site):
    done = site.run(SCRIPTS / "rolling.sh", "-p", "gpus", cwd=site.folder)
    check(done.returncode == 2 and "partition gpus" in done.stderr, f"{done.returncode} {done.stderr}")
    site.run("scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=by hand")
    done, text = rolling(site)
    check(done.returncode == 0 and field(text, "measured") == str(3 * slurm.GPUS), f"{done.stderr} {text[:300]}")
    check("rolling.sh: n4: drained, skipped" in done.stderr, done.stderr)
    check((site.folder / "gpumemtopo-rolling/n1.yaml").exists(), "n1.yaml")
    # A job that is cancelled does not cost what was known of its GPUs; what it measured counts.
    before = (site.folder / "gpumemtopo-rolling/n2.yaml").read_text()
    site.until(lambda: site.cluster.idle() == 3, "end of the epilogs")
    site.plant("n2", in_jobs="{gpu: 1, kind: hang, after: 1}")
    process = subprocess.Popen([SCRIPTS / "rolling.sh", "-p", "gpu", "--", "--probes", "main.latency"],
                               cwd=site.folder, env=site.cluster.env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    spool = site.folder / "gpumemtopo-rolling/n2.new.yaml.spool"
    site.until(lambda: len(list(spool.glob("gpu-*.spool"))) == slurm.GPUS - 1, "results of n2")
    site.run("scancel", "--name=gpumemtopo-rolling", "-w", "n2")
    said = process.communicate(timeout=240)[1]
    text = (site.folder / "gpumemtopo-rolling.yaml").read_text()
    check(process.returncode == 0 and field(text, "measured") == str(3 * slurm.GPUS), f"{said} {text[:300]}")
    check("rolling.sh: n2: the last whole result is 0 h old" in said, said)
    folder = site.folder / "gpumemtopo-rolling"
    check((folder / "n2.yaml").read_text() == before and (folder / "n2.cut.yaml").exists(), "n2.yaml replaced")
    site.plant("n2")
    site.until(lambda: site.cluster.idle() == 3, "idle nodes")
    site.cluster.resume("n4")


def part_array(site):
    """One job per node, in two arrays, since one would be too large. The last one to end has merged all."""
    site.run("scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=by hand")
    done = site.run(SCRIPTS / "array.sh", "-p", "gpu", "-j", "2", "-o", "array.yaml", "-d", "array", "--", "--probes",
                    "main.latency", cwd=site.folder)
    arrays = done.stdout.split()
    check(done.returncode == 0 and len(arrays) == 2 and all(number.isdigit() for number in arrays),
          f"{done.returncode} {done.stdout} {done.stderr}")
    check("array.sh: n4: drained, skipped" in done.stderr, done.stderr)
    site.until(lambda: not site.run("squeue", "-h").stdout.strip(), "end of the array")
    logs = "".join(path.read_text() for path in (site.folder / "array").glob("*.log"))
    check((site.folder / "array.yaml").exists(), f"no inventory: {logs}")
    text = (site.folder / "array.yaml").read_text()
    check(sorted(p.name for p in (site.folder / "array").glob("*.yaml")) == ["n1.yaml", "n2.yaml", "n3.yaml"], logs)
    check(field(text, "measured") == str(3 * slurm.GPUS) and field(text, "exit_code") == "0", text[:300])
    site.until(lambda: site.state("n4").startswith("drained"), "drained n4")
    site.cluster.resume("n4")


def part_sweep(site):
    """The nodes with the oldest results, in a reservation that only these jobs use."""
    folder = site.folder / "array"
    os.utime(folder / "n2.yaml", (1, 1))
    done = site.run(SCRIPTS / "sweep.sh", "-p", "gpu", "-n", "2", "-t", "now", "-m", "5", "-o", "array.yaml", "-d",
                    "array", "--", "--probes", "main.latency", cwd=site.folder)
    check(done.returncode == 0, f"{done.returncode} {done.stdout} {done.stderr}")
    reserved = site.run("scontrol", "-o", "show", "reservation").stdout
    name = re.search(r"ReservationName=(gpumemtopo-sweep-\S+)", reserved)
    check(name and re.search(r"Nodes=n\[?2,4\]? ", reserved), reserved)  # n4 was never surveyed
    jobs = site.run("squeue", "-h", "-o", "%j %v").stdout.splitlines()
    check(all(line == f"gpumemtopo-sweep {name[1]}" for line in jobs), jobs)
    site.until(lambda: (folder / "n2.yaml").stat().st_mtime > 1 and (folder / "n4.yaml").exists() and
               not site.run("squeue", "-h").stdout.strip(), "the sweep")
    text = (site.folder / "array.yaml").read_text()
    check(field(text, "measured") == str(slurm.NODES * slurm.GPUS), text[:300])
    site.run("scontrol", "delete", f"ReservationName={name[1]}")


HOOKS = {"Prolog": SCRIPTS / "prolog.sh", "Epilog": SCRIPTS / "epilog.sh", "HealthCheckProgram": SCRIPTS / "health.sh"}


def run_parts(folder, names, hooks=None):
    why = slurm.missing()
    if why:
        print(why)
        sys.exit(SKIP)
    site = Site(folder, hooks)
    try:
        for name in names:
            begin = time.monotonic()
            globals()[f"part_{name}"](site)
            print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
            site.until(site.quiet, "idle nodes")
    except SystemExit:
        site.cluster.show_logs()
        raise
    finally:
        site.cluster.stop()


def case_hooks(folder):
    run_parts(folder, ["prolog", "health"], HOOKS)


def case_fleet(folder):
    run_parts(folder, ["rolling", "array", "sweep"])


def case_part(folder):
    """Parts by name, for people: operation.py ... part REPORT SCRIPTS NAME..."""
    run_parts(folder, sys.argv[6:], HOOKS)


if __name__ == "__main__":
    main(globals())
