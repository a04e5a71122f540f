#!/usr/bin/env python3
"""Sustained load in surveys of simulated GPUs.

load.py SURVEY REPORT SOURCE HEALTHY_NODES

GPUs that fall under load are found with their cause, and a power limit explains its loss; a fall
that is gone in the second measurement accuses nobody; nor do healthy GPUs; a replay and a
merge give the same; --load 0 leaves the load out of `full`; the page has the curves, of the model
and of each outlier; nodes begin at different times, and the inventory says when.
"""
import os
import subprocess
import sys
import tempfile

import yaml

survey, report, source = sys.argv[1:4]
healthy_nodes = int(sys.argv[4])
model = os.path.join(os.path.abspath(source), "configs/sim/h200.yaml")


def run(args, codes):
    result = subprocess.run(args, capture_output=True, text=True)
    assert result.returncode in codes, (args, result.returncode, result.stderr)
    return result


def load(path):
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def measure(folder, name, nodes, flags, codes=(0, 3)):
    fleet, out = os.path.join(folder, name + ".fleet"), os.path.join(folder, name + ".yaml")
    with open(fleet, "w", encoding="utf-8") as file:
        yaml.safe_dump({"nodes": nodes}, file)
    run([survey, "--simulate", fleet, "--profile", "quick", "-o", out, *flags], codes)
    return out


def findings(inventory, part="outliers"):
    return {(entry["node"], finding["metric"]): (entry["verdict"], finding["cause"])
            for entry in inventory[part] for finding in entry["evidence"]}


def node(name, faults, count=1):
    return {"name": name, "gpus": count, "model": model,
            "faults": [dict(gpu=0, **fault) for fault in faults]}


def falls(**more):
    return dict(kind="falls_under_load", share=0.1, seconds=3, **more)


