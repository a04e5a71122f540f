"""Surveys of the GPU of this machine, with and without a parasite, in turn, until the time is over.

usage: trials.py SURVEY SHIM FOLDER SECONDS WORLD ROW...      runs them; a ROW is NAME:KIND:AMOUNT[:EVERY], as main-3:main:138
       trials.py table FOLDER...                              prints what came out

FOLDER gets for every trial NUMBER-NAME.yaml, the inventory, and NUMBER-NAME.csv, what the shim's own streams saw.
EVERY: the row is run in every so many rounds only.
"""
import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time


def run(survey, shim, folder, seconds, world, *rows):
    began, number, turn = time.monotonic(), 0, 0
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    longest = 0
    while True:
        for row in rows:
            name, kind, amount, every = (row.split(":") + ["1"])[:4]
            if turn % int(every):
                continue
            start = time.monotonic()
            if start - began + longest > float(seconds):
                return
            stem = folder / f"{number:04d}-{name}"
            done = subprocess.run([survey, "--profile", "quick", "--world", world, "--no-progress", "-o", f"{stem}.yaml"],
                                  capture_output=True, text=True, cwd=folder,
                                  env={**os.environ, "LD_PRELOAD": shim, "PARASITE": f"{kind} {amount}",
                                       "PARASITE_TRUTH": f"{stem}.csv"})
            longest = max(longest, time.monotonic() - start)
            with open(folder / "log", "a") as log:
                log.write(f"{stem.name}: exit {done.returncode}, {time.monotonic() - start:.2f} s\n")
                if done.returncode not in (0, 3):
                    log.write(done.stdout + done.stderr)
            number += 1
        turn += 1


def losses(path):
    """Figure -> losses in per cent, of each phase and repetition; and lines that say what failed."""
    found, failed = collections.defaultdict(list), []
    for line in path.read_text().splitlines():
        _, _, figure, off, on = line.split(",")
        if figure == "failed":
            failed.append(line)
        else:
            found[figure].append(100 * (1 - float(on) / float(off)))
    return found, failed


def values(text):
    line = re.search(r"(?m)^    values: \{(.*)\}", text)
    return {metric: float(value) for metric, value in re.findall(r"([\w.]+): \[([-\d.e+]+)", line[1])} if line else {}


def table(*folders):
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted(path for folder in folders for path in pathlib.Path(folder).glob("*-*.csv")):
        name = path.stem.split("-", 1)[1]
        seen, failed = losses(path)
        for figure, each in seen.items():
            rows[name]["true " + figure].append(statistics.mean(each))
        inventory = path.with_suffix(".yaml")
        text = inventory.read_text() if inventory.exists() else ""
        for metric, value in values(text).items():
            rows[name][metric].append(value)
        rows[name]["failed"].append(len(failed))
        said = re.findall(r"(?m)metric: ([\w.]+)", text[text.find("\noutliers:"):])
        for metric in set(said):
            rows[name]["said " + metric].append(1)
    for name, figures in rows.items():
        print(f"{name}: {len(figures['failed'])} trials, {sum(map(bool, figures['failed']))} with a failure")
        for figure, each in figures.items():
            if len(set(each)) == 1 and not figure.startswith("said"):
                continue
            usual = statistics.mean(rows["healthy"][figure]) if rows["healthy"].get(figure) else None
            less = f", {100 * (1 - statistics.mean(each) / usual):+.2f} %" if usual and "." in figure and "true" not in figure else ""
            print(f"    {figure}: {statistics.mean(each):.6g}, sd {statistics.pstdev(each):.3g}, n {len(each)}{less}")


if sys.argv[1] == "table":
    table(*sys.argv[2:])
else:
    run(*sys.argv[1:])
