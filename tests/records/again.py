"""A real GPU that was measured again: the replay confirms a deviation as the survey did.

usage: again.py PROGRAM SOURCE_ROOT RECORD

The record was made with a baseline in which main.bandwidth.read was 10 % higher than the GPU has it, so
that the GPU looked bad and main.bandwidth.read, and nothing else, was measured again.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import unpack

PROGRAM, ROOT, RECORD = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PRTE_)")


def replay(folder, *more):
    env = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
    env["ASAN_OPTIONS"] = "detect_leaks=0"
    done = subprocess.run([PROGRAM, "--replay", unpack.plain(RECORD, folder), "-o", "out.yaml", "-c", ROOT / "configs/survey.yaml",
                           "--quiet", *more], cwd=folder, env=env, capture_output=True, text=True)
    text = (folder / "out.yaml").read_text()
    found = re.search(r"confirmed: \"?([^\"}]+)", text)
    return done.returncode, found and found[1], text


def better(text, metric):
    """The inventory with a better figure: a baseline from which the GPU has fallen by 9 %."""
    changed, count = re.subn(rf"({re.escape(metric)}: \[)([\d.]+)", lambda m: f"{m[1]}{float(m[2]) * 1.1:.6g}", text)
    assert count == 1, metric
    return changed


with tempfile.TemporaryDirectory(prefix="gpumemtopo-again-") as name:
    there = pathlib.Path(name)
    code, confirmed, usual = replay(there)
    problems = [] if (code, confirmed) == (0, None) else [f"without a baseline: {code}, {confirmed}"]
    for metric, expected in (("main.bandwidth.read", (3, "2 of 2")), ("l2.bandwidth.write", (0, "no"))):
        (there / "baseline.yaml").write_text(better(usual, metric))
        got = replay(there, "--baseline", "baseline.yaml")[:2]
        if got != expected:
            problems.append(f"{metric}: {got}, expected {expected}")
sys.exit("\n".join(problems) or 0)
