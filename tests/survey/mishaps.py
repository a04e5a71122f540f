"""What the system around the ranks does to them, one case each: rank 0 stands still for a while, a call
of the system or of MPI fails, signals are ignored, a device is full.

usage: mishaps.py PROGRAM SOURCE_ROOT CASE MODULE
MODULE makes calls fail (mishaps.c).
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from harness import (FAST, HANGS_S, SKIP, SLOWER, busy, check, command, environment, field, impatient, main, marked,
                     node, number_of, survey, workers_that_stay, write_fleet)

MODULE = pathlib.Path(sys.argv[4]).resolve()
WORKER_RECORD_FD = 4  # as in src/survey/worker.h


def failing(call):
    return {"LD_PRELOAD": str(MODULE), "GPUMEMTOPO_TEST_FAILS": call,
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}


def rank_process(number):
    for pid, name in marked():
        if name.endswith(b"gpumemtopo-survey") and number_of(pid) == str(number):
            return pid
    check(False, f"no rank {number}")


def case_paused(folder):
    """Rank 0 waits for a file system, say, longer than a silence: rank 1, all done, waits for it."""
    write_fleet(folder, [node("n1", 4, "{gpu: 0, kind: hang, after: 1}")])
    (folder / "code").touch()
    with open(folder / "said", "w") as said:
        run = subprocess.Popen(
            command(2, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", "60", *FAST),
            cwd=folder, env=environment(GPUMEMTOPO_EXIT_FILE=str(folder / "code")),
            stdin=subprocess.DEVNULL, stderr=said)
    hanging, rank0 = workers_that_stay(1)[0], rank_process(0)
    os.kill(rank0, signal.SIGSTOP)
    time.sleep(9)
    os.kill(rank0, signal.SIGCONT)
    time.sleep(1)
    os.kill(hanging, signal.SIGKILL)
    check(run.wait(timeout=HANGS_S) == 0, f"{run.returncode}: {(folder / 'said').read_text()}")
    text = (folder / "out.yaml").read_text()
    check(field(text, "measured") == "3" and field(text, "lost_ranks") == "0", text)
    check("status: crashed" in text and (folder / "code").read_text() == "4\n", text)
    check("lost" not in (folder / "said").read_text(), (folder / "said").read_text())


def case_paused_long(folder):
    """Rank 0 stands still so long that the others have measured, spooled and left: what they spooled is in
    its inventory when it goes on."""
    write_fleet(folder, [node("n1", 4, "{gpu: 0, kind: hang, after: 1}")])
    (folder / "code").touch()
    launch = command(3, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", "6", *FAST, recovery=True)
    with open(folder / "said", "w") as said:
        run = subprocess.Popen(launch, cwd=folder, stderr=said,
                               env=environment(GPUMEMTOPO_EXIT_FILE=str(folder / "code")),
                               stdin=subprocess.DEVNULL)
    while not list(folder.glob("out.yaml.spool/gpu-*")):
        time.sleep(0.05)
    rank0 = rank_process(0)
    os.kill(rank0, signal.SIGSTOP)
    while [pid for pid, name in marked() if name.endswith(b"gpumemtopo-survey")] != [rank0]:
        time.sleep(0.1)
    os.kill(rank0, signal.SIGCONT)
    run.wait(timeout=HANGS_S)
    text = (folder / "out.yaml").read_text()
    said = (folder / "said").read_text()
    check(field(text, "measured") == "3" and field(text, "lost_ranks") == "0", text + said)
    check("status: timed_out" in text and (folder / "code").read_text().startswith("4"), text + said)
    check(not (folder / "out.yaml.spool").exists(), "all is in the inventory, and the spool is there")


def case_no_process(folder):
    """Rank 0 can start no worker, not even to list: it costs what rank 0 would have measured."""
    write_fleet(folder, [node("n1", 2), node("n2", 2)])
    code, _, said = survey(folder, 2, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST,
                           env=failing("posix_spawn"))
    text = (folder / "out.yaml").read_text()
    check(code == 4 and field(text, "measured") == "2" and field(text, "unmeasured") == "1", text)
    check("rank: 0, uuid: null, status: failed" in text, text)
    check("a worker process cannot be started: Resource temporarily unavailable" in text, text)


def case_sigchld(folder):
    """Started by one that ignores SIGCHLD, which is handed down: crashes are still told as such."""
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: crash, after: 1}")])
    done = subprocess.run(
        command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--quiet", *FAST), cwd=folder,
        env=environment(), stdin=subprocess.DEVNULL, timeout=HANGS_S,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    text = (folder / "out.yaml").read_text()
    check(done.returncode == 4 and field(text, "measured") == "1", text)
    check("status: crashed, reason: worker killed by signal 11" in text.replace('"', ""), text)


def case_no_memfd(folder):
    """No place for a record: none is written, least of all into what a worker inherits there."""
    write_fleet(folder, [node("n1", 1)])
    victim = os.open(folder / "victim", os.O_RDWR | os.O_CREAT)
    done = subprocess.run(
        command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--record", "out.gmr", *FAST),
        cwd=folder, env=environment(**failing("memfd_create")), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=HANGS_S, pass_fds=(WORKER_RECORD_FD,),
        preexec_fn=lambda: os.dup2(victim, WORKER_RECORD_FD))
    check(done.returncode == 0 and "its record is not complete" in done.stderr, done.stderr)
    check(field((folder / "out.yaml").read_text(), "measured") == "1", done.stderr)
    check((folder / "victim").stat().st_size == 0, "a record in a file of somebody else")


def case_any_source(folder):
    """Rank 0 cannot ask for messages of any rank: it asks for those of each."""
    write_fleet(folder, [node("n1", 3), node("n2", 3)])
    code, _, said = survey(folder, 3, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST,
                           env=failing("MPI_ANY_SOURCE"))
    text = (folder / "out.yaml").read_text()
    check(code == 0 and field(text, "measured") == "6" and field(text, "ranks") == "3", text)
    check("warning" not in said, said)


def case_cannot_receive(folder):
    """Rank 0 cannot receive at all: it reports what it has, the others are lost and named."""
    write_fleet(folder, [node("n1", 4, "{gpu: 3, kind: hang, after: 1}")])  # rank 1 is never done
    code, _, said = survey(folder, 2, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST,
                           env=failing("MPI_Improbe"))
    text = (folder / "out.yaml").read_text()
    check(code == 4 and field(text, "lost_ranks") == "1", f"{said} {text}")
    check(int(field(text, "measured")) >= 2 and re.search("rank: 1, .*status: lost", text), text)
    check(said.count("messages cannot be received: MPI_Improbe") == 1, said)


def errors_about(folder, dead, calls):
    """A rank dies while it lists its GPUs, and MPI returns errors for whatever concerns it. One survey per
    call that returns them, all at once. Each has an inventory, and only the dead rank's GPUs are missing."""
    runs = []
    for call in calls:
        there = folder / call
        there.mkdir()
        write_fleet(there, [node("n1", 3), node("n2", 3)])
        env = {**failing("nothing"), "GPUMEMTOPO_TEST_DIES": "listing", "GPUMEMTOPO_TEST_RANK": str(dead),
               "GPUMEMTOPO_TEST_PEER_FAILS": call, "GPUMEMTOPO_EXIT_FILE": str(there / "code")}
        launch = command(3, "--simulate", "fleet.yaml", "-o", "out.yaml", "--config",
                         impatient(there, 3 * SLOWER), *FAST, recovery=True)
        (there / "code").touch()
        said = open(there / "said", "w")
        runs.append((call, there, subprocess.Popen(launch, cwd=there, env=environment(**env), stderr=said,
                                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)))
    for call, there, run in runs:
        run.wait(timeout=HANGS_S)
        said = (there / "said").read_text()
        check((there / "out.yaml").exists(), f"{call}: no inventory: {said}")
        text = (there / "out.yaml").read_text()
        check((there / "code").read_text().startswith("4"), f"{call}: {(there / 'code').read_text()} {said}")
        check(field(text, "lost_ranks") == "1" and field(text, "measured") == "4", f"{call}: {said} {text}")
        check(f"rank: {dead}, uuid: null, status: lost" in text, f"{call}: {text}")


