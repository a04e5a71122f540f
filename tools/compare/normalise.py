"""Outputs of the programs as flat models that can be compared: {key: value}.

The only place that knows the formats. One function per schema of the inventory brings it into the same shape: what
schema 1 keeps as text with a grammar of its own (curves, maps, link rows, rates of SMs) is decoded into lists.
"""
import html.parser
import io
import json
import re
import tarfile

import yaml

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
# What differs from run to run, or says which program it was.
VOLATILE = {"gpumemtopo": ("schema", "version", "generated", "command", "measured_by"), "survey": ("wall_s",)}
WALL_TIMES = {"begun_after_s"}  # of every GPU: real seconds, also in the simulator
TOLERANCE = 2e-6  # of numbers: they are printed with six digits


class Approximate(float):
    """A number that its format has rounded to steps of `step`."""
    def __new__(cls, value, step):
        number = super().__new__(cls, value)
        number.step = step
        return number


class Numbers:
    """A curve, a map or a table: its numbers count, in their order, by rows or by columns, whatever mapping or list they are in."""
    def __init__(self, data):
        self.data = data

    def __repr__(self):
        return repr(self.data)

    def __len__(self):
        return len(numbers_in(self.data))

    def orders(self):
        """The numbers one after the other; and again with rows and columns exchanged, if all are as long."""
        yield numbers_in(self.data)
        items = list(self.data.values()) if isinstance(self.data, dict) else self.data
        lists = [item for item in items if isinstance(item, list)]
        if lists and len({len(item) for item in lists}) == 1:
            yield numbers_in([item for item in items if not isinstance(item, list)]) + numbers_in(list(zip(*lists)))

    def same(self, other):
        if shape(self.data) == shape(other.data):
            return same(self.data, other.data)
        return any(same(a, b) for a in self.orders() for b in other.orders())


def shape(data):
    if isinstance(data, dict):
        return {key: shape(value) for key, value in data.items()}
    return [shape(item) for item in data] if isinstance(data, list) else None


def numbers_in(data):
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, (list, tuple)):
        return [found for item in data for found in numbers_in(item)]
    if isinstance(data, str):
        data = number(data)
    return [data] if data is None or isinstance(data, (int, float)) else []


