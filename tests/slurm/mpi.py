"""The same program under srun with PMIx, with PMI-2 and without PMI, on a real Slurm of four nodes on this machine.

usage: mpi.py PROGRAM SOURCE_ROOT CASE
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "tests" / "survey"))
from harness import FAST, MARK, PROGRAM, SKIP, check, field, main, node, write_fleet  # noqa: E402
import cluster as slurm  # noqa: E402

NODES, TASKS = 2, 2
SRUN = ("srun", "--no-kill", "--kill-on-bad-exit=0", "--wait=0", "-N", str(NODES), f"--ntasks-per-node={TASKS}")
# srun's flag, the program's, the MPI that it loads.
WAYS = ((("--mpi=pmix",), (), "Open MPI"), ((), (), "Open MPI"), (("--mpi=pmi2",), (), "MPICH"),
        (("--mpi=pmi2",), ("--mpi-library", "libmpich.so.12"), "MPICH"), (("--mpi=none",), ("--no-mpi",), None))


def case_every(folder):
    missing = slurm.missing()
    for name in ("openmpi", "mpich"):
        plugin = PROGRAM.with_name(f"gpumemtopo-mpi-{name}.so")
        missing = missing or (None if plugin.exists() else f"{plugin.name} was not built")
    if missing:
        print(missing)
        sys.exit(SKIP)
    cluster = slurm.Cluster(mark=MARK)
    try:
        listed = cluster.run("srun", "--mpi=list")
        for before, more, mpi in WAYS:
            if before and before[0].split("=")[1] not in listed.stdout + listed.stderr:
                print(f"this Slurm has no {before[0]}")
                sys.exit(SKIP)
            there = folder / "-".join(("with", *before, *more))
            there.mkdir()
            write_fleet(there, [node(f"n{i + 1}", TASKS) for i in range(NODES)])
            done = cluster.run(*SRUN, *before, PROGRAM, "--simulate", "fleet.yaml", "-o", "out.yaml", "--verbose", *FAST,
                               *more, cwd=there, env={**cluster.env, "SLURM_PMIX_FENCE": "ring"})
            said = f"{before} {more}: {done.returncode} {done.stderr}"
            check(done.returncode == 0, said)
            text = (there / "out.yaml").read_text()
            check(field(text, "ranks") == str(NODES * TASKS) and field(text, "measured") == str(NODES * TASKS), text)
            check(f": MPI: {mpi}" in done.stderr if mpi else ": MPI: " not in done.stderr, said)
        done = cluster.run(*SRUN, "--mpi=pmi2", PROGRAM, "--simulate", there / "fleet.yaml", "--mpi-library", "libmpi.so.40",
                           *FAST, cwd=folder)
        check("--mpi=pmix" in done.stderr and done.stderr.count("error: this Slurm step") == 1, f"Open MPI with PMI-2: {done.stderr}")
    finally:
        cluster.stop()


main(globals())
