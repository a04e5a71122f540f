"""Runs the real gpumemtopo-survey, alone and under mpirun, and checks what users see.

usage: survey_mpi.py PROGRAM SOURCE_ROOT CASE
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import (FAST, HANGS_S, LOCKED_UP, MODEL, MPICH, RANK, ROOT, SKIP, SLOWER, busy, check, command, environment, field,
                     impatient, launcher, main, marked, masked, node, number_of, survey, workers_that_stay,
                     write_fleet)


def case_ranks(folder):
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: slow_dram, share: 0.3}"), node("n2", 1),
                         node("n3", 2, "{gpu: 1, kind: crash, after: 5}")])
    seen = {}
    for ranks in (0, 1, 2, 5, 16) if SLOWER == 1 else (0, 5):
        there = folder / str(ranks)
        there.mkdir()
        code, _, _ = survey(there, ranks, "--simulate", "../fleet.yaml", "-o", "out.yaml",
                            "--profile", "quick", "--time-limit", str(120 * SLOWER))
        check(code == 4, f"{ranks} ranks: exit code {code}")
        check(field((there / "out.yaml").read_text(), "ranks") == str(ranks or 1), "ranks")
        check(sorted(p.name for p in there.iterdir()) == ["out.yaml"], "other files")
        seen[ranks] = masked(there / "out.yaml")
    for ranks, text in seen.items():
        first = next((p for p in zip(text.splitlines(), seen[0].splitlines()) if p[0] != p[1]), "")
        check(text == seen[0], f"{ranks} ranks give another inventory than one process: {first}")
    check(field(seen[0], "measured") == "4" and field(seen[0], "gpus") == "5", seen[0])


def case_assignment(folder):
    write_fleet(folder, [node("n1", 2)])
    code, _, said = survey(folder, 5, "--simulate", "fleet.yaml", "-o", "more.yaml", *FAST)
    check(code == 0, f"more ranks than GPUs: {code} {said}")
    check(said.count("3 ranks had no GPU to measure") == 1, said)
    write_fleet(folder, [node("n1", 4)], "visibility: all\n")
    code, _, said = survey(folder, 3, "--simulate", "fleet.yaml", "-o", "all.yaml", *FAST)
    text = (folder / "all.yaml").read_text()
    check(code == 0 and field(text, "measured") == "4" and field(text, "gpus") == "4", text)
    check(sorted(re.findall(r"^    rank: (\d+)", text, re.M)) == ["0", "0", "1", "2"], text)
    write_fleet(folder, [node("n1", 2), "{name: bare, gpus: 0}"])
    for ranks in (0, 3):
        code, _, said = survey(folder, ranks, "--simulate", "fleet.yaml", "-o", "bare.yaml", *FAST)
        text = (folder / "bare.yaml").read_text()
        check(code == 0 and field(text, "nodes") == "2", text)
        check(text.count("no GPU visible on this node") == 1 and "node: bare" in text, text)


def entries(text, key):
    """The entries of a list of the inventory, by the UUID that each begins with."""
    listed = re.search(rf"^{key}:(.*?)(?=^\w|\Z)", text, re.M | re.S)[1]
    return dict(re.findall(r"^  - uuid: (\S+)\n(.*?)(?=^  - |\Z)", listed, re.M | re.S))


def case_faults(folder):
    """Who crashes or hangs twice is failing; who does so once is measured and watched. Each try has the
    whole time limit."""
    write_fleet(folder, [node("n1", 5, "{gpu: 0, kind: crash, after: 4}, {gpu: 2, kind: hang, after: 4}, "
                                       "{gpu: 3, kind: crash, after: 4, tries: 1}"), node("n2", 1)])
    limit = 4 * SLOWER
    for ranks in (0, 2):
        begin = time.monotonic()
        code, _, _ = survey(folder, ranks, "--simulate", "fleet.yaml", "-o", "out.yaml",
                            "--time-limit", str(limit), *FAST)
        text = (folder / "out.yaml").read_text()
        check(code == 4 and field(text, "exit_code") == "4", text)
        check(field(text, "measured") == "4" and field(text, "unmeasured") == "2", text)
        check(field(text, "outliers") == "2", text)
        crashed = re.search(r"uuid: (\S+), status: crashed, reason: .*signal 11 .* during [\w.]+", text)
        hung = re.search(rf"uuid: (\S+), status: timed_out, reason: no answer in {limit} s during [\w.]+",
                         text)
        check(crashed and hung, text)
        check(f"first_try: {{status: timed_out, reason: no answer in {limit} s during" in text, text)
        accused, watched = entries(text, "outliers"), entries(text, "watch")
        check(set(accused) == {crashed[1], hung[1]}, text)
        check(all("verdict: failing" in accused[uuid] and "basis: rule" in accused[uuid] for uuid in accused), text)
        check("worker crashed twice: " in accused[crashed[1]] and "worker hung twice: " in accused[hung[1]], text)
        check(len(watched) == 1 and "worker crashed once: " in list(watched.values())[0], text)
        check(len(re.findall(r"^    serial: ", text, re.M)) == 6, "what was known before is lost")
        check(time.monotonic() - begin < 30 * SLOWER * busy(), "too slow")


def told(text):
    """The nodes of the inventory that have a finding, with its verdict."""
    listed = re.search(r"^nodes:(.*?)(?=^outliers:)", text, re.M | re.S)[1]
    return dict(re.findall(r"node: (\S+), finding: .*, verdict: (\w+)", listed))


def case_missing(folder):
    """A node that lists fewer GPUs than its like, or none although it was given some, is failing; one that
    may be smaller by right, and one of which the job was given fewer GPUs, is not."""
    def some(count, gpus, more="", name="a%d"):
        return f"{{name: {name}, count: {count}, gpus: {gpus}, model: {MODEL}{more}}}"
    gone, dead = ", faults: [{gpu: 2, kind: missing}]", ", faults: [{gpu: all, kind: dead_driver}]"
    rows = [
        ([some(3, 4), some(1, 4, gone, "b")], 3, {"b": "failing"}),
        ([some(3, 4, ", given: 4"), some(1, 4, dead, "b")], 4, {"b": "failing"}),
        ([some(4, 3)], 0, {}),
        ([some(3, 4), some(1, 2, name="b"), "{name: login, gpus: 0}"], 0, {"b": "unknown", "login": "unknown"}),
        ([some(3, 4, ", given: 4"), some(1, 4, ", given: 3", "b")], 0, {}),
        ([some(2, 4), some(1, 4, gone, "b")], 0, {}),
    ]
    for nodes, code, nodes_told in rows:
        write_fleet(folder, nodes)
        for ranks, more in (0, ()), (3, ()), (3, ("--no-mpi",)):
            got, _, said = survey(folder, ranks, "--simulate", "fleet.yaml", "-o", "out.yaml", *more, *FAST)
            text = (folder / "out.yaml").read_text()
            check(got == code and field(text, "exit_code") == str(code), f"{nodes}: {got} {said} {text}")
            check(told(text) == nodes_told, f"{nodes}: {told(text)}")
    write_fleet(folder, rows[1][0])
    survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--record", "out.gmr", *FAST)
    survey(folder, 0, "--replay", "out.gmr", "-o", "again.yaml")
    check(told((folder / "again.yaml").read_text()) == {"b": "failing"}, "replay")


def case_health(folder):
    write_fleet(folder, [node("n1", 4, "{gpu: 1, kind: health, facts: {pcie_replays: 7}}, "
                                       "{gpu: 2, kind: pcie, width: 8}, "
                                       "{gpu: 3, kind: ecc_corrected, per_s: 17700}, "
                                       "{gpu: 3, kind: xid, number: 13}")])
    code, _, said = survey(folder, 2, "--simulate", "fleet.yaml", "-o", "out.yaml",
                           "--record", "out.gmr", *FAST)
    text = (folder / "out.yaml").read_text()
    gpus = text[text.index("\ngpus:"):]
    # A link below its slot needs no peers to be judged; what it costs was not measured, so it alerts.
    check(code == 0 and text.count("action: alert") == 2, said)
    health = re.findall(r"^    health: (.*)", gpus, re.M)
    check(health[:3] == ["{}", "{pcie_replays: 7}", "{}"], text)
    check("ecc_corrected_new: 177000, ecc_corrected_per_s: 17700" in health[3]
          and 'xid: "13 (' in health[3], text)
    check(re.findall(r"^    config: (.*)", gpus, re.M) == ["{}", "{}", "{pcie_width: 8}", "{}"], text)
    lists = text[text.index("\noutliers:"):]
    check("177000, 17700 per second" in lists and "Xid 13 during the survey" in lists, text)
    code, _, said = survey(folder, 2, "--replay", "out.gmr", "-o", "again.yaml", *FAST)
    again = (folder / "again.yaml").read_text()
    check(code == 0 and again[again.index("\noutliers:"):] == lists, said)


def case_busy(folder):
    write_fleet(folder, [node("n1", 7, "{gpu: 2, kind: busy}, "
                                       "{gpu: 4, kind: health, facts: {processes: 3}}")])
    fast = ("--simulate", "fleet.yaml", "-o", "out.yaml", "--probes", "main.bandwidth.read")
    alone = folder / "alone"
    alone.mkdir()
    write_fleet(alone, [node("n1", 7)])
    code, _, said = survey(alone, 0, *fast)
    check(code == 0, said)
    quiet = (alone / "out.yaml").read_text()
    code, _, said = survey(folder, 2, *fast)
    text = (folder / "out.yaml").read_text()
    check(code == 4 and field(text, "measured") == "5" and field(text, "unmeasured") == "2", text)
    check(re.search(r"status: busy, reason: \"?1 other process computes on the GPU", text), text)
    check(re.search(r"status: busy, reason: \"?3 other processes compute on the GPU", text), text)
    check(len(re.findall(r"^    values: {}", text, re.M)) == 2, "a busy GPU was measured")
    code, _, said = survey(folder, 2, *fast, "--busy", "measure")
    text = (folder / "out.yaml").read_text()
    check(code == 0 and field(text, "measured") == "7" and field(text, "unmeasured") == "0", text)
    check(len(re.findall(r"^    status: busy", text, re.M)) == 2, "busy GPUs are marked")
    check("values: {}" not in text and "outliers: []" in text and "watch: []" in text, text)
    # Two of seven have half the bandwidth and less: neither the median nor its spread knows.
    for name in ("value", "spread"):
        busy, undisturbed = (float(re.search(rf"read: {{.*?{name}: ([^,]+)", t)[1])
                             for t in (text, quiet))
        check(abs(busy - undisturbed) < 0.01 * float(re.search(r"read: {value: ([^,]+)", text)[1]),
              f"busy GPUs are in the consensus: {name} {busy}, without them {undisturbed}")
    check(re.search(r"read: {.*?\bgpus: 5,", text), "two busy GPUs are counted")
    survey(folder, 2, *fast[:-1], "memory.whole", "--busy", "measure")
    text = (folder / "out.yaml").read_text()
    check(len(re.findall(r"main.whole.errors: \[0, 0\]", text)) == 5, "not all idle GPUs were tested: " + text)
    check(len(re.findall(r"errors: \[null, null, failed\]", text)) == 2, "a busy GPU was tested: " + text)


def case_basis(folder):
    """References and a baseline judge what a fleet of three cannot judge by itself."""
    fast = ("--simulate", "fleet.yaml", "--probes", "main.bandwidth.read,clock", "-o")
    write_fleet(folder, [node("n1", 3)])
    code, _, said = survey(folder, 0, *fast, "before.yaml")
    check(code == 0 and "too few to compare, and no reference" in said, said)
    write_fleet(folder, [node("n1", 3, "{gpu: 1, kind: slow_dram, share: 0.5}")])
    code, _, said = survey(folder, 0, *fast, "alone.yaml")
    check(code == 0, said)
    code, _, said = survey(folder, 2, *fast, "out.yaml", "--baseline", "before.yaml")
    text = (folder / "out.yaml").read_text()
    check(code == 3 and field(text, "outliers") == "1", said)
    check(re.search(r"basis: baseline, cause: \"?cause unknown \(baseline of 20", text), text)
    models = folder / "models"
    models.mkdir()
    (models / "tiny.yaml").write_text("names: [Tiny T2]\npeaks: {main.bandwidth.read: {value: 55, "
                                      "source: a sheet}}\n")
    code, _, said = survey(folder, 0, *fast, "out.yaml", "--reference", "models")
    text = (folder / "out.yaml").read_text()
    check(code == 3 and "basis: reference" in text and "outliers: 1," in text, said)
    (models / "bad.yaml").write_text("names: [Tiny T2]\n")
    for flags, message in ((("--reference", "models"), "a second reference for \"Tiny T2\""),
                           (("--reference", "nowhere"), "nowhere: cannot be read"),
                           (("--baseline", "fleet.yaml"), "fleet.yaml:1:1: not an inventory"),
                           (("--baseline", "nowhere.yaml"), "nowhere.yaml: cannot open")):
        code, _, said = survey(folder, 2, *fast, "none.yaml", *flags)
        check(code in (1, 2) and message in said, f"{code} {said}")
        check(not (folder / "none.yaml").exists(), "a report was made")


def case_kill_worker(folder):
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: hang}")])
    for ranks in (0, 2):
        code_file = folder / "code"
        code_file.write_text("")
        run = subprocess.Popen(command(ranks, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST),
                               cwd=folder, env=environment(GPUMEMTOPO_EXIT_FILE=str(code_file)),
                               stderr=subprocess.DEVNULL)
        os.kill(workers_that_stay(1)[0], signal.SIGKILL)
        check(run.wait(timeout=HANGS_S) == 0, "return code")
        text = (folder / "out.yaml").read_text()
        check(code_file.read_text() == "4\n", code_file.read_text())
        check(re.search(r"status: crashed, reason: .*signal 9 \(Killed\)", text), text)
        check(field(text, "measured") == "1", text)


def case_signals(folder):
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: hang}")])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        run = subprocess.Popen(command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST),
                               cwd=folder, env=environment(), stderr=subprocess.DEVNULL,
                               start_new_session=True,  # and not as nohup left it
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        workers_that_stay(1)
        begin = time.monotonic()
        os.killpg(run.pid, number)  # a terminal's go to the workers too
        check(run.wait(timeout=HANGS_S) == 4, f"exit code {run.returncode}")
        check(time.monotonic() - begin < 5 * SLOWER * busy(), "slow to end")
        check("the survey was interrupted" in (folder / "out.yaml").read_text(), "reason")
        (folder / "out.yaml").unlink()
    run = subprocess.Popen(command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", str(8 * SLOWER),
                                   *FAST), cwd=folder, env=environment(), stderr=subprocess.DEVNULL,
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    workers_that_stay(1)
    run.send_signal(signal.SIGHUP)
    check(run.wait(timeout=HANGS_S) == 4, f"nohup: exit code {run.returncode}")
    check("interrupted" not in (folder / "out.yaml").read_text(), "nohup")


def case_killed_rank(folder):
    """A process that dies takes its workers along: nothing is left (checked by main)."""
    write_fleet(folder, [node("n1", 2, "{gpu: all, kind: hang}")])
    run = subprocess.Popen(command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST),
                           cwd=folder, env=environment(), stderr=subprocess.DEVNULL)
    workers_that_stay(2)
    run.kill()
    run.wait()
    check(not (folder / "out.yaml").exists(), "an inventory by a dead process")


def case_mpirun_in_step(folder):
    """mpirun inside a Slurm step (salloc's shell, say), a rank killed: nothing is left (checked by main),
    since nobody would end it."""
    write_fleet(folder, [node("n1", 4, "{gpu: 0, kind: hang, after: 1}")])
    run = subprocess.Popen(
        command(2, "--simulate", "fleet.yaml", "-o", "out.yaml", "--time-limit", "10", *FAST, recovery=True),
        cwd=folder, env=environment(SLURM_STEP_ID="0"), stderr=subprocess.DEVNULL)
    workers_that_stay(1)
    ranks = [pid for pid, name in marked() if name.endswith(b"gpumemtopo-survey")]
    check(len(ranks) == 2, f"ranks: {ranks}")
    os.kill(max(ranks), signal.SIGKILL)
    run.wait(timeout=HANGS_S)


def late_start(folder, wait, patience, recovery=False):
    """Runs three ranks, of which rank 0 is started late; what they said, and the inventory."""
    late = f'if [ ${RANK} = 0 ]; then {wait}; fi; exec "$@"'
    ask = command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--config", str(patience), *FAST)
    run = subprocess.run([*launcher(3, recovery), "sh", "-c", late, "sh", *ask],
                         cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, timeout=HANGS_S)
    return run.stderr, (folder / "out.yaml").read_text()


def case_late(folder):
    """A rank that starts late is waited for; one that starts when the others have given up on MPI adds its
    results to theirs."""
    write_fleet(folder, [node("n1", 3)])
    said, text = late_start(folder, "sleep 8", ROOT / "configs/survey.yaml")
    check("MPI did not start" not in said and field(text, "measured") == "3", said + text)
    # Both others: if only one had given up, the second would start with rank 0, and nobody would speak of MPI.
    given_up = 'until [ "$(ls out.yaml.spool/survey-*-rank-* 2>/dev/null | wc -l)" -ge 2 ]; do sleep 0.1; done'
    said, text = late_start(folder, given_up, impatient(folder, 4 * SLOWER), recovery=True)
    check(said.count("MPI did not start") >= 1 and field(text, "measured") == "3", said + text)
    check(field(text, "lost_ranks") == "0" and field(text, "ranks") == "3", text)
    check(not (folder / "out.yaml.spool").exists(), "all is in the inventory, and the spool is there")


def case_slow_starts(folder):
    """Healthy ranks that start at any time within the patience: nobody is lost, no word about MPI."""
    write_fleet(folder, [node("n1", 16)])
    slow = f'sleep $(awk "BEGIN {{srand(${RANK} + $0); print 8 * rand()}}"); exec "$@"'
    ask = command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST)
    for seed in range(3 if SLOWER == 1 else 1):
        run = subprocess.run([*launcher(16), "sh", "-c", slow, str(seed), *ask],
                             cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=HANGS_S)
        text = (folder / "out.yaml").read_text()
        check(run.returncode == 0 and field(text, "measured") == "16", run.stderr + text)
        check(field(text, "lost_ranks") == "0" and not re.search("MPI|lost", run.stderr), run.stderr)


def case_no_recovery(folder):
    """mpirun as it is ends all ranks when one leaves that had begun with MPI: none leaves before all are
    done."""
    write_fleet(folder, [node("n1", 4, "{gpu: 3, kind: wait, seconds: 3}")])
    stop = f'[ ${RANK} != 1 ] || kill -STOP $$; exec "$@"'
    ask = command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--config",
                  str(impatient(folder, 4 * SLOWER)), *FAST)
    run = subprocess.run([*launcher(4), "sh", "-c", stop, "sh", *ask], cwd=folder,
                         env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=HANGS_S)
    text = (folder / "out.yaml").read_text()
    # Hydra combines the codes of all processes, and the stopped one is killed in the end.
    ended = MPICH and run.returncode or run.returncode == 4 or LOCKED_UP
    check(ended and field(text, "exit_code") == "4" and field(text, "measured") == "3", f"{run.returncode} {run.stderr} {text}")
    check("rank 1 did not start" in text and field(text, "lost_ranks") == "1", text)


def case_no_mpi(folder):
    """Every task for itself gives the inventory that ranks give together, whether a task sees its own GPUs
    or all of them."""
    for visible in ("own", "all"):
        head = "visibility: all\n" if visible == "all" else ""
        write_fleet(folder, [node("n1", 3, "{gpu: 1, kind: slow_dram, share: 0.3}"),
                             node("n2", 2, "{gpu: 1, kind: crash, after: 1}")], head)
        seen = []
        for more in ((), ("--no-mpi",)):
            code, _, said = survey(folder, 4, "--simulate", "fleet.yaml", "-o", "out.yaml", *more, *FAST)
            check(code == 4 and not (folder / "out.yaml.spool").exists(), f"{code} {said}")
            seen.append(re.sub(r"command: \[.*?\]", "", masked(folder / "out.yaml")))
        check(seen[0] == seen[1], f"{visible}: {seen[0]} {seen[1]}")
        (folder / "out.yaml").unlink()
    write_fleet(folder, [node("n1", 2)])
    for env in {}, {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}:
        code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--no-mpi", *FAST,
                               env=env)
        check(code == 0 and field((folder / "out.yaml").read_text(), "measured") == "2", said)
    code, _, said = survey(folder, 3, "--simulate", "fleet.yaml", "--no-mpi", *FAST)
    made = list(folder.glob("gpumemtopo-*.yaml"))
    check(code == 0 and len(made) == 1 and field(made[0].read_text(), "measured") == "2", f"{made} {said}")
    code, out, said = survey(folder, 3, "--simulate", "fleet.yaml", "--no-mpi", "-o", "-", *FAST)
    check(code == 0 and field(out, "measured") == "2", f"{out} {said}")
    write_fleet(folder, ["{name: bare, gpus: 0}"])
    code, _, said = survey(folder, 2, "--simulate", "fleet.yaml", "-o", "bare.yaml", "--no-mpi", *FAST)
    check(code == 1 and said.count("no GPU to survey") == 1 and not list(folder.glob("bare.*")), f"{code} {said}")


def case_same_output(folder):
    """A second survey with the same output is refused while the first one runs, rank 0 of it dead or not;
    afterwards it is not."""
    write_fleet(folder, [node("n1", 4, "{gpu: 3, kind: wait, seconds: 8}")])
    run = subprocess.Popen(command(4, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST, recovery=True),
                           cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    spool = folder / "out.yaml.spool"
    while len(list(spool.glob("gpu-*.spool"))) < 3:
        time.sleep(0.05)
    second = ("--simulate", "fleet.yaml", "-o", "out.yaml", "--probes", "clock")
    code, _, said = survey(folder, 0, *second)
    check(code == 2 and "another survey is running with this output (host " in said, f"{code} {said}")
    rank0 = next(pid for pid, name in marked() if name.endswith(b"gpumemtopo-survey") and
                 number_of(pid) == "0")
    os.kill(rank0, signal.SIGKILL)
    code, _, said = survey(folder, 2, *second)
    check(code == 2 and "another survey is running with this output" in said, f"{code} {said}")
    run.wait(timeout=HANGS_S)
    check(field((folder / "out.yaml").read_text(), "measured") == "4", (folder / "out.yaml").read_text())
    code, _, said = survey(folder, 2, *second)
    check(code == 0, f"{code} {said}")


def case_spool(folder):
    """What a survey left that was killed is not mixed with the next one's, and not lost."""
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: hang}")])
    spool = folder / "out.yaml.spool"
    run = subprocess.Popen(command(0, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST),
                           cwd=folder, env=environment(), stderr=subprocess.DEVNULL)
    for _ in range(100):
        time.sleep(0.1)
        if list(spool.glob("gpu-*.spool")):
            break
    run.kill()
    run.wait()
    left = sorted(p.name for p in spool.glob("[!.]*"))
    check(len(left) == 2, f"of the killed survey: {left}")
    write_fleet(folder, [node("n1", 2)])
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST)
    aside = list(folder.glob("out.yaml.spool.before-*"))
    check(code == 0 and not spool.exists() and len(aside) == 1, f"{code} {aside} {said}")
    check(sorted(p.name for p in aside[0].glob("[!.]*")) == left, "moved")
    check(f"had results of an earlier survey: they are in {aside[0].name}" in said, said)
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--spool",
                           aside[0].name, *FAST)
    check(code == 0 and "also has results of other surveys" in said, said)
    there = {p.name for p in aside[0].iterdir()}
    check(there > set(left), f"a folder that was named: {left} {there}")
    write_fleet(folder, ["{name: bare, gpus: 0}"])
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "bare.yaml", *FAST)
    check("1 rank had no GPU to measure" in said, said)
    check(not (folder / "bare.yaml.spool").exists(), "an empty spool")


