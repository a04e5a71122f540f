"""Runs every program once, in a build with ASan, and looks for leaks: the rank alone and under mpirun,
the worker that lists and the one that measures, the replay, every command of the report program. Other
tests leave that out: on arm64 looking for leaks takes four seconds in every process.

usage: leaks.py PROGRAM SOURCE_ROOT CASE REPORT_PROGRAM
"""
import pathlib
import re
import subprocess
import sys

from harness import FAST, PROGRAM, check, environment, main, node, survey, write_fleet

REPORT = pathlib.Path(sys.argv[4]).resolve()
OURS = (PROGRAM.name, REPORT.name)


def options(folder):
    return {"ASAN_OPTIONS": f"detect_leaks=1:exitcode=0:log_path={folder}/sanitizer"}


def survey_checked(folder, ranks, *args):
    """Exit code and stderr; every worker had the time to look for leaks."""
    code, _, said = survey(folder, ranks, *args, *FAST, "--verbose", env=options(folder))
    check("wait status 9" not in said, said)
    return code, said


def allocated_by_us(leak):
    """Open MPI does not free all it allocates, and is called by us: the innermost caller counts that
    is either a file of ours or in a library (libc's own frames are files of libc)."""
    for where in re.findall(r"^ +#[1-9]\d* 0x[0-9a-f]+ (.*)$", leak, re.M):  # 0 is the sanitizer's malloc
        if where.endswith(")"):
            return any(f"/{name}+0x" in where for name in OURS)
        if re.search(r"/src/(base|cachesim|cpd|device|inventory|judge|probes|report|survey)/\S+:\d+$", where):
            return True
    return False


def check_reports(folder, strict=True):
    """strict: no report at all; else none about memory of our own."""
    for path in folder.glob("sanitizer.*"):
        text = path.read_text(errors="replace")
        leaks = re.split(r"\n\n", text[text.find("LeakSanitizer: detected"):])[1:]
        ours = [leak for leak in leaks if "leak of" in leak and allocated_by_us(leak)]
        check("LeakSanitizer: detected" in text, text)  # anything else is worse
        check(not strict and not ours, "\n\n".join(ours) or text)
        path.unlink()


def case_survey(folder):
    """All that a survey without ranks can do: workers, record, page, spool, baseline."""
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: slow_dram, share: 0.4}")])
    code, said = survey_checked(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--record",
                                "out.gmr", "--html", "out.html", "--spool", "spool")
    check(code in (0, 3), said)
    check_reports(folder)
    code, said = survey_checked(folder, 0, "--replay", "out.gmr", "-o", "again.yaml", "--baseline",
                                "out.yaml")
    check(code in (0, 3), said)
    check_reports(folder)
    code, said = survey_checked(folder, 0, "--simulate", "nowhere.yaml")
    check(code == 2, said)
    check_reports(folder)


def case_ranks(folder):
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: crash, after: 1}")])
    code, said = survey_checked(folder, 2, "--simulate", "fleet.yaml", "-o", "out.yaml")
    check(code == 4, said)
    check_reports(folder, strict=False)


def case_report(folder):
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: remap, pending: true}")])
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--spool",
                           "spool", "--profile", "quick")
    check(code == 3, said)
    for args in (("merge", "spool", "-o", "merged.yaml"), ("diff", "out.yaml", "merged.yaml"),
                 ("show", "out.yaml"), ("show", "--topology", "out.yaml"), ("html", "out.yaml"),
                 ("json", "out.yaml"), ("json", "--mt4g", "out.yaml"), ("prometheus", "out.yaml"),
                 ("drain", "out.yaml"), ("validate", "out.yaml"), ("validate", "fleet.yaml")):
        done = subprocess.run([REPORT, *args], cwd=folder, env=environment(**options(folder)),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        bad = args[-1] == "fleet.yaml"
        check((done.returncode in (0, 3)) != bad, f"{args}: {done.returncode} {done.stderr}")
        check_reports(folder)


main(globals())
