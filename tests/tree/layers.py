"""Checks the layer rules from the #include lines: a folder of src includes only what stands below
it, and of a folder within such a one only the headers that are for others.

The rules themselves are two tables in docs/ARCHITECTURE.md; this test reads them from there, so
that the document cannot drift from what is enforced.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])


def read_rules():
    """What each folder of src may include, and the public headers of each folder within."""
    below, public = {}, {}
    for line in (root / "docs/ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        match = re.fullmatch(r"`src/([\w/]+)`", cells[0])
        if match and "/" not in match[1] and len(cells) == 3:
            below[match[1]] = set(re.findall(r"`(\w+)`", cells[2]))
        elif match and "/" in match[1] and len(cells) == 2:
            public[match[1]] = set(re.findall(r"`(\w+\.h)`", cells[1]))
    return below, public


def check_tables(below, public):
    """Each folder has its row, each row its folder, each header its file."""
    source = root / "src"
    folders = {
        str(p.relative_to(source)) for p in source.rglob("*") if p.is_dir() and any(p.glob("*.c"))
    }
    rows = set(below) | set(public)
    for folder in sorted(folders - rows):
        yield f"docs/ARCHITECTURE.md has no row for src/{folder}"
    for folder in sorted(rows - folders):
        yield f"docs/ARCHITECTURE.md has a row for src/{folder}, which does not exist"
    for folder, headers in sorted(public.items()):
        for header in sorted(headers):
            if not (source / folder / header).exists():
                yield f"docs/ARCHITECTURE.md: src/{folder}/{header} does not exist"


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if match:
            yield number, match[1]


def main():
    below, public = read_rules()
    problems, files = list(check_tables(below, public)), 0
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".c", ".h", ".cu"):
            continue
        files += 1
        layer = path.relative_to(root / "src").parts[0]
        for number, name in includes(path):
            where = f"{path.relative_to(root)}:{number}"
            if name == "mpi.h" and path.name != "mpi_plugin.c":
                problems.append(f"{where}: MPI belongs to src/survey/comm/mpi_plugin.c alone")
            if name.startswith("cuda") and path.parts[-2] != "cuda":
                problems.append(f"{where}: CUDA belongs to src/device/cuda alone")
            target, _, header = name.rpartition("/")
            top = target.split("/")[0]
            if top in below and top != layer and top not in below.get(layer, set()):
                problems.append(f"{where}: src/{layer} must not include src/{top}")
            own = target == str(path.parent.relative_to(root / "src"))
            if target in public and not own and header not in public[target]:
                problems.append(f"{where}: {header} is not for others than src/{target}")
    print("\n".join(problems) or f"{files} files keep the layer rule")
    sys.exit(1 if problems or not files else 0)


main()
