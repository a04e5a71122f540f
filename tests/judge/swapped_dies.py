"""How well a swapped die is recognised: surveys of simulated H200s against a baseline.

swapped_dies.py SURVEY SOURCE_ROOT [GPUS [SEED]]

Fleets of 400 GPUs as configs/fleets/h200.yaml draws them (its variation, boards and layouts). Each is
surveyed three times with other noise: the baseline, again, and again with another die under one UUID of
every node. Found: the GPU is watched with "this UUID is not the die it was". Also counts what the map of
the SMs' bandwidths says against the same baseline. Fails if less than 99 % were found, or at any finding
about a GPU whose die is the same.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("not installed: yaml")
    sys.exit(77)

SURVEY, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
GPUS, SEED = ([int(a) for a in sys.argv[3:]] + [400, 1][len(sys.argv[3:]):])[:2]
NODES, PER_NODE, WANTED = 50, 8, 0.99
HEAD = (ROOT / "configs/fleets/h200.yaml").read_text().split("nodes:")[0].split("vary:")[1]


def fleet_text(seed, swapped):
    lines = [f"seed: {seed}", "vary:" + HEAD, "nodes:"]
    for node in range(NODES):
        fault = f"{{kind: swapped_die, gpu: {node % PER_NODE}}}" if swapped else ""
        lines.append(f"  - {{name: n{node:03d}, gpus: {PER_NODE}, model: {ROOT / 'configs/sim/h200.yaml'}, "
                     f"faults: [{fault}]}}")
    return "\n".join(lines) + "\n"


def survey(folder, name, text, noise, baseline=None):
    fleet, out = folder / f"{name}-fleet.yaml", folder / f"{name}.yaml"
    fleet.write_text(text)
    command = [SURVEY, "--simulate", fleet, "--probes", "die.map,die.bandwidth", "--seed", str(noise),
               "--no-progress", "--quiet", "-o", out] + (["--baseline", baseline] if baseline else [])
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return out


def findings(path):
    """What is said about the die and its SMs, by node and index."""
    data = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    place = {gpu["uuid"]: (gpu["node"], gpu["index"]) for gpu in data["gpus"]}
    return {place[entry["uuid"]]: [f["cause"] for f in entry["evidence"]]
            for entry in data["outliers"] + data["watch"]}


def run(number):
    with tempfile.TemporaryDirectory() as name:
        folder, seed = pathlib.Path(name), 1000 * SEED + number
        then = survey(folder, "then", fleet_text(seed, False), 1)
        again = survey(folder, "again", fleet_text(seed, False), 2, then)
        now = survey(folder, "now", fleet_text(seed, True), 3, then)
        false = [f"{place}: {said}" for place, said in findings(again).items()]
        said = findings(now)
        swapped = {(f"n{node:03d}", node % PER_NODE) for node in range(NODES)}
        false += [f"{place}: {said[place]}" for place in said if place not in swapped]
        missed = [place for place in swapped
                  if not any("this UUID is not the die it was" in cause for cause in said.get(place, []))]
        return len(swapped), missed, false


def main():
    fleets = max(1, GPUS // (NODES * PER_NODE))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run, range(fleets)))
    swapped = sum(result[0] for result in results)
    missed = [f"fleet {i}: {place}" for i, result in enumerate(results) for place in result[1]]
    false = [f"fleet {i}: {text}" for i, result in enumerate(results) for text in result[2]]
    print(f"{fleets * NODES * PER_NODE} GPUs: {swapped - len(missed)} of {swapped} swapped dies found "
          f"({100 * (1 - len(missed) / swapped):.2f} %), {len(false)} false findings")
    for line in missed + false:
        print("  " + line)
    return 1 if false or len(missed) > (1 - WANTED) * swapped else 0


if __name__ == "__main__":
    sys.exit(main())
