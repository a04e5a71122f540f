"""Whether simulated H200 cards differ as real ones do, and whether docs/simulation.md tells it.

usage: sim_spreads.py SURVEY SOURCE_ROOT

Real: tests/judge/h200/quick.yaml without the cards that verdicts.yaml names. Simulated:
configs/fleets/h200.yaml, surveyed in the profile `quick`. Between cards: standard deviation within a
board part, pooled over the parts with three cards and more. Within a card: median of the spreads of its
repetitions. Both in per cent of the value.
"""
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

try:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import fast_yaml as yaml  # noqa: E402
except ImportError:
    print("not installed: yaml")
    sys.exit(77)

SURVEY, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
CARDS = ROOT / "tests/judge/h200"
METRICS = ("l1_data.size", "l1_data.latency", "l2.latency", "main.latency", "l2.bandwidth_equal.read",
           "l2.bandwidth_equal.write", "main.bandwidth_equal.read", "main.bandwidth_equal.write", "host.bandwidth.h2d",
           "host.bandwidth.d2h", "clock.sm")
FACTOR = 3         # simulated to real
EXACT = 0.1        # per cent: where the real figure is below it, the simulated one may be anything below
DOC_FACTOR = 1.25  # the document's figures to those found here
DOC_STEP = 0.02


def spreads(inventory, without=()):
    """Metric -> (between cards, within a card), in per cent."""
    values = {}
    for gpu in inventory["gpus"]:
        if gpu["uuid"].removeprefix("GPU-") not in without:
            for metric in METRICS:
                value, spread = gpu["values"][metric][:2]
                values.setdefault(metric, {}).setdefault(gpu["part"], []).append((value, spread))
    result = {}
    for metric, parts in values.items():
        squares = freedom = 0
        for cards in parts.values():
            if len(cards) >= 3:
                mean = statistics.fmean(value for value, _ in cards)
                squares += sum((value / mean - 1) ** 2 for value, _ in cards)
                freedom += len(cards) - 1
        within = statistics.median(spread / value for cards in parts.values() for value, spread in cards)
        result[metric] = 100 * math.sqrt(squares / freedom), 100 * within
    return result


def simulated():
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-spreads-") as there:
        out = pathlib.Path(there, "out.yaml")
        done = subprocess.run([SURVEY, "--simulate", ROOT / "configs/fleets/h200.yaml", "--profile", "quick",
                               "--probes", ",".join(METRICS), "--no-progress", "-o", out], capture_output=True, text=True)
        if done.returncode not in (0, 3):
            sys.exit(f"FAILED: exit {done.returncode}\n{done.stderr}")
        return yaml.safe_load(out.read_text())


def alike(a, b):
    return max(a, b) <= EXACT or max(a, b) <= FACTOR * min(a, b)


def main():
    named = yaml.safe_load((CARDS / "verdicts.yaml").read_text())["quick"]
    real = spreads(yaml.safe_load((CARDS / "quick.yaml").read_text()),
                   without={*named["accused"], *named["watched"]})
    fleet = spreads(simulated())
    document = (ROOT / "docs/simulation.md").read_text()
    failed = False
    for metric in METRICS:
        found = [real[metric][0], fleet[metric][0], real[metric][1], fleet[metric][1]]
        line = f"| `{metric}` | " + " | ".join(f"{value:.2f}" for value in found) + " |"
        told = re.search(rf"^\| `{re.escape(metric)}` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$",
                         document, re.M)
        wrong = []
        if not alike(found[0], found[1]):
            wrong.append("simulated cards differ otherwise than real ones")
        if not told or any(abs(float(a) - b) > DOC_STEP and max(float(a), b) > DOC_FACTOR * min(float(a), b)
                           for a, b in zip(told.groups(), found)):
            wrong.append("docs/simulation.md says something else")
        print(line, *(f"FAILED: {word}" for word in wrong))
        failed |= bool(wrong)
    sys.exit(failed)


main()
