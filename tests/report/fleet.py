"""Inventories made up for the tests of the page: from a surveyed one, any number of GPUs, hostile names.

fleet.py INVENTORY GPUS [OUTLIERS]: prints an inventory with so many copies of the first model's first GPU
"""
import copy
import json
import random
import sys

import yaml

# What a name may try: to be markup, a script, an attribute, an entity, a style, a terminal's or a reader's trouble.
HOSTILE = [
    "<script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "\"><svg onload=window.hacked=1>",
    "' onmouseover='window.hacked=1", "</title><script>window.hacked=1</script>", "</style><script>window.hacked=1//",
    "javascript:window.hacked=1", "&lt;b&gt;&#60;", "]]><!-- -->", "\u202egpu\u202c", "a" * 3000, "\x1b[31mred", "{{7*7}}",
]


def base(path):
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, yaml.CSafeLoader)


def enlarge(data, count, outliers, per_node=8, seed=1):
    """So many GPUs of the first model, values scattered by 1 %, some with a fifth of the bandwidth gone."""
    rng = random.Random(seed)
    model = data["models"][0]
    first = next(g for g in data["gpus"] if g["model"] == model["id"] and g["status"] == "ok")
    bad = set(rng.sample(range(count), outliers))
    data["gpus"], data["outliers"], data["watch"], data["unmeasured"], data["nodes"] = [], [], [], [], []
    data["models"] = [dict(model, count=count)]
    for i in range(count):
        gpu = dict(first, values={metric: list(value) for metric, value in first["values"].items()})
        gpu.update(uuid="GPU-%08x-d94f-eafe-9a2d-%012x" % (i, rng.getrandbits(48)), node="gpu%04d" % (i // per_node),
                   index=i % per_node, rank=i, pci="0000:%02x:00.0" % (16 * (i % per_node) + 11))
        for metric, value in gpu["values"].items():
            if value[0]:
                value[0] = float("%.6g" % (value[0] * rng.gauss(1, 0.003)))
        if i in bad:
            gpu["status"] = "outlier"
            normal = gpu["values"]["main.bandwidth.read"][0]
            gpu["values"]["main.bandwidth.read"][0] = float("%.6g" % (0.8 * normal))
            data["outliers"].append({
                "uuid": gpu["uuid"], "node": gpu["node"], "pci": gpu["pci"], "model": gpu["model"], "verdict": "degraded",
                "loss": 0.2, "action": "drain", "evidence": [{"metric": "main.bandwidth.read", "value": 0.8 * normal, "expected": normal, "unit": "GB/s",
                              "deviation": -0.2, "score": -90.5, "basis": "fleet", "cause": "cause unknown"}]})
        data["gpus"].append(gpu)
    data["survey"].update(nodes=len({g["node"] for g in data["gpus"]}), ranks=count, gpus=count, measured=count,
                          unmeasured=0, outliers=outliers, lost_ranks=0, exit_code=3 if outliers else 0)
    return data


def empty(data):
    """Nothing could be measured."""
    for key in "models", "gpus", "outliers", "watch", "nodes":
        data[key] = []
    data["unmeasured"] = [{"node": "gpu1", "rank": 0, "uuid": None, "status": "lost", "reason": "rank 0 is lost"}]
    data["survey"].update(gpus=1, measured=0, unmeasured=1, outliers=0, lost_ranks=1, exit_code=4)
    return data


def hostile(data):
    """Every text that comes from outside is an attack."""
    texts = iter(HOSTILE * 100)
    names = {}

    def swap(old):
        return names.setdefault(old, None if old is None else next(texts) + str(len(names)))

    for model in data["models"]:
        model["name"] = next(texts)
        model["id"] = swap(model["id"])
        model["identity"][next(texts)] = next(texts)
        measure = model["memory"]["l1_data"]["size"]
        measure["unit"], measure["method"], measure["reported"] = next(texts), next(texts), next(texts)
        model["memory"]["l1_data"]["shared_with"] = [next(texts)]
        model["memory"][next(texts)] = {next(texts): copy.deepcopy(measure)}
    for gpu in data["gpus"]:
        for key in "uuid", "node", "pci", "model":
            gpu[key] = swap(gpu[key])
        gpu["serial"], gpu["driver"], gpu["config"][next(texts)] = next(texts), next(texts), next(texts)
        gpu["values"][next(texts)] = [1.5, 0.1]
    for entry in data["outliers"] + data["watch"]:
        for key in "uuid", "node", "pci", "model":
            entry[key] = swap(entry[key])
        for finding in entry["evidence"]:
            finding["cause"], finding["unit"], finding["basis"] = next(texts), next(texts), next(texts)
        entry["evidence"][0]["metric"] = next(texts)
    for entry in data["unmeasured"]:
        entry["uuid"], entry["node"], entry["reason"] = swap(entry["uuid"]), swap(entry["node"]), next(texts)
    data["nodes"].append({"node": next(texts), "finding": next(texts), "verdict": "unknown", "loss": None, "action": "tell", "gpus": []})
    data["gpumemtopo"].update(version=next(texts), generated=next(texts), backend=next(texts), command=[next(texts)])
    return data


def write(data, path):
    """Large fleets as JSON, which is YAML too (but for keys of 1024 letters) and written twenty times as fast."""
    with open(path, "w", encoding="utf-8") as file:
        if len(data["gpus"]) > 1000:
            file.write(json.dumps(data))  # dump() would do without the compiled encoder
        else:
            yaml.dump(data, file, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=False, width=10**9)
    return path


if __name__ == "__main__":
    write(enlarge(base(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0), "/dev/stdout")
