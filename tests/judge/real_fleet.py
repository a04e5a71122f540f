"""Real H200 cards, judged as one fleet: the other files of tests/judge/h200 have their figures without identity,
verdicts.yaml what is right and why.

usage: real_fleet.py check REPORT FOLDER                          the test
       real_fleet.py add REPORT FLEET INVENTORY NAME              adds the card of an inventory under that name
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

REPORT = pathlib.Path(sys.argv[2]).resolve()
IDENTITY = [(r"uuid: \S+", "uuid: GPU-{name}"), (r"node: \S+", "node: {name}"),
            (r"serial: \S+", "serial: null"), (r"command: \[.*?\]", "command: [gpumemtopo-survey]")]


def judged(*paths):
    """The inventory that the judge makes of all these together."""
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-real-") as there:
        out = pathlib.Path(there, "out.yaml")
        done = subprocess.run([REPORT, "merge", *paths, "-o", out], capture_output=True, text=True)
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
    return {entry["uuid"].removeprefix("GPU-"): [finding["metric"] for finding in entry["findings"]]
            for entry in entries}


def untold(inventory, card, entry):
    """Kind or cause that the entry of an accused card should have and has not."""
    for outlier in inventory["outliers"]:
        if outlier["uuid"] == f"GPU-{card}":
            if outlier["kind"] != entry["kind"]:
                yield f"{outlier['kind']}, not {entry['kind']}"
            for cause in entry.get("causes", []):
                if not any(cause in finding["cause"] for finding in outlier["findings"]):
                    yield f"no cause with \"{cause}\""
            for cause in entry.get("never", []):
                if any(cause in finding["cause"] for finding in outlier["findings"]):
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
        wrong += [f"finding of the model: {entry['finding']}" for entry in inventory["nodes"]]
        parts = {entry["value"]: entry["count"] for entry in inventory["models"][0].get("populations", [])}
        if parts != right["populations"]:
            wrong.append(f"populations {parts}")
        for line in wrong:
            print(f"FAILED: {fleet}: {line}")
        failed |= bool(wrong)
    return failed


if sys.argv[1] == "add":
    add(*sys.argv[3:])
else:
    sys.exit(check(pathlib.Path(sys.argv[3])))
