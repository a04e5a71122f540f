"""Surveys of the GPU of this machine, with and without a parasite, in turn, until the time is over.

usage: trials.py SURVEY SHIM FOLDER SECONDS ROW...      runs them; a ROW is NAME:KIND:READ:WRITE[:EVERY], as main-3:main:3:3
       trials.py table FOLDER...                        prints what came out

READ, WRITE: the share to take, in per cent, beside streams that read and beside those that write. EVERY: the row is run in every so
many rounds only.
FOLDER gets for every trial NUMBER-NAME.yaml, the inventory, and NUMBER-NAME.csv, what the shim's own streams saw.
"""
import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

# GB/s of a healthy H200, reading and writing; towards the GPU and back
USUAL = {"main": (4633, 4680), "l2": (9480, 4830), "host": (55, 55), "none": (0, 0)}


def run(survey, shim, folder, seconds, *rows):
    began, number, turn, longest = time.monotonic(), 0, 0, 0
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "log", "a", buffering=1) as log:
        while True:
            for row in rows:
                name, kind, read, write, every = (row.split(":") + ["1"])[:5]
                start = time.monotonic()
                if turn % int(every):
                    continue
                if start - began + longest > float(seconds):
                    return
                amounts = [usual * float(share) / 100 for usual, share in zip(USUAL[kind], (read, write))]
                stem = f"{number:04d}-{name}"
                done = subprocess.run([survey, "--profile", "quick", "--no-progress", "-o", f"{stem}.yaml"], capture_output=True,
                                      text=True, cwd=folder,
                                      env={**os.environ, "LD_PRELOAD": shim, "PARASITE": f"{kind} {amounts[0]:.4g} {amounts[1]:.4g}",
                                           "PARASITE_TRUTH": str(folder / f"{stem}.csv")})
                longest = max(longest, time.monotonic() - start)
                log.write(f"{stem}: exit {done.returncode}, {time.monotonic() - start:.2f} s\n")
                if done.returncode not in (0, 3):
                    log.write(done.stdout + done.stderr)
                number += 1
            turn += 1


def losses(path):
    """Figure -> losses in per cent, of each phase; and lines that say what failed."""
    found, failed = collections.defaultdict(list), []
    for line in path.read_text().splitlines():
        _, figure, off, on = line.split(",")
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
    for name, figures in list(rows.items()):
        print(f"{name}: {len(figures['failed'])} trials, {sum(map(bool, figures['failed']))} with a failure")
        for figure, each in figures.items():
            if len(set(each)) == 1 and not figure.startswith("said"):
                continue
            usual = statistics.mean(rows["healthy"][figure]) if rows.get("healthy", {}).get(figure) else None
            less = f", {100 * (1 - statistics.mean(each) / usual):+.2f} %" if usual and "." in figure and "true" not in figure else ""
            print(f"    {figure}: {statistics.mean(each):.6g}, sd {statistics.pstdev(each):.3g}, n {len(each)}{less}")


if sys.argv[1] == "table":
    table(*sys.argv[2:])
else:
    run(*sys.argv[1:])
