"""The store of history, and since when a GPU is different: store.py CASE REPORT SOURCE_ROOT

keep: adds, keeps once, thins out, never loses what changed
together: many processes at once
full: a full disk, an interrupted writer, damaged and foreign files
gpu: the change points of one GPU, as text, JSON and page
"""
import copy
import datetime
import fcntl
import html.parser
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

try:
    import fleet
except ImportError as missing:
    print(f"not installed: {missing.name}")
    sys.exit(77)

CASE = sys.argv[1]
REPORT, ROOT = (pathlib.Path(word).resolve() for word in sys.argv[2:4])
ENV = dict(os.environ, GPUMEMTOPO_CONFIG_DIR=str(ROOT / "configs"))
GPUS = 8
BEGIN = datetime.datetime(2026, 1, 5, 2)  # a Monday
failures = []


def check(fine, text):
    if not fine:
        failures.append(text)
        print(f"FAILED: {text}")


def run(folder, *words, code=0, **more):
    done = subprocess.run([REPORT, "history", *words], cwd=folder, env=ENV, capture_output=True, text=True, **more)
    check(done.returncode == code, f"{words}: exit {done.returncode}, expected {code}: {done.stdout[-500:]} {done.stderr}")
    return done


def base():
    """Two nodes of four healthy GPUs."""
    data = fleet.enlarge(fleet.base(ROOT / "reports/demo.yaml"), GPUS, 0, per_node=4)
    data["models"][0]["memory"] = {
        "main": {"bandwidth": {"read": {"value": 319, "unit": "GB/s", "spread": 1, "confidence": 1, "n": GPUS,
                                        "method": "test"}}}}
    wanted = ("main.bandwidth.read", "main.latency", "l2.latency", "clock.sm")
    for gpu in data["gpus"]:
        gpu["values"] = {metric: value for metric, value in gpu["values"].items() if metric in wanted}
    return data


def accuse(data, number):
    gpu = data["gpus"][number]
    gpu["status"] = "outlier"
    data["outliers"].append({
        **{key: gpu[key] for key in ("uuid", "node", "pci", "model")}, "verdict": "degraded", "loss": 0.3,
        "action": "drain", "evidence": [{"metric": "main.bandwidth.read", "value": 200, "expected": 319, "unit": "GB/s", "deviation": -0.3,
                      "score": -90.5, "basis": "fleet", "cause": "cause unknown"}]})
    data["survey"].update(outliers=len(data["outliers"]), exit_code=3)


