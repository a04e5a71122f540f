"""Runs the real gpumemtopo-survey for tests: in a folder of its own, leaving nothing behind.

The test scripts that import this are called as: SCRIPT PROGRAM SOURCE_ROOT CASE [MORE...]
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CASE = sys.argv[3]
MODEL = pathlib.Path(__file__).resolve().with_name("tiny.yaml")
MARK = uuid.uuid4().hex  # in the environment of all that is started here, to find what stays behind
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PRTE_|HYDI_|MPI_LOCAL)")
SKIP = 77
MPI = os.environ.get("GPUMEMTOPO_TEST_MPI", "openmpi")
MPICH = MPI == "mpich"
SLOWER = 4 if b"__asan_init" in PROGRAM.read_bytes() else 1  # where time is of no interest
HANGS_S = 240 * SLOWER  # a run that takes so long hangs, on any machine; says nothing about how fast it must be


def busy():
    """How many processes want each of this machine's cores: so many times longer may something take."""
    return min(max(os.getloadavg()[0] / len(os.sched_getaffinity(0)), 1), 8)


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               OMPI_MCA_rmaps_base_oversubscribe="1", GPUMEMTOPO_TEST_MARK=MARK,
               GPUMEMTOPO_CONFIG_DIR=str(ROOT / "configs"),
               GPUMEMTOPO_LAUNCHER="mpiexec.hydra" if MPICH else "mpirun")  # of ./survey
    # Ranks on one host talk by shared memory. A port would be found by ranks of other surveys whose peer had the same
    # one and was killed, and Open MPI warns of them. Lines that give this flag to mpirun count more.
    env["OMPI_MCA_btl"] = "^tcp"
    # With PMIx's other store, mpirun itself hangs at its end in one of eight runs in which ranks left MPI_Init by
    # exiting (openpmix/openpmix#1233); docs/cluster.md tells users.
    env["PMIX_MCA_gds"] = "hash"
    # Open MPI does not free all it allocates; leaks are looked for in case_alone, without it.
    env["ASAN_OPTIONS"] = "detect_leaks=0"
    env.pop("GPUMEMTOPO_EXIT_FILE", None)
    env.pop("MALLOC_PERTURB_", None)  # of meson test; mpirun 4.1 itself uses what it freed
    env.update(more)
    return env


LAUNCHER = "mpiexec.hydra" if MPICH else "mpirun"
RANK = "PMI_RANK" if MPICH else "OMPI_COMM_WORLD_RANK"  # the variable that has a rank's number
PLUGIN = PROGRAM.with_name(f"gpumemtopo-mpi-{MPI}.so")


def launcher(ranks, recovery=False):
    """The words that start so many ranks. recovery: the others live on when one dies."""
    if MPICH:
        return [LAUNCHER, *(["-disable-auto-cleanup"] if recovery else []), "-n", str(ranks)]
    return [LAUNCHER, *(["--enable-recovery"] if recovery else []), "--oversubscribe", "-n", str(ranks)]


def command(ranks, *args, recovery=False):
    return [*(launcher(ranks, recovery) if ranks else []), str(PROGRAM), *args]


