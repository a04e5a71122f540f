"""The page: its text by itself, and in headless Chromium where that is installed.

page.py text|browser REPORT SOURCE_ROOT FOLDER_FOR_SCREENSHOTS SURVEY
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import browser
from looks import Reader, check_looks

try:
    import fleet
    import yaml
except ImportError as missing:
    print(f"not installed: {missing.name}")
    sys.exit(77)

what, report = sys.argv[1:3]
root = pathlib.Path(sys.argv[3])
demo = root / "reports/demo.yaml"
folder = pathlib.Path(tempfile.mkdtemp())
MIB = 1 << 20


def page_of(name, data=None, path=demo, flags=()):
    if data:
        path = fleet.write(data, folder / f"{name}.yaml")
    page = folder / f"{name}.html"
    subprocess.run([report, "html", *flags, path, "-o", page], check=True)
    return page


def single(data):
    data["gpus"] = [dict(g) for g in data["gpus"] if g["status"] == "ok"][:1]
    data["gpus"][0]["links"] = {"why": "this process sees one GPU"}
    data["models"] = [dict(m, count=1) for m in data["models"] if m["id"] == data["gpus"][0]["model"]]
    for key in "outliers", "watch", "nodes", "unmeasured":
        data[key] = []
    # As an H200: cycles and GB/s of three regions, of which the second is slow.
    figure = {"unit": "", "spread": 0, "confidence": None, "n": 1, "method": "test"}
    data["models"][0]["memory"]["main"]["whole"] = {
        "latency": dict(figure, value=710, unit="cycles", map=[710, 730, 709]),
        "slow_regions": dict(figure, value=1, read_map=[4450, 4080, 4452], write_map=[4320, 4310, 4325])}
    # Two SMs, of which the second reads L2 slower, and their latency to three regions of the memory.
    data["models"][0]["memory"]["die"] = {
        "bandwidth": {"alone": dict(figure, value=85, unit="GB/s", map=[90.0, 80.0])},
        "memory_latency": dict(figure, value=700, unit="cycles", region_bytes=2147483648, region_map=[[690, 690, 694], [690, 718, 698]])}
    data["survey"].update(gpus=1, nodes=1, measured=1, unmeasured=0, outliers=0, exit_code=0)
    return data


def linked(data):
    """Two nodes of two GPUs: 398 and 392 GB/s, and a link over which copies fail."""
    data["gpus"] = [dict(g) for g in data["gpus"] if g["status"] == "ok"][:4]
    data["models"] = [dict(m, count=sum(g["model"] == m["id"] for g in data["gpus"])) for m in data["models"]]
    data["models"] = [m for m in data["models"] if m["count"]]
    for key in "outliers", "watch", "nodes", "unmeasured":
        data[key] = []
    for i, gpu in enumerate(data["gpus"]):
        gpu.update(node=f"n{i // 2}", index=i % 2)
        bad = i >= 2
        figures = {"read": 398, "write": 392, "both": 750, "sm_both": 735, "latency": 1737}
        gpu["links"] = {"gpus": [data["gpus"][i ^ 1]["uuid"]], "state": ["failed" if bad else "ok"],
                        **{key: [None if bad else figure] for key, figure in figures.items()}}
        gpu["values"] = {**gpu["values"], "host.together.h2d": [12.25, 0.1], "host.together.d2h": [12.75, 0.1]}
    for gpu in data["gpus"][2:]:
        gpu["status"] = "outlier"
        finding = {"metric": "links.peers", "value": 0, "expected": None, "unit": "", "deviation": None,
                   "score": None, "basis": "rule", "cause": f"no link: copies fail to GPU {1 - gpu['index']}"}
        data["outliers"].append({**{k: gpu[k] for k in ("uuid", "node", "pci", "model")}, "verdict": "failing",
                                 "loss": None, "action": "drain", "evidence": [finding]})
    data["survey"].update(gpus=4, nodes=2, measured=4, unmeasured=0, outliers=2, exit_code=3)
    return data


def loaded():
    """The inventory of the fleet of docs/load.png: loads, links and maps, with faults."""
    path = folder / "loaded.yaml"
    if not path.exists():
        code = subprocess.run([sys.argv[5], "--simulate", root / "tools/samples/load.yaml", "--profile", "full",
                               "--probes", "load,memory.whole,links,die.map", "--quiet", "-o", path]).returncode
        assert code == 3, code
    return path


def placed():
    """An inventory in which all GPUs of a node have the same finding, one of them two, and another node is slower."""
    path, fleet_path = folder / "placed.yaml", folder / "placed.fleet.yaml"
    if not path.exists():
        remap = ", ".join("{gpu: %d, kind: remap, pending: true}" % gpu for gpu in range(4))
        faults = {"a": "{gpu: 1, kind: slow_dram, share: 0.3}", "b": remap + ", {gpu: 2, kind: pcie, width: 4}"}
        fleet_path.write_text("seed: 1\nnodes:\n" + "".join(
            f"  - {{name: {name}, gpus: 4, model: {root.resolve()}/configs/sim/demo-h8.yaml, faults: [{faults.get(name, '')}]}}\n"
            for name in "abcde"))
        code = subprocess.run([sys.argv[5], "--no-mpi", "--simulate", fleet_path, "--profile", "quick", "--probes", "main,clock,host.bandwidth",
                               "--quiet", "--no-progress", "-o", path]).returncode
        assert code == 3, code
    return path


def racks_of_placed():
    """Where the nodes of placed() are: c is not told, f was not surveyed, names are hostile."""
    path = folder / "racks"
    path.write_text("# node rack switch\na r10 leaf1\n\nb\tr9  leaf1 # twice failing\nd r9\ne <b>r2</b>\nf r9 leaf2\n")
    return path


def check_racks(chromium):
    """Counts by rack and switch, against counts made here from the inventory; the worst first."""
    rows = chromium.run("""Array.from(document.querySelectorAll('#racks table'), (t) => Array.from(t.tBodies[0].rows, (r) =>
      Array.from(r.cells, (c) => c.textContent.trim())))""")
    places = {"a": ("r10", "leaf1"), "b": ("r9", "leaf1"), "d": ("r9", None), "e": ("<b>r2</b>", None), "f": ("r9", "leaf2")}
    data = fleet.base(placed())
    actions = {outlier["uuid"]: outlier["action"] for outlier in data["outliers"]}
    severity = ["drain", "alert"]
    for which, table in enumerate(rows):
        nowhere = ("not in the map", "no switch given")[which]
        where = {node: place[which] or nowhere for node, place in places.items()}
        wanted = {}
        for gpu in data["gpus"]:
            row = wanted.setdefault(where.get(gpu["node"], nowhere), {"nodes": set(), "gpus": 0, **dict.fromkeys(severity, 0)})
            row["nodes"].add(gpu["node"])
            row["gpus"] += 1
            if gpu["uuid"] in actions:
                row[actions[gpu["uuid"]]] += 1
        mapped = {name: sum(place[which] == name for place in places.values()) for name in where.values()}
        for name in set(where.values()) - set(wanted):
            wanted[name] = {"nodes": set(), "gpus": 0, **dict.fromkeys(severity, 0)}
        assert {row[0]: row[1:] for row in table} == {
            name: [f"{len(row['nodes'])} of {mapped.get(name) or len(row['nodes'])}", str(row["gpus"]),
                   *(str(row[action]) for action in severity), "0"] for name, row in wanted.items()}, (table, wanted)
    assert [row[0] for row in rows[0]][:2] == ["r9", "r10"] and rows[1][0][0] == "leaf1", rows
    assert "rack r9, switch leaf1" in chromium.run("document.querySelector('#places article h3').innerText")
    assert chromium.run("document.querySelectorAll('#racks b').length") == 0, "names of racks are text"


def twice_placed():
    """As placed(), but the GPUs of node b are outliers by the node alone: failing, and then something milder."""
    data = fleet.base(placed())
    (place,) = [entry for entry in data["nodes"] if entry["action"] == "drain"]
    data["nodes"] += [{**place, "verdict": "mismatched", "action": "alert", "finding": "another finding", "gpus": list(place["gpus"])}]
    data["outliers"] = [outlier for outlier in data["outliers"] if outlier["node"] != "b"]
    data["survey"]["outliers"] = len(data["outliers"])
    return data


def check_twice_placed(chromium):
    """Each GPU counts once in its rack, with its strongest action."""
    cells = chromium.run("""Array.from(document.querySelectorAll('#racks table')[0].tBodies[0].rows[0].cells, (c) =>
      c.textContent.trim())""")
    assert cells[0] == "r9" and cells[3:5] == ["4", "0"], cells


def check_placed(chromium):
    """One card for the node instead of one per GPU; the GPU with another finding has its own; failing before degraded."""
    data = fleet.base(placed())
    (place,) = [entry for entry in data["nodes"] if entry["action"] == "drain"]
    assert place["node"] == "b" and place["verdict"] == "failing" and len(place["gpus"]) == 4, data["nodes"]
    assert [outlier["verdict"] for outlier in data["outliers"]] == ["degraded"] + 4 * ["failing"], "as in the file"
    cards = chromium.run("""Array.from(document.querySelectorAll('article.card'), (card) => ({id: card.id,
      kind: card.querySelector('.kind').textContent.split(',')[0], text: card.innerText, section: card.closest('section').id}))""")
    assert [(card["section"], card["kind"]) for card in cards] == [
        ("outliers", "failing"), ("outliers", "degraded"), ("places", "failing")], cards
    two = next(outlier for outlier in data["outliers"] if outlier["node"] == "b" and len(outlier["evidence"]) > 1)
    assert two["uuid"] in cards[0]["text"] and "host.bandwidth" in cards[0]["text"], cards[0]
    assert place["finding"] in cards[2]["text"] and all(uuid in cards[2]["text"] for uuid in place["gpus"]), cards[2]
    assert "scontrol update NodeName=b State=DRAIN" in cards[2]["text"], cards[2]
    # The card of a GPU has its own command, not that of another GPU of its node.
    for card in cards[:2]:
        (uuid,) = [outlier["uuid"] for outlier in data["outliers"] if outlier["uuid"] in card["text"].split("scontrol")[0]]
        assert re.search(rf'Reason="gpumemtopo:{card["kind"]}:{uuid}:', card["text"]), card
    # Every link of the map leads to a card, and the GPUs without one of their own to that of the node.
    links = chromium.run("Array.from(document.querySelectorAll('#map a'), (a) => a.getAttribute('href'))")
    assert sorted(links) == sorted(["#" + cards[0]["id"], "#" + cards[1]["id"]] + 3 * ["#" + cards[2]["id"]]), links


def differing(data, count=2000):
    """Many GPUs of which each has its own power and temperature; the last one has errors, too."""
    data = fleet.enlarge(data, count, 0)
    kept = data["models"][0]["health"]
    for key in "power_draw_w", "temperature_c":
        kept.pop(key, None)
    for i, gpu in enumerate(data["gpus"]):
        gpu["health"] = {"power_draw_w": 150 + i / 10, "temperature_c": 30 + i % 50}
    for gpu in data["gpus"][10:500]:
        gpu["health"]["pcie_replays"] = 3
    data["gpus"][-1]["health"].update(ecc_uncorrected_dram=8, remapped_rows_uncorrected=2)
    return data


def check_differences():
    """What varies by the moment is a distribution, alike rows are one, and no GPU is left out."""
    data = differing(fleet.base(demo))
    text = page_of("differing", data).read_text()
    section = text[text.index("<section id=differences>"):]
    section = section[:section.index("</section>")]
    rows = [re.split("<td[^>]*>", row)[1:] for row in re.findall("<tr>(<td.*)", section)]
    last, model = data["gpus"][-1], data["models"][0]
    place = f"{last['node']}:{last['index']}"
    assert len(rows) == 5, rows
    for row, (key, value) in zip(rows, [("ecc_uncorrected_dram", 8), ("pcie_replays", 3), ("remapped_rows_uncorrected", 2)]):
        assert row[:3] == [f"health.{key}", str(value), str(model["health"][key])], row
        assert row[3] == ("490" if value == 3 else "1"), row
    assert place in rows[0][4] and last["uuid"] in rows[0][4] and place in rows[2][4], rows
    listed = re.findall(r"(gpu\d+):([\d,]+)", rows[1][4])
    assert {(node, int(index)) for node, indices in listed for index in indices.split(",")} == {
        (gpu["node"], gpu["index"]) for gpu in data["gpus"][10:500]}, rows[1]
    moments = {row[0]: row[1:] for row in rows[3:]}
    assert moments == {
        "power_draw_w": [model["id"], "W", "2000", "150", "gpu0000:0", "249.95", "349.9", place],
        "temperature_c": [model["id"], "&deg;C", "2000", "30", "gpu0000:0", "54.5", "79", "gpu0249:7"]}, moments
    # Nothing that the judge found is left out, however much it is.
    many = fleet.enlarge(fleet.base(demo), 3000, 1500)
    many["watch"] = [{**entry, "action": "tell"} for entry in many["outliers"][:1200]]
    many["outliers"] = many["outliers"][:1400]
    many["unmeasured"] = [{"node": f"gone{i}", "rank": i, "uuid": None, "status": "lost", "reason": "rank is lost"}
                          for i in range(1100)]
    many["nodes"] = [{"node": f"place{i}", "finding": "odd", "verdict": "failing" if i % 2 else "unknown",
                      "loss": None, "action": "drain" if i % 2 else "tell", "gpus": []} for i in range(1500)]
    text = page_of("many", many).read_text()
    outliers = set(re.findall("GPU-[0-9a-f-]+", text[:text.index("<section id=places>")]))
    for entry in many["outliers"]:
        assert entry["uuid"] in outliers, entry
    watch = text[text.index("<section id=watch>"):]
    watched = set(re.findall("GPU-[0-9a-f-]+", watch[:watch.index("</section>")]))
    assert all(entry["uuid"] in watched for entry in many["watch"])
    named = set(re.findall(r"((?:gone|place)\d+)<", text.replace(" <span", "<span")))
    assert all(f"gone{i}" in named and f"place{i}" in named for i in range(1100))
    assert text.count("<td>place") + text.count("<h3>place") == 1500


def check_identifiers():
    """Digests and numbers of SMs are counted, and drawn nowhere: neither on an axis nor with a median."""
    data = fleet.base(demo)
    wrong = next(outlier for outlier in data["outliers"] if outlier["model"] == data["models"][0]["id"])
    gpus = [gpu for gpu in data["gpus"] if gpu["model"] == wrong["model"] and gpu["values"]]
    for i, gpu in enumerate(gpus):
        mine = gpu["uuid"] == wrong["uuid"]
        gpu["values"].update({"compute.digest.int": [926679 if mine else 140706, 0], "compute.slowest_sm": [i, 0]})
    wrong["evidence"] = [{"metric": "compute.digest.int", "value": 926679, "expected": None, "unit": "id", "deviation": None,
                          "score": None, "basis": "rule", "cause": "another result; of lane <7>; bits 0x1"}]
    text = page_of("identifiers", data).read_text()
    card = next(card for card in text.split("<article")[1:] if wrong["uuid"] in card)
    assert "compute.digest.int" in card and "<svg" not in card.split("</article>")[0], card
    assert "another result;<br>of lane &#60;7&#62;;<br>bits 0x1" in card, card
    rows = re.findall(r"<tr><td>(compute\.(?:digest\.int|slowest_sm)<.*)", text)
    assert len(rows) == 2 * len(data["models"]), rows
    assert f">{len(gpus)}<" in rows[0] and f"140706 on {len(gpus) - 1}, 926679 on 1" in rows[0], rows
    assert f"{len(gpus)} different ones" in rows[1], rows


def pages():
    return {
        "placed": page_of("placed", path=placed(), flags=("--racks", racks_of_placed())),
        "twice": page_of("twice", twice_placed(), flags=("--racks", racks_of_placed())),
        "loaded": page_of("loaded", path=loaded()),
        "linked": page_of("linked", linked(fleet.base(demo))),
        "demo": page_of("demo"),
        "single": page_of("single", single(fleet.base(demo))),
        "empty": page_of("empty", fleet.empty(fleet.base(demo))),
        "h200": page_of("h200", path=root / "reports/h200.yaml"),
        "hostile": page_of("hostile", fleet.hostile(fleet.base(demo))),
        "large": page_of("large", fleet.enlarge(fleet.base(demo), 10000, 60)),
    }


def check_text():
    shown = {}
    for name, page in pages().items():
        text = page.read_text(encoding="utf-8")
        reader = Reader(text)
        shown[name] = " ".join(reader.text)
        assert not reader.active, f"{name}: {reader.active[:3]}"
        assert text.count("<script") == 1 and text.count("<style") == 1, name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), f"{name}: an address of the network"
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text), f"{name}: control characters"
        assert len(text.encode()) < 5 * MIB, f"{name}: {len(text.encode())} bytes"
    data, page = fleet.base(demo), shown["demo"]
    assert len(data["outliers"]) >= 4
    for outlier in data["outliers"]:
        for part in outlier["uuid"], outlier["node"], outlier["pci"], outlier["verdict"]:
            assert part in page, part
        for finding in outlier["evidence"][:6]:
            assert finding["metric"] in page and finding["cause"] in page, finding
    for gone in data["unmeasured"]:
        assert gone["reason"] in page
    kinds = re.findall(r"<span class=kind>(\w+)[^<]*</span> <span class=kind>(\w+)</span>", (folder / "demo.html").read_text())
    severity = ["failing", "degraded", "misconfigured", "mismatched"]
    assert kinds == sorted(kinds, key=lambda kind: (kind[1] != "drain", severity.index(kind[0]))), kinds
    assert len(kinds) == len(data["outliers"]) and kinds[0] == ("failing", "drain"), kinds
    for gpu in data["gpus"]:
        assert gpu["uuid"] in page
    for model in data["models"]:
        assert model["name"] in page
    for part in "one array", "constant L1", "main memory", "host link", "driver says", "simulated", data["gpumemtopo"]["generated"]:
        assert part in page, part
    regions = re.findall(r'<i([^>]*) title="region 1: ([\d.]+)"', (folder / "single.html").read_text())
    assert regions == [(" class=d4", "730.0"), (" class=d0", "4080.0"), (" class=d0", "4310.0")], regions
    text = (folder / "single.html").read_text()
    assert '<i class=d0 title="SM 1: 80.0">' in text, "bandwidth of the SMs"
    assert "Latency of 2 SMs (columns) to 3 regions of the memory (rows, 2.0 GiB apart), 690 (faint) to 718" in text
    links = (folder / "linked.html").read_text()
    links = links[links.index("<section id=links>"):]
    assert links.index("<h3>n1</h3>") < links.index("<h3>n0</h3>"), "nodes with findings come first"
    assert links.count("fails</td>") == 2 and links.count(">392</td>") == 2
    assert "GPU 0: 398 GB/s from GPU 1, 392 GB/s to it, 750 both ways, 735 by SMs, 1737 cycles" in links
    assert links.count("<td>12.2</td>") + links.count("<td>12.3</td>") == 4 and "from host alone" in links
    check_differences()
    check_identifiers()
    assert "Not measured: this process sees one GPU" in (folder / "single.html").read_text()
    assert "<p>GPU 0: no link: copies fail to GPU 1</p>" in links
    for name in fleet.HOSTILE[:7]:
        assert name[:70] in shown["hostile"], f"not shown as text: {name}"
    assert len(set(re.findall(r"GPU-[0-9a-f]{8}-", shown["large"]))) == 10000
    assert "1190 nodes on which all is fine" in shown["large"]


def check_h200(chromium):
    """Sweeps stand beside each other; SMs are painted by their latency."""
    tops = chromium.run("Array.from(document.querySelectorAll('.sweeps svg'), (s) => s.getBoundingClientRect().top)")
    assert len(tops) >= 6 and tops[0] == tops[1], tops
    colours = chromium.run("Array.from(document.querySelectorAll('.map'), (m) => Array.from(m.children, (i) => "
                           "i.title + ' ' + getComputedStyle(i).backgroundColor))")
    assert len(colours) == 3, colours  # L1, L2, and L2's near part
    for cells in colours:
        cycles = [float(cell.split()[2]) for cell in cells]
        painted = {cell.split(maxsplit=3)[3] for cell in cells}
        low, high = min(cycles), max(cycles)
        wanted = {int(min(5 * (value - low) / (high - low), 4)) if high > 1.01 * low else 0 for value in cycles}
        assert len(cells) == 132 and len(painted) == len(wanted), (painted, wanted)


def curve_of(notes):
    return list(zip(*(notes["curve_" + column] for column in ("s", "mhz", "w", "c", "memory_c"))))


def check_curves(chromium, where, curve):
    """Three charts; each line has the points of the inventory, as far as a tenth of a pixel goes."""
    charts = chromium.run("""Array.from(document.querySelectorAll('%s svg.plot'), (s) => ({
      title: s.querySelector('title').textContent, label: s.querySelector('text.title').textContent,
      top: Math.max(...Array.from(s.querySelectorAll('text'), (t) => +t.textContent || 0)),
      end: s.querySelector('text:last-of-type').textContent,
      box: ['x', 'y', 'width', 'height'].map((n) => +s.querySelector('rect.frame').getAttribute(n)),
      lines: Array.from(s.querySelectorAll('polyline'), (l) => Array.from(l.points, (p) => [p.x, p.y]))}))""" % where)
    assert [chart["title"] for chart in charts] == [
        "SM clock under load (MHz)", "Power under load (W)",
        "Temperature of GPU (dashed) and memory under load (C)"], (where, charts)
    for chart, columns in zip(charts, ((1,), (2,), (3, 4))):
        assert chart["label"] == chart["title"] and chart["end"] == "%.3g s" % curve[-1][0], chart
        assert len(chart["lines"]) == len(columns), chart
        x, y, width, height = chart["box"]
        for line, column in zip(chart["lines"], columns):
            assert len(line) == len(curve), (where, column, len(line))
            for (at_x, at_y), point in zip(line, curve):
                assert abs((at_x - x) / width * curve[-1][0] - point[0]) < 0.01, (where, point)
                value = (y + height - at_y) / height * chart["top"]
                assert abs(value - point[column]) <= 0.06 / height * chart["top"] + 0.001, (where, column, value, point)


def check_die(chromium, model):
    """Every cell of the map is as dark as its latency says."""
    rows = model["memory"]["die"]["fingerprint"]["slice_map"]
    lowest, highest = min(map(min, rows)), max(map(max, rows))
    drawn = chromium.run("""(() => {
      const svg = document.querySelector('svg[aria-label="latency of each SM to each group of slices"]');
      return {text: svg.parentElement.textContent, box: [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height],
              levels: Array.from(svg.querySelectorAll('path'), (p) => [p.getAttribute('stroke-opacity'),
                                                                       p.getAttribute('d')])} })()""")
    assert drawn["box"] == [len(rows), len(rows[0])], drawn["box"]
    assert f"Latency of {len(rows)} SMs (columns) to {len(rows[0])} groups of L2 slices (rows)" in drawn["text"]
    ends = re.search(r"(\d+) \(faint\) to (\d+) cycles", drawn["text"])
    assert [float(end) for end in ends.groups()] == [lowest, highest], (ends, lowest, highest)
    cells = {}
    for opacity, path in drawn["levels"]:
        for x, y, length in re.findall(r"M(\d+) (\d+)\.5h(\d+)", path):
            cells.update({(int(x) + i, int(y)): float(opacity) for i in range(int(length))})
    assert len(cells) == len(rows) * len(rows[0]), len(cells)
    for (sm, group), opacity in cells.items():
        level = (rows[sm][group] - lowest) * 7 // (highest - lowest)
        assert abs(opacity - (level + 1) / 8) < 0.006, (sm, group, opacity, level)


def check_memory(chromium, number, model):
    """Every region has its figure, and each map its range."""
    whole = model["memory"]["main"]["whole"]
    wanted = [whole["latency"]["map"], whole["slow_regions"]["read_map"], whole["slow_regions"]["write_map"]]
    shown = chromium.run("""Array.from(document.querySelectorAll('#m%d .map:has(i[title^=region])'), (m) => [
      m.previousElementSibling.previousElementSibling.textContent, Array.from(m.children, (i) => i.title)])""" % number)
    assert len(shown) == 3, shown
    for (label, titles), values, unit in zip(shown, wanted, ("cycles", "GB/s read", "GB/s written")):
        assert titles == [f"region {i}: {value:.1f}" for i, value in enumerate(values)], label
        assert label.endswith(f": {min(values):.1f} to {max(values):.1f} {unit}"), label


def check_links(chromium, data):
    """The matrix of each node has what its GPUs measured."""
    shown = chromium.run("""Object.fromEntries(Array.from(document.querySelectorAll('#links table.links'), (t) => [
      t.parentElement.previousElementSibling.matches('h3') ? t.parentElement.previousElementSibling.textContent :
        Array.from(document.querySelectorAll('#links h3')).filter((h) => h.compareDocumentPosition(t) & 4).pop().textContent,
      Array.from(t.rows, (r) => Array.from(r.cells, (c) => c.textContent))]))""")
    nodes = {gpu["node"] for gpu in data["gpus"] if "why" not in gpu.get("links", {"why": ""})}
    assert set(shown) == nodes and len(nodes) == 3, (set(shown), nodes)
    for node, rows in shown.items():
        gpus = sorted((gpu for gpu in data["gpus"] if gpu["node"] == node), key=lambda gpu: gpu["index"])
        assert rows[0] == ["GPU"] + [str(gpu["index"]) for gpu in gpus], rows[0]
        for gpu, row in zip(gpus, rows[1:]):
            reads = {uuid: min(read, write) for uuid, read, write in
                     zip(gpu["links"]["gpus"], gpu["links"]["read"], gpu["links"]["write"])}
            wanted = ["%.0f" % reads[peer["uuid"]] if peer is not gpu else "" for peer in gpus]
            assert row == [str(gpu["index"])] + wanted, (node, row, wanted)


def check_loaded(chromium):
    data = fleet.base(loaded())
    alone = next(i for i, model in enumerate(data["models"]) if model["count"] == 1)
    curves = {gpu["uuid"]: gpu["load"] for gpu in data["gpus"] if "curve_s" in gpu["load"]}
    bad = [outlier["uuid"] for outlier in data["outliers"]]
    assert len(bad) == 3 and set(bad) <= set(curves), (bad, curves)
    for number, uuid in enumerate(bad):
        check_curves(chromium, f"#o{number} details.load", curve_of(curves[uuid]))
    for number, model in enumerate(data["models"]):
        check_curves(chromium, f"#m{number} details.load", curve_of(model["memory"]["load"]["clock"]["steady"]))
        check_memory(chromium, number, model)
    check_die(chromium, data["models"][alone])
    check_links(chromium, data)


def check_demo(chromium):
    column = "Array.from(document.querySelectorAll('#gpus tbody tr'), (r) => r.cells[1].textContent)"
    click = "document.querySelectorAll('#gpus th button')[1].click()"
    chromium.run(click)
    rising = chromium.run(column)
    assert rising == sorted(rising, key=int) and len(rising) == len(fleet.base(demo)["gpus"]), rising
    chromium.run(click)
    assert chromium.run(column) == sorted(rising, key=int, reverse=True)
    assert chromium.run("document.querySelectorAll('#gpus th')[1].getAttribute('aria-sort')") == "descending"
    filter_for(chromium, "outlier demo2")
    left = chromium.run("Array.from(document.querySelectorAll('#gpus tbody tr')).filter((r) => !r.hidden).length")
    bad = [g for g in fleet.base(demo)["gpus"] if g["status"] == "outlier" and g["node"] == "demo2"]
    assert left == len(bad) > 0, left
    filter_for(chromium, "")
    assert chromium.run("document.querySelectorAll('#gpus tbody tr[hidden]').length") == 0
    for outlier in fleet.base(demo)["outliers"]:
        assert chromium.run(f"document.querySelector('#outliers').innerText.includes('{outlier['uuid']}')")


def filter_for(chromium, words):
    chromium.run("(() => { const i = document.querySelector('#gpus input'); i.value = '%s';"
                 "i.dispatchEvent(new Event('input')); return new Promise((r) => setTimeout(r, 400)); })()" % words)


def check_browser():
    if not browser.find():
        print("Chromium is not installed")
        sys.exit(77)
    shots = pathlib.Path(sys.argv[4])
    shots.mkdir(exist_ok=True)
    chromium = browser.Browser()
    try:
        for name, page in pages().items():
            chromium.open(page)
            chromium.view(1280, 1000)
            assert chromium.run("document.querySelector('h1').innerText") == "GPU memory survey"
            assert chromium.run("typeof window.hacked") == "undefined", f"{name}: a script of a name ran"
            assert chromium.run("document.scripts.length") == 1 and chromium.run("document.images.length") == 0
            if name == "demo":
                check_looks(chromium, shots, name)
                check_demo(chromium)
            elif name == "loaded":
                check_looks(chromium, shots, name)
                check_loaded(chromium)
            elif name == "placed":
                chromium.picture(shots / "placed.png", whole=True)
                check_placed(chromium)
                check_racks(chromium)
            elif name == "twice":
                check_twice_placed(chromium)
            elif name == "h200":
                check_looks(chromium, shots, name)
                check_h200(chromium)
            elif name == "large":
                filter_for(chromium, "outlier gpu01")
                shown = chromium.run("Array.from(document.querySelectorAll('#gpus details')).filter((d) => !d.hidden).length")
                assert 0 < shown < 60, shown
                chromium.picture(shots / "large.png")
            else:
                chromium.picture(shots / f"{name}.png", whole=True)
            if name == "hostile":
                shown = chromium.run("document.body.innerText")
                assert all(text[:70] in shown for text in fleet.HOSTILE[:6]), "hostile names are not shown as text"
                chromium.view(390, 900)
                wide = chromium.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert wide <= 0, f"long names make the page {wide} px too wide"
            assert not chromium.complaints(), f"{name}: {chromium.complaints()[:3]}"
        chromium.open(page_of("demo"), script=False)
        assert not chromium.complaints()
    finally:
        chromium.close()


try:
    {"text": check_text, "browser": check_browser}[what]()
finally:
    shutil.rmtree(folder)
