"""Replays every record of a folder and compares the inventory with the golden file beside it.

usage: check.py PROGRAM SOURCE_ROOT FOLDER [--update | NAME...]

NAME.gmr or NAME.gmr.xz is a record (gpumemtopo-survey --record), NAME.yaml what its analysis gives: the inventory
without what differs from run to run. --update writes the golden files anew; look at the difference
before it is committed. A folder without records is a skip. Each record is replayed a second time as on an older CPU, except
under ASan; with names, only these records are, and once.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import unpack

PROGRAM, ROOT, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
UPDATE = sys.argv[4:] == ["--update"]
NAMES = [] if UPDATE else sys.argv[4:]
ONCE = NAMES or b"__asan_init" in PROGRAM.read_bytes()
# glibc chooses its functions by these. No other CPU or C library may change what is replayed.
OLDER_CPU = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4,-ERMS,-SSE4_1"}
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PRTE_)")
STANDARD_BYTES_MAX = 4 << 20
SKIP = 77

VOLATILE = [(r"version: [^,]+", "version: X"), (r"generated: [^,]+", "generated: X"),
            (r"command: \[.*?\]", "command: [X]"), (r"wall_s: [\d.e+-]+", "wall_s: 0")]


def replay(record, more={}):
    """The inventory's text without what differs from run to run, or None; and what was said."""
    env = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
    env.pop("GPUMEMTOPO_EXIT_FILE", None)
    env.update(more)
    env["ASAN_OPTIONS"] = "detect_leaks=0"  # looked for elsewhere; takes seconds per process
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-records-") as there:
        record = unpack.plain(record, there)
        if "standard" in record.name and record.stat().st_size > STANDARD_BYTES_MAX:
            return None, f"{record.stat().st_size} bytes, at most {STANDARD_BYTES_MAX} for a standard record"
        output = pathlib.Path(there) / "out.yaml"
        done = subprocess.run([PROGRAM, "--replay", record, "-o", output,
                               "-c", ROOT / "configs/survey.yaml", "--no-progress"],
                              env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode not in (0, 3, 4) or not output.exists():
            return None, done.stderr
        text = output.read_text()
    for pattern, word in VOLATILE:
        text, count = re.subn(pattern, word, text, count=1)
        if count != 1:
            return None, f"the inventory has no {word.split(':')[0]}"
    missed = "".join(line + "\n" for line in done.stderr.splitlines() if "not in the record" in line)
    return text, missed


def problem_of(record):
    golden = FOLDER / f"{unpack.name(record)}.yaml"
    text, said = replay(record)
    if text is None:
        return f"not replayed: {said}"
    if not ONCE and replay(record, OLDER_CPU)[0] != text:
        return "a second replay, as on an older CPU, gives another inventory"
    if UPDATE:
        golden.write_text(text)
        print(f"{golden}: written\n{said}", end="")
        return None
    if not golden.exists():
        return f"no {golden.name} beside it"
    if golden.read_text() != text:
        lines = difflib.unified_diff(golden.read_text().splitlines(True), text.splitlines(True),
                                     golden.name, "replayed now", n=0)
        return "another inventory than the golden one\n" + "".join(lines) + said
    return None


def main():
    records = [r for r in unpack.records(FOLDER) if not NAMES or unpack.name(r) in NAMES]
    if not records:
        print(f"no records in {FOLDER}")
        sys.exit(SKIP)
    bad = len(set(NAMES)) - len(records) if NAMES else 0
    for record in records:
        problem = problem_of(record)
        bad += problem is not None
        print(f"{record.name}: {problem or 'ok'}")
    for golden in FOLDER.glob("*.yaml"):
        if not NAMES and golden.stem not in map(unpack.name, records):
            print(f"{golden.name}: no record beside it")
            bad += 1
    sys.exit(1 if bad else 0)


main()
