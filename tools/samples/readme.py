"""What the documentation quotes is what reports/demo.yaml says: readme.py REPORT SOURCE_ROOT

README.md: an excerpt of the survey's summary, in its order; "..." stands for what is left out, and what a run
takes is not compared. All blocks of YAML: each line stands in the file.
"""
import pathlib
import re
import subprocess
import sys

report, root = sys.argv[1:3]
text = (pathlib.Path(root) / "README.md").read_text(encoding="utf-8")
shown = subprocess.run([report, "show", "--width", "100", f"{root}/reports/demo.yaml"], check=True,
                       stdout=subprocess.PIPE).stdout.decode()


def lines_of(summary):
    lines = re.sub(r"; [\d.]+ s$", "", summary, flags=re.M).splitlines()
    return [line for line in lines if line.strip() not in ("", "...")]


block = re.search(r"^\d+ GPUs on \d+ nodes: .*?(?=^gpumemtopo-survey: inventory written)", text, re.M | re.S)
rest = iter(lines_of(shown))
missing = [line for line in lines_of(block.group()) if line not in rest]
if missing:
    print(f"README.md shows what reports/demo.yaml does not give: {missing[0]}")
    sys.exit(1)
inventory = (pathlib.Path(root) / "reports/demo.yaml").read_text(encoding="utf-8")
for page in "README.md", "docs/outliers.md":
    quoted = re.findall(r"^```yaml\n(.*?)^```", (pathlib.Path(root) / page).read_text(encoding="utf-8"), re.M | re.S)
    lines = [re.sub(r" +#.*", "", line).strip() for block in quoted for line in block.splitlines()]
    wrong = [line for line in lines if line not in inventory]
    if wrong or not lines:
        print(f"{page} quotes what reports/demo.yaml does not have: {wrong}")
        sys.exit(1)
