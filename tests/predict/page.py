"""The page of predictions: its text by itself, and in headless Chromium where that is installed.

page.py text|browser PREDICT SOURCE_ROOT FOLDER_FOR_SCREENSHOTS. Every figure of the page is compared with YAML.
"""
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

what, predict = sys.argv[1:3]
root = pathlib.Path(sys.argv[3])
sys.path.insert(0, str(root / "tests/report"))
try:
    import browser
    import fleet
    import looks
    import yaml
except ImportError as missing:
    print(f"not installed: {missing.name}")
    sys.exit(77)

folder = pathlib.Path(tempfile.mkdtemp())
demo, h200 = root / "reports/demo.yaml", root / "reports/h200.yaml"
KERNELS = ["atax1", "2mm", "gemm_tiled", "--size", "128"]
CHANGES = ["--what-if", "l1_data.size=8K,32K+l2.ways=8+l2.size=1M", "--what-if", "l1_data.carveout=16K"]
LIMITS = ["l1_bandwidth", "l2_read_bandwidth", "l2_write_bandwidth", "main_read_bandwidth", "main_write_bandwidth", "latency"]


def run(name, *arguments, code=0):
    """The page and the data of the same predictions."""
    page = folder / f"{name}.html"
    texts = {}
    for form, more in ("yaml", ["--reuse"]), ("html", []):
        result = subprocess.run([predict, *arguments, "--format", form, "--quiet", *more], stdout=subprocess.PIPE, check=False)
        assert result.returncode == code, (arguments, result.returncode)
        texts[form] = result.stdout.decode()
    page.write_text(texts["html"], encoding="utf-8")
    return page, yaml.load(texts["yaml"], yaml.CSafeLoader)


def short(value, unit=""):
    prefixes = ["", "k", "M", "G", "T", "P"]
    at = 0
    while abs(value) >= 999.5 and at < 5:
        value, at = value / 1000, at + 1
    return "%.3g%s%s%s" % (value, " " if unit else "", prefixes[at], unit)


