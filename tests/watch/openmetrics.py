"""The output of --openmetrics, compared with the rules of OpenMetrics 1.0 by a parser of its own.

openmetrics.py REPORT PRINT_RICH
"""
import re
import subprocess
import sys
import tempfile

import fleets

REPORT, RICH = sys.argv[1:3]
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"


class Wrong(Exception):
    pass


def need(fine, *words):
    if not fine:
        raise Wrong(*words)


def parse_labels(text):
    labels, at = {}, 0
    while at < len(text):
        match = re.compile(LABEL + r"(,|$)").match(text, at)
        need(match, "labels", text)
        need(match[1] not in labels, "label twice", text)
        need(not match[1].startswith("__"), "reserved label", text)
        labels[match[1]] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], match[2])
        at = match.end()
        need(match[3] == "" or at < len(text), "comma at the end", text)
    return labels


class Family:
    def __init__(self, name):
        self.name, self.kind, self.unit, self.help, self.samples = name, None, None, None, []

    def meta(self, what, text):
        need(not self.samples, "metadata after samples", self.name)
        attribute = {"TYPE": "kind", "UNIT": "unit", "HELP": "help"}[what]
        need(getattr(self, attribute) is None, what, "twice", self.name)
        setattr(self, attribute, text)
        if what == "TYPE":
            need(text in ("gauge", "info", "counter", "stateset", "unknown", "summary", "histogram", "gaugehistogram"),
                 "type", text)
        if what == "UNIT":
            need(text and self.name.endswith("_" + text), "unit is not the end of the name", self.name, text)
        if what == "HELP":
            need(re.fullmatch(r'(?:[^"\\\n]|\\["\\n])*', text), "help", text)

    def sample(self, name, labels, value):
        need(name == self.name + ("_info" if self.kind == "info" else ""), "sample of another family", name, self.name)
        need(self.kind != "info" or value == 1, "info is not 1", name)
        need(labels not in self.samples, "sample twice", name, labels)
        self.samples.append(labels)


def parse(text):
    """[Family]; raises Wrong."""
    need(text.endswith("# EOF\n"), "no EOF at the end")
    families, family, values = {}, None, []
    for line in text[:-len("# EOF\n")].split("\n")[:-1]:
        meta = re.fullmatch(rf"# (TYPE|UNIT|HELP) ({NAME}) (.*)", line)
        sample = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? ({NUMBER})", line)
        need(meta or sample, "line", line)
        if meta:
            if not family or family.name != meta[2]:
                need(meta[2] not in families, "interleaved", meta[2])
                family = families[meta[2]] = Family(meta[2])
            family.meta(meta[1], meta[3])
        else:
            need(family, "sample without a family", line)
            family.sample(sample[1], frozenset(parse_labels(sample[2] or "").items()), float(sample[3]))
            values.append((sample[1], parse_labels(sample[2] or ""), float(sample[3])))
    for one in families.values():
        need(one.kind, "no type", one.name)
        need(one.kind != "info" or one.unit is None, "info with a unit", one.name)
        for ending in ("_info", "_total", "_created", "_count", "_sum", "_bucket"):
            need(not one.name.endswith(ending), "reserved ending", one.name)
            need(one.name + ending not in families, "names clash", one.name)
    return list(families.values()), values


def check_parser(good):
    """The parser refuses what is wrong."""
    for old, new in (("# EOF\n", ""), ("# TYPE gpumemtopo_gpu info", "# TYPE gpumemtopo_gpu_info info"),
                     ("# UNIT gpumemtopo_survey_time_seconds seconds", "# UNIT gpumemtopo_survey_time_seconds bytes"),
                     ("# TYPE gpumemtopo_gpu info", "# TYPE gpumemtopo_gpu gauge"), ('gpu="0"', 'gpu="0'),
                     ("gpumemtopo_survey_gpus ", "gpumemtopo_survey_gpus 3\ngpumemtopo_survey_gpus "),
                     ("# HELP gpumemtopo_survey_nodes", "\n# HELP gpumemtopo_survey_nodes"),
                     ("gpumemtopo_survey_nodes ", "gpumemtopo_survey_knots "), ('",gpu="', '",UUID="')):
        bad = good.replace(old, new, 1)
        assert bad != good, old
        try:
            parse(bad)
        except Wrong:
            continue
        raise AssertionError(f"the parser takes {new!r} for {old!r}")


def as_set(values):
    return sorted((name, sorted(labels.items()), value) for name, labels, value in values)


with tempfile.TemporaryDirectory() as folder:
    inventories = [fleets.planted(), fleets.healthy(), fleets.yaml.safe_load(subprocess.check_output([RICH]))]
    hostile = fleets.planted()
    hostile["nodes"].append({"node": 'a"b\\c\nd', "finding": '"\\', "verdict": "unknown", "loss": None, "action": "tell", "gpus": []})
    hostile["nodes"].append(dict(hostile["nodes"][-1], gpus=[]))  # the same finding twice is one sample
    for data in [*inventories, hostile]:
        text = fleets.metrics(REPORT, folder, data, "--openmetrics")
        families, values = parse(text)
        classic = fleets.metrics(REPORT, folder, data)
        # The same samples in both formats.
        unescaped = [(name, {key: re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value)
                             for key, value in labels.items()}, value) for name, labels, value in fleets.samples(classic)]
        assert as_set(values) == as_set(unescaped)
        units = {family.unit for family in families}
    assert any(labels.get("hostname") == 'a"b\\c\nd' for _, labels, _ in values)
    families, _ = parse(fleets.metrics(REPORT, folder, inventories[0], "--openmetrics"))
    assert {"bytes", "seconds", "hertz", "cycles", "bytes_per_second"} <= {family.unit for family in families}
    assert sorted(family.name for family in families if family.kind == "info") == [
        "gpumemtopo_gpu", "gpumemtopo_node_finding", "gpumemtopo_outlier"]
    check_parser(fleets.metrics(REPORT, folder, inventories[0], "--openmetrics"))
