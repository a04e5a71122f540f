"""Real H200 cards of which one is lowered by hand: in the fleet of all, and alone, each against the world that the
other cards make. Who is not lowered must be left alone.

usage: lowered.py REPORT FOLDER [--profile NAME] [--cards N] [--also INVENTORY ...]

FOLDER has fleets of cards without identity (quick.yaml, standard.yaml) and verdicts.yaml, which says what is told of
a card that is not lowered. --also adds cards. --cards: only every so many.
Fails if less is told or called degraded than WANTED says, or if a card that is not lowered is named without reason.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fast_yaml as yaml  # noqa: E402

options = argparse.ArgumentParser()
options.add_argument("report", type=pathlib.Path)
options.add_argument("folder", type=pathlib.Path)
options.add_argument("--profile", action="append")
options.add_argument("--cards", type=int, default=1)
options.add_argument("--also", nargs="*", default=[])
options = options.parse_args()
REPORT = options.report.resolve()

READ, WRITE, L2_READ, L2_WRITE = (f"{m}.bandwidth.{w}" for m in ("main", "l2") for w in ("read", "write"))
BOTH = (READ, WRITE)
SINGLE = [(metric,) for metric in (READ, WRITE, L2_READ, L2_WRITE)]
LOSSES = {0.02: [BOTH], 0.03: [BOTH], 0.035: [BOTH, *SINGLE], 0.05: [BOTH, *SINGLE], 0.07: [BOTH, *SINGLE]}
MATTERS = 0.049  # the shipped policy drains from 5 % on, if GPUs of the fleet show it
# Loss and number of figures: least share that is told, and least and largest share degraded by a loss that matters.
WANTED = {(0.02, 2): (0.95, 0, 0.05), (0.03, 2): (0.99, 0, 0.05), (0.035, 2): (0.99, 0, 0.05), (0.035, 1): (0, 0, 0.05),
          (0.05, 1): (0.99, 0, 1), (0.05, 2): (0.99, 0, 1), (0.07, 1): (0.99, 0.9, 1), (0.07, 2): (0.99, 0.9, 1)}


def run(*words, codes=(0,)):
    done = subprocess.run([REPORT, *words], capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"FAILED: {words}: {done.returncode} {done.stderr}")
    return done.stdout


def lowered(gpu, metrics, loss):
    """The card with less in these figures; None: it does not have one of them."""
    values = dict(gpu["values"])
    for metric in metrics:
        if values.get(metric, [None])[0] is None:
            return None
        values[metric] = [values[metric][0] * (1 - loss), *values[metric][1:]]
    return {**gpu, "values": values, "status": "ok"}


def named(text, uuid, metrics):
    """Whether the card is told of, called degraded by a loss that matters, and drained, for one of these figures; all other
    cards that are named, with their figures."""
    inventory = yaml.safe_load(text)
    told, flagged, drained, others = False, False, False, {}
    for name in ("outliers", "watch"):
        for entry in inventory[name]:
            for finding in entry["evidence"]:
                if finding["basis"] == "rule":
                    continue
                if entry["uuid"] != uuid or finding["metric"] not in metrics:
                    others.setdefault(entry["uuid"], []).append(finding["metric"])
                    continue
                told = True
                flagged |= entry["verdict"] == "degraded" and finding["deviation"] <= -MATTERS
                drained |= entry["action"] == "drain"
    return told, flagged, drained, others


def card_trials(there, number, inventory, others, expected):
    """Results by where it is judged, loss and number of figures; cards that are named without reason."""
    gpus, results, wrong = inventory["gpus"], [], set()
    uuid, folder = gpus[number]["uuid"], there / str(number)
    folder.mkdir()
    world, file = folder / "world.yaml", folder / "judged.yaml"
    for name, other in others.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(
            {**other, "gpus": [gpu for gpu in other["gpus"] if gpu["uuid"] != uuid]}))
    run("share", *(folder / f"{name}.yaml" for name in others), "-o", world)
    for place in ("fleet", "alone"):
        for loss, metrics in [(0, ())] + [(loss, m) for loss in LOSSES for m in LOSSES[loss]]:
            card = lowered(gpus[number], metrics, loss)
            if not card or expected.get(uuid, set()) & set(metrics): # it has less in this figure anyway
                continue
            fleet = gpus[:number] + [card] + gpus[number + 1:] if place == "fleet" else [card]
            file.write_text(yaml.safe_dump({**inventory, "gpus": fleet}))
            told, flagged, drained, rest = named(run("merge", file, "--world", world, codes=(0, 3)), uuid, metrics)
            if loss:
                results.append((place, loss, len(metrics), told, flagged, drained, f"{uuid} {metrics}"))
            wrong |= {f"{place}: {other}: {figure}" for other, figures in rest.items() for figure in figures
                      if figure not in expected.get(other, set())}
    return results, wrong


def fleet_of(profile):
    inventory = yaml.safe_load((options.folder / f"{profile}.yaml").read_text())
    for path in options.also:
        if profile in pathlib.Path(path).name:
            inventory["gpus"] += yaml.safe_load(pathlib.Path(path).read_text())["gpus"]
    right = yaml.safe_load((options.folder / "verdicts.yaml").read_text())[profile]
    expected = {f"GPU-{card}": {*entry["figures"], *entry.get("also", [])} for kind in ("accused", "watched")
                for card, entry in right[kind].items()}
    return inventory, expected


failed = False
for profile in options.profile or ("quick", "standard"):
    inventory, expected = fleet_of(profile)
    others = {name: fleet_of(name)[0] for name in ("standard", "quick")}
    counts, missed, unexpected = collections.defaultdict(collections.Counter), collections.defaultdict(list), set()
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-lowered-") as there, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        numbers = range(0, len(inventory["gpus"]), options.cards)
        for results, wrong in pool.map(lambda n: card_trials(pathlib.Path(there), n, inventory, others, expected),
                                       numbers):
            for place, loss, figures, told, flagged, drained, which in results:
                counts[place, loss, figures].update(trials=1, told=told, flagged=flagged, drained=drained)
                if not told:
                    missed[place, loss, figures].append(which)
            unexpected |= wrong
    for line in sorted(unexpected):
        print(f"FAILED: {profile}: named without reason: {line}")
    failed |= bool(unexpected)
    for (place, loss, figures), count in sorted(counts.items()):
        least, flagged_least, flagged_most = WANTED[loss, figures]
        told, flagged = (count[what] / count["trials"] for what in ("told", "flagged"))
        good = told >= least and flagged_least <= flagged <= flagged_most
        failed |= not good
        print(f"{'' if good else 'FAILED: '}{profile}, {place}: {figures} of main and L2 lowered by {loss:.1%}: told "
              f"{count['told']}, degraded {count['flagged']}, drained {count['drained']} of {count['trials']}")
        for which in missed[place, loss, figures] if not good else []:
            print(f"    not told: {which}")
sys.exit(failed)
