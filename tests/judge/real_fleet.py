"""Real H200 cards, judged as one fleet: the other files of tests/judge/h200 have their figures without identity,
verdicts.yaml what is right and why.

usage: real_fleet.py check REPORT FOLDER                          the test
       real_fleet.py draw REPORT FOLDER [FLEETS]                  larger fleets, drawn from the cards, as a test
       real_fleet.py add REPORT FLEET INVENTORY NAME              adds the card of an inventory under that name
"""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fast_yaml as yaml  # noqa: E402
import sure  # noqa: E402

REPORT = pathlib.Path(sys.argv[2]).resolve()
IDENTITY = [(r"uuid: \S+", "uuid: GPU-{name}"), (r"node: [^\s,]+", "node: {name}"),
            (r"serial: \S+", "serial: null"), (r",\s+fingerprint: \[[^\]]*\]", ""), (r",\s+fingerprint_\w+: [\d.]+", ""),
            (r"command: \[.*?\]", "command: [gpumemtopo-survey]")]


def judged(*paths):
    """The inventory that the judge makes of all these together."""
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-real-") as there:
        out = pathlib.Path(there, "out.yaml")
        done = subprocess.run([REPORT, "merge", *paths, "--config", sure.config(there), "-o", out], capture_output=True, text=True)
        if done.returncode not in (0, 3):
            sys.exit(f"FAILED: {paths}: {done.returncode} {done.stderr}")
        return out.read_text()


def add(fleet, inventory, name):
    text = pathlib.Path(inventory).read_text()
    if len(yaml.safe_load(text)["gpus"]) != 1:
        sys.exit(f"{inventory}: more than one GPU, or none")
    for pattern, word in IDENTITY:
        text = re.sub(pattern, word.format(name=name), text)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as card:
        card.write(text)
        card.flush()
        all_cards = [path for path in (fleet, card.name) if pathlib.Path(path).exists()]
        text = judged(*all_cards)
    text = re.sub(r"command: \[.*?\]", "command: [gpumemtopo-report, merge]", text)
    pathlib.Path(fleet).write_text(text)


def found(entries):
    """Card -> metrics, in the order of the file."""
    return {entry["uuid"].removeprefix("GPU-"): [finding["metric"] for finding in entry["evidence"]]
            for entry in entries}


def untold(inventory, card, entry):
    """Kind or cause that the entry of an accused card should have and has not."""
    for outlier in inventory["outliers"]:
        if outlier["uuid"] == f"GPU-{card}":
            if outlier["verdict"] != entry["verdict"]:
                yield f"{outlier['verdict']}, not {entry['verdict']}"
            for cause in entry.get("causes", []):
                if not any(cause in finding["cause"] for finding in outlier["evidence"]):
                    yield f"no cause with \"{cause}\""
            for cause in entry.get("never", []):
                if any(cause in finding["cause"] for finding in outlier["evidence"]):
                    yield f"a cause with \"{cause}\""


def check(folder):
    failed = False
    for fleet, right in yaml.safe_load((folder / "verdicts.yaml").read_text()).items():
        inventory = yaml.safe_load(judged(*(folder / f"{name}.yaml" for name in fleet.split())))
        accused, watched = found(inventory["outliers"]), found(inventory["watch"])
        wrong = [f"{card} is accused: {metrics}" for card, metrics in accused.items()
                 if card not in right["accused"]]
        for card, entry in right["accused"].items():
            wrong += [f"{card} is not accused in {metric}" for metric in entry["figures"]
                      if metric not in accused.get(card, [])]
            wrong += [f"{card}: {line}" for line in untold(inventory, card, entry)]
        for card, entry in right["watched"].items():
            wrong += [f"{card} is not watched in {metric}" for metric in entry["figures"]
                      if metric not in watched.get(card, [])]
        wrong += [f"watched without reason: {card}: {watched[card]}" for card in watched
                  if card not in right["watched"]]
        told = [entry["finding"] for entry in inventory["nodes"]]
        wrong += [f"finding of the model: {text}" for text in told if text not in right.get("built", [])]
        wrong += [f"not told: {text}" for text in right.get("built", []) if text not in told]
        parts = {entry["value"]: entry["count"] for entry in inventory["models"][0].get("populations", [])}
        if parts != right["populations"]:
            wrong.append(f"populations {parts}")
        for line in wrong:
            print(f"FAILED: {fleet}: {line}")
        failed |= bool(wrong)
    return failed


