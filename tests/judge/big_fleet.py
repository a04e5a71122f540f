"""A whole survey of a simulated fleet: cards that were built slower stand in one sentence, and exactly the nodes where
something is wrong are drained.

big_fleet.py SURVEY REPORT SOURCE_ROOT [NODES [all]]

Eight H200s per node. 1, 4 and 8 % of the cards have 64 and 68 SMs on the parts of L2: kernels with equal work per SM
lose 2.1 %. One GPU has a memory that is 8 % slower, one a wrong SM, one a pending row remap; one node lists 7 GPUs.
`all`: all of the profile `standard`, which takes hours; otherwise the probes that these figures need.
tests/judge/test_policy.c judges such a fleet of made figures.
"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fast_yaml as yaml  # noqa: E402

SURVEY, REPORT, ROOT = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
NODES = int(sys.argv[4]) if len(sys.argv) > 4 else 50
PROBES = [] if len(sys.argv) > 5 else ["--probes", "main.latency,main.bandwidth,main.bandwidth_equal,l2.latency,l2.bandwidth,l2.part_sms,"
                                       "sm.l1_latency,compute.check"]
GPUS = 8
FAULTS = {1: "{gpu: 3, kind: slow_dram, share: 0.087}", 2: "{gpu: 4, kind: wrong_sm, sm: 17, share: 0.95}",
          3: "{gpu: 5, kind: remap, pending: true}", 4: "{gpu: 7, kind: missing}"}


def fleet(folder, share):
    model = (ROOT / "configs/sim/h200.yaml").read_text()
    for name, parts in ("even", "66, 66"), ("uneven", "64, 68"):
        (folder / f"{name}.yaml").write_text(model.replace("\nl2: {", f"\nl2: {{part_sms: [{parts}], ", 1))
    uneven = round(share * NODES * GPUS)
    lines = [f"seed: {uneven + 1}", "nodes:"]
    for node in range(NODES):
        models = ["uneven" if (node * GPUS + gpu) * uneven % (NODES * GPUS) < uneven else "even" for gpu in range(GPUS)]
        if node in FAULTS:
            models = ["even"] * GPUS
        lines.append(f"  - {{name: n{node:02d}, gpus: {GPUS}, model: [{', '.join(f'./{name}.yaml' for name in models)}], "
                     f"faults: [{FAULTS.get(node, '')}]}}")
    (folder / "fleet.yaml").write_text("\n".join(lines) + "\n")
    return folder / "fleet.yaml"


failed = False
with tempfile.TemporaryDirectory(prefix="gpumemtopo-big-") as there:
    there = pathlib.Path(there)
    for share in 0.01, 0.04, 0.08:
        out = there / "out.yaml"
        done = subprocess.run([SURVEY, "--simulate", fleet(there, share), "--profile", "standard", *PROBES, "--no-progress", "--quiet",
                               "-o", out], capture_output=True, text=True)
        drained = subprocess.run([REPORT, "exclude", out], capture_output=True, text=True).stdout.strip()
        data = yaml.safe_load(out.read_text())
        built = [place["finding"] for place in data["nodes"] if place["verdict"] == "built_slower"]
        alerted = [(entry["node"], [item["metric"] for item in entry["evidence"]])
                   for entry in data["outliers"] if entry["action"] != "drain"]
        print(f"{share:.0%}: exit code {done.returncode}; drained {drained}; alerted {alerted}; {built}", flush=True)
        wanted = ",".join(f"n{node:02d}" for node in FAULTS)
        failed |= done.returncode != 3 or drained != wanted or len(built) != 1
sys.exit(failed)
