"""Checks that the samples in reports/ are up to date: check.py SURVEY REPORT SOURCE_ROOT

Time and duration, which differ from run to run, are not compared.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

survey, report, root = sys.argv[1:4]
reports = pathlib.Path(root) / "reports"
make = pathlib.Path(__file__).with_name("make.sh")


def steady(path):
    text = path.read_text(encoding="utf-8")
    return re.sub(r'generated: "[^"]*"|wall_s: [\d.]+', "", text)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([make, survey, report, root, folder], check=True)
    stale = []
    if steady(folder / "demo.yaml") != steady(reports / "demo.yaml"):
        stale.append("demo.yaml")
    for inventory in sorted(reports.glob("*.yaml")):
        subprocess.run([report, "validate", inventory], check=True)
        page = folder / "page.html"
        subprocess.run([report, "html", "-o", page, inventory], check=True)
        committed = inventory.with_suffix(".html")
        if not committed.exists() or committed.read_bytes() != page.read_bytes():
            stale.append(committed.name)
if stale:
    print(f"out of date in reports/: {', '.join(stale)}; run 'meson compile -C build samples', look at them, "
          "commit them")
sys.exit(1 if stale else 0)