def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        step = max(getattr(a, "step", 0), getattr(b, "step", 0))
        return a == b or abs(a - b) <= max(0.51 * step, TOLERANCE * max(abs(a), abs(b)))
    if isinstance(a, Numbers) and isinstance(b, Numbers):
        return a.same(b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def number(word):
    """A word as a number; None for `-`, which means: not measured; the word itself if it is neither."""
    if word == "-":
        return None
    if not NUMBER.match(word):
        return word
    return float(word) if re.search(r"[.eE]", word) else int(word)


# ---- schema 1: the grammars in its texts ----

def pairs_of_letters(text):
    return [64 * LETTERS.index(text[i]) + LETTERS.index(text[i + 1]) for i in range(0, len(text), 2)]


def decode_fingerprint(text):
    _, usual, noise, letters = text.split()
    return {"usual_cycles": Approximate(usual, 0.1), "noise_cycles": Approximate(noise, 0.01),
            "cycles": [Approximate(0.1 * (code - 2048), 0.1) for code in pairs_of_letters(letters)]}


def decode_sm_rates(text):
    words = text.split()
    usual = float(words[1])
    rates = {"noise": Approximate(words[2], 1e-4),
             "gbs": [Approximate(usual * code / 2048, usual / 2048 + 0.01) for code in pairs_of_letters(words[3])]}
    if len(words) > 4:
        rates["group_of"] = [LETTERS.index(letter) for letter in words[4]]
        rates["group_gbs"] = [Approximate(word, 0.1) for word in words[5:]]
    return rates


def decode_curve(text):
    head, *points = text.split("; ")
    words = head.split()
    columns = zip(*([number(word) for word in point.split()] for point in points[1:]))
    return {"hit": float(words[1]), "far": float(words[3]), "miss": float(words[5]),
            **{name: list(column) for name, column in zip(("bytes", "cycles", "missed"), columns)}}


def decode_load_curve(text):
    columns = zip(*([number(word) for word in point.split()] for point in text.split("; ")[1:]))
    return {name: list(column) for name, column in zip(("s", "mhz", "w", "c", "memory_c"), columns)}


def decode_surface_curves(text):
    rows = dict(row.split(": ", 1) for row in text[len("GB/s by "):].split("; "))
    return {name: [number(word) for word in words.split()] for name, words in rows.items()}


def decode_conflicts(text):
    """`cycles by threads with strides of 1 2 4 8 16 32 words; 1 23.0 23.0 ...`"""
    head, *rows = text.split("; ")
    cells = [[number(word) for word in row.split()] for row in rows]
    return {"threads": [row[0] for row in cells], "strides": [int(word) for word in re.findall(r"\d+", head)],
            "cells": [row[1:] for row in cells]}


def decode_surface(text):
    """`GB/s by bytes x threads with 1 2 4 8 blocks per SM; 4x32 2102 4201 ...; 16x256, 2 blocks, 1 2 4 ... in flight 24 32`"""
    head, *rows, last = text.split("; ")
    cells = [[number(word) for word in re.split("[ x]", row)] for row in rows]
    best, rates = last.split(" 1 2 4 ... in flight ")
    return {"bytes": [row[0] for row in cells], "threads": [row[1] for row in cells],
            "blocks": [int(word) for word in re.findall(r"\d+", head)], "cells": [row[2:] for row in cells],
            "in_flight_by": [int(word) for word in re.findall(r"\d+", best)],
            "in_flight": [[2**i, number(word)] for i, word in enumerate(rates.split())]}


def decode_letters(words, low, step, more):
    """A letter is the number of whole steps above the lowest value: the value lies within the step. more: for what is rounded."""
    return [[Approximate(low + step * (LETTERS.index(letter) + 0.5), step + more) for letter in word] for word in words]


def decode_region_map(text):
    """`635 4 4534042624 SQNK... TQQL...`: lowest latency, cycles of a letter, bytes of a region; by SM a letter per region."""
    low, step, size, *words = text.split()
    return {"region_bytes": int(size), "cycles": decode_letters(words, float(low), float(step), more=2)}


# By the last key of the path, and what the text begins with.
GRAMMARS = [
    ("fingerprint", r"1 [\d.]+ [\d.]+ [\w-]+$", decode_fingerprint),
    ("sm_bandwidth", r"1 [\d.]+ [\d.]+ ", decode_sm_rates),
    ("curve", r"hit ", decode_curve),
    ("curve", r"s MHz ", decode_load_curve),
    ("curves", r"GB/s by \w+: ", decode_surface_curves),
    ("surface", r"GB/s by ", decode_surface),
    ("table", r"cycles by ", decode_conflicts),
    ("region_map", r"\d", decode_region_map),
]
LINK_LISTS = ("gpus", "state", "read", "write", "both", "sm_read", "sm_write", "sm_both", "latency", "latency_ns")
PLAIN_LIST = re.compile(r"(?:-|[\d.eE+-]+)(?: (?:-|[\d.eE+-]+))+$")
PLAIN_PAIRS = re.compile(r"[\d.]+:[\d.eE+-]+(?: [\d.]+:[\d.eE+-]+)*$")


def decode_text(path, text):
    key = path[-1]
    for name, begins, decode in GRAMMARS:
        if key == name and re.match(begins, text):
            return decode(text)
    if "links" in path and key in LINK_LISTS:
        return [number(word) for word in text.split()]
    if PLAIN_LIST.match(text) or (key == "sms" and "instruction_cache" in path):
        return [number(word) for word in text.split()]
    if PLAIN_PAIRS.match(text):
        return [[number(word) for word in pair.split(":")] for pair in text.split()]
    return text


def from_schema_1(data, path=()):
    if isinstance(data, dict):
        if isinstance(data.get("slice_map"), str):  # its lowest latency and step are notes beside it
            words, (low, step) = data["slice_map"].split(), (data.pop(key) for key in ("from_cycles", "step_cycles"))
            data["slice_map"] = decode_letters(words, low, step, more=1)
        return {key: from_schema_1(value, (*path, str(key))) for key, value in data.items()}
    if isinstance(data, list):
        return [from_schema_1(value, path) for value in data]
    if "links" in path[:-1] and path[-1] in LINK_LISTS and not isinstance(data, str):
        return [data]  # of one peer
    return decode_text(path, data) if isinstance(data, str) and path else data


# ---- schema 2: lists are lists ----

# A curve has several lists, whose keys begin with its name; and what schema 1 has in place of null in them.
CURVE_LISTS = (("curve", ("s", "mhz", "w", "c", "memory_c")), ("curve", ("levels", "bytes", "cycles", "missed")))
# Rows, and the lists that belong to them.
ROWS = (("surface", ("bytes", "threads", "blocks", "in_flight_by", "in_flight")), ("table", ("threads", "strides")))


def board_lists(data):
    """As schema 1 has them: the latency of the median SM and the distances; the rates of SMs and groups."""
    if isinstance(data.get("fingerprint"), list):
        data["fingerprint"] = {"usual_cycles": data.pop("fingerprint_cycles"), "noise_cycles": data.pop("fingerprint_noise"),
                               "cycles": data["fingerprint"]}
    if isinstance(data.get("sm_bandwidth"), list):
        data["sm_bandwidth"] = {"noise": data.pop("sm_bandwidth_noise"), "gbs": data["sm_bandwidth"],
                                **({"group_of": data.pop("sm_group"), "group_gbs": data.pop("sm_group_bandwidth")}
                                   if "sm_group" in data else {})}


def from_schema_2(data):
    if isinstance(data, list):
        return [from_schema_2(item) for item in data]
    if not isinstance(data, dict):
        return data
    data = {key: from_schema_2(value) for key, value in data.items()}
    for name, columns in CURVE_LISTS:
        if f"{name}_{columns[0]}" in data:
            data[name] = {column: [0 if item is None else item for item in data.pop(f"{name}_{column}")] for column in columns}
    for key in [key for key in data if f"{key}_at" in data and isinstance(data[key], list)]:
        data[key] = [list(pair) for pair in zip(data.pop(f"{key}_at"), data[key])]
    board_lists(data)
    for name, lists in ROWS:
        if isinstance(data.get(name), list):
            data[name] = {"cells": data[name], **{key: data.pop(f"{name}_{key}") for key in lists}}
    if isinstance(data.get("region_map"), list):
        data["region_map"] = {"region_bytes": data.pop("region_bytes"), "cycles": data["region_map"]}
    if "curves_of" in data:
        names = data.pop("curves_of")
        data["curves"] = {data.pop("curves_by"): data.pop("curves_at"),
                          **{name: data.pop(f"curves_{place}") for place, name in enumerate(names, 1)}}
    return data


def from_schema_4(data):
    """Entries have a verdict and evidence in place of a kind and findings; loss and action are new."""
    data = from_schema_2(data)
    for name in "outliers", "watch", "nodes":
        for entry in data.get(name) or []:
            verdict = entry.pop("verdict", None)
            entry.pop("loss", None)
            entry.pop("action", None)
            if name != "watch":
                entry["kind"] = None if verdict in ("unknown", "built_slower") else verdict
            if "evidence" in entry:
                entry["findings"] = entry.pop("evidence")
    return data


SCHEMAS = {1: from_schema_1, 2: from_schema_2, 3: from_schema_2, 4: from_schema_4}  # schema 3 has other names only


# ---- flat models ----

# What names an item of a list, the first of these that it has; so that another order of a list is one difference, not many.
NAMES = (("uuid",), ("metric",), ("id",), ("kernel", "model", "what_if"), ("node", "nodes", "slot", "pci", "rank"), ("generated",))


def identity(item, place):
    for keys in NAMES:
        words = [str(item[key]) for key in keys if isinstance(item.get(key), (str, int))]
        if words:
            return "+".join(words)
    return str(place)


# What schema 1 keeps as one text, and schema 2 as lists in one way or another.
DRAWN = {"fingerprint", "sm_bandwidth", "curve", "curves", "surface", "table", "region_map", "slice_map", "map", "sizes", "read_map",
         "write_map", "levels", "by_bytes", "at_once", "l1_by_wish", "texture_by_wish", "read_only_by_wish"}


RENAMED = {"gpus_given": "gpus_allocated"}  # keys with another name today


def has_figures(data):
    """A group of figures may have the name of a drawing: `surface`."""
    return isinstance(data, dict) and ("value" in data or any(map(has_figures, data.values())))


def flatten(data, path, out):
    if isinstance(data, (dict, list)) and path.rpartition("/")[2] in DRAWN and not has_figures(data):
        out[path] = Numbers(data)
    elif isinstance(data, dict):
        if not data:
            out[path] = {}
        for key, value in data.items():
            if key not in WALL_TIMES:
                flatten(value, f"{path}/{RENAMED.get(key, key)}", out)
    elif isinstance(data, list) and data and all(isinstance(item, dict) for item in data):
        seen = {}
        for place, item in enumerate(data):
            name = identity(item, place)
            seen[name] = seen.get(name, 0) + 1
            flatten(item, f"{path}/{name}" + (f"#{seen[name]}" if seen[name] > 1 else ""), out)
        out[f"{path}/(order)"] = list(seen)
    else:
        if isinstance(data, str) and NUMBER.match(data):
            data = number(data)  # YAML 1.1 reads 5e-05 as a text
        out[path] = data
    return out


def inventory(text):
    data = yaml.load(text, yaml.CSafeLoader) if not text.lstrip().startswith("{") else json.loads(text)
    if not isinstance(data, dict) or "gpumemtopo" not in data:
        return lines(text)
    schema = data["gpumemtopo"].get("schema")
    if schema not in SCHEMAS:
        return {"schema": schema, **lines(text)}
    data = SCHEMAS[schema](data)
    for section, keys in VOLATILE.items():
        for key in keys:
            data.get(section, {}).pop(key, None)
    return flatten(data, "", {})


def any_yaml(text):
    return flatten(yaml.load(text, yaml.CSafeLoader), "", {})


def any_json(text):
    return flatten(json.loads(text), "", {}) if text.strip() else {}


class Page(html.parser.HTMLParser):
    """The visible text of a page, and how many drawings and rows it has. The order of labels in a drawing does not count."""
    def __init__(self):
        super().__init__()
        self.words, self.counts, self.hidden, self.drawing = [], {}, 0, None

    def add(self, text):
        (self.words if self.drawing is None else self.drawing).append(" ".join(text.split()))

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "style"):
            self.hidden += 1
        if tag == "svg":
            self.drawing = []
        for name, text in attributes:
            if name in ("title", "aria-label", "alt") and text:
                self.add(text)
        if tag in ("svg", "table", "tr", "section", "details", "path", "polyline", "rect", "circle"):
            self.counts[f"<{tag}>"] = self.counts.get(f"<{tag}>", 0) + 1

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.hidden -= 1
        if tag == "svg" and self.drawing is not None:
            self.words += sorted(self.drawing)
            self.drawing = None

    def handle_data(self, data):
        if not self.hidden and data.split():
            self.add(data)