def bad_fleets(folder):
    good = node("n1", 2)
    deep = "[" * 5000 + "]" * 5000
    bomb = "a: &a [x, x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, "
                                      f"*{chr(97 + i)}]\n" for i in range(20))
    model = MODEL.read_text()
    negative = re.sub(r"(?m)\b(size:\s*)[^,}#\n]+", r"\1-4096", model, count=1)
    check(negative != model, "the model has no size to spoil")
    (folder / "negative.yaml").write_text(negative)
    return {
        "unknown key": (f"sede: 1\nnodes:\n  - {good}\n", r"fleet\.yaml:1:\d+: .*seed"),
        "wrong type": ("nodes: 7\n", r"fleet\.yaml:1:\d+: "),
        "wrong number": ("nodes:\n  - {name: n1, model: x, gpus: many}\n",
                         r"fleet\.yaml:2:\d+: "),
        "negative size": ("nodes:\n  - {name: n1, model: ../negative.yaml, gpus: 1}\n",
                          r"negative\.yaml:\d+:\d+: "),
        "missing model": ("nodes:\n  - {name: n1, model: absent.yaml, gpus: 1}\n",
                          r"fleet\.yaml:2:\d+: .*absent\.yaml"),
        "empty": ("", r"fleet\.yaml:1:1: .*empty"),
        "binary": (bytes(range(256)) * 64, r"fleet\.yaml(:\d+:\d+)?: "),
        "alias bomb": (bomb, r"fleet\.yaml:\d+:\d+: .*alias"),
        "deep nesting": (deep, r"fleet\.yaml:1:\d+: .*deep"),
        "100 MB": (None, r"fleet\.yaml: larger than"),
    }


