"""What breaks in the middle of ./survey, one case each: everything that was measured is in the
inventory or the spool, everything else is named, the job ends in time, the exit code is as promised.

usage: fault_matrix.py PROGRAM SOURCE_ROOT CASE REPORT_PROGRAM [--no-mpi]
CASE is WHO_WHEN, e.g. rank_measuring, or `all` with a number of rounds behind REPORT_PROGRAM.
--no-mpi: the ranks survey without MPI.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import (MPICH, PROGRAM, RANK, ROOT, SKIP, SLOWER, busy, check, environment, field, impatient, main, marked,
                     node, number_of, parent, write_fleet)

REPORT = pathlib.Path(sys.argv[4]).resolve()
LIMIT_S = 5 if SLOWER == 1 else 10  # --time-limit
ENDS_WITHIN_S = 2 * LIMIT_S + 10 * SLOWER  # a GPU that hangs is tried twice
LONG_S = 30          # where something else than the limit ends a hanging worker, and as soon
PATIENCE_S = 5 * SLOWER  # of ranks with those that never start; they wait twice: for MPI, then for their last
RANKS = 4            # what ./survey starts for simulated GPUs
GPUS = 8
APART = "--no-mpi" in sys.argv[5:]
AT_ONCE = 5          # runs of the benchmark: they mostly wait


def wrapper(folder, before):
    """./survey itself, without installing and building. before: what a rank does first, for the shell."""
    there = folder / "clone"
    (there / "tools").mkdir(parents=True)
    (there / "build/src/survey").mkdir(parents=True)
    (there / "build/src/report").mkdir(parents=True)
    (there / "build/src/report/gpumemtopo-report").symlink_to(REPORT)
    shutil.copy(ROOT / "survey", there / "survey")
    (there / "tools/setup.sh").write_text("setup_packages() { :; }; setup_build() { :; }\n")
    program = there / "build/src/survey/gpumemtopo-survey"
    program.write_text(f'#!/bin/sh\n{before}\nexec "{PROGRAM}" "$@"\n')
    program.chmod(0o755)
    return there / "survey"


class Run:
    """A survey of two nodes of four GPUs by four ranks, on its way."""

    def __init__(self, folder, faults="", more=(), output="out.yaml", limit_s=LIMIT_S, before=":"):
        self.folder = folder
        write_fleet(folder, [node("n1", 4, faults), node("n2", 4)])
        self.output = folder / output
        self.spool = pathlib.Path(f"{self.output}.spool")
        self.begun = time.monotonic()
        # In a session of its own, as from another terminal: signals reach ./survey alone.
        self.process = subprocess.Popen(
            [wrapper(folder, before), "--simulate", "fleet.yaml", "-o", output, "--probes", "main.latency",
             "--time-limit", str(limit_s), "--no-progress", *(["--no-mpi"] if APART else []), *more],
            cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def find(self, what, pause_s=0.002):
        """Asks again and again until there is an answer."""
        while time.monotonic() - self.begun < ENDS_WITHIN_S * busy():
            found = what()
            if found:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(pause_s)
        check(False, f"{what.__name__} did not come: {self.process.stderr.read()}")

    def rank(self, number):
        def rank_process():
            for pid, name in marked():
                if name.endswith(b"gpumemtopo-survey") and number_of(pid) == str(number):
                    return pid
        return self.find(rank_process)

    def workers_of(self, rank_pid, count=1):
        def worker_process():
            found = [pid for pid, name in marked()
                     if name == b"gpumemtopo-worker" and parent(pid) == rank_pid]
            return found if len(found) >= count else None
        return self.find(worker_process)

    def kill_when_listing(self, number):
        rank = self.rank(number)
        self.workers_of(rank)
        kill(rank)

    def hanging(self, rank_pid, count=1):
        """The worker that stays: of the GPU that hangs, one of so many; all others are done and known."""
        def others_done():
            return len(list(self.spool.glob("gpu-*.spool"))) == GPUS - count

        def hanging_worker():
            before = self.workers_of(rank_pid)
            time.sleep(1)
            return [pid for pid in before if pid in self.workers_of(rank_pid)]
        self.find(others_done)
        return self.find(hanging_worker)[0]

    def end(self, code, within_s=ENDS_WITHIN_S):
        try:
            said = self.process.communicate(timeout=240)[1]
        except subprocess.TimeoutExpired:
            check(False, f"does not end; still there: {[(pid, name, state(pid)) for pid, name in marked()]}; "
                  f"exit files: {exit_files()}")
        took_s = time.monotonic() - self.begun
        check(took_s < within_s * busy(), f"took {took_s:.1f} s: {said}")
        codes = code if isinstance(code, tuple) else (code,)
        check(self.process.returncode in codes, f"exit code {self.process.returncode}: {said}")
        for line in said.splitlines():
            check(not re.search(r"mpirun|PMIX|ORTE|MPI_ABORT|-----", line)
                  or line.startswith("survey: "), f"words of the launcher: {said}")
        return said

    def statuses(self, text):
        """Status by UUID, of every GPU of an inventory."""
        found = dict(re.findall(r"^  - uuid: (\S+)\n(?:    .*\n)*?    status: (\w+)", text, re.M))
        for uuid, status in re.findall(r"^  - {node: .*uuid: (GPU\S+), status: (\w+)", text, re.M):
            check(found.get(uuid) == status, f"{uuid} contradicts itself: {text}")
        return found

    def merged(self, code, *paths):
        done = subprocess.run([REPORT, "merge", *(paths or [self.spool])], cwd=self.folder,
                              env=environment(), capture_output=True, text=True)
        check(done.returncode == code, f"merge: {done.returncode}, {done.stderr}")
        return done.stdout

    def check_complete(self, text, **expected):
        """All GPUs are there, so many of each status; the unmeasured ones with a reason."""
        found = self.statuses(text)
        counts = {s: list(found.values()).count(s) for s in set(found.values())}
        check(counts == expected and sum(expected.values()) == len(found), f"{counts}: {text}")
        for reason in re.findall(r"^  - {node: .*reason: (.*)}", text, re.M):
            check(len(reason) > 5, f"a reason is missing: {text}")
        with open(self.folder / "valid.yaml", "w") as file:
            file.write(text)
        done = subprocess.run([REPORT, "validate", self.folder / "valid.yaml"], env=environment(),
                              capture_output=True, text=True)
        check(done.returncode == 0, f"not valid: {done.stderr}")

    def check_inventory(self, **expected):
        self.check_complete(self.output.read_text(), **expected)


def variable(pid, name):
    try:
        found = re.search(rb"\0%s=([^\0]*)\0" % name.encode(), pathlib.Path(f"/proc/{pid}/environ").read_bytes())
    except OSError:
        return None
    return found and found[1].decode()


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def exit_files():
    """What the ranks told ./survey so far."""
    paths = {variable(pid, "GPUMEMTOPO_EXIT_FILE") for pid, _ in marked()} - {None}
    return {path: pathlib.Path(path).read_text() for path in paths if pathlib.Path(path).exists()}


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


HANG = "{gpu: 2, kind: hang, after: 1}"  # of n1: rank 2


def case_nothing(folder):
    """The measure of all others: nothing breaks, nothing is left."""
    run = Run(folder)
    run.end(0)
    run.check_inventory(ok=GPUS)
    check(not run.spool.exists(), "the spool is still there")


def case_worker_killed(folder):
    run = Run(folder, HANG, limit_s=LONG_S)
    kill(run.hanging(run.rank(2)))
    run.end(4)
    run.check_inventory(ok=GPUS - 1, crashed=1)
    check("signal 9 (Killed)" in run.output.read_text(), "reason")


def case_worker_hung(folder):
    run = Run(folder, HANG)
    run.end(4)
    run.check_inventory(ok=GPUS - 1, timed_out=1)


def case_worker_stopped(folder):
    """A stopped process acts on no signal but SIGKILL and SIGCONT."""
    run = Run(folder, HANG)
    kill(run.hanging(run.rank(2)), signal.SIGSTOP)
    run.end(4)
    run.check_inventory(ok=GPUS - 1, timed_out=1)


def case_worker_garbage(folder):
    """A second worker measures the GPU; the inventory says why it was needed."""
    run = Run(folder, HANG[:-1] + ", tries: 1}", limit_s=LONG_S)
    worker = run.hanging(run.rank(2))
    with open(f"/proc/{worker}/fd/3", "wb", buffering=0) as pipe:
        pipe.write(b"\x00garbage\xff" * 1000)
    run.end(0)
    run.check_inventory(ok=GPUS)
    text = run.output.read_text()
    check(re.search("first_try: {status: crashed, reason: \"?garbage on the worker's pipe", text), text)
    check(re.search("metric: worker.crash,.*crashed once: garbage", text[text.index("\nwatch:"):]), text)


def case_worker_half(folder):
    """Half a record, then death."""
    run = Run(folder, HANG, limit_s=LONG_S)
    worker = run.hanging(run.rank(2))
    with open(f"/proc/{worker}/fd/3", "wb", buffering=0) as pipe:
        pipe.write(bytes.fromhex("474d4d54010000000500000000100000"))
    time.sleep(0.2)
    kill(worker)
    run.end(4)
    run.check_inventory(ok=GPUS - 1, crashed=1)


def starting(folder, numbers, how):
    """Ranks that are no more, or stand still, before MPI is up, which then never is for the others: they
    measure without it, and the last one makes the inventory."""
    ranks = "|".join(map(str, numbers))
    # Hydra 4.0 ends all ranks if one is killed before it has begun: there, it leaves.
    fate = "exit 0" if MPICH and how == "KILL" else f"kill -{how} $$"
    run = Run(folder, HANG if 2 not in numbers else "", more=("--config", impatient(folder, PATIENCE_S)),
              before=f'case ${RANK} in {ranks}) {fate} ;; esac')
    said = run.end(4, ENDS_WITHIN_S + 2 * PATIENCE_S)
    check(said.count("MPI did not start within") == (0 if APART else len({0, 1} - set(numbers))), said)
    text = run.output.read_text()
    lost = 2 * len(numbers)  # GPUs
    run.check_complete(text, **({"ok": GPUS - lost} if 2 in numbers
                                else {"ok": GPUS - lost - 1, "timed_out": 1}))
    check(field(text, "lost_ranks") == str(len(numbers)), text)
    for number in numbers:
        check(f'rank: {number}, uuid: null, status: lost, reason: "rank {number} did not start' in text,
              text)
    check(sorted(run.statuses(run.merged(4))) == sorted(run.statuses(text)), "merge")


def case_rank_starting(folder):
    starting(folder, [2], "KILL")


def case_rank_start_stopped(folder):
    starting(folder, [3], "STOP")


def case_rank0_starting(folder):
    starting(folder, [0], "KILL")


def case_ranks_start_stopped(folder):
    starting(folder, [0, 2], "STOP")


def listing(folder, number, silent):
    """A rank whose worker does not get to the end of listing GPUs: its fleet is a pipe into which nobody writes."""
    held = folder / "held"
    held.mkdir()
    os.mkfifo(held / "fleet.yaml")
    os.open(held / "fleet.yaml", os.O_RDWR)  # until this test ends
    patience_s = 3 * PATIENCE_S  # on a busy machine MPI needs longer than PATIENCE_S to start
    run = Run(folder, more=("--config", impatient(folder, patience_s)), output=folder / "out.yaml",
              before=f'[ "${RANK}" != {number} ] || cd "{held}"')
    run.kill_when_listing(number)
    run.end(4, ENDS_WITHIN_S + 2 * patience_s)
    text = run.output.read_text()
    run.check_complete(text, ok=GPUS - 2)
    check(field(text, "lost_ranks") == "1", text)
    # The second, if it was slower still.
    check(re.search(rf'rank: {number}, uuid: null, status: lost, reason: "?rank {number} '
                    rf"({silent}|did not start, or ended before it had listed)", text), text)


def case_rank_listing(folder):
    """Its GPUs were never told: the rank is named."""
    listing(folder, 2, ".*(fell silent|was never heard)")


def case_rank_measuring(folder):
    """The GPU that it had measured is reported; the one in hand is lost."""
    run = Run(folder, HANG, limit_s=LONG_S)
    rank = run.rank(2)
    run.hanging(rank)
    kill(rank)
    said = run.end(4)
    check(APART or f"results are kept in {run.spool}" in said, said)
    run.check_inventory(ok=GPUS - 1, lost=1)
    why = "its rank left no result" if APART else "fell silent"
    check(why in run.output.read_text() and (APART or "rank 2 on" in run.output.read_text()), "why")
    check(run.spool.exists(), "a rank is lost, and the spool is gone")
    run.check_complete(run.merged(4), ok=GPUS - 1, lost=1)
    run.check_complete(run.merged(4, run.spool, run.output), ok=GPUS - 1, lost=1)


def case_rank_stopped(folder):
    """It is there and does nothing, for ever: the job ends all the same."""
    run = Run(folder, HANG, limit_s=LONG_S)
    rank = run.rank(2)
    run.hanging(rank)
    os.kill(rank, signal.SIGSTOP)
    run.end(4)
    run.check_inventory(ok=GPUS - 1, lost=1)


def case_rank0_stopped(folder):
    """The others leave it behind; ./survey ends it and makes the inventory from the spool."""
    run = Run(folder, HANG)
    rank = run.rank(0)
    run.hanging(run.rank(2))
    os.kill(rank, signal.SIGSTOP)
    said = run.end(4)
    check("rank 0 was not heard for" in said, said)
    run.check_inventory(ok=GPUS - 1, timed_out=1)


def case_all_paused(folder):
    """The whole job is suspended for longer than a GPU may take: that counts for nobody."""
    run = Run(folder, "{gpu: 2, kind: wait, seconds: 3}")
    run.hanging(run.rank(2))
    all_of_it = [pid for pid, name in marked() if b"gpumemtopo" in name]
    for pid in all_of_it:
        kill(pid, signal.SIGSTOP)
    time.sleep(LIMIT_S + 5)
    for pid in all_of_it:
        kill(pid, signal.SIGCONT)
    run.end(0, 2 * LIMIT_S + 5 + ENDS_WITHIN_S)
    run.check_inventory(ok=GPUS)


def case_launcher_killed(folder):
    """The ranks go with it; what they had is in the spool, of which ./survey makes the inventory."""
    run = Run(folder, HANG, limit_s=LIMIT_S if MPICH else LONG_S)
    run.hanging(run.rank(2))
    if MPICH:  # Hydra's proxy: the ranks live on
        kill(parent(parent(run.rank(0))))
        run.end(4)
        run.check_inventory(ok=GPUS - 1, timed_out=1)
        return
    kill(parent(run.rank(0)))
    said = run.end(4)
    check(said.startswith("survey: ended without an inventory: it is made from"), said)
    run.check_inventory(ok=GPUS - 1, lost=1)


def case_rank_reported(folder):
    """It dies when all of its own is said: nothing is lost."""
    run = Run(folder, HANG)
    rank = run.rank(1)
    run.hanging(run.rank(2))
    kill(rank)
    run.end(4)
    run.check_inventory(ok=GPUS - 1, timed_out=1)


def case_rank_done_stopped(folder):
    """It stands still for ever when all of its own is said: the job does not wait for it."""
    run = Run(folder, HANG)
    rank = run.rank(1)
    run.hanging(run.rank(2))
    os.kill(rank, signal.SIGSTOP)
    run.end(4)
    run.check_inventory(ok=GPUS - 1, timed_out=1)


def case_rank_leaving(folder):
    """Rank 1 is the last one to measure; without MPI it makes the inventory."""
    run = Run(folder, "{gpu: 1, kind: wait, seconds: 1}")
    rank = run.rank(1)

    def output_file():
        return run.output.exists()
    run.find(output_file)
    kill(rank)
    run.end(0)
    run.check_inventory(ok=GPUS)


def case_rank0_listing(folder):
    """Nothing is assigned: the others measure as if there were no MPI; what rank 0 had nobody knows."""
    listing(folder, 0, "did not start")


def case_rank0_measuring(folder):
    run = Run(folder, "{gpu: 0, kind: hang, after: 1}, " + HANG)
    rank = run.rank(0)
    run.hanging(rank, 2)
    kill(rank)
    said = run.end(4)
    check(APART or "the inventory was made from what the others had spooled" in said, said)
    run.check_inventory(ok=GPUS - 2, timed_out=1, lost=1)
    run.check_complete(run.merged(4), ok=GPUS - 2, timed_out=1, lost=1)


def case_rank0_and_1(folder):
    """Somebody else tells of it, and nobody twice."""
    run = Run(folder, "{gpu: 0, kind: hang, after: 1}, {gpu: 1, kind: hang, after: 1}")
    ranks = [run.rank(0), run.rank(1)]
    for rank in ranks:
        run.hanging(rank, 2)
    for rank in ranks:
        kill(rank)
    said = run.end(4)
    check(said.count("rank 0 was not heard for") == (0 if APART else 1), said)
    run.check_inventory(ok=GPUS - 2, lost=2)


def case_rank0_early(folder):
    """The others have given it up long before the last of them has measured: that one is not hurried."""
    slow_s, limit_s = 18, 30
    run = Run(folder, f"{{gpu: 1, kind: wait, seconds: {slow_s}}}, {HANG}",
              limit_s=limit_s)
    rank = run.rank(0)
    run.hanging(run.rank(1), 2)
    kill(rank)
    kill(run.hanging(run.rank(2), 2))
    run.end(4, within_s=limit_s + ENDS_WITHIN_S)
    run.check_inventory(ok=GPUS - 1, crashed=1)


def case_rank0_reporting(folder):
    """All is measured, and the inventory is about to be written: it goes to a pipe without reader."""
    output = folder / "pipe.yaml"
    os.mkfifo(output)
    run = Run(folder, output="pipe.yaml", more=("--spool", "kept"))
    run.spool = folder / "kept"
    rank = run.rank(0)

    def all_spooled():
        return len(list(run.spool.glob("gpu-*.spool"))) == GPUS
    run.find(all_spooled)
    time.sleep(0.5)
    output.unlink()  # nobody reads the pipe, and ./survey would write into it
    kill(rank)
    run.end(0)
    run.check_inventory(ok=GPUS)


def interrupted(folder, number):
    run = Run(folder, HANG, limit_s=LONG_S)
    run.hanging(run.rank(2))
    at = time.monotonic()
    os.kill(run.process.pid, number)
    run.end(4)
    check(time.monotonic() - at < 5 * SLOWER * busy(), f"ends {time.monotonic() - at:.1f} s after the signal")
    run.check_inventory(ok=GPUS - 1, failed=1)
    check("the survey was interrupted" in run.output.read_text(), "reason")


def case_sigterm(folder):
    interrupted(folder, signal.SIGTERM)


def case_sigint(folder):
    interrupted(folder, signal.SIGINT)


def small_disk(folder, name):
    if os.getuid() != 0:
        sys.exit(SKIP)
    there = folder / name
    there.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", there],
                      capture_output=True).returncode:
        there.rmdir()
        sys.exit(SKIP)
    return there


def case_disk_full(folder):
    """No room for the inventory: the old file is intact, all is in the spool, which is elsewhere."""
    disk = small_disk(folder, "small")
    try:
        (disk / "out.yaml").write_text("old")
        (disk / "filler").write_bytes(b"x" * 8192)
        run = Run(folder, output="small/out.yaml", more=("--spool", "kept"))
        run.spool = folder / "kept"
        said = run.end(1)
        check("No space left" in said and "results are kept in" in said, said)
        check((disk / "out.yaml").read_text() == "old", "the old file is gone")
        check(sorted(p.name for p in disk.iterdir()) == ["filler", "out.yaml"], "left-overs")
        run.check_complete(run.merged(0), ok=GPUS)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def case_all_full(folder):
    """No room for the inventory and none for the spool beside it: it is put elsewhere, and that is said."""
    disk, before = small_disk(folder, "small"), os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)
    try:
        (disk / "filler").write_bytes(b"x" * 16384)
        run = Run(folder, output="small/out.yaml")
        said = run.end(1)
        found = re.search(rf"the inventory is in ({folder}/gpumemtopo-\w+\.yaml) on {re.escape(os.uname().nodename)}, ", said)
        check("No space left" in said and found and "are kept in" not in said, said)
        run.check_complete(pathlib.Path(found.group(1)).read_text(), ok=GPUS)
    finally:
        os.environ.pop("TMPDIR")
        if before:
            os.environ["TMPDIR"] = before
        subprocess.run(["umount", "-l", disk], check=True)


def case_spool_full(folder):
    """No room for the spool: that is said, and costs nothing else."""
    disk = small_disk(folder, "small")
    try:
        (disk / "filler").write_bytes(b"x" * 12288)
        run = Run(folder, more=("--spool", "small"))
        said = run.end(0)
        check("could not be spooled" in said and "No space left" in said, said)
        run.check_inventory(ok=GPUS)
        check(not list(disk.glob("*.tmp.*")), "half files")
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def case_folder_gone(folder):
    """Output and spool go while it runs: nothing is called kept that is not."""
    (folder / "sub").mkdir()
    os.environ["TMPDIR"] = str(folder)  # where the inventory goes then
    run = Run(folder, HANG, output="sub/out.yaml")
    run.hanging(run.rank(2))
    shutil.rmtree(folder / "sub")
    said = run.end(1)
    check("sub/out.yaml: " in said and "could not be spooled" in said, said)
    check("are kept" not in said, said)


def run_case(number, name):
    """One case in a process of its own, as a test is. A skip is no pass."""
    begin = time.monotonic()
    done = subprocess.run([sys.executable, __file__, *sys.argv[1:3], name, sys.argv[4]],
                          capture_output=True, text=True)
    check(done.returncode == 0, f"round {number}, {name}: {done.stdout}{done.stderr}")
    took_s = time.monotonic() - begin
    print(f"round {number}, {name}: {took_s:.1f} s", flush=True)
    return took_s


def case_all(_):
    """Every case so many times in a row, five at any time; at the end, what each took."""
    cases = [name[5:] for name in globals() if name.startswith("case_") and name != "case_all"]
    rounds = int(sys.argv[5])
    took_s = {name: [] for name in cases}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [(name, pool.submit(run_case, number + 1, name))
                for number in range(rounds) for name in cases]
        try:
            for name, run in runs:
                took_s[name].append(run.result())
        except SystemExit:
            pool.shutdown(cancel_futures=True)
            raise
    for name in cases:
        print(f"{name:<18} {len(took_s[name])} passed, {min(took_s[name]):.1f} to "
              f"{max(took_s[name]):.1f} s")
    print(f"{rounds} rounds of {len(cases)} cases: {rounds * len(cases)} passed, 0 failed")


main(globals())
