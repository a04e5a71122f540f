"""Records surveys with the real gpumemtopo-survey, replays them, and compares the inventories.

usage: survey_replay.py PROGRAM SOURCE_ROOT CASE [EVERY]

standard replays every EVERYth model.
"""
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CASE = sys.argv[3]
EVERY = int(sys.argv[4]) if len(sys.argv) > 4 else 2
MODEL = ROOT / "tests/survey/tiny.yaml"
LAUNCHERS = re.compile(r"^(OMPI_|PMIX_|PMI_|SLURM_|PRTE_|HYDI_|MPI_LOCAL)")
SKIP = 77
MPICH = os.environ.get("GPUMEMTOPO_TEST_MPI") == "mpich"
LAUNCHER = ["mpiexec.hydra"] if MPICH else ["mpirun", "--oversubscribe"]
SLOWER = 4 if b"__asan_init" in PROGRAM.read_bytes() else 1  # where time is of no interest


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED {CASE}: {text}")


def start(folder, ranks, *args, **more):
    env = {k: v for k, v in os.environ.items() if not LAUNCHERS.match(k)}
    # By shared memory, and with a store of PMIx that does not hang: see harness.py.
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               OMPI_MCA_btl="^tcp", PMIX_MCA_gds="hash",
               GPUMEMTOPO_EXIT_FILE=str(folder / "code"),
               GPUMEMTOPO_CONFIG_DIR=str(ROOT / "configs"))
    # Looking for leaks takes seconds per process: once, with all that is recorded and replayed.
    env["ASAN_OPTIONS"] = f"detect_leaks={1 if CASE == 'full' else 0}"
    (folder / "code").write_text("")
    launcher = [*LAUNCHER, "-n", str(ranks)] if ranks else []
    return subprocess.Popen([*launcher, str(PROGRAM), *args], cwd=folder, env=env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **more)


def survey(folder, ranks, *args, **more):
    """Exit code (past mpirun's own) and stderr."""
    run = start(folder, ranks, *args, **more)
    out, said = run.communicate(timeout=600)
    check(not out, f"{args}: on stdout: {out}")
    return int((folder / "code").read_text() or run.returncode), said


def write_fleet(folder, nodes, head=""):
    (folder / "fleet.yaml").write_text(f"seed: 1\n{head}nodes:\n" +
                                       "".join(f"  - {node}\n" for node in nodes))


def node(name, gpus, faults="", model=MODEL):
    return f"{{name: {name}, model: {model}, gpus: {gpus}, faults: [{faults}]}}"


def same(path):
    """All that a replay must give again: everything but when and how this file was made."""
    text = path.read_text()
    for field in (r"generated: [^,]+", r"command: \[.*?\]", r"wall_s: [\d.e+-]+"):
        check(len(re.findall(field, text)) == 1, f"{path}: {field}")
        text = re.sub(field, "X", text)
    return text


def record(folder, ranks, *args, code=0):
    found, said = survey(folder, ranks, "--simulate", "fleet.yaml", "--record", "a.gmr",
                         "-o", "measured.yaml", "--quiet", *args)
    check(found == code and not said, f"recorded {args}: {found}, {said}")


def replay(folder, ranks, *args, code=0):
    found, said = survey(folder, ranks, "--replay", "a.gmr", "-o", "replayed.yaml", *args)
    check(found == code, f"replayed {args}: {found}, {said}")
    check((folder / "a.gmr").exists() and not list(folder.glob("*.tmp.*")), "files")
    return said


def check_same(folder, what):
    measured, replayed = same(folder / "measured.yaml"), same(folder / "replayed.yaml")
    if measured != replayed:
        lines = zip(measured.splitlines(), replayed.splitlines())
        first = next((pair for pair in lines if pair[0] != pair[1]), "more lines")
        check(False, f"{what}: {first}")


def compare_models(folder, names, profile):
    write_fleet(folder, [node(name, 1, model=ROOT / f"configs/sim/{name}.yaml") for name in names])
    record(folder, 0, "--profile", profile)
    replay(folder, 0, "--quiet")
    check_same(folder, profile)


def case_quick(folder):
    names = sorted(path.stem for path in (ROOT / "configs/sim").glob("*.yaml"))
    check(len(names) > 10, "models")
    compare_models(folder, names, "quick")


def case_standard(folder):
    names = sorted(path.stem for path in (ROOT / "configs/sim").glob("*.yaml"))
    compare_models(folder, names[::EVERY], "standard")


def case_full(folder):
    compare_models(folder, ["demo-t20"], "full")