def case_bad_input(folder):
    for name, (content, pattern) in bad_fleets(folder).items():
        there = folder / name.replace(" ", "-")
        there.mkdir()
        fleet = there / "fleet.yaml"
        if content is None:
            with open(fleet, "wb") as file:
                file.truncate(100 * 1024 * 1024)
        else:
            fleet.write_bytes(content if isinstance(content, bytes) else content.encode())
        (there / "out.yaml").write_text("old")
        for ranks in (0, 3) if name == "unknown key" else (0,):
            code, out, said = survey(there, ranks, "--simulate", "fleet.yaml", "-o", "out.yaml")
            check(code == 2, f"{name}: exit code {code}, {said}")
            check(re.search(r"error: .*" + pattern, said), f"{name}: {said}")
            check(said.count("\n") == 1 and not out, f"{name}: more than one line: {said}")
        check((there / "out.yaml").read_text() == "old", f"{name}: the old file was touched")
        check(len(list(there.iterdir())) == 2, f"{name}: files left: {list(there.iterdir())}")


def case_usage(folder):
    write_fleet(folder, [node("n1", 1)])
    (folder / "bad.yaml").write_text("time_limit_s: {quick: 1, standard: 1, full: 1}\njugde: {}\n")
    (folder / "misspelt.yaml").write_text("time_limit_s: {quick: 1, standard: 1, full: 1}\n"
                                          "judge: {false_alarms: 0.01, metrics: {l1_data.sise: {floor: 0.03}}}\n")
    simulate = ("--simulate", "fleet.yaml")
    table = [
        (("--simualte", "fleet.yaml"), "did you mean --simulate?"),
        (simulate + ("--probes", "l1_dta.size"), "l1_data.size"),
        (simulate + ("-o", "absent/out.yaml"), "absent/out.yaml: cannot be written"),
        (simulate + ("-o", "."), "is a folder"),
        (simulate + ("-o", "absent/"), "absent/: cannot create"),
        (simulate + ("-o", 300 * "a"), "File name too long"),
        (simulate + ("-o", 250 * "a"), "File name too long"),
        (simulate + ("-o", "out.yaml", "--html", "absent/"), "absent/: cannot create"),
        (simulate + ("-o", "same", "--spool", "same"), "--spool and --output name the same"),
        (simulate + ("-c", "absent.yaml"), "absent.yaml: cannot open"),
        (simulate + ("-c", "bad.yaml"), "bad.yaml:2:1: "),
        (simulate + ("-c", "misspelt.yaml"), 'no probe reports "l1_data.sise"; did you mean "l1_data.size"?'),
        (("--simulate", "absent.yaml"), "absent.yaml: cannot open"),
    ]
    before = sorted(folder.iterdir())
    for args, text in table:
        for ranks in (0, 2) if args[0] == "--simualte" else (0,):
            code, out, said = survey(folder, ranks, *args)
            check(code == 2 and text in said and said.count("\n") == 1 and not out,
                  f"{args}: {code}, {said}")
    check(sorted(folder.iterdir()) == before, "files left behind")
    # Steps of Slurm without PMI survey without MPI, but not without the number of the job.
    slurm = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}
    code, _, said = survey(folder, 0, *simulate, env=slurm)
    check(code == 2 and "does not name the job" in said, f"Slurm without a job: {code}, {said}")
    slurm.update(SLURM_JOB_ID="7", SLURM_STEP_NUM_NODES="2", SLURM_GTIDS="0,1")
    code, _, said = survey(folder, 0, *simulate, "-o", "out.yaml", "--config", impatient(folder, 1), *FAST, env=slurm)
    check(code == 2 and "saw no task of another node here" in said and "--mpi=pmix" in said, f"{code}, {said}")


