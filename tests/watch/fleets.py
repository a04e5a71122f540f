"""Inventories and metrics that the tests of watch/ use: made from the shipped demo fleet."""
import copy
import datetime
import pathlib
import re
import subprocess
import sys

try:
    import yaml
except ImportError as missing:
    print(f"not installed: {missing.name}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATCH = ROOT / "watch"
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')


def demo(age_s=0):
    """The demo fleet as if it had been surveyed so long ago."""
    with open(ROOT / "reports/demo.yaml", encoding="utf-8") as file:
        data = yaml.load(file, yaml.CSafeLoader)
    when = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age_s)
    data["gpumemtopo"]["generated"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    return data


def planted(age_s=0):
    """The demo fleet with what it lacks: nodes without GPUs and with too few, a lost rank, counters, an Xid, a GPU
    that is only alerted."""
    data = demo(age_s)
    data["nodes"] += [{"node": "demo6", "finding": "no GPU visible on this node", "verdict": "unknown", "loss": None, "action": "tell", "gpus": []},
                      {"node": "demo7", "finding": "3 of 4 GPUs that the job was given", "verdict": "failing", "loss": None, "action": "drain", "gpus": []}]
    data["unmeasured"].append({"node": "demo8", "rank": 3, "uuid": None, "status": "lost", "reason": "rank 3 is lost"})
    data["survey"].update(nodes=8, ranks=4, unmeasured=3, lost_ranks=1)
    data["outliers"][-1].update(loss=0.03, action="alert")
    fine = next(gpu for gpu in data["gpus"] if gpu["status"] == "ok")
    fine["health"] = {"ecc_uncorrected_dram": 2, "pcie_replays": 7, "xid": "63 (row remapping), 94 (contained)"}
    return data


def healthy(age_s=0):
    """Only the GPUs of the first model that are fine."""
    data = copy.deepcopy(demo(age_s))
    data["gpus"] = [gpu for gpu in data["gpus"] if gpu["status"] == "ok" and gpu["model"] == "demo-h8"]
    data["models"] = [dict(model, count=len(data["gpus"])) for model in data["models"] if model["id"] == "demo-h8"]
    for key in "outliers", "watch", "nodes", "unmeasured":
        data[key] = []
    count = len(data["gpus"])
    data["survey"].update(gpus=count, measured=count, unmeasured=0, outliers=0, lost_ranks=0, exit_code=0,
                          nodes=len({gpu["node"] for gpu in data["gpus"]}))
    return data


def metrics(report, folder, data, *flags):
    path = pathlib.Path(folder) / "inventory.yaml"
    path.write_text(yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False), encoding="utf-8")
    done = subprocess.run([report, "prometheus", path, *flags], capture_output=True, check=False)
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stderr)
    return done.stdout.decode()


def samples(text):
    """[(name, {label: value}, value)] of a text format of metrics."""
    found = []
    for line in text.split("\n"):
        if line.startswith("#") or not line:
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
        found.append((match[1], labels, float(match[3])))
    return found


def rules():
    with open(WATCH / "gpumemtopo.rules.yml", encoding="utf-8") as file:
        return [rule for group in yaml.load(file, yaml.CSafeLoader)["groups"] for rule in group["rules"]]


def panels():
    """(title, query) of every query of the dashboard, its variables replaced as Grafana does for "All"."""
    import json
    dashboard = json.loads((WATCH / "dashboard.json").read_text(encoding="utf-8"))
    return [(panel["title"], target["expr"].replace("$model", ".*"))
            for panel in dashboard["panels"] for target in panel["targets"]]
