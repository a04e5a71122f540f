"""A survey of a simulated fleet in which some GPUs compute or remember wrong: all are drained, with kind and place, and
nobody else is named.

wrong_fleet.py SURVEY SOURCE_ROOT [NODES [SEED]]

Eight H200s per node (NODES of them, 40 if it is not given); two GPUs of each of ten kinds, at drawn places.
"""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fast_yaml as yaml  # noqa: E402

SURVEY, ROOT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
NODES = int(sys.argv[3]) if len(sys.argv) > 3 else 40
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
GPUS, EACH = 8, 2
PROBES = "compute.check,compute.screen,memory.whole,memory.march"

# Of a fault, with the SM or the place in it: the metric that names it, and what its reason must say.
KINDS = [
    ("wrong_sm, sm: {sm}, share: 0.9", "compute.wrong_in.fp32", r"most on SM {sm}\b"),
    ("wrong_sm, sm: {sm}, share: 0.9, path: special", "compute.wrong_on.special",
     r"special functions: .*most on SM {sm}, sub-core 2: .*lane 7, .*bits 0x00002000"),
    ("wrong_sm, sm: {sm}, share: 0.5, path: l1", "compute.wrong_on.l1", r"reads through L1: .*most on SM {sm}, sub-core 2"),
    ("wrong_sm, sm: {sm}, share: 0.5, path: wgmma_fp8", "compute.wrong_on.wgmma_fp8", r"FP8, wgmma\): .*most on SM {sm}, sub-core 2"),
    ("wrong_sm, sm: {sm}, share: 0.3, path: predicates", "compute.wrong_on.predicates", r"predicates: .*most on SM {sm}, sub-core 2"),
    ("wrong_card, path: fp64", "compute.not_as_host.fp64", r"FP64 units: all SMs give another result than the host, with which \d+ of \d+ GPUs"),
    ("wrong_card, path: mma_tf32", "compute.digest.mma_tf32", r"tensor units \(TF32\) give another result than on \d+ of \d+ GPUs"),
    ("wrong_card, path: texture", "compute.digest.texture", r"filters of textures give another result than on \d+ of \d+ GPUs"),
    ("bit_error, bytes: {bytes}", "main.whole.errors", r"words of memory that read back wrong"),
    ("bit_error, bytes: {bytes}, count: 9, stride: 4096, bit: 41", "main.march.errors",
     r"9 words, \d+ of them wrong again; only bit 41, read as 1; at distances that are multiples of 4096 B"),
]


def write_fleet(folder, rng):
    """The fleet, and what is expected of a place (node, GPU): metric and reason."""
    wanted = {}
    places = rng.sample([(node, gpu) for node in range(NODES) for gpu in range(GPUS)], EACH * len(KINDS))
    faults = {}
    for i, (node, gpu) in enumerate(places):
        kind, metric, reason = KINDS[i % len(KINDS)]
        drawn = {"sm": rng.randrange(132), "bytes": rng.randrange(1 << 30, 60 << 30, 8)}
        wanted[f"n{node:04d}", gpu] = metric, reason.replace("{sm}", str(drawn["sm"]))
        faults.setdefault(node, []).append("{gpu: %d, kind: %s}" % (gpu, kind.format(**drawn)))
    lines = [f"seed: {SEED}", "nodes:"]
    for node in range(NODES):
        lines.append(f"  - {{name: n{node:04d}, gpus: {GPUS}, model: ./h200.yaml, faults: [{', '.join(faults.get(node, []))}]}}")
    (folder / "h200.yaml").write_text((ROOT / "configs/sim/h200.yaml").read_text())
    (folder / "fleet.yaml").write_text("\n".join(lines) + "\n")
    return folder / "fleet.yaml", wanted


def entries_of(data, actions):
    """By node and GPU, in the order of the slots."""
    numbers = {}
    for node in {gpu["node"] for gpu in data["gpus"]}:
        slots = sorted((gpu["pci"], gpu["uuid"]) for gpu in data["gpus"] if gpu["node"] == node)
        numbers.update({uuid: i for i, (_, uuid) in enumerate(slots)})
    return {(entry["node"], numbers[entry["uuid"]]): entry
            for entry in data["outliers"] + data.get("watch", []) if entry["action"] in actions}


def main():
    failures = []
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-wrong-") as there:
        fleet, wanted = write_fleet(pathlib.Path(there), random.Random(SEED))
        out = pathlib.Path(there) / "out.yaml"
        done = subprocess.run([SURVEY, "--simulate", fleet, "--probes", PROBES, "--no-progress", "--quiet", "-o", out],
                              capture_output=True, text=True)
        if not out.exists():
            sys.exit(f"no inventory: {done.stderr}")
        data = yaml.safe_load(out.read_text())
    drained, named = entries_of(data, ("drain",)), entries_of(data, ("drain", "alert", "tell"))
    for place, (metric, reason) in wanted.items():
        entry = drained.get(place)
        causes = [item["cause"] for item in entry["evidence"] if item["metric"] == metric] if entry else []
        if not any(re.search(reason, cause) for cause in causes):
            failures.append(f"{place}: {metric} is not named, or not as {reason!r}: {causes}")
    failures += [f"{place} is named: {[item['cause'] for item in entry['evidence']]}"
                 for place, entry in named.items() if place not in wanted]
    print(f"{data['survey']['gpus']} GPUs, exit code {done.returncode}: {len(wanted)} wrong ones, {len(set(drained) & set(wanted))} drained, "
          f"{len(set(named) - set(wanted))} others named")
    print("\n".join(failures))
    return done.returncode != 3 or bool(failures)


sys.exit(main())
