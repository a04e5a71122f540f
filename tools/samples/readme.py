"""Checks that documents quote what reports/demo.yaml says: readme.py REPORT SOURCE_ROOT

SUMMARIES quote the summary of the survey, in its order; "..." stands for omitted lines, and the duration is not
compared. Each line of a YAML block in EXCERPTS must be in the file, in the same order; those of the figures, in what `csv` gives.
"""
import pathlib
import re
import subprocess
import sys

SUMMARIES = "README.md", "docs/report.md"
EXCERPTS = "docs/report.md", "docs/outliers.md"

report, root = sys.argv[1], pathlib.Path(sys.argv[2])
shown = subprocess.run([report, "show", "--width", "100", f"{root}/reports/demo.yaml"], check=True,
                       stdout=subprocess.PIPE).stdout.decode()
inventory = (root / "reports/demo.yaml").read_text(encoding="utf-8")


def read(page):
    return (root / page).read_text(encoding="utf-8")


def lines_of(summary):
    lines = re.sub(r"; [\d.]+ s$", "", summary, flags=re.M).splitlines()
    return [line for line in lines if line.strip() not in ("", "...")]


def check_summary(page):
    block = re.search(r"^\d+ GPUs on \d+ nodes.*?(?=^Next: |^```)", read(page), re.M | re.S)
    if not block:
        sys.exit(f"{page} quotes no summary")
    rest = iter(lines_of(shown))
    missing = [line for line in lines_of(block.group()) if line not in rest]
    if missing:
        sys.exit(f"{page} shows what reports/demo.yaml does not give, or in another order: {missing[0]}")


def check_excerpts(page):
    blocks = re.findall(r"^```yaml\n(.*?)^```", read(page), re.M | re.S)
    if not blocks:
        sys.exit(f"{page} quotes no YAML")
    for block in blocks:
        at = 0
        for line in block.splitlines():
            line = re.sub(r" +#.*", "", line).strip()
            found = inventory.find(line, at)
            if found < 0:
                sys.exit(f"{page} quotes what reports/demo.yaml does not have, or in another order: {line}")
            at = found + len(line)


def check_figures(page):
    quoted = re.search(r"^generated,.*?(?=^```)", read(page), re.M | re.S)
    if not quoted:
        sys.exit(f"{page} quotes no figures")
    given = subprocess.run([report, "csv", f"{root}/reports/demo.yaml"], check=True, stdout=subprocess.PIPE, text=True).stdout
    missing = set(quoted.group().splitlines()) - set(given.splitlines())
    if missing:
        sys.exit(f"{page} quotes figures that reports/demo.yaml does not have: {missing.pop()}")


for page in SUMMARIES:
    check_summary(page)
for page in EXCERPTS:
    check_excerpts(page)
check_figures("docs/report.md")
