"""What the documentation quotes is what reports/demo.yaml says: readme.py REPORT SOURCE_ROOT [--write]

README.md: the survey's words from the headline to the timings (what a run takes is left as it is), which
--write puts in. All blocks of YAML: each line stands in the file.
"""
import pathlib
import re
import subprocess
import sys

report, root = sys.argv[1:3]
path = pathlib.Path(root) / "README.md"
text = path.read_text(encoding="utf-8")
shown = subprocess.run([report, "show", "--width", "100", f"{root}/reports/demo.yaml"], check=True,
                       stdout=subprocess.PIPE).stdout.decode()
block = re.search(r"^\d+ GPUs on \d+ nodes: .*?(?=^Time )", text, re.M | re.S)
took = re.search(r"; [\d.]+ s$", block.group(), re.M).group()
wanted = re.sub(r"; [\d.]+ s$", took, shown, count=1, flags=re.M).rstrip("\n") + "\n\n"
if block.group() != wanted:
    if "--write" not in sys.argv:
        print("README.md shows another output than reports/demo.yaml gives; run 'meson compile -C build samples'")
        sys.exit(1)
    path.write_text(text.replace(block.group(), wanted), encoding="utf-8")
inventory = (pathlib.Path(root) / "reports/demo.yaml").read_text(encoding="utf-8")
for page in "README.md", "docs/outliers.md":
    quoted = re.findall(r"^```yaml\n(.*?)^```", (pathlib.Path(root) / page).read_text(encoding="utf-8"), re.M | re.S)
    lines = [re.sub(r" +#.*", "", line).strip() for block in quoted for line in block.splitlines()]
    wrong = [line for line in lines if line not in inventory]
    if wrong or not lines:
        print(f"{page} quotes what reports/demo.yaml does not have: {wrong}")
        sys.exit(1)