def case_errors_about_rank_0(folder):
    """The others go on as with a silent rank 0."""
    errors_about(folder, 0, ["MPI_Isend", "MPI_Test", "MPI_Improbe"])


def case_errors_about_rank(folder):
    """Rank 0 goes on as with a silent rank."""
    errors_about(folder, 1, ["MPI_Isend", "MPI_Test", "MPI_Imrecv"])


def case_no_page(folder):
    """No room for the page: the inventory tells what was found, the process that something is missing.
    With --page it is beside the inventory."""
    write_fleet(folder, [node("n1", 1)])
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "a.b.yaml", "--page", *FAST)
    check(code == 0 and "page written to a.b.html" in said and (folder / "a.b.html").stat().st_size > 10000, said)
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "-", "--page", *FAST)
    check(code == 0 and "page" not in said and len(list(folder.glob("*.html"))) == 1, said)
    for faults, found, returned in (("", 0, 1), ("{gpu: 1, kind: crash, after: 1}", 4, 4),
                                    ("{gpu: 1, kind: fabric, state: failed}", 3, 3)):
        write_fleet(folder, [node("n1", 2, faults)])
        code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--html",
                               "/dev/full", *FAST)
        text = (folder / "out.yaml").read_text()
        check(code == returned and field(text, "exit_code") == str(found), f"{code} {text}")
        check("/dev/full: cannot write" in said and "page written" not in said, said)


