"""Every metric and label that rules, dashboard and documents use is one that the program writes.

names.py REPORT
"""
import json
import re
import sys
import tempfile

import fleets

REPORT = sys.argv[1]
# Added by Prometheus itself, by the rules, or by dcgm-exporter.
OWN_LABELS = {"alertname", "alertstate", "severity", "job", "instance"}
DCGM = {"DCGM_FI_DEV_GPU_TEMP": {"UUID", "hostname", "gpu"}}


def written(text):
    """{metric: labels} of what the program wrote."""
    found = {}
    for name, labels, _ in fleets.samples(text):
        found.setdefault(name, set()).update(labels)
    return found


def labels_used(query):
    """Names of labels: in selectors, after by, on and group_left."""
    used = set(re.findall(r"[{,]\s*(\w+)\s*(?:=~|!~|!=|=)", query))
    for names in re.findall(r"\b(?:by|on|group_left|without|ignoring)\s*\(([\w\s,]*)\)", query):
        used.update(re.findall(r"\w+", names))
    return used


def metrics_used(query):
    plain = re.sub(r'"[^"]*"|\'[^\']*\'', '""', query)
    return set(re.findall(r"[\w:]*gpumemtopo_[\w:]+|DCGM_\w+", plain))


def texts():
    """(where, query, whether it is one) of all that names metrics or labels."""
    for rule in fleets.rules():
        name = rule.get("alert") or rule["record"]
        yield f"rule {name}", rule["expr"], set()
        for text in rule.get("annotations", {}).values():
            asked = " ".join(re.findall(r'printf "([^"]*)"', text))
            named = set(re.findall(r"\$labels\.(\w+)", text) + re.findall(r'label "(\w+)"', text))
            yield f"text of {name}", asked, named
    for title, query in fleets.panels():
        yield f"panel {title}", query, set()
    dashboard = json.loads((fleets.WATCH / "dashboard.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield f"legend of {panel['title']}", "", set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "")))
    for variable in dashboard["templating"]["list"]:
        match = re.fullmatch(r"label_values\((\w+), (\w+)\)", str(variable["query"]))
        if match:
            yield f"variable {variable['name']}", match[1], {match[2]}
    page = (fleets.ROOT / "docs/watch.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```promql\n(.*?)^```", page, re.M | re.S):
        yield "docs/watch.md", block, set()
    for name in re.findall(r"`(gpumemtopo_\w+)[`{ ]", page):
        yield "docs/watch.md", name, set()


def wrong_names(known):
    """What is used but not written."""
    recorded = {rule["record"] for rule in fleets.rules() if "record" in rule}
    all_labels = set().union(*known.values()) | OWN_LABELS
    wrong = []
    for where, query, named in texts():
        own = [known[name] for name in metrics_used(query) if name in known]
        usable = set().union(*own, OWN_LABELS) if own and not metrics_used(query) & recorded else all_labels
        wrong += [(where, name) for name in metrics_used(query) - set(known) - recorded]
        wrong += [(where, name) for name in labels_used(query) - usable]
        wrong += [(where, name) for name in named - all_labels]
    return wrong


with tempfile.TemporaryDirectory() as folder:
    known = dict(written(fleets.metrics(REPORT, folder, fleets.planted())), **DCGM)
    wrong = wrong_names(known)
    assert not wrong, f"not written by gpumemtopo-report prometheus: {wrong}"
    # With the old labels, the rules and the dashboard need nothing but the other name of the host.
    old = {name: {own.replace("Hostname", "hostname") for own in labels}
           for name, labels in written(fleets.metrics(REPORT, folder, fleets.planted(), "--old-labels")).items()}
    assert all("hostname" not in labels for _, labels, _ in
               fleets.samples(fleets.metrics(REPORT, folder, fleets.planted(), "--old-labels"))), "hostname beside Hostname"
    assert not wrong_names(dict(old, **DCGM)), wrong_names(dict(old, **DCGM))
    # The check notices a renamed metric, and a renamed label.
    used = set().union(*(metrics_used(query) for _, query, _ in texts())) & set(known)
    labels = set().union(*(labels_used(query) | named for _, query, named in texts())) - OWN_LABELS
    assert len(used) >= 15 and len(labels) >= 8, (used, labels)
    for name in used:
        renamed = {("new_" + key if key == name else key): value for key, value in known.items()}
        assert wrong_names(renamed), f"nobody notices that {name} is renamed"
    for label in labels:
        renamed = {key: {("new_" + own if own == label else own) for own in value} for key, value in known.items()}
        assert wrong_names(renamed), f"nobody notices that the label {label} is renamed"
    # Every verdict, action and status that a rule selects is one that the program may write.
    sources = "".join((fleets.ROOT / "src/inventory" / name).read_text(encoding="utf-8")
                      for name in ("inventory.c", "gpu_result.c"))
    for rule in fleets.rules():
        for label, values in re.findall(r'(verdict|action|status)(?:=~|!~|!=|=)"([^"]*)"', rule["expr"]):
            for value in values.split("|"):
                assert f'"{value}"' in sources, f"{label} {value} of {rule.get('alert')} is unknown"
    abouts = set(re.findall(r'about="(\w+)"', json.dumps([rule["expr"] for rule in fleets.rules()]).replace('\\"', '"')))
    nodes = (fleets.ROOT / "src/report/commands/prometheus.c").read_text(encoding="utf-8")
    assert abouts == {"no_gpus", "fewer_gpus"} and all(f'"{about}"' in nodes for about in abouts), abouts
    facts = {labels["fact"] for name, labels, _ in fleets.samples(fleets.metrics(REPORT, folder, fleets.planted()))
             if name == "gpumemtopo_health_known_gpus"}
    for rule in fleets.rules():
        for values in re.findall(r'fact=~"([^"]*)"', rule["expr"]):
            for value in values.split("|"):
                assert any(re.fullmatch(value, fact) for fact in facts), f"no counter is {value}"
