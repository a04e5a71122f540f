"""Checks that every documented line of srun which starts ranks is the simplest one, with the flag that gives each task
its GPU; that those of scripts keep the job alive when a node fails; and that those of mpirun keep the other ranks alive."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
SCRIPT = ("--no-kill", "--kill-on-bad-exit=0", "--wait=0")  # in an allocation that has its GPUs
WANTED = {"srun": ("-N", "--ntasks-per-node=", "--gpus-per-task=1"), "mpirun": ("--enable-recovery",)}
NEEDLESS = ("--mpi=pmix", "--no-kill", "--wait=0")  # a reader would think that it does not work without
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
        script = found[1] == "srun" and path.parent.name == "slurm" and path.suffix != ".md"
        simulated = found[1] == "srun" and "--simulate" in line  # needs no GPUs
        for flag in SCRIPT if script else () if simulated else WANTED[found[1]]:
            if flag not in line:
                problems.append(f"{path.relative_to(root)}: no {flag}: {line.strip()}")
        for flag in NEEDLESS if found[1] == "srun" and not script else ():
            if flag in line:
                problems.append(f"{path.relative_to(root)}: {flag}: {line.strip()}")
print("\n".join(problems) or f"{seen} lines")
sys.exit(1 if problems or not seen else 0)
