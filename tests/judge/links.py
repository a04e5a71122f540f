"""How well bad links between GPUs are found: whole surveys of simulated fleets, judged as shipped.

links.py SURVEY SOURCE_ROOT [FLEETS [HEALTHY [SEED]]]

Each fleet has 40 nodes of 8 GPUs in one of three wirings. Every fifth node has one fault: a pair of GPUs
whose link is dead, slow or late, a GPU whose links are, a GPU or a whole node without the fabric behind its
links. Found: just the GPUs concerned are accused, with kind and cause. Then fleets of HEALTHY GPUs in
all: nobody may be accused or watched. Last, host links of all GPUs at once: switches that all nodes share
say nothing, the node that shares more than the others is watched. Fails if less than 99 % were found, or at any false alarm.
"""
import collections
import pathlib
import random
import re
import subprocess
import sys
import tempfile

try:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import fast_yaml as yaml  # noqa: E402
except ImportError:
    print("not installed: yaml")
    sys.exit(77)

SURVEY, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
FLEETS, HEALTHY, SEED = ([int(a) for a in sys.argv[3:]] + [6, 960, 1][len(sys.argv[3:]):])[:3]
NODES, GPUS, WANTED = 40, 8, 0.99
REPORT = SURVEY.parent.parent / "report/gpumemtopo-report"
Shape = collections.namedtuple("Shape", "name model links")
SHAPES = [
    Shape("switches", "demo-h8.yaml", "{shape: switches, gb_per_s: 400}"),
    Shape("hypercube", "demo-h8.yaml", "{shape: hypercube, gb_per_s: 50, host_gb_per_s: 10}"),
    Shape("pcie", "demo-t20.yaml", "{shape: pcie, gb_per_s: 24, uplink_gb_per_s: 18, per_switch: 2}"),
]
Fault = collections.namedtuple("Fault", "name text gpus kind cause")


def catalogue(shape, draw):
    """Every kind of fault once: its text, who is to be accused of what."""
    gpu = draw.randrange(GPUS)
    peer = gpu ^ draw.choice((1, 2, 4))  # neighbours in a hypercube
    pair = f"gpu: {gpu}, peer: {peer}"
    slow = draw.choice((0.2, 0.5, 0.9))
    faults = [
        Fault("dead pair", f"{{kind: dead_link, {pair}}}", {gpu, peer}, "failing", "no link: copies fail to GPU "),
        Fault("dead GPU", f"{{kind: dead_link, gpu: {gpu}}}", {gpu}, "failing", "copies fail to "),
        Fault("slow pair", f"{{kind: slow_link, share: {slow}, {pair}}}", {gpu, peer}, "degraded",
              "slow link to GPU "),
        Fault("slow GPU", f"{{kind: slow_link, share: {slow}, gpu: {gpu}}}", {gpu}, "degraded",
              "slow links to 7 of 7 GPUs"),
    ]
    late = draw.choice((700, 1000, 2000))
    faults += [
        Fault("late pair", f"{{kind: slow_link, share: 0, ns: {late}, {pair}}}", {gpu, peer}, "degraded",
              "high latency of the link to GPU "),
        Fault("late GPU", f"{{kind: slow_link, share: 0, ns: {late}, gpu: {gpu}}}", {gpu}, "degraded",
              "high latency of the links to "),
    ]
    if shape.name == "switches":
        nobody = "reaches nobody above 2[01] GB/s, although 4 NVLinks are active"
        faults += [Fault("fabric of a GPU", f"{{kind: fabric_down, gpu: {gpu}}}", {gpu}, "failing", nobody),
                   Fault("fabric of a node", "{kind: fabric_down, gpu: all}", set(range(GPUS)), "failing", nobody)]
    return faults


def fleet_text(shape, seed, faults):
    model = ROOT / "configs/sim" / shape.model
    lines = [f"seed: {seed}", "nodes:"]
    for node in range(NODES):
        mine = faults[node].text if node in faults else ""
        lines.append(f"  - {{name: n{node:03d}, gpus: {GPUS}, model: {model}, links: {shape.links}, faults: [{mine}]}}")
    return "\n".join(lines) + "\n"


