#!/usr/bin/env python3
"""MIG instances, virtual GPUs, passthrough and confidential computing in surveys of simulated GPUs.

kinds.py SURVEY REPORT SOURCE

Nobody is flagged for its kind; who is worse than its like is; inventory, summary and page name the
kind; what cannot be measured there says why; anonymous files have no UUID of a parent.
"""
import json
import os
import subprocess
import sys
import tempfile

import yaml

survey, report, source = sys.argv[1:4]
with open(os.path.join(source, "configs/sim/demo-h8.yaml"), encoding="utf-8") as file:
    WHOLE = yaml.safe_load(file)


def kind_of(**config):
    return dict(WHOLE, config=dict(WHOLE["config"], **config))


# A quarter of the GPU.
INSTANCE = dict(kind_of(mig_profile="1g.1gb"), sms=2, sms_per_gpc=2, memory={"size": "1 GiB"},
                bandwidth=dict(WHOLE["bandwidth"], l2_read=190, l2_write=150, main_read=80, main_write=75,
                               main_copy=72),
                l2=dict(WHOLE["l2"], size="512 KiB", parts="one"))
INSTANCE["l2"].pop("far_cycles")
FEWER_SMS = dict(INSTANCE, sms=1, sms_per_tpc=1, sms_per_gpc=1, name="Demo H8 B")
VIRTUAL = kind_of(virtualization="vgpu")
MODELS = {"whole": WHOLE, "instance": INSTANCE, "other": FEWER_SMS, "virtual": VIRTUAL}
PASSED = {"gpu": "all", "kind": "virtualization", "text": "passthrough"}
SLOWER_HOST = {"gpu": "all", "kind": "slow_host", "share": 0.3}
CONFIDENTIAL = {"gpu": "all", "kind": "confidential", "text": "on", "factor": 6}
SLOW = {"kind": "slow_dram", "share": 0.4}


def node(name, model, gpus, count=1, faults=()):
    return {"name": name, "model": "./%s.yaml" % model, "gpus": gpus, "count": count, "faults": list(faults)}


def run(args, codes=(0, 3)):
    result = subprocess.run(args, capture_output=True, text=True)
    assert result.returncode in codes, (args, result.returncode, result.stderr)
    return result.stdout


def measure(folder, nodes, asked=()):
    for name, model in MODELS.items():
        with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump(model, file)
    fleet, out = os.path.join(folder, "fleet"), os.path.join(folder, "out.yaml")
    with open(fleet, "w", encoding="utf-8") as file:
        json.dump({"nodes": nodes}, file)
    run([survey, "--simulate", fleet, "-o", out, *(asked or ["--profile", "quick"])])
    with open(out, encoding="utf-8") as file:
        return out, yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def flagged(inventory, part="outliers"):
    return sorted({entry["node"] for entry in inventory[part]})


