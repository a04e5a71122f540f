"""What gpumemtopo-report gives to machines: JSON by the schema, MT4G's keys, Prometheus' text format.

outputs.py WHAT REPORT PRINT_RICH SURVEY SOURCE_ROOT, WHAT: csv, json, mt4g, prometheus, promtool or code, the
page's table of the caches of instructions
"""
import csv
import io
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

what, report, print_rich, survey = sys.argv[1:5]
root = pathlib.Path(sys.argv[5])
folder = pathlib.Path(tempfile.mkdtemp())


def run(*args, code=0):
    done = subprocess.run([report, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == code, f"{args}: exit {done.returncode}: {done.stderr.decode()}"
    return done.stdout.decode() if code == 0 else done.stderr.decode()


def rich():
    path = folder / "rich.yaml"
    path.write_bytes(subprocess.run([print_rich], check=True, stdout=subprocess.PIPE).stdout)
    return path


def surveyed(models, profile="quick", probes=None):
    fleet, path = folder / "fleet.yaml", folder / "surveyed.yaml"
    lines = [f"  - {{name: n{i}, gpus: 1, model: {root}/configs/sim/{m}.yaml}}\n" for i, m in enumerate(models)]
    fleet.write_text("nodes:\n" + "".join(lines))
    wanted = ["--probes", probes] if probes else ["--profile", profile]
    subprocess.run([survey, "--simulate", fleet, *wanted, "--quiet", "-o", path], check=True)
    return path


def check_json():
    try:
        import jsonschema
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
        import fast_yaml as yaml  # noqa: E402
    except ImportError as missing:
        print(f"not installed: {missing.name}")
        sys.exit(77)
    schema = json.loads((root / "reports/inventory.schema.json").read_text())
    for path in rich(), surveyed(["demo-h8", "tesla-k20c"]):
        data = json.loads(run("json", str(path)))
        jsonschema.validate(data, schema)
        read = yaml.safe_load(path.read_text())
        assert data == read, f"{path}: JSON and YAML differ"
        assert list(data) == list(read), "another order"
    out = folder / "out.json"
    run("json", str(path), "-o", str(out))
    assert json.loads(out.read_text()) == data
    assert "<script" not in run("json", str(rich())), "may not end a script when put into HTML"


def check_csv():
    """Every figure of every GPU stands in a line, as the inventory has it."""
    rich_rows = list(csv.DictReader(io.StringIO(run("csv", str(rich())))))
    path = surveyed(["demo-h8", "tesla-k20c"])
    rows = list(csv.DictReader(io.StringIO(run("csv", str(path)))))
    inventory = json.loads(run("json", str(path)))
    figures = {(gpu["node"], gpu["uuid"], metric): cells for gpu in inventory["gpus"] for metric, cells in gpu["values"].items()}
    assert len(rows) == len(figures) > 20, f"{len(rows)} lines of {len(figures)} figures"
    for row in rows:
        value, spread = figures[row["node"], row["uuid"], row["metric"]][:2]
        assert row["value"] == ("" if value is None else row["value"]) and (value is None or float(row["value"]) == value), row
        assert spread is None or float(row["spread"]) == spread, row
        assert row["generated"] == inventory["gpumemtopo"]["generated"] and row["gpu"] == "0", row
    assert next(row["unit"] for row in rows if row["metric"] == "main.latency") == "cycles"
    assert any(row["status"] != "ok" and not row["value"] for row in rows + rich_rows), "nothing that could not be measured"
    both = run("csv", str(path), str(path)).splitlines()
    assert len(both) == 2 * len(rows) + 1 and sum(line.startswith("generated,") for line in both) == 1
    anonymous = run("csv", "--anonymous", str(path))
    assert not any(gpu["uuid"] in anonymous for gpu in inventory["gpus"])
    run("csv", str(path), str(folder / "missing.yaml"), code=2)
    # A name with separators.
    odd = folder / "odd.yaml"
    odd.write_text(path.read_text().replace("node: n0", 'node: "n,0\\"x"'))
    assert any(row["node"] == 'n,0"x' for row in csv.DictReader(io.StringIO(run("csv", str(odd))))), "quotation marks"


def expand(pattern):
    literal = re.split(r"\{[^}]*\}", pattern)
    choices = [c.split(",") for c in re.findall(r"\{([^}]*)\}", pattern)]
    for chosen in itertools.product(*choices):
        yield "".join(itertools.chain.from_iterable(itertools.zip_longest(literal, chosen, fillvalue="")))


def has(data, path):
    """Keys may hold dots themselves ("l1.5")."""
    if not path:
        return True
    return isinstance(data, dict) and any(
        (path == key or path.startswith(key + ".")) and has(data[key], path[len(key) + 1:]) for key in data)


# MT4G's units by the key above them, and its types.
UNITS = {"clockRate": "kHz", "memoryClockRate": "kHz", "memoryBusWidth": "bit", "latency": "cycles", "missPenalty": "cycles",
         "readBandwidth": "GiB/s", "writeBandwidth": "GiB/s"}
TYPES = {"unit": str, "method": str, "randomized": bool, "value": (int, float), "mean": (int, float), "confidence": (int, float),
         "size": int, "measurements": int, "amountPerMultiprocessor": int, "sharedWith": list, "timestamp": str, "driver": int}


def check_shape(data, above=""):
    for key, value in data.items():
        if isinstance(value, dict):
            check_shape(value, key)
            continue
        assert isinstance(value, TYPES.get(key, (str, int, bool, float))), f"{above}.{key}: {value!r}"
        if key == "unit":
            assert value == UNITS.get(above, "bytes"), f"{above}: {value}"


def check_mt4g():
    path = surveyed(["h200"], "standard")
    data = json.loads(run("json", "--mt4g", str(path)))
    real = json.loads(run("json", "--mt4g", str(root / "reports/h200.yaml")))
    lines = (root / "tests/report/mt4g_keys.txt").read_text().splitlines()
    keys = [key for line in lines if not line.startswith("#") for key in expand(line)]
    missing = [key for key in keys if not (has(real, key[1:]) if key[0] == "+" else has(data, key))]
    assert len(keys) > 100 and not missing, missing
    check_shape(data)
    check_shape(real)
    assert not has(data, "memory.l1.nothing")
    text = path.read_text()
    value = re.search(r"l1_data:.*?size: \{value: (\d+)", text, re.S).group(1)
    assert data["memory"]["l1"]["size"]["size"] == int(value)
    read = float(re.search(r"main:.*?read: \{value: ([\d.]+)", text, re.S).group(1))
    gib = data["memory"]["main"]["readBandwidth"]
    assert gib["unit"] == "GiB/s" and abs(gib["value"] * 2**30 / 1e9 - read) < 1e-3 * read
    assert data["memory"]["l1"]["sharedWith"] == ["Read Only", "Texture"]
    beyond = data["memory"]["constant"]["l1.5"]["size"]
    assert beyond["confidence"] == 0 and beyond["bound"] == "at_least", beyond
    # Nothing is made up: what is unsupported or failed has no key.
    rich_data = json.loads(run("json", "--mt4g", str(rich())))
    assert not has(rich_data, "memory.constant.l1.5.size") and not has(rich_data, "memory.l2.latency")
    check_marked(text)
    two = surveyed(["demo-h8", "demo-t20"])
    assert "demo-h8, demo-t20" in run("json", "--mt4g", str(two), code=2)
    assert "did you mean \"demo-t20\"" in run("json", "--mt4g", "--model", "demo-t2", str(two), code=2)
    assert json.loads(run("json", "--mt4g", "--model=demo-t20", str(two)))["general"]["name"] == "Demo T20"
    assert "needs --mt4g" in run("json", "--model", "demo-t20", str(two), code=2)


def check_marked(text):
    """Noisy figures and bounds say so, and a size that only we know is told."""
    path = folder / "marked.yaml"

    def edit(memory, key, old, new):
        nonlocal text
        text, count = re.subn(rf"(?s)(\n      {memory}:\n.*?\b{key}: \{{[^}}]*?){old}", rf"\g<1>{new}", text, count=1)
        assert count == 1, (memory, key)
    for memory, key in ("l2", "latency"), ("l2", "read"), ("l1_data", "line"):
        edit(memory, key, ", method:", ", status: noisy, reason: no, method:")
    edit("l2", "size", ", method:", ", status: noisy, bound: at_least, reason: no, method:")
    edit("l1_data", "per_sm", ", method:", ", status: noisy, reason: no, method:")
    text = re.sub(r"l2_bytes: \d+", "l2_bytes: null", text)
    path.write_text(text)
    memory = json.loads(run("json", "--mt4g", str(path)))["memory"]
    l2, l1 = memory["l2"], memory["l1"]
    assert l2["latency"]["status"] == l2["readBandwidth"]["status"] == l1["lineSize"]["status"] == "noisy", l2
    assert "status" not in l2["writeBandwidth"] and "status" not in l1["size"], memory
    assert (l2["size"]["measuredBound"], l2["size"]["measuredStatus"]) == ("at_least", "noisy"), l2
    assert l2["size"]["measured"] > 0 and "value" not in l2["size"], l2
    assert "amountPerMultiprocessor" not in l1 and "amountPerMultiprocessor" in memory["texture"], l1


def check_prometheus():
    for path in rich(), surveyed(["demo-h8", "tesla-k20c"]):
        seen, families, family = set(), set(), None
        for line in run("prometheus", str(path)).split("\n")[:-1]:
            if line.startswith("# HELP "):
                family = line.split(" ")[2]
                assert re.fullmatch(r"[a-z][a-z0-9_]*", family) and family not in families, line
                families.add(family)
            elif line.startswith("# TYPE "):
                assert line == f"# TYPE {family} gauge"
            else:
                match = re.fullmatch(r'(\w+)(\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})? (-?[\d.e+-]+)', line)
                assert match and match.group(1) == family, line
                assert match.group(1, 2) not in seen, f"twice: {line}"
                seen.add(match.group(1, 2))
    assert "gpumemtopo_main_bandwidth_read_bytes_per_second" in families
    assert "gpumemtopo_l1_data_size_bytes" in families and "gpumemtopo_clock_sm_hertz" in families
    text = run("prometheus", str(path))
    read = re.search(r"main.bandwidth.read: \[([\d.]+)", path.read_text()).group(1)
    sample = re.search(r"gpumemtopo_main_bandwidth_read_bytes_per_second\{UUID=\"GPU-[^}]*,hostname=\"n\d\",gpu=\"\d\","
                       r"model=\"[^\"]+\"\} ([\d.]+)", text)
    assert float(sample.group(1)) == float(read) * 1e9, (sample.group(0), read)
    assert "# HELP gpumemtopo_clock_sm_hertz Measured clock.sm in hertz." in text
    assert "# HELP gpumemtopo_clock_memory_hertz As the driver reports it: clock.memory in hertz." in text
    # GPU 0 is only watched, by itself and with its node; GPU 1 is accused with its node.
    outliers = dict(re.findall(r'gpumemtopo_gpu_outlier\{UUID="GPU-0000000(\d)"[^}]*\} (\d)', run("prometheus", str(rich()))))
    assert outliers == {"0": "0", "1": "1"}, outliers
    check_uncertain()
    twice = folder / "twice.yaml"
    twice.write_text(rich().read_text().replace("GPU-00000001", "GPU-00000000"))
    assert "twice" in run("prometheus", str(twice), code=2)


def check_uncertain():
    """What is noisy, a bound, or of a GPU that nobody judged has no sample: nothing there would say so."""
    path = surveyed(["demo-h8"] * 4)
    head, *gpus = re.split(r"(?m)^  - uuid: ", path.read_text().split("\nnodes:")[0])
    tail = path.read_text()[len("  - uuid: ".join([head, *gpus])):]
    gpus[0], changed = re.subn(r"(main.bandwidth.read: \[[^]]*)", r"\1, noisy", gpus[0])
    gpus[0], more = re.subn(r"(main.bandwidth.write: \[[^]]*)", r"\1, at_least", gpus[0])
    gpus[1], busy = re.subn("status: ok", "status: busy", gpus[1])
    gpus[2], ended = re.subn("status: ok", "status: timed_out", gpus[2])
    assert (changed, more, busy, ended) == (1, 1, 1, 1)
    head = head.replace("count: 4", "count: 3").replace("measured: 4, unmeasured: 0", "measured: 3, unmeasured: 1")
    head = head.replace("exit_code: 0", "exit_code: 4")
    tail = tail.replace("unmeasured: []", "unmeasured:\n  - {node: n2, rank: 0, uuid: " + gpus[2].split()[0] +
                        ", status: timed_out, reason: late}")
    path.write_text("  - uuid: ".join([head, *gpus]) + tail)
    text = run("prometheus", str(path))

    def nodes(family):
        return re.findall(rf'(?m)^gpumemtopo_{family}\{{[^}}]*hostname="(n\d)"', text)
    assert nodes("gpu_info") == ["n0", "n1", "n2", "n3"], text
    assert nodes("gpu_outlier") == nodes("clock_sm_hertz") == ["n0", "n3"], text
    assert nodes("main_bandwidth_read_bytes_per_second") == ["n3"], text
    assert nodes("main_bandwidth_write_bytes_per_second") == ["n3"], text


def check_promtool():
    if not shutil.which("promtool"):
        print("promtool is not installed (package prometheus)")
        sys.exit(77)
    for path in rich(), surveyed(["demo-h8", "tesla-k20c"]):
        done = subprocess.run(["promtool", "check", "metrics"], input=run("prometheus", str(path)).encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and not done.stdout, done.stdout.decode()


def check_latencies(path, page):
    """The points of each curve are those of the inventory, as far as a tenth of a pixel goes."""
    drawings = re.findall(r"<details class=loaded.*?</details>", page, re.S)
    models = json.loads(run("json", str(path)))["models"]
    assert len(drawings) == len(models) == 2, len(drawings)
    for drawing, model in zip(drawings, models):
        for chart, memory in zip(drawing.split("<svg")[1:], ("main", "l2"), strict=True):
            notes = model["memory"][memory]["latency_loaded"]
            left, top, width, height = map(int, re.search(
                r'class="frame" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', chart).groups())
            numbers = [float(text) for text in re.findall(r">([\d.]+)</text>", chart)]
            high, far = numbers[4], numbers[9]  # of five ticks each
            points = [tuple(map(float, point.split(","))) for point in re.search(r'points="([^"]*)"', chart)[1].split()]
            for (x, y), gbs, cycles in zip(points, notes["curve_gbs"], notes["curve_cycles"], strict=True):
                assert abs((x - left) / width * far - gbs) <= 0.06 / width * far, (memory, x, gbs)
                assert abs((top + height - y) / height * high - cycles) <= 0.06 / height * high, (memory, y, cycles)


def check_code():
    """The models of configs/sim/h200.yaml and of a GPU that executes no straight code."""
    path = surveyed(["h200", "demo-h8"], probes="instruction_cache,main.latency_loaded,l2.latency_loaded")
    page = run("html", str(path))
    check_latencies(path, page)
    tables = re.findall(r"<details class=code.*?</details>", page, re.S)
    assert len(tables) == 1, len(tables)
    rows = [re.split(r"<td[^>]*>", row)[1:] for row in tables[0].split("\n") if row.startswith("<tr><td>")]
    assert rows.pop(0)[:2] == ["a sub-core's", "5.5 KiB"], rows
    assert [row[:2] for row in rows] == [["level 1", "32 KiB"], ["level 2", "128 KiB"], ["none of these", ""]], rows
    assert [row[5:] for row in rows] == [["2", "tpc"], ["16", "gpc"], ["", ""]], rows
    assert all(float(row[3]) <= float(row[2].split()[0]) * 1.001 <= float(row[4]) * 1.002 for row in rows), rows


try:
    {"code": check_code, "csv": check_csv, "json": check_json, "mt4g": check_mt4g, "prometheus": check_prometheus,
     "promtool": check_promtool}[what]()
finally:
    shutil.rmtree(folder)