def page(text):
    parser = Page()
    parser.feed(text)
    return {**parser.counts, "lines": parser.words}


def prometheus(text):
    samples = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if line.startswith("#") or not name:
            samples[line] = True
        else:
            labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', name)
            samples[name.split("{")[0] + str(sorted(labels))] = number(value)
    return samples


def lines(text):
    """Text for people, without its indentation and line breaks inside of words."""
    return {"lines": [" ".join(line.split()) for line in text.splitlines() if line.split()]}


def message_kinds(text, words=5):
    """Of messages only how they begin: a better sentence is no difference in behaviour, another message is."""
    kinds = []
    for line in text.splitlines():
        line = re.sub(r"^gpumemtopo-\w+: ", "", line)
        kinds.append(" ".join(line.split()[:words]))
    return {"messages": kinds}


def flags(text):
    """Of --help only which flags and commands there are: how they are arranged may change."""
    named = re.findall(r"(?<![\w-])--?[a-z][\w-]*", text)
    commands = re.findall(r"(?m)^  ([a-z]+) ", text)
    return {f"flag {name}": True for name in sorted(set(named))} | {f"command {name}": True for name in commands}


def archive(data, clean):
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar.getmembers():
            name = member.name.split("/", 1)[-1]
            content = tar.extractfile(member).read() if member.isfile() else b""
            if name.endswith(".json"):
                data = from_schema_2(from_schema_1(json.loads(clean(content.decode()))))  # facts of a board
                found.update({f"{name}{key}": value for key, value in flatten(data, "", {}).items()})
            elif name.endswith(".txt"):
                found[f"{name}/lines"] = lines(clean(content.decode()))["lines"]
            else:
                found[name] = bool(content)
    return found