# Nodes; who is flagged; who is watched (None: not looked at); what the summary says.
CASES = [
    # Instances beside whole GPUs, also on one node, and those of other SMs.
    ([node("w%d", "whole", 4, 2), node("m%d", "instance", 7, 2), node("o%d", "other", 2, 2)],
     [], None, ["Demo H8 MIG 1g.1gb", "Demo H8 B MIG 1g.1gb"]),
    ([node("w%d", "whole", 4, 2), node("m%d", "instance", 7, 2),
      node("bad", "instance", 3, 1, [dict(SLOW, gpu=2)])], ["bad"], None, []),
    # An instance shares the link to the host, and has fewer copy engines: it is not compared with the link's rate.
    ([node("m", "instance", 2, 1, [dict(SLOWER_HOST, share=0.95)])], [], None, []),
    ([node("w", "whole", 2, 1, [dict(SLOWER_HOST, share=0.95)])], ["w"], None, []),
    # Nodes with other numbers of instances or virtual GPUs lack none.
    ([node("m%d", "instance", 3, 5), node("few", "instance", 2)], [], None, []),
    ([node("v%d", "virtual", 3, 5), node("few", "virtual", 2)], [], None,
     ["Demo H8 vGPU, virtualization vgpu"]),
    ([node("w%d", "whole", 3, 5), node("few", "whole", 2)], ["few"], None, []),
    # Others use the GPU of a virtual GPU in turn: its figures flag nobody.
    ([node("v%d", "virtual", 2, 5), node("bad", "virtual", 2, 1, [dict(SLOW, gpu=1)])], [], ["bad"], []),
    # Passthrough: the same GPU, another way to the host.
    ([node("w%d", "whole", 2, 5), node("p%d", "whole", 2, 5, [PASSED, SLOWER_HOST])], [], None,
     ["virtualization passthrough: 10 GPUs"]),
    ([node("w%d", "whole", 2, 5), node("p", "whole", 2, 1, [PASSED, SLOWER_HOST])], [], None, []),
    ([node("w%d", "whole", 2, 5), node("p", "whole", 2, 1, [PASSED, SLOWER_HOST, dict(SLOW, gpu=1)])],
     ["p"], None, []),
    # Confidential computing: copies are encrypted.
    ([node("w%d", "whole", 2, 5), node("c%d", "whole", 2, 3, [CONFIDENTIAL])], [], None,
     ["confidential computing on: 6 GPUs"]),
    ([node("w%d", "whole", 2, 5), node("c", "whole", 2, 1, [CONFIDENTIAL])], [], None, []),
    ([node("c%d", "whole", 2, 5, [CONFIDENTIAL]),
      node("bad", "whole", 1, 1, [CONFIDENTIAL, dict(SLOWER_HOST, share=0.5)])], ["bad"], None,
     ["Demo H8, confidential computing on"]),
]
PROBES, ALL = [], ["--profile", "full"]
with tempfile.TemporaryDirectory() as folder:
    for nodes, bad, watched, words in CASES:
        out, inventory = measure(folder, nodes, PROBES)
        who = flagged(inventory) + sorted({entry["node"] or "" for entry in inventory["nodes"] if entry["action"] in ("alert", "drain")})
        assert sorted(set(who)) == bad, (nodes, inventory["outliers"], inventory["nodes"])
        if watched is not None:
            assert flagged(inventory, "watch") == watched, (nodes, inventory["watch"])
        text = " ".join(run([report, "show", "--all", out]).split())
        for word in words:
            assert word in text, (word, text)
        page = os.path.join(folder, "page.html")
        run([report, "html", out, "-o", page])
        with open(page, encoding="utf-8") as file:
            page = file.read()
        for word in words:
            assert word.split(":")[0] in page, word

# What a kind cannot measure says why, and the rest is measured.
UNMEASURED = [
    ("instance", [], ["links.peers", "host.together.h2d", "die.fingerprint", "die.bandwidth.alone",
                      "main.whole.ecc_corrected"], ["main.whole.tested", "host.latency"]),
    ("virtual", [], ["links.peers", "die.fingerprint", "main.whole.tested"], ["main.latency", "host.latency"]),
    ("whole", [CONFIDENTIAL], ["links.peers", "host.latency"], ["main.whole.tested", "host.bandwidth.h2d"]),
    ("whole", [PASSED], [], ["main.whole.tested", "host.latency", "die.fingerprint"]),
]
REASONS = ("a MIG instance", "MIG instances", "whole GPU", "virtual GPU", "confidential computing")


def metric(inventory, name):
    place = inventory["models"][0]["memory"]
    for part in name.split("."):
        place = place[part]
    return place


with tempfile.TemporaryDirectory() as folder:
    for model, faults, missing, there in UNMEASURED:
        out, inventory = measure(folder, [node("n", model, 1, 1, faults)], ALL)
        for name in missing:
            found = metric(inventory, name)
            assert found["status"] == "unsupported" and any(r in found["reason"] for r in REASONS), (model, name, found)
        for name in there:
            assert metric(inventory, name).get("value") is not None, (model, name)
        parent = inventory["gpus"][0].get("board", {}).get("mig_parent")
        anonymous = run([report, "json", "--anonymous", out])
        assert not parent or parent not in anonymous
        assert (parent is not None) == (model == "instance"), parent
        assert inventory["gpus"][0]["uuid"].startswith("MIG-" if parent else "GPU-")
