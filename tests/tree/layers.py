"""Checks the layer rule from the #include lines: a folder includes only what stands below it.

The rule itself is the table in docs/ARCHITECTURE.md; this test reads it from there, so that the
document cannot drift from what is enforced.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])


def read_rule():
    rule = {}
    for line in (root / "docs/ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        match = re.fullmatch(r"`src/(\w+)`", cells[0]) if len(cells) >= 3 else None
        if match:
            rule[match[1]] = set(re.findall(r"`(\w+)`", cells[2]))
    return rule


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if match:
            yield number, match[1]


def main():
    rule = read_rule()
    folders = {p.name for p in (root / "src").iterdir() if p.is_dir()}
    problems = [f"docs/ARCHITECTURE.md has no row for src/{f}" for f in sorted(folders - set(rule))]
    files = 0
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".c", ".h", ".cu"):
            continue
        files += 1
        layer = path.relative_to(root / "src").parts[0]
        for number, name in includes(path):
            where = f"{path.relative_to(root)}:{number}"
            if name == "mpi.h" and layer != "survey":
                problems.append(f"{where}: MPI belongs to src/survey alone")
            if name.startswith("cuda") and path.parts[-2] != "cuda":
                problems.append(f"{where}: CUDA belongs to src/device/cuda alone")
            target = name.split("/")[0]
            if "/" in name and target in folders and target != layer:
                if target not in rule.get(layer, set()):
                    problems.append(f"{where}: src/{layer} must not include src/{target}")
    print("\n".join(problems) or f"{files} files keep the layer rule")
    sys.exit(1 if problems or not files else 0)


main()