SLOW = {"card-06": "watched", "card-13": "watched", "card-09": "watched"}  # the worst that may be said of copies
SLOW_SHARE = 0.02  # of each in a drawn fleet
WATCHED_MOST = 0.005  # share of healthy GPUs


def drawn_card(block, number, draw):
    """A copy of a card's entry. Its figures differ by what its repetitions scatter, at most by 0.2 %."""
    def jitter(match):
        value, spread = float(match[1]), float(match[2])
        return f"[{value + draw.gauss(0, min(spread / 2, 0.002 * abs(value))):.6g}, {match[2]}]" if spread else match[0]

    block = re.sub(r"GPU-(card-\d+)", rf"GPU-\1-{number}", block)
    block = re.sub(r"node: \S+", f"node: n{number // 4:03d}", block)
    block = re.sub(r"pci: \S+", f'pci: "0000:0{number % 4}:00.0"', block)
    block = re.sub(r"index: \d+", f"index: {number % 4}", block)
    block = re.sub(r"status: \w+", "status: ok", block)
    return re.sub(r"\[([\d.]+), ([\d.e-]+)\]", jitter, block)


def drawn_fleet(text, count, draw):
    head, rest = text.split("\ngpus:\n")
    blocks = re.split(r"(?m)^(?=  - uuid: )", rest[:rest.index("\nnodes:") + 1])[1:]
    slow = [any(card in block for card in SLOW) for block in blocks]
    healthy = (1 - SLOW_SHARE * sum(slow)) / (len(blocks) - sum(slow))
    chosen = draw.choices(blocks, [SLOW_SHARE if bad else healthy for bad in slow], k=count)
    gpus = "".join(drawn_card(block, number, draw) for number, block in enumerate(chosen))
    head = re.sub(r"(?m)^survey: .*", f"survey: {{nodes: {(count + 3) // 4}, ranks: {count}, gpus: {count}, "
                  f"measured: {count}, unmeasured: 0, lost_ranks: 0, outliers: 0, wall_s: 1, exit_code: 0}}", head)
    head = re.sub(r"(?m)^    populations:\n(      - .*\n)+", "", head)
    head = re.sub(r"(?m)^    count: \d+", f"    count: {count}", head)
    return f"{head}\ngpus:\n{gpus}nodes: []\noutliers: []\nwatch: []\nunmeasured: []\n"


def check_drawn(folder, fleets):
    """Nobody is accused but copies of the slow cards, and of the others hardly one is watched."""
    text, failed, named, gpus, watched = (folder / "quick.yaml").read_text(), False, 0, 0, []
    for seed in range(fleets):
        draw = random.Random(seed)
        count = (48, 100, 200, 500)[seed % 4]  # whole nodes
        gpus += count
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as fleet:
            fleet.write(drawn_fleet(text, count, draw))
            fleet.flush()
            inventory = yaml.safe_load(judged(fleet.name))
        for name, said in (("outliers", "accused"), ("watch", "watched")):
            for card, metrics in found(inventory[name]).items():
                worst = SLOW.get(card[:7])
                named += 1
                if said == "accused" and worst in (None, "watched"):
                    print(f"FAILED: fleet {seed} of {count}: {card} is accused: {metrics}")
                    failed = True
                elif not worst:
                    watched.append(f"{card} of fleet {seed}: {metrics}")
        for entry in inventory["nodes"]:
            if any(gpu[4:11] not in SLOW for gpu in entry["gpus"]) or not entry["gpus"]:
                print(f"FAILED: fleet {seed} of {count}: {entry['finding']}")
                failed = True
    print(f"{fleets} fleets of {gpus} GPUs: {named} copies named, {len(watched)} of healthy cards watched: {watched}")
    return failed or not named or len(watched) > WATCHED_MOST * gpus


if sys.argv[1] == "draw":
    sys.exit(check_drawn(pathlib.Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 4))
if sys.argv[1] == "add":
    add(*sys.argv[3:])
else:
    sys.exit(check(pathlib.Path(sys.argv[3])))
