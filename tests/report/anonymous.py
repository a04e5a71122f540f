"""What is written with --anonymous has no name: anonymous.py SURVEY REPORT SOURCE_ROOT

Surveys a simulated fleet with names that occur nowhere else, then looks for every one of them in everything that
survey and report write. A new command of gpumemtopo-report needs a row in ROWS, or a reason in EXEMPT.
"""
import getpass
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fast_yaml as yaml  # noqa: E402

SURVEY, REPORT = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
SOURCE = pathlib.Path(sys.argv[3]).resolve()

FLEET = f"""
seed: 77
vary: {{sm_clock: 0.01, other: 0.002}}
nodes:
  - name: secretnode7.hush.example
    model: {SOURCE}/configs/sim/demo-h8.yaml
    gpus: 4
    faults: [{{gpu: 2, kind: slow_dram, share: 0.25}}]
  - name: secretnode12
    model: {SOURCE}/configs/sim/demo-h8.yaml
    gpus: 4
    faults: [{{gpu: 1, kind: crash, after: 50}}, {{gpu: 2, kind: remap, pending: true}}]
  - name: secretnode13
    model: {SOURCE}/configs/sim/demo-h8.yaml
    gpus: 1
"""

# IN is the inventory with names, EARLIER another one, OUT a new file, UUID a GPU of IN.
ROWS = {
    "show": ["show IN", "show --topology IN", "show --compare IN IN"],
    "merge": ["merge IN", "merge IN -o OUT", "merge IN --baseline EARLIER"],
    "diff": ["diff IN EARLIER"],
    "html": ["html IN", "html IN -o OUT"],
    "csv": ["csv IN", "csv IN EARLIER -o OUT"],
    "json": ["json IN", "json --mt4g IN"],
    "prometheus": ["prometheus IN"],
    "history": ["history IN EARLIER", "history --json IN EARLIER -o OUT"],
    "nagios": ["nagios IN"],
    "rma": ["rma IN UUID -o OUT", "rma IN UUID -o -"],
    "share": ["share IN", "share IN -o OUT"],
}
EXEMPT = {
    "accept": "supplier and customer must know which GPU is meant; refuses --anonymous",
    "drain": "names nodes for Slurm; refuses --anonymous",
    "exclude": "names nodes for Slurm; refuses --anonymous",
    "undrain": "names nodes for Slurm; refuses --anonymous",
    "validate": "writes nothing",
}
# These never have a name, also without the flag.
NAMELESS = {"share", "nagios", "show --topology", "show --compare", "json --mt4g"}

failures = []


def check(fine, text):
    if not fine:
        failures.append(text)
        print(f"FAILED: {text}")


def run(*words, codes=(0, 3, 4)):
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False)
    if done.returncode not in codes:
        sys.exit(f"FAILED: {words}: {done.returncode} {done.stderr.decode()}")
    return done


def names_of(inventory):
    """Every name in the inventory, and of this machine."""
    names = {"secretnode", "hush", "secretfolder", str(SOURCE)}
    # a short one can occur in a record by chance
    names |= {name for name in (socket.gethostname(), getpass.getuser()) if len(name) > 4}
    for gpu in inventory["gpus"]:
        names |= {gpu["uuid"], gpu["uuid"].removeprefix("GPU-")}
        names |= {gpu["pci"]} - {f"0000:{bus:02x}:00.0" for bus in range(16)}
        if gpu.get("serial"):
            names.add(gpu["serial"])
    return names


def found(names, data):
    return sorted(name for name in names if name.encode() in data)


def bare(entries):
    """The verdicts alone."""
    return [{key: value for key, value in entry.items() if key not in ("uuid", "node", "pci")} for entry in entries]


def survey(there, *words):
    return run(SURVEY, "--simulate", there / "fleet.yaml", "--profile", "quick", "--no-progress", *words)


def check_survey(there):
    """Returns the names."""
    survey(there, "-o", there / "in.yaml", "--record", there / "in.gmr", "-c", there / "site.yaml")
    done = survey(there, "-o", there / "a.yaml", "--record", there / "a.gmr", "--html", there / "a.html", "--anonymous",
                  "-c", there / "site.yaml")
    plain, anonymous = (yaml.safe_load((there / name).read_text()) for name in ("in.yaml", "a.yaml"))
    names = names_of(plain)
    check(found(names, (there / "in.yaml").read_bytes()) and found(names, (there / "in.gmr").read_bytes()),
          "the control has no names")
    for name in "a.yaml", "a.gmr", "a.html":
        wrong = found(names, (there / name).read_bytes())
        check(not wrong, f"survey --anonymous: {name} has {wrong}")
    summary = b"\n".join(line for line in done.stderr.splitlines() if b"gpumemtopo-survey: " not in line)
    check(not found(names, summary), f"survey --anonymous: the summary has {found(names, summary)}")
    for key in "outliers", "watch", "unmeasured":
        check(bare(plain[key]) == bare(anonymous[key]), f"--anonymous changes {key}")
    check(not list(there.glob("a.gmr?*")), f"left behind: {list(there.glob('a.gmr?*'))}")
    check(anonymous["gpumemtopo"].get("anonymous") is True, "the inventory does not say that it is anonymous")
    run(REPORT, "validate", there / "a.yaml", codes=(0,))
    run(SURVEY, "--replay", there / "a.gmr", "-o", there / "r.yaml", "--quiet")
    again = yaml.safe_load((there / "r.yaml").read_text())
    check(again["gpus"] == anonymous["gpus"] and again["outliers"] == anonymous["outliers"],
          "the anonymous record replays otherwise")
    return names


