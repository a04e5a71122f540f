"""Judges every recorded survey of a GPU against every other one of it as its baseline.

usage: drift.py SURVEY REPORT SOURCE_ROOT FOLDER

Each record is replayed once, and once more against the next one. All pairs are judged by `merge`, which
is the same judge: a replay would read each record again for each pair.

The records h200-* are of one healthy GPU, measured in all profiles: whatever is accused is a false alarm, be
it by chance or because a figure means another thing in another profile.
"""
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import unpack

SURVEY, REPORT, ROOT, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PRTE_)")
SKIP = 77


def judge(program, *words):
    env = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
    env.pop("GPUMEMTOPO_EXIT_FILE", None)
    env["ASAN_OPTIONS"] = "detect_leaks=0"
    return subprocess.run([program, *words, "-c", ROOT / "configs/survey.yaml"], env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-drift-") as there:
        records = [unpack.plain(record, there) for record in unpack.records(FOLDER, "h200-*")]
        if len(records) < 2:
            sys.exit(SKIP)
        output, inventories = pathlib.Path(there) / "out.yaml", {}
        for record in records:
            inventories[record] = pathlib.Path(there) / f"{record.stem}.yaml"
            done = judge(SURVEY, "--replay", record, "-o", inventories[record], "--quiet")
            if done.returncode:
                sys.exit(f"{record.name}: exit {done.returncode}\n{done.stderr}")
        runs = [(now, then, REPORT, "merge", inventories[now], "-o", output)
                for now, then in itertools.permutations(records, 2)]
        runs += [(now, then, SURVEY, "--replay", now, "-o", output, "--quiet")
                 for now, then in zip(records, records[1:] + records[:1])]
        for now, then, *command in runs:
            output.unlink(missing_ok=True)
            done = judge(*command, "--baseline", inventories[then])
            if done.returncode:
                failed += 1
                print(f"{command[1]}: {now.name} against {then.name}: exit {done.returncode}\n{done.stderr}")
                print(output.read_text().partition("\noutliers:")[2] if output.exists() else "")
    print(f"{len(runs)} runs, {failed} failed")
    sys.exit(1 if failed else 0)


main()