def case_size(folder):
    """A standard record of an H200 has at most 4 MiB."""
    write_fleet(folder, [node("n1", 1, model=ROOT / "configs/sim/h200.yaml")])
    record(folder, 0)
    size = (folder / "a.gmr").stat().st_size
    check(size <= 4 << 20, f"{size} bytes")


def record_one_hung(folder, ranks):
    """With more time where a machine is so busy that other GPUs exceed the limit too."""
    for limit in (8, 40, 120):
        record(folder, ranks, "--time-limit", str(limit * SLOWER), "--profile", "quick", "--seed", "3", code=4)
        text = (folder / "measured.yaml").read_text()
        if "unmeasured: 2," in text:
            return text
    sys.exit(f"FAILED {CASE}: {text}")


def case_ranks(folder):
    """What ranks saw and how GPUs ended is in the record, however many ranks replay it."""
    faults = "{gpu: 0, kind: crash, after: 30}, {gpu: 2, kind: hang, after: 40}"
    write_fleet(folder, [node("n1", 3, faults), node("n2", 2, "{gpu: 0, kind: slow_dram, share: 0.3}"),
                         node("n3", 2), "{name: bare, gpus: 0}"])
    for ranks in (0, 3):
        text = record_one_hung(folder, ranks)
        check("status: crashed" in text and "node: bare" in text, text)
        check(re.search(r"gpus: 7, measured: 5, unmeasured: 2,", text), text)
        for others in (0, 2):
            # Were a GPU that hung waited for, this would not end.
            replay(folder, others, "--quiet", "--time-limit", "10000", code=4)
            check_same(folder, f"{ranks} ranks, replayed by {others}")


def case_busy(folder):
    """Whether busy GPUs were measured is in the record, and what they showed at first look."""
    write_fleet(folder, [node("n1", 3, "{gpu: 1, kind: busy}")])
    for how, code in (("skip", 4), ("measure", 0)):
        record(folder, 0, "--busy", how, "--profile", "quick", code=code)
        check("status: busy" in (folder / "measured.yaml").read_text(), how)
        said = replay(folder, 0, code=code)
        check("not in the record" not in said, said)
        check_same(folder, how)
    replay(folder, 0, "--busy", "skip", code=4)
    check(same(folder / "measured.yaml") != same(folder / "replayed.yaml"), "--busy has no effect")


def case_interrupted(folder):
    write_fleet(folder, [node("n1", 2, "{gpu: 1, kind: hang, after: 20}")])
    run = start(folder, 0, "--simulate", "fleet.yaml", "--record", "a.gmr", "-o", "measured.yaml",
                "--probes", "main.latency")
    for _ in range(600):
        if list((folder / "measured.yaml.spool").glob("gpu-*.spool")):
            break
        time.sleep(0.1)
    time.sleep(1)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=120)
    check((folder / "code").read_text() == "4\n", "exit code")
    check("the survey was interrupted" in (folder / "measured.yaml").read_text(), "reason")
    replay(folder, 0, code=4)
    check_same(folder, "interrupted")


def case_other_questions(folder):
    """Less than was recorded gives the same figures; of more, the probes that the record was made with, and
    a word where others were asked for by name."""
    write_fleet(folder, [node("n1", 1)])
    record(folder, 0, "--probes", "l1_data.size,main.latency,l2.latency")
    replay(folder, 0, "--probes", "main.latency")
    once = (folder / "replayed.yaml").read_text()
    measured = (folder / "measured.yaml").read_text()
    for line in re.findall(r"^      main:\n(?:        .*\n)+", once, re.M):
        check("value: 4" in line and line in measured, once)
    said = replay(folder, 0, "--profile", "standard")
    text = (folder / "replayed.yaml").read_text()
    check("not in the record" not in said and "texture:" not in text and "status: failed" not in text, f"{said} {text}")
    check(re.search(r"status: ok", text) and "measured: 1," in text, text)
    check(re.search(r"main:\n        latency: {value: \d", text), text)
    replay(folder, 0, "--probes", "shared.latency,main.latency")
    text = (folder / "replayed.yaml").read_text()
    check(re.search(r"shared:\n        latency: {value: null, status: failed, reason: the record was made without",
                    text), text)
    check(re.search(r"main:\n        latency: {value: \d", text), text)


def case_each_probe(folder):
    """Every probe finds its own again, whatever ran before it when it was recorded."""
    write_fleet(folder, [node("n1", 1)])
    record(folder, 0)
    listed = subprocess.run([PROGRAM, "--list-probes"], capture_output=True, text=True).stdout
    # Of those in `full` only, the record has nothing (case_other_questions).
    names = [line.split()[0] for line in listed.splitlines() if line.split()[1] != "full"]
    check(len(names) > 30, listed)
    for name in names:
        said = replay(folder, 0, "--probes", name)
        check("not in the record" not in said, f"{name}: {said}")