def case_other_mpi(folder):
    """The user names an MPI that the launcher is not for: refused, and once; without MPI it surveys."""
    other = "libmpi.so.40" if MPICH else "libmpich.so.12"
    write_fleet(folder, [node("n1", 2)])
    for more in (["--mpi-library", other], ["--no-mpi"]):
        code_file = folder / "code"
        code_file.write_text("")
        run = subprocess.run(command(2, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST, *more), cwd=folder,
                             env=environment(GPUMEMTOPO_EXIT_FILE=str(code_file)), stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=HANGS_S)
        if f"{other}: not found" in run.stderr:
            print(run.stderr)
            sys.exit(SKIP)
        code, out = int(code_file.read_text().split()[0]), folder / "out.yaml"
        if more == ["--no-mpi"]:
            check(code == 0 and field(out.read_text(), "measured") == "2", f"{code} {run.stderr}")
        else:
            check(code == 2 and not out.exists(), f"{code} {run.stderr}")
            check(run.stderr.count("gpumemtopo-survey: error: ") == 1 and "2 tasks" in run.stderr, run.stderr)
            check(("mpirun" if MPICH else "mpiexec.hydra -disable-auto-cleanup") in run.stderr, run.stderr)
            check("(--no-mpi)" in run.stderr, run.stderr)