def parent(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return b""


def number_of(pid):
    """The number of the rank that this process is, as text; None for others."""
    if MPICH and name_of(parent(pid)) != b"gpumemtopo-keeper":
        return None  # what the rank and its keeper are made from
    try:
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    found = re.search(rb"(?:^|\0)%s=([^\0]*)\0" % RANK.encode(), variables)
    return found and found[1].decode()


FAST = ("--probes", "main.latency")


def survey(folder, ranks, *args, env=None):
    """Exit code (past mpirun's own), stdout and stderr of one survey run in `folder`."""
    code_file = folder / "code"
    code_file.write_text("")
    env = environment(GPUMEMTOPO_EXIT_FILE=str(code_file), **(env or {}))
    done = subprocess.run(command(ranks, *args), cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=HANGS_S)
    check(done.returncode == 0, f"{args}: returned {done.returncode}, {done.stderr}")
    code = int(code_file.read_text().split()[0])
    code_file.unlink()
    code_file.with_name("code.spool").unlink(missing_ok=True)
    return code, done.stdout, done.stderr


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED {CASE}: {text}")


def marked():
    """Processes that carry our mark, this one aside."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if MARK.encode() in (entry / "environ").read_bytes():
                found.append((int(entry.name), (entry / "cmdline").read_bytes().split(b"\0")[0]))
        except OSError:
            pass
    return found


def workers():
    return sorted(pid for pid, name in marked() if name == b"gpumemtopo-worker")


def workers_that_stay(count):
    """Those of the GPUs that hang, when all others (and those that only list GPUs) are done."""
    since, before = time.monotonic(), []
    for _ in range(600):
        time.sleep(0.1)
        now = workers()
        if len(now) != count or now != before:
            since, before = time.monotonic(), now
        elif time.monotonic() - since > 2:
            return now
    check(False, f"{count} hanging workers were waited for, {len(before)} are there")


LOCKED_UP = []  # mpirun's that were killed below; their exit code is lost


def end_locked_launchers(patience_s=20):
    """mpirun 4.1 with PMIx 4.2 may lock itself up at its own end when a rank has died (docs/cluster.md). Only SIGKILL ends it
    then: it gets that when all its ranks have been dead for so long. Tests check what the survey left."""
    dead_since = {}
    while True:
        time.sleep(1)
        for pid in [pid for pid, name in marked() if name == b"mpirun"]:
            try:
                children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                states = {pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                          for child in children}
                if states != {"Z"}:
                    dead_since.pop(pid, None)
                elif time.monotonic() - dead_since.setdefault(pid, time.monotonic()) > patience_s:
                    print("mpirun locked itself up at its end: killed")
                    LOCKED_UP.append(pid)
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                dead_since.pop(pid, None)


def check_nothing_left():
    for _ in range(50):
        if not marked():
            return
        time.sleep(0.1)
    check(False, f"processes left behind: {marked()}")


def write_fleet(folder, nodes, head=""):
    path = folder / "fleet.yaml"
    path.write_text(f"seed: 1\nvary: none\n{head}nodes:\n" + "".join(f"  - {node}\n" for node in nodes))
    return path


def impatient(folder, seconds):
    """The shipped configuration, but for how long ranks wait for each other's start."""
    path = folder / "impatient.yaml"
    text = (ROOT / "configs/survey.yaml").read_text()
    path.write_text(re.sub(r"(?s)least: \S+(.*?)per_rank: \S+", rf"least: {seconds}\1per_rank: 0", text, count=1))
    return path


def node(name, gpus, faults=""):
    return f"{{name: {name}, model: {MODEL}, gpus: {gpus}, faults: [{faults}]}}"


def counted(path):
    """How many GPUs a fleet file has, and how many of them cannot be measured."""
    text = path.read_text()
    return (sum(int(n) for n in re.findall(r"^ +gpus: (\d+)$", text, re.M)),
            len(re.findall(r"kind: (?:crash|hang|busy)\b", text)))


def masked(path):
    """The inventory without what may differ: time, ranks, wall time, who measured which GPU."""
    text = path.read_text()
    text = re.sub(r"generated: [^,]+", "generated: X", text)
    text = re.sub(r"\branks: \d+", "ranks: X", text)
    text = re.sub(r"wall_s: [\d.e+-]+", "wall_s: X", text)
    return re.sub(r"\brank: \d+", "rank: X", text)


def field(text, name):
    return re.search(rf"\b{name}: ([^,}}\n]+)", text).group(1)


def main(cases):
    """Runs the case; cases: the script's globals."""
    if not shutil.which(LAUNCHER) or not PLUGIN.exists():
        print(f"{LAUNCHER} or {PLUGIN.name} is missing")
        sys.exit(SKIP)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpumemtopo-test-"))
    if not MPICH:
        threading.Thread(target=end_locked_launchers, daemon=True).start()
    try:
        cases[f"case_{CASE}"](folder)
        check_nothing_left()
    finally:
        for pid, _ in marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(folder)
