"""Judges every recorded survey of a GPU against every other one of it as its baseline.

usage: drift.py PROGRAM SOURCE_ROOT FOLDER

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

PROGRAM, ROOT, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PRTE_)")
SKIP = 77


def replay(record, output, *more):
    env = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
    env.pop("GPUMEMTOPO_EXIT_FILE", None)
    env["ASAN_OPTIONS"] = "detect_leaks=0"
    return subprocess.run([PROGRAM, "--replay", record, "-o", output, "-c",
                           ROOT / "configs/survey.yaml", "--quiet", *more], env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-drift-") as there:
        records = [unpack.plain(record, there) for record in unpack.records(FOLDER, "h200-*")]
        if len(records) < 2:
            sys.exit(SKIP)
        earlier = {}
        for record in records:
            earlier[record] = pathlib.Path(there) / f"{record.stem}.yaml"
            done = replay(record, earlier[record])
            if done.returncode:
                sys.exit(f"{record.name}: exit {done.returncode}\n{done.stderr}")
        for now, then in itertools.permutations(records, 2):
            output = pathlib.Path(there) / "out.yaml"
            done = replay(now, output, "--baseline", earlier[then])
            if done.returncode:
                failed += 1
                print(f"{now.name} against {then.name}: exit {done.returncode}\n{done.stderr}")
                print(output.read_text().partition("\noutliers:")[2] if output.exists() else "")
    print(f"{len(records) * (len(records) - 1)} pairs, {failed} failed")
    sys.exit(1 if failed else 0)


main()
