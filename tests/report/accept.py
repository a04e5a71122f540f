"""accept as users call it: accept.py tutorial|orders|h200|page REPORT SOURCE_ROOT

tutorial: runs the commands of docs/ACCEPT.md and compares what it quotes
orders: exit codes; odd orders and odd deliveries
h200: the example order of H200s and real cards
page: the page is valid, loads nothing and escapes what comes from outside
"""
import copy
import hashlib
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import fast_yaml as yaml  # noqa: E402

    import fleet
except ImportError as missing:
    print(f"not installed: {missing.name}")
    sys.exit(77)

CASE = sys.argv[1]
REPORT, ROOT = (pathlib.Path(word).resolve() for word in sys.argv[2:4])
DEMO, ORDER = ROOT / "reports/demo.yaml", ROOT / "configs/orders/demo.yaml"
ENV = dict(os.environ, GPUMEMTOPO_CONFIG_DIR=str(ROOT / "configs"), PATH=f"{REPORT.parent}:{os.environ['PATH']}")
folder = pathlib.Path(tempfile.mkdtemp())
failures = []


def check(fine, text):
    if not fine:
        failures.append(text)
        print(f"FAILED: {text}")


def run(*words, code):
    done = subprocess.run([REPORT, *words], capture_output=True, env=ENV, cwd=folder, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    check(done.returncode == code, f"{words}: exit {done.returncode}, expected {code}: {out[-2000:]} {err}")
    return out + err


def accept(order, inventory, code, *words):
    """Both are data, or paths."""
    paths = []
    for name, data in ("order", order), ("inventory", inventory):
        path = data
        if not isinstance(data, pathlib.Path):
            path = folder / f"{name}.yaml"
            path.write_text(yaml.safe_dump(data, sort_keys=False))
        paths.append(path)
    return run("accept", paths[1], "--order", paths[0], *words, code=code)


def matches(wanted, told):
    """Lines of `wanted`; "..." stands for any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line + "\n") for line in wanted)
    return re.fullmatch(pattern, told)


def tutorial():
    for name in "configs", "reports":
        (folder / name).symlink_to(ROOT / name)
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "docs/ACCEPT.md").read_text(), re.M | re.S)
    count = 0
    check(len(blocks) >= 3, f"{len(blocks)} blocks")
    for block in blocks:
        steps, marks, wanted = [], "=====8<=====", [[]]
        for line in block.splitlines():
            if line.startswith("$ "):
                wanted.append([])
                # $? is that of the command before the mark
                steps.append(f"{line[2:]}\ncode=$?; echo '{marks}'; (exit $code)")
            else:
                wanted[-1].append(line)
        done = subprocess.run(["bash", "-c", "\n".join(steps)], capture_output=True, env=ENV, cwd=folder, check=False)
        told = done.stdout.decode().split(marks + "\n")
        check(not done.stderr, done.stderr.decode())
        for lines, out in zip(wanted[1:], told):
            count += 1
            check(matches(lines, out), f"docs/ACCEPT.md: expected {lines}, told:\n{out}")
    check(count >= 8, f"{count} commands")


def small(gpus=4, **model):
    return {"gpumemtopo_order": {"schema": 1}, "models": [{"name": "Demo H8", "count": gpus, **model}]}


def fine(demo):
    """Only GPUs that are fine: of the first model."""
    data = copy.deepcopy(demo)
    data["gpus"] = [gpu for gpu in data["gpus"] if gpu["status"] == "ok" and gpu["model"] == "demo-h8"]
    data["models"] = [dict(model, count=len(data["gpus"])) for model in data["models"] if model["id"] == "demo-h8"]
    for key in "outliers", "watch", "nodes", "unmeasured":
        data[key] = []
    count = len(data["gpus"])
    data["survey"].update(gpus=count, measured=count, unmeasured=0, outliers=0, exit_code=0,
                          nodes=len({gpu["node"] for gpu in data["gpus"]}))
    return data


def orders():
    demo = fleet.base(DEMO)
    good = fine(demo)
    count = len(good["gpus"])
    check(count >= 4, f"{count} GPUs are fine")
    check("As ordered" in accept(small(count), good, 0), "a good delivery")
    check("ordered 3, found" in accept(small(3), good, 3), "too many")
    check("missing" in accept(small(count + 1), good, 3), "too few")
    limit = {"main.bandwidth.read": {"at_least": 1, "unit": "GB/s", "spread": 0.5}}
    check("As ordered" in accept(small(count, figures=limit), good, 0), "a low floor")
    limit["main.bandwidth.read"]["at_least"] = 1e6
    check(f"{count} below" in accept(small(count, figures=limit), good, 3), "a high floor")
    check("no GPU of the model has it" in accept(small(count, figures={"load.flops": {"spread": 0.1}}), good, 4),
          "a figure that is not measured")
    # An order of what the inventory does not have, and many models.
    check("is the name right?" in accept({"gpumemtopo_order": {"schema": 1}, "models": [{"name": "Demo H9", "count": 1}]},
                                         good, 3), "a misspelt model")
    many = {"gpumemtopo_order": {"schema": 1}, "models": [{"name": f"Model {i}", "count": 1} for i in range(300)]}
    told = accept(many, good, 3)
    check("300 missing" in told and "and 200 more" in told, "many models")
    # No GPU at all; a rank is lost.
    none = fleet.empty(copy.deepcopy(demo))
    none["survey"].update(gpus=0, nodes=1)
    check("rank did not tell" in accept(small(), none, 4), "nothing was measured")
    none["unmeasured"] = []
    none["survey"].update(unmeasured=0, lost_ranks=0, exit_code=0)
    check("ordered 4, found 0" in accept(small(), none, 3), "no GPU")
    # Cards moved to another node.
    nodes = {}
    for gpu in good["gpus"]:
        nodes[gpu["node"]] = nodes.get(gpu["node"], 0) + 1
    placed = small(count)
    placed["nodes"] = [{"names": node, "count": 1, "gpus": {"Demo H8": gpus}} for node, gpus in nodes.items()]
    check("As ordered" in accept(placed, good, 0), "by node")
    moved = copy.deepcopy(good)
    moved["gpus"][0]["node"] = moved["gpus"][-1]["node"]
    moved["survey"]["nodes"] = len({gpu["node"] for gpu in moved["gpus"]})
    told = accept(placed, moved, 3)
    check("1 missing, 1 other" in told and "found 0" not in told, f"moved: {told}")
    # Bad usage and bad files.
    check("--order" in run("accept", DEMO, code=2), "no order")
    check("one file" in run("accept", "--order", ORDER, code=2), "no file")
    check("empty.yaml:1:1: the file is empty" in bad_order("empty.yaml", ""), "empty order")
    check('bad.yaml:2:1: unknown key "model"; did you mean "models"?' in
          bad_order("bad.yaml", "gpumemtopo_order: {schema: 1}\nmodel: []\n"), "unknown key")
    check('did you mean' in accept(small(figures={"main.bandwith.read": {"spread": 1}}), good, 2), "unknown figure")
    check("survey.measured is" in accept(small(), dict(good, survey=dict(good["survey"], measured=1)), 2), "contradiction")
    check("cannot open" in accept(folder / "none.yaml", good, 2), "no such order")
    check("--order and --html name the same file" in accept(small(), good, 2, "--html", "order.yaml"), "order replaced")
    check("would replace" in accept(small(), good, 2, "--html", "inventory.yaml"), "inventory replaced")
    check("--output and --html name the same file" in accept(small(), good, 2, "--html", "./x", "-o", "x"), "same output")
    check("pseudonyms" in run("accept", DEMO, "--order", ORDER, "--anonymous", code=2), "--anonymous")
    check("cannot" in accept(small(count), good, 1, "--html", "no/such/page.html"), "no folder")
    done = subprocess.run([REPORT, "accept", folder / "inventory.yaml", "--order", folder / "order.yaml"], env=ENV,
                          stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, check=False)
    check(done.returncode == 1, "a full disk went unnoticed")


def bad_order(name, text):
    (folder / name).write_text(text)
    return run("accept", DEMO, "--order", name, code=2)


def healthy(name, profile):
    """The real cards of tests/judge that are healthy, as one delivery. Their streams had equal work per SM, and stand for those by
    ticket, which an order names: without the cards that are slower with equal work."""
    folder_of = ROOT / "tests/judge" / name
    data = fleet.base(folder_of / f"{profile}.yaml")
    right = fleet.base(folder_of / "verdicts.yaml")[profile]
    bad = {f"GPU-{card}" for card, entry in [*right["accused"].items(), *right["watched"].items()]
           if card in right["accused"] or any("_equal" in figure for figure in entry["figures"])}
    data["gpus"] = [dict(gpu, status="ok", values={metric.replace("_equal", ""): value for metric, value in gpu["values"].items()})
                    for gpu in data["gpus"] if gpu["uuid"] not in bad]
    for memory in "main", "l2":
        data["models"][0]["memory"][memory]["bandwidth"] = data["models"][0]["memory"][memory].pop("bandwidth_equal")
    data["watch"] = [entry for entry in data["watch"] if entry["uuid"] not in bad]
    data["outliers"] = data["nodes"] = []
    data["models"][0].pop("populations")
    count = data["models"][0]["count"] = len(data["gpus"])
    data["survey"].update(gpus=count, nodes=count, measured=count, outliers=0, exit_code=0)
    return json.loads(json.dumps(data))  # without YAML's aliases


def h200():
    order = fleet.base(ROOT / "configs/orders/h200.yaml")
    for name, profile in ("h200", "standard"), ("h200-recent", "standard"), ("h200-recent", "quick"):
        delivery = healthy(name, profile)
        order["models"][0]["count"] = len(delivery["gpus"])
        parts = [gpu["part"] for gpu in delivery["gpus"]]
        check(len(delivery["gpus"]) >= 11 and len(set(parts)) == 3, f"{name}: {len(parts)} GPUs, {set(parts)}")
        check("As ordered\n" in accept(order, delivery, 0), f"{name}, {profile}")
        # One card 3 % slower than the others of its board part, and cards that have the speed of any part.
        scattered = copy.deepcopy(delivery)
        slow = next(gpu for gpu in scattered["gpus"] if parts.count(gpu["part"]) > 3)
        slow["values"]["main.bandwidth.read"][0] *= 0.97
        told = accept(order, scattered, 3)
        check(f"{slow['uuid']} main.bandwidth.read: ordered spread at most 2 %" in told, f"{name}: {told}")
        for i, gpu in enumerate(delivery["gpus"]):
            gpu["values"]["main.bandwidth.read"][0] = (4540, 4655)[i % 2]
        check("spread 2.5" in accept(order, delivery, 3), f"{name}: scattered")
    # Some latencies of this one are noisy: not shown, and not refused.
    delivery = healthy("h200", "quick")
    order["models"][0]["count"] = len(delivery["gpus"])
    told = accept(order, delivery, 4)
    check("0 below" in told and "(noisy)" in told, told)


VOID = {"meta", "br"}
KNOWN = VOID | {"html", "head", "title", "style", "body", "main", "h1", "h2", "h3", "p", "em", "code", "div", "table", "thead",
                "tbody", "tr", "th", "td"}


class Page(html.parser.HTMLParser):
    """Every element is known, closed and in its place; nothing is loaded or run."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.problems, self.cells = [], [], [], []
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        inside = self.open[-1] if self.open else None
        if tag not in KNOWN:
            self.problems.append(f"<{tag}>")
        wanted = {"tr": ("table", "thead", "tbody"), "td": ("tr",), "th": ("tr",), "thead": ("table",)}.get(tag)
        if wanted and inside not in wanted:
            self.problems.append(f"<{tag}> in <{inside}>")
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)) or set(names) - {"class", "scope", "lang", "charset", "name", "content",
                                                          "http-equiv"}:
            self.problems.append(f"<{tag}> {attrs}")
        if tag == "tr":
            self.cells.append(0)
        if tag in ("td", "th"):
            self.cells[-1] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}>")

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def page():
    out = folder / "page.html"
    accept(ORDER, DEMO, 4, "--html", "page.html")
    text = out.read_text()
    read = Page(text)
    words = " ".join(read.text)
    check(text.startswith("<!doctype html>") and "<html lang=en>" in text, "no doctype or language")
    check(not read.problems, f"page: {read.problems[:5]}")
    for wanted in ("Not as ordered", "PO-2026-0815", "Demo University", "simulated", "PCIe lanes", "Signature", "Date",
                   "main.bandwidth.read", "GPU-fe1b2c5b-b99c-7451-b876-1202b0f12fb1",
                   hashlib.sha256(DEMO.read_bytes()).hexdigest(), hashlib.sha256(ORDER.read_bytes()).hexdigest()):
        check(wanted in words, f"page: no {wanted}")
    check(re.search(r"\burl\(|https?:|@import|<script", text) is None, "the page loads something")
    # What comes from outside is escaped, whoever wrote it.
    attack = '<script>alert(1)</script>"\' & \u202e'
    data = fleet.hostile(fleet.base(DEMO))
    # As far as `validate` lets it pass.
    data["gpumemtopo"]["generated"] = "2026-11-17T00:00:00Z"
    for entry in data["outliers"]:
        for finding in entry["evidence"]:
            finding.pop("confirmed", None)
    name = data["models"][0]["name"]
    order = {"gpumemtopo_order": {"schema": 1, "number": attack, "supplier": attack, "customer": attack, "delivered": attack},
             "models": [{"name": name, "count": 1, "parts": [attack],
                         "figures": {"main.latency": {"at_most": 1, "unit": attack}}}, {"name": attack, "count": 1}],
             "nodes": [{"names": "*", "count": 1, "gpus": {name: 1}}, {"names": "<b>x", "count": 1, "gpus": {attack: 1}}]}
    for key, path in ("order", folder / "order.yaml"), ("inventory", folder / "inventory.yaml"):
        path.write_text(yaml.safe_dump(order if key == "order" else data, sort_keys=False))
    done = subprocess.run([REPORT, "accept", folder / "inventory.yaml", "--order", folder / "order.yaml", "--html",
                           folder / "hostile.html"], capture_output=True, env=ENV, check=False)
    check(done.returncode in (3, 4), f"hostile: {done.returncode} {done.stderr}")
    if (folder / "hostile.html").exists():
        text = (folder / "hostile.html").read_text()
        read = Page(text)
        check(not read.problems, f"hostile: {read.problems[:5]}")
        check("\u202e" not in text and "\x1b" not in text, "hostile: control characters")
        check("\x1b" not in done.stdout.decode(), "hostile: control characters in the text")
    # As ordered, and large.
    demo = fleet.base(DEMO)
    accept(small(len(fine(demo)["gpus"])), fine(demo), 0, "--html", "page.html")
    read = Page(out.read_text())
    check(not read.problems and "As ordered" in " ".join(read.text), f"fine: {read.problems[:5]}")
    fleet.write(fleet.enlarge(fleet.base(DEMO), 6000, 60), folder / "inventory.yaml")
    (folder / "order.yaml").write_text(yaml.safe_dump(small(6000, figures={
        "main.bandwidth.read": {"at_least": 1e5, "unit": "GB/s"}})))
    told = run("accept", "inventory.yaml", "--order", "order.yaml", "--html", "page.html", code=3)
    check("6000 below" in told and "and 5900 more" in told, f"large: {told[:500]}")
    read = Page(out.read_text())
    check(not read.problems and "1060 more findings" in " ".join(read.text), f"large: {read.problems[:5]}")
    check(out.stat().st_size < 4 << 20, f"large: {out.stat().st_size} bytes")


try:
    {"tutorial": tutorial, "orders": orders, "h200": h200, "page": page}[CASE]()
finally:
    subprocess.run(["rm", "-rf", folder], check=True)
sys.exit(1 if failures else 0)
