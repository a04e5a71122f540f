"""Checks that every documented line which starts ranks keeps the others alive when one dies."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
WANTED = {"srun": ("--mpi=pmix", "--no-kill", "--kill-on-bad-exit=0", "--wait=0"),
          "mpirun": ("--enable-recovery",)}
ALONE = ("--mpi=none",)  # one task, no ranks
PROGRAM = re.compile(r'gpumemtopo-survey|"\$survey"|"\$program"')

paths = [root / "survey", *root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("docs/man/*.in"),
         *root.glob("slurm/*"), *root.glob("integrations/*/*.yaml")]
problems, seen = [], 0
for path in sorted(paths):
    text = path.read_text().replace("\\-", "-")
    for line in re.sub(r"\\e?\n", " ", text).splitlines():
        found = re.search(r"\b(srun|mpirun) (-.*)", line)
        if not found or not PROGRAM.search(found[2]) or any(f in line for f in ALONE):
            continue
        seen += 1
        for flag in WANTED[found[1]]:
            if flag not in line:
                problems.append(f"{path.relative_to(root)}: no {flag}: {line.strip()}")
print("\n".join(problems) or f"{seen} lines")
sys.exit(1 if problems or not seen else 0)
