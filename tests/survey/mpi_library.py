"""Which MPI library the survey loads, and which it does not, one case each. The program is copied beside its plug-ins
into a folder of its own, where they can be damaged.

usage: mpi_library.py PROGRAM SOURCE_ROOT CASE
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from harness import FAST, HANGS_S, PROGRAM, SKIP, check, environment, field, impatient, main, node, write_fleet

OPEN_MPI, MPICH = "gpumemtopo-mpi-openmpi.so", "gpumemtopo-mpi-mpich.so"
# As the launchers set them, for one task. MPI is loaded, but a library that is refused is not started.
MPIRUN = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0", "PMIX_NAMESPACE": "job", "PMIX_RANK": "0"}
HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}
STEP = {"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}


def library(name):
    """The path of a library of the system."""
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    paths = [line.split(" => ")[1] for line in said.splitlines() if line.split()[:1] == [name]]
    if not paths:
        print(f"{name} is not installed")
        sys.exit(SKIP)
    return pathlib.Path(paths[0])


def copied(folder):
    """The program and its plug-ins."""
    there = folder / "program"
    there.mkdir()
    for name in (PROGRAM.name, OPEN_MPI, MPICH):
        if not PROGRAM.with_name(name).exists():
            print(f"{name} was not built")
            sys.exit(SKIP)
        shutil.copy(PROGRAM.with_name(name), there / name)
    write_fleet(folder, [node("n1", 2)])
    return there / PROGRAM.name


def run(folder, program, launcher, *args, code, **env):
    for left in folder.glob("out.yaml*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    done = subprocess.run([program, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST, *args], cwd=folder,
                          env=environment(**launcher, **env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=HANGS_S)
    check(done.returncode == code, f"{args} {env}: {done.returncode}, {done.stderr}")
    return done.stderr


def refused(folder, program, launcher, *args, **env):
    """One line, which also says what to do."""
    said = run(folder, program, launcher, *args, code=2, **env)
    check(said.count("\n") == 1 and said.startswith("gpumemtopo-survey: error: "), said)
    check("--no-mpi" in said and not (folder / "out.yaml").exists(), said)
    return said


def loaded(folder, launch, *args, **env):
    """The library that the two tasks of a launcher load, as --verbose has it."""
    done = subprocess.run([*launch, "-n", "2", PROGRAM, "--simulate", "fleet.yaml", "-o", "out.yaml", "--verbose", *FAST, *args],
                          cwd=folder, env=environment(**env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=HANGS_S)
    check(done.returncode == 0, f"{launch} {args}: {done.returncode}, {done.stderr}")
    text = (folder / "out.yaml").read_text()
    check(field(text, "ranks") == "2" and field(text, "measured") == "2", text)
    lines = [line for line in done.stderr.splitlines() if ": MPI: " in line]
    check(len(lines) == 1, done.stderr)
    return lines[0]


def case_chosen(folder):
    """The same program under both launchers, also with the variables of another one around it."""
    write_fleet(folder, [node("n1", 2)])
    for words, around, version in (
            (["mpirun", "--oversubscribe"], {}, "Open MPI"), (["mpiexec.hydra"], {}, "MPICH"),
            (["mpiexec.hydra"], {"PMIX_NAMESPACE": "step", "PMIX_RANK": "0", **STEP}, "MPICH")):
        if not shutil.which(words[0]):
            print(f"{words[0]} is not installed")
            sys.exit(SKIP)
        said = loaded(folder, words, **around)
        check(f": MPI: {version}" in said, said)


def case_missing(folder):
    """Without a plug-in or a library the survey goes on, and one line says what to do."""
    program = copied(folder)
    other = program.with_name("other-names")  # looks for libraries that nobody has
    names = program.read_bytes()
    for name in (b"libmpi.so.40", b"libmpich.so.12", b"libmpi.so.12"):
        check(name + b"\0" in names, f"the program does not name {name}")
        names = names.replace(name + b"\0", b"libno" + name[5:] + b"\0")
    other.write_bytes(names)
    other.chmod(0o755)
    patience = ("--config", impatient(folder, 1))  # the second task never comes

    def survives(program, launcher, *words):
        said = run(folder, program, launcher, *patience, code=4, GPUMEMTOPO_JOB="missing")
        text = (folder / "out.yaml").read_text()
        check(said.count("surveying without MPI") == 1 and all(word in said for word in words), said)
        check(field(text, "measured") == "1" and field(text, "lost_ranks") == "1", text)

    survives(other, MPIRUN, "libnoi.so.40", "was not found", "--mpi-library", "openmpi-bin")
    survives(other, HYDRA, "libnoich.so.12 or libnoi.so.12", "was not found", "--mpi-library", "mpich")
    one = {**HYDRA, "PMI_SIZE": "1"}  # needs no MPI
    check("MPI" not in run(folder, other, one, code=0), "a warning to a single task")
    unknown = {name: value for name, value in HYDRA.items() if name != "PMI_SIZE"}
    said = run(folder, other, unknown, code=2)
    check(said.count("\n") == 1 and "was not found: install it" in said, said)
    said = subprocess.run([other, "--version"], capture_output=True, text=True, env=environment()).stdout
    check(said.count(": not found\n") == 2, said)
    for launcher, plugin in ((MPIRUN, OPEN_MPI), (HYDRA, MPICH)):
        kept = program.with_name(plugin).read_bytes()
        program.with_name(plugin).unlink()
        survives(program, launcher, plugin, "is not installed", "install gpumemtopo again")
        said = run(folder, program, {}, code=0)
        check("MPI" not in said, said)
        said = subprocess.run([program, "--version"], capture_output=True, text=True, env=environment()).stdout
        check(said.count("its plug-in is not installed") == 1, said)
        program.with_name(plugin).write_bytes(kept)


def case_damaged(folder):
    """A plug-in or a library that was cut anywhere, or is none, is named and not loaded."""
    program = copied(folder)
    names = ((MPIRUN, OPEN_MPI, "libmpi.so.40"), (HYDRA, MPICH, "libmpich.so.12"))
    for launcher, plugin, name in names:
        whole = program.with_name(plugin).read_bytes()
        there = folder / "lib"
        there.mkdir(exist_ok=True)
        system = library(name).read_bytes()
        for share in (0, 0.001, 0.3, 0.9, 0.9999):
            program.with_name(plugin).write_bytes(whole[:int(share * len(whole))])
            said = refused(folder, program, launcher)
            check(f"{plugin}: is damaged or no shared library" in said, said)
            (there / name).write_bytes(system[:int(share * len(system))])
            said = refused(folder, PROGRAM, launcher, LD_LIBRARY_PATH=str(there))
            check(f"{there / name}: is damaged or no shared library" in said, said)
        program.with_name(plugin).write_text("INPUT(libmpi.so)\n")
        refused(folder, program, launcher)
        program.with_name(plugin).write_bytes(whole)
        shutil.rmtree(there)


def case_foreign(folder):
    """What belongs to somebody else, or what others may write, is not loaded; not by another name either."""
    program = copied(folder)
    there = folder / "lib"
    there.mkdir()
    copy, link = there / "libmpi.so.40", folder / "link.so"
    shutil.copy(library(copy.name), copy)
    link.symlink_to(copy)
    for mode in (0o757, 0o646):
        copy.chmod(mode)
        for path in (copy, link):
            said = refused(folder, PROGRAM, MPIRUN, "--mpi-library", path)
            check("may be written by other users" in said and str(copy) in said, said)
        said = refused(folder, PROGRAM, MPIRUN, LD_LIBRARY_PATH=str(there))
        check("may be written by other users" in said, said)
        program.with_name(OPEN_MPI).chmod(mode)
        said = refused(folder, program, MPIRUN)
        check(f"{OPEN_MPI}: may be written by other users" in said, said)
    copy.chmod(0o755)
    program.with_name(OPEN_MPI).chmod(0o755)
    if os.geteuid() != 0:
        print("only root can give files away")
        return
    os.chown(copy, 65534, 0)
    said = refused(folder, PROGRAM, MPIRUN, "--mpi-library", copy)
    check("belongs to user 65534" in said and "is not loaded" in said, said)
    os.chown(program.with_name(OPEN_MPI), 65534, 0)
    said = refused(folder, program, MPIRUN)
    check(f"{OPEN_MPI}: belongs to user 65534" in said, said)


def case_wrong(folder):
    """An MPI under the name of another one, a library that is no MPI, a plug-in of another version, a folder."""
    program = copied(folder)
    there = folder / "lib"
    there.mkdir()
    shutil.copy(library("libmpi.so.40"), there / "libmpich.so.12")
    said = refused(folder, PROGRAM, HYDRA, LD_LIBRARY_PATH=str(there))
    check("is Open MPI, but the launcher needs MPICH" in said, said)
    for name, reason in ((library("libm.so.6"), "is no MPI library"), (there, "is no file"), ("/dev/null", "is no file"),
                         ("libnone.so.1", "not found"), (folder / "none.so", "not found")):
        said = refused(folder, PROGRAM, MPIRUN, "--mpi-library", name)
        check(f"{name}: {reason}" in said, said)
    plugin = program.with_name(OPEN_MPI)
    bytes_before = plugin.read_bytes()
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout.split()[1].encode()
    check(version + b"\0" in bytes_before, "the plug-in has no version")
    plugin.write_bytes(bytes_before.replace(version + b"\0", b"9" * len(version) + b"\0"))
    said = refused(folder, program, MPIRUN)
    check(f"{OPEN_MPI}: is no plug-in of gpumemtopo {version.decode()}" in said, said)
    plugin.write_bytes(bytes_before)
    shutil.copy(program.with_name(MPICH), plugin)  # of the other MPI
    said = refused(folder, program, MPIRUN)
    check(f"{OPEN_MPI}: is no plug-in of gpumemtopo {version.decode()} for Open MPI" in said, said)
    said = run(folder, program, {}, "--mpi-library", "libnone.so.1", code=0)  # no launcher: nothing is loaded
    check(said.count("--mpi-library is ignored: no launcher") == 1 and "libnone" not in said, said)
    check("--mpi-library" not in run(folder, program, {}, code=0), "a warning without reason")


def case_named(folder):
    """--mpi-library: by name, by path, in a folder that others can write to, where it is loaded by its descriptor;
    its kind is recognised whatever its name is."""
    write_fleet(folder, [node("n1", 2)])
    for words, name, version in ((["mpirun", "--oversubscribe"], "libmpi.so.40", "Open MPI"),
                                 (["mpiexec.hydra"], "libmpich.so.12", "MPICH")):
        if not shutil.which(words[0]):
            sys.exit(SKIP)
        check(f": MPI: {version}" in loaded(folder, words, "--mpi-library", name), name)
        open_folder = folder / f"open-{name}"
        open_folder.mkdir()
        shutil.copy(library(name), open_folder / "libsome.so")
        open_folder.chmod(0o777)
        said = loaded(folder, words, "--mpi-library", open_folder / "libsome.so")
        check(f": MPI: {version}" in said and "libsome.so" in said, said)


def case_hangup(folder):
    """Under nohup a hangup is ignored, whatever the libraries of an MPI do with that signal."""
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: wait, seconds: 3}")])
    for words in (["mpirun", "--oversubscribe"], ["mpiexec.hydra"]):
        if not shutil.which(words[0]):
            sys.exit(SKIP)
        pids = folder / "pids"
        pids.mkdir(exist_ok=True)
        begin = 'trap "" HUP; touch pids/$$; exec "$@"'
        process = subprocess.Popen([*words, "-n", "2", "sh", "-c", begin, "sh", PROGRAM, "--simulate", "fleet.yaml", "-o", "out.yaml", *FAST],
                                   cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not list(folder.glob("out.yaml.spool/gpu-*.spool")):
            check(process.poll() is None, "ended early")
            time.sleep(0.05)
        for path in pids.iterdir():
            children = pathlib.Path(f"/proc/{path.name}/task/{path.name}/children").read_text().split()
            for pid in [path.name, *children]:
                if b"gpumemtopo-survey" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(int(pid), signal.SIGHUP)
            path.unlink()
        said = process.communicate(timeout=HANGS_S)[1]
        text = (folder / "out.yaml").read_text()
        check(process.returncode == 0 and field(text, "measured") == "2", f"{words} {process.returncode} {said} {text}")
        (folder / "out.yaml").unlink()


main(globals())