def check_apart(there, names):
    """Without MPI each task writes a record, and the last one the inventory."""
    done = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", SURVEY, "--no-mpi", "--simulate", there / "fleet.yaml",
                           "--profile", "quick", "--quiet", "--anonymous", "-o", there / "apart.yaml",
                           "--record", there / "apart.gmr", "--baseline", there / "earlier.yaml"], capture_output=True, check=False,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    made = sorted(there.glob("apart*"))
    check(len(made) == 3, f"--no-mpi: {[path.name for path in made]} {done.stderr.decode()}")
    for path in made:
        wrong = found(names, path.read_bytes()) if path.is_file() else ["a folder"]
        check(not wrong, f"--no-mpi --anonymous: {path.name} has {wrong}")


def check_maps(there):
    """A figure of each SM that depends on its place on the die is a fingerprint, whatever its name is."""
    (there / "one.yaml").write_text(f"nodes: [{{name: one, gpus: 1, model: {SOURCE}/configs/sim/h200.yaml}}]\n")
    run(SURVEY, "--simulate", there / "one.yaml", "--profile", "full", "--probes", "cluster.latency,die,sm,l2.latency", "--quiet",
        "-o", there / "maps.yaml")
    for words, there_are in ([], True), (["--anonymous"], False):
        data = run(REPORT, "json", there / "maps.yaml", *words).stdout.decode()
        maps = [text.split(",") for text in re.findall(r'"map": *\[([0-9.,\s]+)\]', data)]
        maps = [numbers for numbers in maps if len(numbers) == 132 and len(set(numbers)) > 10]
        named = [word for word in ("slice_map", "region_map", "sm_bandwidth", "sm_group_bandwidth", '"fingerprint": [')
                 if word in data]
        check((len(maps) >= 4 and len(named) == 5) == there_are and bool(maps or named) == there_are,
              f"{words}: {len(maps)} maps of SMs, {named}")


def check_report(there, names):
    out = there / "out"
    uuid = yaml.safe_load((there / "in.yaml").read_text())["outliers"][0]["uuid"]
    for row in (row for rows in ROWS.values() for row in rows):
        words = [{"IN": there / "in.yaml", "OUT": out, "EARLIER": there / "earlier.yaml",
                  "UUID": uuid}.get(word, word)
                 for word in row.split()]
        out.unlink(missing_ok=True)
        codes = (0, 1, 2, 3) if row.startswith("nagios") else (0, 3, 4)
        done = run(REPORT, *words, "--anonymous", codes=codes)
        data = done.stdout + (out.read_bytes() if out.exists() else b"")
        check(len(data) > 50, f"{row}: wrote nothing")
        check(not found(names, data), f"{row} --anonymous: has {found(names, data)}")
        if not any(row.startswith(start) for start in NAMELESS):
            done = run(REPORT, *words, codes=codes)
            data = done.stdout + (out.read_bytes() if out.exists() else b"")
            check(found(names, data), f"{row}: the control has no names")
    done = run(REPORT, "rma", there / "in.yaml", uuid, "--anonymous", "--record", there / "in.gmr", codes=(2,))
    check(b"the record has names" in done.stderr, f"rma --record: {done.stderr}")
    (there / "drained.txt").write_text("")
    for command in ["drain"], ["exclude"], ["undrain", "--drained", there / "drained.txt"]:
        for words in [(there / "in.yaml", "--anonymous"), (there / "a.yaml",)]:
            done = run(REPORT, *command, *words, codes=(2,))
            check(b"pseudonyms" in done.stderr, f"{command} {words}: {done.stderr}")


help_text = run(REPORT, "--help").stdout.decode()
commands = set(re.findall(r"^  ([a-z]+) [A-Z\[]", help_text, re.M))
check(commands == set(ROWS) | set(EXEMPT), f"not covered by ROWS or EXEMPT: {commands ^ (set(ROWS) | set(EXEMPT))}")
with tempfile.TemporaryDirectory(prefix="gpumemtopo-secretfolder-") as folder:
    folder = pathlib.Path(folder)
    (folder / "fleet.yaml").write_text(FLEET)
    (folder / "site.yaml").write_text("# hush: ask secretfolder\n" + (SOURCE / "configs/survey.yaml").read_text())
    known = check_survey(folder)
    earlier = (folder / "in.yaml").read_text().replace("secretnode13", "secretnode99")
    (folder / "earlier.yaml").write_text(earlier)
    check_report(folder, known)
    check_apart(folder, known)
    check_maps(folder)
print(f"{len(known)} names, {sum(map(len, ROWS.values()))} rows")
sys.exit(bool(failures))