with tempfile.TemporaryDirectory() as folder:
    healthy = {"name": "good%d", "count": 6, "gpus": 4, "model": model}
    record = os.path.join(folder, "load.gmr")
    flags = ["--load", "10"]
    # What the load is judged with; `alone` and `slow` below have the load in a whole profile.
    probes = ["--probes", "load,clock.sm,clock.memory,main.bandwidth.read,main.bandwidth.write,l2.bandwidth.read"]
    out = measure(folder, "faults", [
        healthy, node("hot", [falls(reason="thermal")]), node("brake", [falls(reason="power_brake")]),
        node("once", [falls(reason="thermal", when={"sessions": 1})]),
        node("limited", [dict(kind="power_limit", w=200)])], flags + probes + ["--record", record])
    inventory = load(out)
    found = findings(inventory)
    assert {name for name, _ in found} == {"hot", "brake", "limited"}, found
    kind, cause = found["hot", "load.clock.kept"]
    assert kind == "degraded" and cause.endswith(": sw_thermal") and "fell from" in cause, cause
    kind, cause = found["brake", "load.throttle"]
    assert kind == "degraded" and cause.endswith(": hw_power_brake"), cause
    kind, cause = found["limited", "config.power_limit_w"]
    assert kind == "misconfigured" and cause.startswith("power limit 200 W"), cause
    _, cause = findings(inventory, "watch")["limited", "load.flops"]
    assert cause.startswith("power limit 200 W, model has 700 W"), cause
    assert ("once", "load.clock.kept") in findings(inventory, "watch"), inventory["watch"]

    clock = inventory["models"][0]["memory"]["load"]["clock"]["steady"]
    points = list(zip(*(clock["curve_" + column] for column in ("s", "mhz", "w", "c", "memory_c"))))
    assert 30 <= len(points) <= 40 and points[-1][0] == 10, points
    assert all(1000 < point[1] < 1300 and 600 < point[2] < 710 for point in points), points
    assert points[0][3] < points[-1][3], points

    again = os.path.join(folder, "again.yaml")
    run([survey, "--replay", record, "-o", again], (0, 3))
    merged = os.path.join(folder, "merged.yaml")
    run([report, "merge", "-o", merged, out], (0, 3))
    for path in again, merged:
        other = load(path)
        for key in "models", "gpus", "outliers", "watch":
            assert other[key] == inventory[key], (path, key)

    # The curves of outliers and of GPUs that are watched for their load are kept; the others' are not.
    kept = {gpu["node"] for gpu in inventory["gpus"] if "curve_s" in gpu["load"]}
    assert {"hot", "brake", "limited", "once"} <= kept and len(kept) <= 5, kept
    page = run([report, "html", out], (0,)).stdout
    for title in "SM clock under load", "Power under load", "Temperature of GPU":
        assert page.count(f"<title>{title}") == 4, title  # of the model and of three outliers
    start = page.rindex("<title>SM clock under load")
    assert page[start:page.index("</svg>", start)].count(",") >= len(points)

    # The starts are spread over load.stagger_s by the names of the nodes; a node begins as a whole.
    starts = {}
    for gpu in inventory["gpus"]:
        assert gpu["load"]["gpus_of_node"] == "together", gpu["load"]
        starts.setdefault(gpu["node"], set()).add(gpu["load"]["begun_after_s"])
    assert all(len(times) == 1 and 0 <= min(times) < 5 for times in starts.values()), starts
    assert len(set.union(*starts.values())) >= 8, starts  # of 10 nodes
    with open(os.path.join(source, "configs/survey.yaml"), encoding="utf-8") as file:
        shipped = file.read()
    config = os.path.join(folder, "config.yaml")

    def configured(old, new):
        assert old in shipped
        with open(config, "w", encoding="utf-8") as file:
            file.write(shipped.replace(old, new))
        return ["--config", config]

    fast = configured("stagger_s: 5", "stagger_s: 0.5") + ["--load-one"]
    spread = load(measure(folder, "spread", [dict(healthy, count=3)], ["--probes", "load", *fast]))
    for gpu in spread["gpus"]:
        begun = gpu["load"]["begun_after_s"]
        assert gpu["load"]["gpus_of_node"] == "one after the other", gpu["load"]
        assert abs(begun - min(starts[gpu["node"]]) / 10) < 0.002, (begun, starts)
    single = load(measure(folder, "single", [node("a", [])], ["--probes", "load"]))
    assert single["gpus"][0]["load"]["begun_after_s"] == 0, "a node alone does not wait"

    # The regions of the memory test are a setting; an error that ECC corrects there is told.
    weak = node("weak", [dict(kind="weak_region", bytes="3 GiB", share=0.5, corrected=7)])
    for size, count in ("256 MiB", 518), ("1 GiB", 129):
        regions = configured("region: 1 GiB", f"region: {size}")
        tested = load(measure(folder, "regions", [dict(healthy, count=2), weak],
                              ["--probes", "memory.whole", *regions]))
        whole = tested["models"][0]["memory"]["main"]["whole"]
        assert len(whole["slow_regions"]["read_map"]) == count, whole["slow_regions"]
        assert len(whole["latency"]["map"]) == count, whole["latency"]
        watched = findings(tested, "watch")
        # 64 MiB are a quarter of a small region: its loads take 5 % longer on average.
        late = {("weak", "main.whole.late_regions")} if count == 518 else set()
        assert set(watched) == late | {("weak", "main.whole.slow_regions"), ("weak", "main.whole.ecc_corrected"),
                                       ("weak", "health.ecc_corrected_new")} and not tested["outliers"], watched
        assert watched["weak", "main.whole.slow_regions"][1].endswith("at 3 GiB of the memory that was tested")
        assert watched["weak", "main.whole.ecc_corrected"][1].endswith(": 14"), watched
    # A region that only loads find slow is watched too.
    late = node("late", [dict(kind="weak_region", bytes="5 GiB", share=0, ns=1000)])
    tested = load(measure(folder, "late", [dict(healthy, count=2), late], ["--probes", "memory.whole"]))
    watched = findings(tested, "watch")
    assert set(watched) == {("late", "main.whole.late_regions")} and not tested["outliers"], watched
    assert watched["late", "main.whole.late_regions"][1].endswith("at 5 GiB of the memory that was tested")
    for bad in "3 GiB", "1 MiB", "32 GiB", "large":
        run([survey, "--simulate", os.path.join(folder, "regions.fleet"), *configured("region: 1 GiB", f"region: {bad}"),
             "-o", out + ".none"], (2,))

    # Without peers a fall is watched; a slowdown by hardware is accused, and ends the load.
    alone = load(measure(folder, "alone", [node("a", [falls(reason="thermal")])], flags))
    assert ("a", "load.clock.steady") in findings(alone, "watch") or not alone["outliers"]
    alone = load(measure(folder, "slow", [node("a", [falls(reason="slowdown")])], flags))
    assert ("a", "load.throttle") in findings(alone), alone["outliers"]
    values = alone["models"][0]["memory"]["load"]
    assert values["flops"]["status"] == "noisy" and "slowed itself" in values["flops"]["reason"]
    assert 3 <= values["seconds"]["value"] < 3.2, values["seconds"]

    quiet = load(measure(folder, "healthy", [dict(healthy, count=healthy_nodes)], ["--probes", "load"], (0,)))
    # Cards of one model differ under load: of many, the slowest few may be watched.
    assert not quiet["outliers"] and len(quiet["watch"]) <= 0.005 * 4 * healthy_nodes, quiet["watch"]
    for flags in [], ["--load", "0"]:
        plain = load(measure(folder, "plain", [node("a", [])], flags, (0,)))
        assert "load" not in plain["models"][0]["memory"]
    for bad in "-1", "x", "3601":
        run([survey, "--load", bad], (2,))
print("ok")
