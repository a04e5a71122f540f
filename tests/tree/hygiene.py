"""Checks what no compiler sees: unfinished marks, very long lines, files without an opening sentence, and
documents that name files or targets which are not there: hygiene.py ROOT BUILD."""
import json
import pathlib
import re
import sys

root, build = map(pathlib.Path, sys.argv[1:])
problems = []
for folder in ("src", "tests"):
    for path in sorted((root / folder).rglob("*")):
        if path.suffix not in (".c", ".h", ".cu"):
            continue
        text = path.read_text()
        where = path.relative_to(root)
        if not text.startswith("/* "):
            problems.append(f"{where}:1: a file opens with one sentence: what it is for")
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
                problems.append(f"{where}:{number}: unfinished mark")
            if len(line) > 100:
                problems.append(f"{where}:{number}: {len(line)} columns")
# A name with a capital letter stands for any: configs/sim/NAME.yaml.
named = re.compile(r"(?<!/etc/)\b(?:src|tests|tools|configs|docs|slurm|integrations|reports)/[a-z0-9_/.-]*\w\.[a-z]+\b")
linked = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
for path in sorted(root.glob("*.md")) + sorted(root.glob("[dst]*/*.md")):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        missing = [name for name in named.findall(line) if not (root / name).exists()]
        missing += [name for name in linked.findall(line) if not (path.parent / name).exists()]
        problems += [f"{path.relative_to(root)}:{number}: there is no {name}" for name in missing]
# meson refuses a name that two targets share.
targets = [target["name"] for target in json.loads((build / "meson-info/intro-targets.json").read_text())]
for path in sorted(root.glob("*.md")) + sorted(root.glob("[dst]*/*.md")):
    for name in re.findall(r"meson compile (?:-C build )?([a-z][a-z-]*)\b", path.read_text()):
        if targets.count(name) != 1:
            problems.append(f"{path.relative_to(root)}: meson compile {name}: {targets.count(name)} targets have this name")
print("\n".join(problems) or "clean")
sys.exit(1 if problems else 0)