def survey(first, day, fate=None, bad=()):
    """The inventory of a day. fate(number of the GPU, metric, day) is a factor."""
    data = copy.deepcopy(first)
    rng = random.Random(day)
    when = BEGIN + datetime.timedelta(days=day)
    data["gpumemtopo"]["generated"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    for number, gpu in enumerate(data["gpus"]):
        for metric, value in gpu["values"].items():
            factor = fate(number, metric, day) if fate else 1
            value[0] = float("%.6g" % (value[0] * rng.gauss(1, 0.001) * factor))
    for number in bad:
        accuse(data, number)
    return data


def write(folder, data, name=None):
    path = folder / (name or data["gpumemtopo"]["generated"].replace(":", "") + ".json")
    path.write_text(json.dumps(data))  # JSON is YAML
    return path.name


def kept(store):
    """Days after the beginning, of what the store has."""
    names = sorted(path.name for path in store.iterdir() if path.name != ".lock")
    check(all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{16}\.yaml", name) for name in names), f"names: {names}")
    return [(datetime.datetime.strptime(name[:15], "%Y%m%dT%H%M%S") - BEGIN).days for name in names]


def case_keep(folder):
    first, store = base(), folder / "store"
    days = 420
    names = [write(folder, survey(first, day, bad=(3,) if 100 <= day < 130 else ())) for day in range(days)]
    run(folder, "--store", "store", code=2)  # there is none yet
    run(folder, "--store", "store", "--keep-all", *names[:60])
    check(kept(store) == list(range(60)), "--keep-all")
    done = run(folder, "--store", "store", "--keep-all", names[0])
    check("is already in store" in done.stderr and len(kept(store)) == 60, f"twice: {done.stderr}")
    rest = names[60:]
    random.Random(1).shuffle(rest)
    done = run(folder, "--store", "store", *rest)
    left = kept(store)
    last = days - 1
    check("thinned out: " in done.stderr and f"{days} surveys" in done.stdout, done.stderr)
    check(set(range(last - 14, last + 1)) <= set(left), f"the last 14 days: {left}")
    check({0, last} <= set(left), f"first and last: {left}")
    check({99, 100, 129, 130} <= set(left), f"around changes: {left}")
    middle = [day for day in left if last - 14 - 182 <= day < last - 14]
    check(len({day // 7 for day in middle}) >= 26 and len(middle) <= 28, f"weekly: {middle}")
    old = [day for day in left if day < last - 14 - 182 and day not in (99, 100, 129, 130)]
    months = [(BEGIN + datetime.timedelta(days=day)).month for day in old]
    check(sorted(set(months)) == months or len(months) == len(set(months)), f"monthly: {old}")
    check(len(old) in (7, 8), f"monthly: {old}")
    # Again changes nothing; a reader removes nothing.
    run(folder, "--store", "store", names[-1])
    check(kept(store) == left, f"thinned twice: {set(left) - set(kept(store))}")
    done = run(folder, "--store", "store")
    check(kept(store) == left and f"{len(left)} surveys, {GPUS} GPUs" in done.stdout, done.stdout[:200])
    check("outlier in " in done.stdout, "the outlier is forgotten")
    # The names of the command line are no part of the store.
    check(sorted(p.name for p in folder.glob("*.json")) == sorted(names), "files of the user are gone")
    # A card that moves is a change.
    moved = survey(first, days)
    moved["gpus"][0]["pci"] = "0000:ff:00.0"
    late = [write(folder, moved)] + [write(folder, survey(first, day)) for day in range(days + 1, days + 40)]
    run(folder, "--store", "store", *late)
    check({days - 1, days, days + 1} <= set(kept(store)), f"a moved card: {kept(store)}")


def case_together(folder):
    first, store = base(), folder / "store"
    names = [write(folder, survey(first, day)) for day in range(24)]
    running = [subprocess.Popen([REPORT, "history", "--store", "store", "--keep-all", *names[i::6]], cwd=folder, env=ENV,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(6)]
    readers = []
    while any(process.poll() is None for process in running):
        readers.append(subprocess.run([REPORT, "history", "--store", "store"], cwd=folder, env=ENV, capture_output=True,
                                      check=False))
    for process in running:
        _, told = process.communicate()
        check(process.returncode == 0, f"{process.returncode}: {told.decode()}")
    check(kept(store) == list(range(24)), f"not all: {kept(store)}")
    # Before the first writer there is no folder.
    wrong = [r.stderr for r in readers if r.returncode not in (0, 2) or b"cannot open" in r.stderr]
    check(not wrong, f"readers: {wrong[:3]}")
    # Readers wait for a writer, but not for each other.
    with open(store / ".lock", "r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_SH)
        run(folder, "--store", "store")
    with open(store / ".lock", "r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        reader = subprocess.Popen([REPORT, "history", "--store", "store"], cwd=folder, env=ENV, stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        check(reader.poll() is None, "a reader did not wait for the writer")
        fcntl.lockf(held, fcntl.LOCK_UN)
        check(reader.wait() == 0, "a reader did not go on")


def small_files():
    """No file may exceed 20 kB, as on a full disk: writing fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


def case_full(folder):
    first, store = base(), folder / "store"
    names = [write(folder, survey(first, day)) for day in range(3)]
    large = survey(first, 3)
    large["gpumemtopo"]["command"] = ["x" * 30000]
    names.append(write(folder, large))
    run(folder, "--store", "store", *names[:2])
    done = run(folder, "--store", "store", names[3], names[2], code=1, preexec_fn=small_files)
    check("cannot write" in done.stderr and "3 surveys" in done.stdout, f"full: {done.stdout[:200]} {done.stderr}")
    check(kept(store) == [0, 1, 2], f"full: {kept(store)}")
    # What an interrupted writer left is removed by the next one, and never read.
    path = next(store.glob("*.yaml"))
    left = store / (path.name + ".tmp.1.0")
    left.write_text("half")
    run(folder, "--store", "store")
    check(left.exists(), "a reader removed something")
    run(folder, "--store", "store", names[0])
    check(not left.exists(), "left over")
    # Damaged files are named and never removed; foreign ones are not touched.
    (store / "notes.txt").write_text("mine")
    damaged = store / "20200101T000000Z-0123456789abcdef.yaml"
    damaged.write_text("gpumemtopo: {")
    done = run(folder, "--store", "store", names[1], code=2)
    check(damaged.exists() and damaged.name in done.stderr and "1 other file is not read" in done.stderr, done.stderr)
    check((store / "notes.txt").read_text() == "mine", "a foreign file")
    damaged.unlink()
    (store / "notes.txt").unlink()
    # Bad input is named, and the rest is kept.
    (folder / "bad.yaml").write_text("wrong: 1\n")
    done = run(folder, "--store", "store", "bad.yaml", names[2], code=2)
    check("bad.yaml:1:1" in done.stderr and kept(store) == [0, 1, 2], done.stderr)
    timeless = survey(first, 0)
    timeless["gpumemtopo"]["generated"] = "yesterday"
    done = run(folder, "--store", "store", write(folder, timeless, "timeless.json"), code=2)
    check("timeless.json: gpumemtopo.generated is not a time" in done.stderr, done.stderr)
    # Odd folders.
    check("is not a folder" in run(folder, "--store", names[0], code=2).stderr, "a file")
    check("cannot be made" in run(folder, "--store", "no/such/store", names[0], code=1).stderr, "no folder")
    (folder / "empty").mkdir()
    check("0 surveys" in run(folder, "--store", "empty").stdout, "an empty store")
    check(list((folder / "empty").iterdir()) == [], "a reader wrote something")
    check("at least one file" in run(folder, code=2).stderr, "neither files nor store")
    check("--keep-all needs --store" in run(folder, "--keep-all", names[0], code=2).stderr, "--keep-all")
    # A store that may not be written to can be read. Root may always write.
    if os.geteuid():
        store.chmod(0o555)
        run(folder, "--store", "store")
        run(folder, "--store", "store", names[3], code=1)
        store.chmod(0o755)
    # A link in the place of the lock is not followed.
    (store / ".lock").unlink()
    (store / ".lock").symlink_to(folder / "target")
    run(folder, "--store", "store", names[0], code=1)
    check(not (folder / "target").exists(), "a link was followed")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.problems, self.counts = [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if any(name.startswith("on") or name in ("src", "href", "style") for name, _ in attrs) or tag == "script":
            self.problems.append((tag, attrs))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}>")


def case_gpu(folder):
    def fate(number, metric, day):
        if metric == "main.bandwidth.read":  # one loses 4 % on day 20; one falls slowly
            return 0.96 if number == 5 and day >= 20 else 1 - 0.002 * day if number == 6 else 1
        if metric == "main.latency":  # a new driver for all on day 12
            return 1.05 if day >= 12 else 1
        if metric == "l2.latency" and number == 2:  # better from day 25 on, worse again from day 32 on
            return 0.9 if 25 <= day < 32 else 1
        return 1

    first = base()
    names = [write(folder, survey(first, day, fate, bad=(5,) if day >= 22 else ())) for day in range(40)]
    run(folder, "--store", "store", "--keep-all", *names)
    uuid = first["gpus"][5]["uuid"]
    text = run(folder, "--store", "store", "--gpu", "gpu0001:1").stdout
    flat = re.sub(r"\n +", " ", text)
    check(uuid in text and "last seen on gpu0001:1 " in flat, text)
    check(re.search(r"Worse, at equal level of its model: main.bandwidth.read -[34]\.\d % between 2026-01-24T02:00:00Z and "
                    r"2026-01-25T02:00:00Z: from \d+(\.\d+)? GB/s to \d+(\.\d+)? GB/s; confidence (over )?0.99", flat), text)
    check("An outlier since 2026-01-27T02:00:00Z, in 18 surveys: degraded" in flat, text)
    check(re.search(r"this one with it: main.latency \+[45]\.\d % between 2026-01-16T02:00:00Z and 2026-01-17T", flat), text)
    check(re.search(r"No change beyond the floor of the metric:.* main.latency \(40 values\)", flat), text)
    check(text == run(folder, "--store", "store", "--gpu", uuid).stdout, "by UUID")
    check(text == run(folder, "--gpu", uuid[4:12].upper(), *reversed(names)).stdout, "of files, by the beginning")
    check(text == run(folder, "--store", "store", "--gpu", f"gpu0001:{first['gpus'][5]['pci']}").stdout, "by address")
    slow = re.sub(r"\n +", " ", run(folder, "--store", "store", "--gpu", "gpu0001:2", "--metric", "main.bandwidth.read").stdout)
    check(re.search(r"main.bandwidth.read -[78]\.\d %, slowly, between 2026-01-05T02:00:00Z and 2026-02-13T", slow), slow)
    check("main.latency" not in slow, "--metric")
    found = json.loads(run(folder, "--store", "store", "--gpu", "gpu0000:2", "--json", "--metric", "l2.latency").stdout)
    figure = found["figures"][0]
    check([(c["before"][:10], c["after"][:10], c["worse"]) for c in figure["changes"]] ==
          [("2026-01-29", "2026-01-30", False), ("2026-02-05", "2026-02-06", True)], figure["changes"])
    check(figure["course"] == "steps" and len(figure["values"]) == 40, figure["course"])
    # What the model would have done is near the values before the first change, also afterwards.
    usual = [value["if_as_model"] / figure["values"][0]["value"] for value in figure["values"]]
    check(all(abs(share - 1) < 0.02 for share in usual), f"levels: {usual}")
    # Healthy GPUs have no change of their own.
    for number in (0, 1, 3, 4, 7):
        found = json.loads(run(folder, "--store", "store", "--json", "--gpu", first["gpus"][number]["uuid"]).stdout)
        check(not any(f["changes"] for f in found["figures"]), f"GPU {number}: {found['figures']}")
    # The page.
    run(folder, "--store", "store", "--gpu", "gpu0001:1", "--html", "page.html")
    page = Page((folder / "page.html").read_text())
    check(not page.problems and not page.open, f"page: {page.problems[:3]} {page.open}")
    check(page.counts["svg"] == 4 and page.counts["circle"] == 160 and page.counts["h2"] == 4, f"page: {page.counts}")
    # The card moves: its place has another card, and its history goes with it.
    moved = survey(first, 40, fate)
    for key in "node", "index", "pci":
        moved["gpus"][5][key], moved["gpus"][0][key] = moved["gpus"][0][key], moved["gpus"][5][key]
    run(folder, "--store", "store", "--keep-all", write(folder, moved))
    text = re.sub(r"\n +", " ", run(folder, "--store", "store", "--gpu", "gpu0000:0").stdout)
    check(text.startswith(uuid) and ": moved, gpu0000 " in text and "main.bandwidth.read -" in text, text)
    check(run(folder, "--store", "store", "--gpu", "gpu0001:1").stdout.startswith(first["gpus"][0]["uuid"]), "the other card")
    # Few surveys; bad usage.
    text = run(folder, "--gpu", "gpu0001:1", *names[:5]).stdout
    check("Too few surveys to tell; 10 values are needed:" in text, text)
    text = run(folder, "--gpu", "gpu0001:1", names[0]).stdout
    check("1 survey from" in text, text)
    for words, wanted in {("--gpu", "gpu0009:1"): 'no node "gpu0009" in these inventories; did you mean "gpu000',
                          ("--gpu", "gpu0001:77"): 'no GPU "77" was ever seen on gpu0001',
                          ("--gpu", "GPU-"): '8 GPUs begin with "GPU-"',
                          ("--gpu", "zzz"): 'no GPU begins with "zzz"',
                          ("--gpu", uuid, "--metric", "main.latncy"): 'did you mean "main.latency"?',
                          ("--metric", "main.latency"): "--metric needs --gpu",
                          ("--html", "x.html"): "--html needs --gpu"}.items():
        done = run(folder, *words, *names[:2], code=2)
        check(wanted in done.stderr and not done.stdout, f"{words}: {done.stderr}")
    # With pseudonyms, the answer has none of the names.
    done = run(folder, "--anonymous", "--store", "store")
    pseudonym = re.search(r"GPU-[0-9a-f-]+", done.stdout).group()
    done = run(folder, "--anonymous", "--store", "store", "--gpu", pseudonym)
    check("gpu000" not in done.stdout and uuid not in done.stdout, done.stdout)


with tempfile.TemporaryDirectory() as scratch:
    {"keep": case_keep, "together": case_together, "full": case_full, "gpu": case_gpu}[CASE](pathlib.Path(scratch))
sys.exit(1 if failures else 0)