def case_same_second(folder):
    """Surveys that begin at the same time in one folder and name no output: none replaces another's."""
    write_fleet(folder, [node("n1", 1)])
    for more in ((), ("--spool", "../spool")):
        there = folder / f"there{len(more)}"
        there.mkdir()
        begun = [subprocess.Popen(command(0, "--simulate", "../fleet.yaml", "--quiet", *FAST, *more),
                                  cwd=there, env=environment(), stdin=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) for _ in range(4)]
        check([run.wait(timeout=HANGS_S) for run in begun] == [0, 0, 0, 0], f"exit codes, {more}")
        written = sorted(p.name for p in there.iterdir())
        check(len(written) == 4 and all(name.endswith(".yaml") for name in written), written)


def case_pipe(folder):
    """A pipe into which nobody writes is an empty file, not a reason to wait."""
    os.mkfifo(folder / "fleet.yaml")
    begin = time.monotonic()
    code, _, said = survey(folder, 2, "--simulate", "fleet.yaml")
    check(code == 2 and "empty" in said and said.count("\n") == 1, said)
    check(time.monotonic() - begin < 20 * SLOWER * busy(), "slow")


def case_alone(folder):
    """No launcher: MPI would need its helpers on the PATH and leave a session in TMPDIR."""
    write_fleet(folder, [node("n1", 1)])
    session = folder / "tmp"
    session.mkdir()
    bare = {"PATH": str(session), "TMPDIR": str(session)}
    code, out, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "-", *FAST, env=bare)
    check(code == 0 and out.startswith("gpumemtopo: {schema: 4,"), f"{code} {said}")
    check(not list(session.iterdir()), "MPI was initialised")
    code, out, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "-", "--verbose", *FAST,
                             env={"ASAN_OPTIONS": "detect_leaks=1"})
    check(code == 0 and "Sanitizer" not in said, f"leaks of process or worker: {said}")
    code, out, said = survey(folder, 0, "--simulate", "fleet.yaml", "--quiet", *FAST)
    check(code == 0 and not out and not said, f"--quiet: {said}")
    written = list(folder.glob("gpumemtopo-*.yaml"))
    check(len(written) == 1 and re.fullmatch(r"gpumemtopo-\d{8}T\d{6}Z\.yaml", written[0].name),
          f"default output: {written}")
    for special in ("/dev/null", "/dev/stdout"):
        code, out, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", special, "--quiet",
                                 *FAST)
        check(code == 0 and not said and bool(out) == (special == "/dev/stdout"),
              f"-o {special}: {code} {said}")
    with open(folder / "redirected", "w") as file:
        file.write("before\n")
        file.flush()
        done = subprocess.run(command(0, "--simulate", "fleet.yaml", "-o", "/dev/stdout", *FAST),
                              cwd=folder, env=environment(), stdout=file, stderr=subprocess.PIPE)
        os.write(file.fileno(), b"after\n")
    text = (folder / "redirected").read_text()
    check(done.returncode == 0 and text.startswith("before\ngpumemtopo: {schema: 4,") and
          text.endswith("\nafter\n"), f"-o /dev/stdout > FILE: {done} {text[:80]}")
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "/dev/full", *FAST,
                           env={"TMPDIR": str(folder)})  # beside a device there is no spool
    saved = re.search(rf"the inventory is in ({folder}/gpumemtopo-\w+\.yaml) on {re.escape(os.uname().nodename)}, ", said)
    check(code == 1 and saved, f"-o /dev/full: {code} {said}")
    check(field(pathlib.Path(saved[1]).read_text(), "measured") == "1", "what was saved")
    for flag, text in (("--help", "Exit codes"), ("--version", "gpumemtopo-survey 0."),
                       ("--list-probes", "l1_data.size")):
        code, out, said = survey(folder, 0, flag, env=bare)
        check(code == 0 and text in out and not said, f"{flag}: {out}{said}")
        check(max(map(len, out.splitlines())) <= 100, f"{flag}: wide lines")
    done = subprocess.run(command(0, "--nonsense"), env=environment(), capture_output=True)
    check(done.returncode == 2, "exit code without the file")


main(globals())
