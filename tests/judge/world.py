"""Real H200 cards, each judged alone against the world that the other cards make (leave one out): nobody may be
accused: what is slower is built so. FOLDER has the cards with a slow one among them, RECENT and h200-tickets beside it those of
later programs. CERTIFICATE has the cards from which `share` makes the shipped world file.

usage: world.py REPORT FOLDER RECENT CERTIFICATE SHIPPED SCHEMA
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fast_yaml as yaml  # noqa: E402
import sure  # noqa: E402

REPORT, FOLDER, RECENT, CERTIFICATE, SHIPPED, SCHEMA = (pathlib.Path(word).resolve() for word in sys.argv[1:7])

try:
    import jsonschema
except ImportError:
    jsonschema = None

# What must be told about a card that is judged alone. Every other card must not be accused; what else is
# watched is listed too, so that a change is noticed.
#   accused: figures that must be among the accusations
#   watched: all figures that are watched
EXPECTED = {
    "quick": {
        "accused": {},
        "watched": {"card-06": {"main.bandwidth_equal.read"},
                    "card-13": {"main.bandwidth_equal.read", "main.bandwidth_equal.write"}},
    },
    "standard": {
        "accused": {},
        "watched": {"card-06": {"main.bandwidth_equal.read"}},
    },
}

failures = []


def run(*words, codes=(0,)):
    done = subprocess.run([REPORT, *words], capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"FAILED: {words}: {done.returncode} {done.stderr}")
    return done.stdout


def with_gpus(inventory, there, name, wanted):
    """A file with the GPUs for which wanted() holds. Their status is that of the whole fleet."""
    path = there / f"{name}.yaml"
    gpus = [gpu for gpu in inventory["gpus"] if wanted(gpu)]
    path.write_text(yaml.safe_dump({**inventory, "gpus": gpus}))
    return path


def found(entries):
    return {finding["metric"] for entry in entries for finding in entry["evidence"]
            if finding["basis"] == "world"}


def leave_one_out(profile, inventory, right, there):
    for uuid in [gpu["uuid"] for gpu in inventory["gpus"]]:
        card = uuid.removeprefix("GPU-")
        alone = with_gpus(inventory, there, "alone", lambda gpu: gpu["uuid"] == uuid)
        others = with_gpus(inventory, there, "others", lambda gpu: gpu["uuid"] != uuid)
        run("share", others, "-o", there / "world.yaml")
        judged = yaml.safe_load(run("merge", alone, "--world", there / "world.yaml", "--config", sure.config(there), codes=(0, 3)))
        # The world alone causes no action: what is sure is told, too.
        accused = found(entry for entry in judged["outliers"] + judged["watch"] if entry["verdict"] != "unknown")
        watched = found(entry for entry in judged["watch"] if entry["verdict"] == "unknown")
        if found(judged["outliers"]):
            failures.append(f"{profile}: {card} is acted on by the world alone")
        print(f"{profile} {card}: accused {sorted(accused)}, watched {sorted(watched)}")
        must = right["accused"].get(card, set())
        if (accused and not must) or not must <= accused:
            failures.append(f"{profile}: {card} is accused in {sorted(accused)}, expected {sorted(must)}")
        if not right["watched"].get(card, set()) <= watched:
            failures.append(f"{profile}: {card} is watched in {sorted(watched)}")


with tempfile.TemporaryDirectory(prefix="gpumemtopo-world-") as there:
    there = pathlib.Path(there)
    for profile in EXPECTED:
        for folder, right in ((FOLDER, EXPECTED[profile]), (RECENT, {"accused": {}, "watched": {}}),
                              (RECENT.parent / "h200-tickets", {"accused": {}, "watched": {}})):
            leave_one_out(profile, yaml.safe_load((folder / f"{profile}.yaml").read_text()), right, there)
    made = run("share", *(CERTIFICATE / f"{name}.yaml" for name in ("program-2/standard", "program-2/quick", "program-3/standard")))
    shipped = "".join(line for line in SHIPPED.read_text().splitlines(True) if not line.startswith("#"))
    if made != shipped:
        failures.append(f"{SHIPPED.name} is not what share makes of these cards")
if jsonschema:
    checker = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    world = yaml.safe_load(SHIPPED.read_text())
    failures += [f"schema: {error.message}" for error in checker.iter_errors(world)]
    world["models"][0]["populations"][0]["host"] = "gpu003"
    if checker.is_valid(world):
        failures.append("the schema accepts an unknown key")
else:
    print("jsonschema is not installed: the schema was not compared")
for line in failures:
    print(f"FAILED: {line}")
sys.exit(bool(failures))