def survey(text, folder, probes="links"):
    fleet, out = folder / "fleet.yaml", folder / "out.yaml"
    fleet.write_text(text)
    done = subprocess.run([SURVEY, "--simulate", fleet, "--probes", probes, "--no-progress", "--quiet", "-o", out],
                          capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return yaml.load(out.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def said_of(data, list_name):
    """What is said about links, by node and index: kind and causes."""
    index = {gpu["uuid"]: gpu["index"] for gpu in data["gpus"]}
    said = collections.defaultdict(dict)
    for entry in data[list_name]:
        causes = [f["cause"] for f in entry["evidence"] if f["metric"].startswith("links.")]
        said[entry["node"]][index[entry["uuid"]]] = entry["verdict"], "; ".join(causes)
    return said


def check_host_links(folder):
    """Eight nodes, two GPUs per switch, one GPU with a switch of its own; alone, each has 12 GB/s."""
    model = ROOT / "configs/sim/demo-t20.yaml"
    for odd, watched in (24, 2), (12, 0):
        lines = [f"seed: {SEED}", "nodes:"]
        for node in range(8):
            uplink = 12 if node == 3 else odd
            lines.append(f"  - {{name: n{node}, gpus: 3, model: {model}, "
                         f"links: {{shape: pcie, gb_per_s: 24, uplink_gb_per_s: {uplink}, per_switch: 2}}}}")
        data = survey("\n".join(lines) + "\n", folder, "host.together")
        assert not data["outliers"] and len(data["watch"]) == watched, data["watch"]
        for entry in data["watch"]:
            finding, = entry["evidence"]
            assert entry["node"] == "n3" and finding["metric"] == "host.together.h2d", entry
            assert "while all 3 GPUs of the node copy, 50 % of its host link is left, 100 %" in finding["cause"]
        values = {(gpu["node"], gpu["index"]): gpu["values"] for gpu in data["gpus"]}
        merged = folder / "merged.yaml"
        subprocess.run([REPORT, "merge", folder / "out.yaml", "-o", merged], check=False, capture_output=True)
        assert yaml.safe_load(merged.read_text())["watch"] == data["watch"], "judged again from its values"
        for index, rate in (0, 6), (1, 6), (2, 12):
            found = values["n3", index]
            assert abs(found["host.together.h2d"][0] / rate - 1) < 0.03, found
            assert abs(found["host.bandwidth.h2d"][0] / 12 - 1) < 0.03, found


def check_record(folder):
    """A record of the last fleet gives the same rows and the same verdicts."""
    outs = []
    for flag in "--record", "--replay":
        command = [SURVEY, flag, folder / "links.gmr", "--no-progress", "--quiet", "-o", folder / "out.yaml"]
        command += ["--simulate", folder / "fleet.yaml", "--probes", "links,host.together"] if flag == "--record" else []
        assert subprocess.run(command, check=False).returncode in (0, 3)
        outs.append((folder / "out.yaml").read_text().split("\nmodels:")[1])
    assert outs[0] == outs[1] and "links:" in outs[0]


def main():
    counts, alarms = collections.defaultdict(collections.Counter), []
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-links-") as there:
        folder = pathlib.Path(there)
        for number in range(FLEETS):
            shape, draw = SHAPES[number % len(SHAPES)], random.Random(f"{SEED} {number}")
            faults = {}
            for node in range(2, NODES, 5):
                kinds = catalogue(shape, draw)
                faults[node] = kinds[(node // 5 + number // len(SHAPES) * 2) % len(kinds)]
            data = survey(fleet_text(shape, SEED * 1000 + number, faults), folder)
            accused, watched = said_of(data, "outliers"), said_of(data, "watch")
            for node in range(NODES):
                name, fault = f"n{node:03d}", faults.get(node)
                seen = accused[name]
                if not fault:
                    alarms += [f"{shape.name} {name}: {s}" for s in (seen, watched[name]) if s]
                    continue
                right = set(seen) == fault.gpus and all(
                    kind == fault.kind and re.search(fault.cause, cause) for kind, cause in seen.values())
                counts[shape.name, fault.name]["found" if right else "not"] += 1
                if not right:
                    print(f"{shape.name} {name} {fault}: {dict(seen)}, watched {watched[name]}")
        check_record(folder)
        check_host_links(folder)
        healthy = 0
        while healthy < HEALTHY:
            shape = SHAPES[healthy // (NODES * GPUS) % len(SHAPES)]
            data = survey(fleet_text(shape, SEED * 7000 + healthy, {}), folder)
            alarms += [f"{shape.name}: {entry}" for key in ("outliers", "watch", "nodes") for entry in data[key]]
            healthy += len(data["gpus"])
    found, total = (sum(c[k] for c in counts.values()) for k in ("found", "not"))
    total += found
    for (shape, name), count in sorted(counts.items()):
        print(f"{shape:10} {name:18} {count['found']:4} of {sum(count.values())}")
    print(f"{found} of {total} found with place and cause; {len(alarms)} false alarms, {healthy} GPUs in healthy fleets")
    print("\n".join(alarms[:10]))
    sys.exit(0 if found >= WANTED * total and not alarms else 1)


main()