def case_bad_files(folder):
    write_fleet(folder, [node("n1", 2)])
    record(folder, 0, "--probes", "main.latency")
    whole = (folder / "a.gmr").read_bytes()
    middle = len(whole) // 2
    table = {
        "empty": (b"", "byte 0: not a record"),
        "foreign": (b"x" * 5000, "byte 0: not a record"),
        "yaml": ((folder / "measured.yaml").read_bytes(), "byte 0: not a record"),
        "future": (whole[:8] + b"\x63" + whole[9:], "byte 8: a record of version 99, expected 4"),
        "cut": (whole[:middle], r"byte \d+: cut off: expected \d+ bytes of GPU-"),
        "damaged": (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:], r"byte \d+: "),
        "longer": (whole + b"x", r"byte \d+: expected nothing behind the end"),
    }
    (folder / "old.yaml").write_text("old")
    for name, (content, pattern) in table.items():
        (folder / "bad.gmr").write_bytes(content)
        for ranks in (0, 2) if name in ("cut", "damaged") else (0,):
            code, said = survey(folder, ranks, "--replay", "bad.gmr", "-o", "old.yaml")
            check(code == 2 and said.count("\n") == 1, f"{name}: {code}, {said}")
            check(re.search(r"error: .*bad\.gmr: " + pattern, said), f"{name}: {said}")
    code, said = survey(folder, 0, "--replay", "absent.gmr", "-o", "old.yaml")
    check(code == 2 and "absent.gmr: cannot open" in said and said.count("\n") == 1, said)
    check((folder / "old.yaml").read_text() == "old", "the old file was touched")


def case_usage(folder):
    write_fleet(folder, [node("n1", 1)])
    simulate = ("--simulate", "fleet.yaml")
    table = [
        (("--replay", "a.gmr", *simulate), "--replay and --simulate exclude each other"),
        (("--replay", "a.gmr", "--record", "b.gmr"), "--replay and --record exclude each other"),
        ((*simulate, "--record", "-"), "--record needs a file"),
        ((*simulate, "--record", "x", "-o", "x"), "name the same file"),
        ((*simulate, "--record", "absent/a.gmr"), "absent/a.gmr: cannot be written"),
        ((*simulate, "--record", "."), "is a folder; --record names a file"),
        ((*simulate, "--record", "/dev/null"), "is no regular file"),
    ]
    before = sorted(folder.iterdir()) + [folder / "code"]
    for args, text in table:
        code, said = survey(folder, 0, *args)
        check(code == 2 and text in said and said.count("\n") == 1, f"{args}: {code}, {said}")
    check(sorted(folder.iterdir()) == sorted(before), "files left behind")


def case_no_room(folder):
    """The inventory stands, the record does not appear, and the exit code says so."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    write_fleet(folder, [node("n1", 3)])
    code, said = survey(folder, 0, "--simulate", "fleet.yaml", "--record", "a.gmr", "-o", "out.yaml",
                        "--quiet", "--profile", "quick", preexec_fn=limit)
    check(code == 1 and re.search(r"error: a\.gmr: cannot write: File too large", said), said)
    text = (folder / "out.yaml").read_text()
    check("measured: 3," in text and "exit_code: 0" in text, text)
    check(not list(folder.glob("a.gmr*")), "half a record")


def case_config(folder):
    """A replay judges by the configuration of its record, unless another is named."""
    write_fleet(folder, [node("n1", 8, "{gpu: 0, kind: slow_dram, share: 0.3}")])
    config = (ROOT / "configs/survey.yaml").read_text()
    lax = re.sub(r"(main\.(?:latency|bandwidth\S*): .*floor: )[\d.]+", r"\g<1>0.9", config)
    check(lax != config, "the configuration has no such metric")
    (folder / "own.yaml").write_text(lax)
    record(folder, 0, "--probes", "main.latency,main.bandwidth", "-c", "own.yaml")
    (folder / "own.yaml").unlink()
    replay(folder, 0, "--quiet")
    check_same(folder, "own configuration")
    replay(folder, 0, "--quiet", "-c", str(ROOT / "configs/survey.yaml"), code=3)


def main():
    if not shutil.which(LAUNCHER[0]) or (MPICH and not pathlib.Path(PROGRAM).with_name("gpumemtopo-mpi-mpich.so").exists()):
        sys.exit(SKIP)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpumemtopo-replay-"))
    try:
        globals()[f"case_{CASE}"](folder)
    finally:
        shutil.rmtree(folder)


main()
