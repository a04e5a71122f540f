#!/usr/bin/env python3
"""Compares the tests of the tree with the tests that ran.

usage: tests.py report BUILD STAGE SUITE...   after meson test: tests that ran, tests that did not, totals
       tests.py list BUILD ASAN_BUILD         writes tests/list.txt again, from two configured builds

tests/list.txt names every test. So a test that is not configured is noticed too, for example because a
package was missing when the build was set up, or because no meson.build adds its folder. A line is
SUITE NAME [ONLY...]:
  cuda   only where the CUDA toolkit is installed
  gcc    not in the sanitized build
  asan   only in the sanitized build
"""
import collections
import json
import pathlib
import shutil
import subprocess
import sys

LIST = pathlib.Path(__file__).resolve().parent.parent / "tests/list.txt"
HEAD = "# Every test: suite, name, where only. tools/tests.py list build build-asan\n"


def read_list():
    """Name -> (suite, tags)."""
    lines = [line.split() for line in LIST.read_text().splitlines() if line and line[0] != "#"]
    names = collections.Counter(name for _, name, *_ in lines)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        sys.exit(f"{LIST}: twice: {' '.join(twice)}")
    return {name: (suite, tags) for suite, name, *tags in lines}


def configured(build):
    """Name -> suite, of all tests that meson has configured."""
    done = subprocess.run(["meson", "introspect", "--tests", build], check=True, stdout=subprocess.PIPE)
    return {test["name"]: test["suite"][0].split(":")[-1] for test in json.loads(done.stdout)}


def ran(build):
    """Name -> result, from the last run of each group of suites."""
    logs = sorted(pathlib.Path(build, "meson-logs").glob("testlog*.json"))
    tests = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    return {test["name"].split(" / ")[-1]: test["result"] for test in tests}


def report(build, stage, *suites):
    """Prints one line for people, the names of missing tests, then a line of totals: ok, failed, skipped."""
    known, here, results = read_list(), configured(build), ran(build)
    wanted = {name for name, (suite, tags) in known.items() if suite in suites
              and not ("gcc" in tags and stage == "asan") and not ("asan" in tags and stage != "asan")}
    absent = {name for name in wanted if "cuda" in known[name][1] and name not in here}
    if shutil.which("nvcc") or pathlib.Path("/usr/local/cuda/bin/nvcc").exists():
        absent = set()
    lost = sorted(wanted - absent - set(results))
    suites_known = {suite for suite, _ in known.values()}
    strange = sorted(name for name, suite in here.items() if name not in known
                     and (suite in suites or suite not in suites_known))
    counts = collections.Counter(results.get(name, "lost") for name in wanted - absent)
    ok = counts["OK"] + counts["EXPECTEDFAIL"]
    skipped = counts["SKIP"] + len(absent)
    failed = len(wanted) - ok - skipped + len(strange)
    print(f"== {stage}: {len(wanted) - len(lost) - len(absent)} of {len(wanted)} tests ran: {ok} ok, "
          f"{failed} failed, {skipped} skipped")
    for name in lost:
        print(f"   did not run: {name}" + ("" if name in here else " (not configured)"))
    for name in strange:
        print(f"   not in tests/list.txt: {name}")
    if absent:
        print(f"   skipped without the CUDA toolkit: {' '.join(sorted(absent))}")
    print("totals", ok, failed, skipped)


def write_list(build, asan):
    plain, sanitized = configured(build), configured(asan)
    before = read_list() if LIST.exists() else {}
    lines = [HEAD]
    for suite, name in sorted((suite, name) for name, suite in {**plain, **sanitized}.items()):
        tags = [tag for tag in before.get(name, (suite, []))[1] if tag == "cuda"]
        tags += ["gcc"] if name not in sanitized else ["asan"] if name not in plain else []
        lines.append(" ".join([suite, name, *tags]) + "\n")
    LIST.write_text("".join(lines))


{"report": report, "list": write_list}[sys.argv[1]](*sys.argv[2:])
