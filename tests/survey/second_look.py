"""GPUs that look bad are measured again, one case each.

usage: second_look.py PROGRAM SOURCE_ROOT CASE REPORT
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from harness import (HANGS_S, ROOT, SLOWER, check, command, environment, field, main, marked, masked, node,
                     number_of, survey, workers, write_fleet)

REPORT = pathlib.Path(sys.argv[4]).resolve()
CONFIG = ROOT / "configs/survey.yaml"
SLOW = "{gpu: 5, kind: slow_dram, share: 0.4}"
DISTURBED = "{gpu: 5, kind: slow_dram, share: 0.4, when: {sessions: 1}}"
ONE_FIGURE = ("--probes", "main.latency", "--no-progress")


def confirmations(text):
    return re.findall(r'metric: ([\w.]+), .*confirmed: "?([^"}]+)', text)


def case_seen_again(folder):
    """A slow GPU is slow again, with any number of ranks; replay and merge give the same verdict."""
    write_fleet(folder, [node("n1", 8, SLOW)])
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "one.yaml", "--record", "r.gmr", *ONE_FIGURE)
    check(code == 3 and "1 GPU is measured again: it looks bad" in said, f"{code}, {said}")
    check(confirmations((folder / "one.yaml").read_text()) == [("main.latency", "2 of 2")], said)
    survey(folder, 3, "--simulate", "fleet.yaml", "-o", "three.yaml", *ONE_FIGURE)
    survey(folder, 0, "--replay", "r.gmr", "-o", "replayed.yaml", "--no-progress")
    subprocess.run([REPORT, "merge", "one.yaml", "-o", "merged.yaml"], cwd=folder, check=False,
                   stderr=subprocess.DEVNULL, env=environment())
    same = [re.sub(r"command: \[.*?\]", "", masked(folder / name))
            for name in ("one.yaml", "three.yaml", "replayed.yaml", "merged.yaml")]
    check(all(text == same[0] for text in same), "other verdicts")


def check_shared(folder):
    """The sketch of the fleet does not have the disturbed value, which is far from all others."""
    shared = subprocess.run([REPORT, "share", "out.yaml"], cwd=folder, check=True, text=True, env=environment(),
                            stdout=subprocess.PIPE).stdout
    quantiles = [float(word) for word in re.search(r"main\.latency: .*quantiles: \[(.*?)\]", shared).group(1).split(",")]
    check("n: 8" in shared and quantiles[-1] < 1.1 * quantiles[0], shared)


def case_seen_once(folder):
    """A disturbance is over when the GPU is measured again: it is watched, and nobody is accused."""
    write_fleet(folder, [node("n1", 8, DISTURBED)])
    for ranks in (0, 3):
        code, _, said = survey(folder, ranks, "--simulate", "fleet.yaml", "-o", "out.yaml", "--record", "r.gmr",
                               *ONE_FIGURE)
        text = (folder / "out.yaml").read_text()
        check(code == 0 and field(text, "outliers") == "0", f"{code}, {said}")
        check(confirmations(text.split("\nwatch:")[1]) == [("main.latency", "1 of 2")], text)
        check_shared(folder)
        code, _, said = survey(folder, 0, "--replay", "r.gmr", "-o", "replayed.yaml", "--no-progress")
        check(code == 0 and confirmations((folder / "replayed.yaml").read_text()) == [("main.latency", "1 of 2")], said)


def case_not_in_the_record(folder):
    """A record without second measurements: the replay goes by the repetitions of the figure, and says so."""
    write_fleet(folder, [node("n1", 8, SLOW)])
    # With this floor nobody looks bad, so nobody is measured again.
    config = folder / "config.yaml"
    config.write_text(re.sub(r"(main\.latency: .*floor: )[\d.]+", r"\g<1>0.9", CONFIG.read_text()))
    survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--record", "r.gmr", "-c", "config.yaml",
           *ONE_FIGURE)
    code, _, said = survey(folder, 0, "--replay", "r.gmr", "-o", "replayed.yaml", "--no-progress", "-c", str(CONFIG))
    text = (folder / "replayed.yaml").read_text()
    check(code == 3 and confirmations(text) == [("main.latency", "by its repetitions")], f"{code}, {said}, {text}")


def wait_for_second(folder, run):
    """Waits until GPUs are measured again. Returns the workers that were there before."""
    deadline, before = time.monotonic() + 60 * SLOWER, []
    while "measured again" not in (folder / "said").read_text():
        check(run.poll() is None and time.monotonic() < deadline, (folder / "said").read_text())
        before = workers()
    return before


def second_worker(folder, run):
    """The worker of the second measurement, or None if that is over. Without MPI it starts after the message."""
    before = wait_for_second(folder, run)
    while run.poll() is None:
        new = [pid for pid in workers() if pid not in before]
        if new:
            return new[0]
    return None


def during_second(folder, action, *args):
    """Does something to a survey and its second worker. On a busy machine the survey may be faster: then again."""
    for _ in range(20):
        run = started(folder, 0, *args)
        worker = second_worker(folder, run)
        try:
            if worker:
                action(run, worker)
        except ProcessLookupError:
            pass
        run.wait(timeout=HANGS_S)
        if "confirmed" not in (folder / "out.yaml").read_text():
            break
    check_first_stands(folder, run)


def started(folder, ranks, *args, recovery=False):
    """A survey whose second measurement takes some tenths of a second."""
    write_fleet(folder, [node("n1", 8, "{gpu: 5, kind: l2_slice, share: 0.4}")])
    (folder / "code").touch()
    with open(folder / "said", "w") as said:
        words = command(ranks, "--simulate", "fleet.yaml", "-o", "out.yaml", "--probes", "l2.size", "--no-progress",
                        *args, recovery=recovery)
        return subprocess.Popen(
            words, cwd=folder, env=environment(GPUMEMTOPO_EXIT_FILE=str(folder / "code")),
            stdin=subprocess.DEVNULL, stderr=said)


def check_first_stands(folder, run):
    """All GPUs are in the inventory, and the slow one by its first result."""
    run.wait(timeout=HANGS_S)
    text = (folder / "out.yaml").read_text()
    check(field(text, "measured") == "8" and field(text, "unmeasured") == "0", text)
    check(field(text, "outliers") == "1" and "confirmed" not in text, text)


def case_hangs(folder):
    """The second worker hangs: it is ended at the time limit, and the first result stands."""
    during_second(folder, lambda run, worker: os.kill(worker, signal.SIGSTOP), "--time-limit", str(8 * SLOWER))


def case_rank_dies(folder):
    """The rank of the suspect dies while it measures again: its first result stands, and a warning says so."""
    run = started(folder, 3, recovery=True)
    wait_for_second(folder, run)
    for pid, name in marked():
        # GPU 5 belongs to rank 5 mod 3.
        if name.endswith(b"gpumemtopo-survey") and number_of(pid) == "2":
            os.kill(pid, signal.SIGKILL)
    check_first_stands(folder, run)
    said, text = (folder / "said").read_text(), (folder / "out.yaml").read_text()
    suspect = re.search(r"outliers:\n  - uuid: (\S+)", text).group(1)
    check(re.search(rf"rank 2 on \S+ fell silent: {suspect} could not be measured again; its first result is used",
                    said), said)
    check(field(text, "lost_ranks") == "0", text)


def case_interrupted(folder):
    """A signal during the second measurement: the inventory is written with what there is."""
    during_second(folder, lambda run, worker: run.send_signal(signal.SIGTERM))


main(globals())