def size(data, clean):
    return {"bytes": len(data)}


KINDS = {"inventory": inventory, "yaml": any_yaml, "json": any_json, "page": page, "prometheus": prometheus,
         "lines": lines, "messages": message_kinds, "flags": flags}
BINARY_KINDS = {"archive": archive, "size": size}


# What schema 2 and today's words change everywhere: (pattern, replacement) for texts. A GPU is flagged, not accused; files have
# other digests, and their lines other numbers.
RENEWED = ((r"\b(is|not)(\s+)accused", r"\1\2flagged"), (r"newer than the [12] that this program knows", "newer"),
           (r"SHA-256 [0-9a-f]{64}", "SHA-256"), (r"(store/\d+T\d+Z)-[0-9a-f]{16}\.yaml", r"\1.yaml"),
           (r"(driver) told( this counter)", r"\1 reports\2"), (r"(ranks that) told( nothing)", r"\1 sent\2"),
           (r"(\.yaml):\d+:\d+: ", r"\1: "))


def model(kind, data, volatile=()):
    """The flat model of an output. volatile: (pattern, replacement) for texts."""
    def clean(text):
        for pattern, word in (*volatile, *RENEWED):
            text = re.sub(pattern, word, text)
        return text

    if kind in BINARY_KINDS:
        try:
            return BINARY_KINDS[kind](data, clean)
        except tarfile.TarError:
            return {"not readable": kind}
    text = clean(data.decode(errors="replace"))
    try:
        return KINDS[kind](text)
    except (ValueError, yaml.YAMLError, KeyError, IndexError, TypeError) as problem:
        return {"not readable": f"{kind}: {type(problem).__name__}", **lines(text)}