def seconds(value):
    for unit, word in (1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"):
        if value >= 0.9995 * unit or word == "ns":
            return "%.3g %s" % (value / unit, word)


def percent(share):
    return "-" if share is None else "%.1f" % (100 * share)


def safe(name):
    """As a page shows a name: nothing that a terminal or a reader could stumble over."""
    return re.sub("[\x00-\x1f\x7f\u202a-\u202e]", "?", name)[:70]


def near(shown, wanted):
    """The same, but for the last digit: YAML has six digits."""
    if shown == wanted:
        return True
    a, b = (re.fullmatch(r"([-+\d.e]+)(.*)", text) for text in (shown, wanted))
    return bool(a and b and a[2] == b[2] and abs(float(a[1]) - float(b[1])) <= 1.1e-2 * abs(float(b[1])))


def assert_near(shown, wanted, where):
    assert len(shown) == len(wanted) and all(map(near, shown, wanted)), (where, shown, wanted)


def figures(row):
    return [percent(row["l1"]["read_hits"]), percent(row["l2"]["hits"]), percent(row["l2_without_l1"]["hits"]),
            short(row["l1"]["reads"] + row["l1"]["writes"]), short(row["l2"]["transactions"]),
            short(row["l2"]["main_reads"] + row["l2"]["main_writes"]), short(row["l2"]["main_bytes"], "B"),
            seconds(row["bound"]["seconds"])]


def plain_of(data, kernel):
    return [row for row in data["predictions"] if row["kernel"] == kernel and not row["what_if"]]


def kernels_of(data):
    return list(dict.fromkeys(row["kernel"] for row in data["predictions"]))


def check_gap(chromium, data):
    """A kernel that no model has: the others are compared without it."""
    shown = chromium.run(CELLS % "table.times tr")
    assert shown[1] == ["attention", "-", "-"] and "-" not in shown[-1][1:], shown
    assert chromium.run("document.querySelector('#k0').innerText").endswith("Not predicted; see the reasons.")
    assert {row["kernel"] for row in data["not_predicted"]} == {"attention"}


CELLS = "Array.from(document.querySelectorAll('%s'), (r) => Array.from(r.cells, (c) => c.innerText.trim().replace(/\\n/g, ' ')))"


def check_models(chromium, data):
    """Each kernel's models side by side, the time that each limit allows, and all kernels together."""
    for number, kernel in enumerate(kernels_of(data)):
        rows = plain_of(data, kernel)
        shown = chromium.run(CELLS % f"#k{number} table.models tbody tr")
        shortest = min(row["bound"]["seconds"] for row in rows)
        assert len(shown) == len(rows), (kernel, shown)
        for cells, row in zip(shown, rows):
            assert cells[0].startswith(safe(row["model"])) and cells[-1] == row["bound"]["limit"], cells
            assert_near(cells[1:-2], figures(row), kernel)
            assert near(cells[-2], "shortest" if row["bound"]["seconds"] == shortest else
                        "%.3g ×" % (row["bound"]["seconds"] / shortest)), cells
        limits = chromium.run(CELLS % f"#k{number} details.limits tbody tr")
        for cells, row in zip(limits, rows):
            assert_near(cells[1:], [seconds(row["bound"][limit]) for limit in LIMITS], kernel)


def check_all(chromium, data):
    shown = chromium.run(CELLS % "table.times tr")
    rows = {kernel: plain_of(data, kernel) for kernel in kernels_of(data)}
    assert [cells[0] for cells in shown] == ["Kernel", *rows, "Geometric mean"], shown
    ratios = [[row["bound"]["seconds"] / min(r["bound"]["seconds"] for r in own) for row in own] for own in rows.values()]
    means = [math.exp(sum(map(math.log, column)) / len(column)) for column in zip(*ratios)]
    assert_near(shown[-1][1:], ["%.3g ×" % mean for mean in means], "means")
    for cells, own, kernel_ratios in zip(shown[1:], rows.values(), ratios):
        for cell, row, ratio in zip(cells[1:], own, kernel_ratios):
            number, unit, compared = cell.split(maxsplit=2)
            assert near(f"{number} {unit}", seconds(row["bound"]["seconds"])), cells
            assert near(compared, "shortest" if ratio == 1 else "%.3g ×" % ratio), (cells, ratio)


def check_changes(chromium, data):
    """The columns of each table: figures, and differences to the first one."""
    tables = chromium.run("Array.from(document.querySelectorAll('table.whatif'), (t) => Array.from(t.rows, (r) => "
                          "Array.from(r.cells, (c) => c.innerText.trim().replace(/\\n/g, ' '))))")
    subjects = list(dict.fromkeys((row["kernel"], row["model"]) for row in data["predictions"]))
    assert len(tables) == len(subjects), len(tables)
    for (kernel, model), table in zip(subjects, tables):
        by_change = {row["what_if"] or "as measured": row for row in data["predictions"]
                     if (row["kernel"], row["model"]) == (kernel, model)}
        base = by_change["as measured"]
        for at, change in enumerate(table[0][1:], 1):
            column = [cells[at] for cells in table[1:]]
            if change not in by_change:
                assert column == ["-"] * 5 + ["not possible"], (model, change, column)
                assert any(row["what_if"] == change and row["model"] == model for row in data["not_predicted"])
                continue
            row = by_change[change]
            values = [(100 * r["l1"]["read_hits"], 100 * r["l2"]["hits"], r["l2"]["transactions"],
                       r["l2"]["main_bytes"], r["bound"]["seconds"]) for r in (base, row)]
            texts = [percent(row["l1"]["read_hits"]), percent(row["l2"]["hits"]), short(row["l2"]["transactions"]),
                     short(row["l2"]["main_bytes"], "B"), seconds(row["bound"]["seconds"])]
            assert column[5] == row["bound"]["limit"], column
            for i, (text, shown, before, after) in enumerate(zip(texts, column, *values)):
                difference = after - before if i < 2 else 100 * (after / before - 1)
                assert near(shown[:len(text)], text), (shown, text)
                if change != "as measured":
                    said = shown[len(text):].strip()
                    found = re.fullmatch(r"([-+][\d.]+) (points|%)", said)
                    assert abs((float(found[1]) if found else 0) - difference) <= 0.06, (shown, difference)


def check_charts(chromium, data):
    """Curves go through the points of the data, bars have its heights, and the dot is the prediction."""
    charts = chromium.run("""Array.from(document.querySelectorAll('details.reuse svg'), (s) => ({
      title: s.querySelector('title').textContent, own: (s.querySelector('.own') || s).textContent,
      box: ['x', 'y', 'width', 'height'].map((n) => +s.querySelector('rect.frame').getAttribute(n)),
      line: Array.from((s.querySelector('polyline') || {points: []}).points, (p) => [p.x, p.y]),
      dot: Array.from(s.querySelectorAll('circle'), (c) => [+c.getAttribute('cx'), +c.getAttribute('cy')]),
      bars: Array.from(s.querySelectorAll('rect.dot'), (r) => [+r.getAttribute('height'), +r.textContent])}))""")
    rows = [row for row in data["predictions"] if not row["what_if"]]
    assert len(charts) == 4 * len(rows), len(charts)
    for at, row in enumerate(rows):
        for chart, level, hits in zip(charts[4 * at:], ("l1", "l2"), (row["l1"]["read_hits"], row["l2"]["read_hits"])):
            assert chart["title"] == f"{row['model']}: {level.upper()} hits by size of {level.upper()}", chart["title"]
            x, y, width, height = chart["box"]
            curve = row[f"{level}_curve"]
            assert len(chart["line"]) == len(curve) > 4, chart
            scale = [(px, math.log2(point["bytes"])) for (px, _), point in zip(chart["line"], curve)]
            per_octave = (scale[-1][0] - scale[0][0]) / (scale[-1][1] - scale[0][1])
            for (px, py), point in zip(chart["line"], curve):
                assert abs((y + height - py) / height - point["hits"]) < 0.001, (row["model"], point)
                assert abs(px - x - (math.log2(point["bytes"]) - scale[0][1]) * per_octave) < 0.2, point
            assert abs((y + height - chart["dot"][0][1]) / height - hits) < 0.001, (row["model"], hits)
            assert f"{percent(hits)} % predicted" in chart["own"], chart["own"]
        for chart, level in zip(charts[4 * at + 2:], ("l1", "l2")):
            distances = row[f"{level}_reuse_distances"]
            total = sum(bucket["accesses"] for bucket in distances)
            assert [bar[1] for bar in chart["bars"]] == [bucket["accesses"] for bucket in distances], chart
            for (bar, accesses) in chart["bars"]:
                assert abs(bar / chart["box"][3] - accesses / total) < 0.001, (bar, accesses)


def check_data(data):
    """The histogram is the curve, differently told; nothing is lost."""
    for row in data["predictions"]:
        for level, asked in ("l1", row["l1"]["reads"]), ("l2", row["l2"]["reads"]):
            distances, curve = row[f"{level}_reuse_distances"], row[f"{level}_curve"]
            assert sum(bucket["accesses"] for bucket in distances) == asked, row["model"]
            assert distances[0]["from"] == 0 and distances[-1]["to"] is None
            assert all(a["to"] + 1 == b["from"] for a, b in zip(distances, distances[1:])), distances
            near_hits = asked - distances[-1]["accesses"]
            assert abs(near_hits / asked - curve[-1]["hits"]) < 1e-5, (near_hits, curve[-1])
            assert [point["hits"] for point in curve] == sorted(point["hits"] for point in curve)


def pages():
    hostile = fleet.write(fleet.hostile(fleet.base(demo)), folder / "hostile.yaml")
    return {
        "models": run("models", *KERNELS, *CHANGES, "-i", str(demo), "-i", str(h200), code=4),
        "one": run("one", "mvt2", "--size", "64", "-i", str(h200)),
        "gap": run("gap", "attention", "mvt2", "2mm", "--size", "32", "-i", str(demo), code=4),
        "hostile": run("hostile", "mvt2", "2mm", "--size", "64", "-i", str(hostile)),
    }


class Balance(looks.Reader):
    """Which elements are left open, or closed without having been opened."""

    VOID, OPTIONAL = {"meta", "br"}, {"td", "th"}

    def __init__(self, text):
        self.stack, self.wrong = [], []
        super().__init__(text)
        self.wrong += self.stack

    def handle_starttag(self, tag, attrs):
        super().handle_starttag(tag, attrs)
        if tag in self.OPTIONAL and self.stack and self.stack[-1] in self.OPTIONAL:
            self.stack.pop()
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        super().handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        super().handle_endtag(tag)
        while self.stack and self.stack[-1] in self.OPTIONAL and self.stack[-1] != tag:
            self.stack.pop()
        if not self.stack or self.stack.pop() != tag:
            self.wrong.append("/" + tag)


def check_text():
    for name, (page, data) in pages().items():
        text = page.read_text(encoding="utf-8")
        reader = looks.Reader(text)
        shown = " ".join(reader.text)
        assert not reader.active, f"{name}: {reader.active[:3]}"
        assert "<script" not in text and text.count("<style") == 1, name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), f"{name}: an address of the network"
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text), f"{name}: control characters"
        identifiers = re.findall(r" id=(\w+)", text)
        assert len(identifiers) == len(set(identifiers)), identifiers
        assert set(re.findall(r" href=#(\w+)", text)) <= set(identifiers), name
        check_data(data)
        for row in data["not_predicted"]:
            assert row["reason"] in shown, row["reason"]
        for row in data["predictions"]:
            if name != "hostile":
                assert not row["assumed"] or row["what_if"] or row["assumed"] in shown, row["assumed"]
                assert row["what_if"] is None or row["what_if"] in shown
        balance = Balance(re.sub(r"<style>.*?</style>", "", text, flags=re.S))
        assert not balance.wrong, (name, balance.wrong[:5])
    assert len(data["predictions"]) == 4, data
    for row in data["predictions"]:
        assert safe(row["model"]) in shown, f"not shown as text: {row['model']}"


def check_browser():
    if not browser.find():
        print("Chromium is not installed")
        sys.exit(77)
    shots = pathlib.Path(sys.argv[4])
    shots.mkdir(exist_ok=True)
    chromium = browser.Browser()
    try:
        for name, (page, data) in pages().items():
            chromium.open(page)
            chromium.view(1280, 1000)
            assert chromium.run("document.querySelector('h1').innerText") == "Predicted cache behaviour"
            assert chromium.run("typeof window.hacked") == "undefined", f"{name}: a script of a name ran"
            assert chromium.run("document.scripts.length") == 0 and chromium.run("document.images.length") == 0
            looks.check_looks(chromium, shots, f"predict-{name}")
            if name == "gap":
                check_gap(chromium, data)
                continue
            check_models(chromium, data)
            if name == "models":
                check_all(chromium, data)
                check_changes(chromium, data)
            if name != "hostile":
                check_charts(chromium, data)
            assert not chromium.complaints(), f"{name}: {chromium.complaints()[:3]}"
    finally:
        chromium.close()


try:
    {"text": check_text, "browser": check_browser}[what]()
finally:
    shutil.rmtree(folder)