def case_in_driver(folder):
    """A worker that sits in the driver when the survey is interrupted, or was given up for its time
    limit just then: what it had finished is in the report, which comes in time."""
    for limit, status in ((60, "failed"), (3 * SLOWER, "timed_out")):
        write_fleet(folder, [node("n1", 2, "{gpu: 0, kind: hang, after: 1}")])
        run = subprocess.Popen(
            command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", str(limit), *FAST),
            cwd=folder, env=environment(**failing("kill")), stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        workers_that_stay(1)
        time.sleep(0 if limit == 60 else limit - 1.8)  # it stayed for two seconds
        since = time.monotonic()
        run.send_signal(signal.SIGTERM)
        check(run.wait(timeout=HANGS_S) == 4, run.returncode)
        text, took = (folder / "out.yaml").read_text(), time.monotonic() - since
        check(field(text, "measured") == "1" and field(text, "lost_ranks") == "0", text)
        check(f"status: {status}, reason:" in text and "status: lost" not in text, text)
        check(text.count("serial:") == 2 and took < 5 * SLOWER * busy(), f"{took:.1f} s, {text}")


def case_lingers(folder):
    """Workers that do not leave when they have said all, the listing one too: nobody waits for them with
    the report, and they are not left behind."""
    if SLOWER > 1:
        sys.exit(SKIP)  # a search for leaks is waited for
    write_fleet(folder, [node("n1", 2)])
    since = time.monotonic()
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", "2",
                           *FAST, env=failing("exit"))
    took, text = time.monotonic() - since, (folder / "out.yaml").read_text()
    check(code == 0 and field(text, "measured") == "2", f"{code} {said} {text}")
    check(float(field(text, "wall_s")) < 2 * busy(), f"the report came late: {text}")
    check(2 < took < 2 + 10 * SLOWER * busy(), f"{took:.1f} s")


def case_listing(folder):
    """The worker that lists rank 0's GPUs hangs: it has no more time than one that measures."""
    write_fleet(folder, [node("n1", 2), node("n2", 2)])
    since = time.monotonic()
    code, _, said = survey(folder, 2, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", "5",
                           *FAST, env=failing("listing"))
    took, text = time.monotonic() - since, (folder / "out.yaml").read_text()
    check(code == 4 and field(text, "measured") == "2" and took < 5 + 10 * SLOWER * busy(), f"{took:.1f} s, {text}")
    check(re.search("rank: 0, uuid: null, status: timed_out, reason: .*no answer in 5 s", text), text)


def case_long_request(folder):
    """A request longer than a pipe usually holds, to a worker that does not read it."""
    write_fleet(folder, [node("n1", 1)])
    long = ("--probes", ",".join(9000 * ["main.latency"]))
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", *long)
    check(code == 0, said)
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", "2",
                           *long, env=failing("listing"))
    check(code == 4 and "no answer in 2 s" in (folder / "out.yaml").read_text(), f"{code} {said}")


def case_no_mpi(folder):
    """What did not start is not ended."""
    write_fleet(folder, [node("n1", 1)])
    code, _, said = survey(folder, 1, "--simulate", "fleet.yaml", *FAST,
                           env=failing("MPI_Init_thread"))
    check(code == 1 and "MPI_Init_thread: error" in said and said.count("\n") == 1, said)


def case_words(folder):
    """What MPI says at its end reaches who wants all words, but not a wrapper's user."""
    write_fleet(folder, [node("n1", 1)])
    ask = ("--simulate", "fleet.yaml", "-o", "out.yaml", *FAST)
    code, _, said = survey(folder, 1, *ask, env=failing("MPI_Finalize"))
    check(code == 0 and "words of MPI" in said, said)
    (folder / "words").touch()
    code, _, said = survey(folder, 1, *ask,
                           env={**failing("MPI_Finalize"), "GPUMEMTOPO_STDERR": str(folder / "words")})
    said += (folder / "words").read_text()
    check(code == 0 and "inventory written" in said and "words of MPI" not in said, said)


main(globals())
