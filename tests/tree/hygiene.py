"""Checks what no compiler sees: unfinished marks, very long lines, files without an opening sentence."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
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
print("\n".join(problems) or "clean")
sys.exit(1 if problems else 0)
