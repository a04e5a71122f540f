"""What is run with both trees: cases, each a folder of its own and a list of steps in it.

A case folder has links to the tree that is tried: `configs`, `tests`, `reports`, and `sim` beside `fleets`, where the
simulator looks for models. Paths in commands are relative to the case folder, so that messages name the same files.
"""
import pathlib
import re
import shutil

import fleets

FIRST_DAY = "2026-01-%02dT02:00:00Z"


class Run:
    """Runs a program. kinds: how its outputs are read, {"stdout": kind, file: kind, ...}; in a keyword `__` is a dot. The
    argument UUID:FILE becomes the UUID of an outlier of that inventory, or of its first GPU."""
    def __init__(self, program, *args, stderr="messages", stdin="", **kinds):
        self.program, self.args, self.stdin = program, [str(arg) for arg in args], stdin
        self.kinds = {"stderr": stderr, **{name.replace("__", "."): kind for name, kind in kinds.items()}}

    def key(self):
        return f"{self.program} {' '.join(self.args)}"

    def words(self, here):
        return [uuid_of(here / word[5:]) if word.startswith("UUID:") else word for word in self.args]

    def __repr__(self):
        return repr(("run", self.program, self.args, self.stdin, self.kinds))


class Do:
    """Prepares a file: a function of this module and its arguments."""
    def __init__(self, what, *args):
        self.what, self.args = what, args

    def key(self):
        return f"{self.what.__name__} {self.args}"

    def __repr__(self):
        return repr(("do", self.what.__name__, self.args))


# ---- preparing files; `here` is the case folder ----

def write(here, name, text):
    path = here / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def copy(here, source, name):
    source, target = here / source, here / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        shutil.copy(source, target)


def settle(here, name, day=1):
    """Gives an inventory a fixed time and duration, so that all outputs made from it can be compared."""
    path = here / name
    if not path.exists():
        return
    text = re.sub(r'\bgenerated: ("?)[^",}\n]+\1', f'generated: "{FIRST_DAY % day}"', path.read_text(), count=1)
    path.write_text(re.sub(r"\bwall_s: [\d.e+-]+", "wall_s: 1.5", text, count=1))


def edit(here, name, pattern, text, target):
    """A copy of a file in which what a pattern matches is replaced."""
    changed, count = re.subn(pattern, text, (here / name).read_text(), count=1)
    if not count:
        raise OSError(f"{name} has nothing like {pattern}")
    write(here, target, changed)


def cut(here, name, share, target):
    """The first part of a file. Of a folder: of each of its files."""
    source = here / name
    for path in sorted(source.iterdir()) if source.is_dir() else [source]:
        data = path.read_bytes()
        out = here / target / path.name if source.is_dir() else here / target
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(data[:int(len(data) * share)])


def flip(here, name, share, target):
    """A copy in which one byte is another one."""
    source = here / name
    for path in sorted(source.iterdir()) if source.is_dir() else [source]:
        data = bytearray(path.read_bytes())
        if data:
            data[min(int(len(data) * share), len(data) - 1)] ^= 0x55
        out = here / target / path.name if source.is_dir() else here / target
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(data)


def remove_some(here, name, every):
    for place, path in enumerate(sorted((here / name).glob("gpu-*"))):
        if place % every == 0:
            path.unlink()


# ---- cases ----

def survey(*args, **more):
    return Run("survey", *args, "--no-progress", **{"stderr": "lines", **more})


def report(*args, **more):
    return Run("report", *args, **more)


def quick_commands(name):
    """The commands that take milliseconds, on one inventory."""
    return [report("validate", name), report("show", name, stdout="lines"), report("drain", name, stdout="lines"),
            report("exclude", name, stdout="lines"), report("nagios", "--max-age", 0, name, stdout="lines"),
            report("prometheus", name, stdout="prometheus"), report("json", name, stdout="inventory")]


def page_commands(name):
    return [report("html", name, stdout="page"), report("show", "--topology", name, stdout="lines"),
            report("share", name, stdout="yaml")]


def fleet_case(number):
    text, flags = fleets.fleet(number)
    if number % 10 == 1:
        flags.append("--no-mpi")
    steps = [Do(write, "fleets/fleet.yaml", text),
             survey("--simulate", "fleets/fleet.yaml", *flags, "--spool", "spool", "-o", "out.yaml",
                    **{"out__yaml": "inventory"}),
             Do(settle, "out.yaml"), *quick_commands("out.yaml")]
    if number % 2 == 0:
        steps += page_commands("out.yaml")
    if number % 3 == 0:
        steps += [report("merge", "spool", stdout="inventory"), report("merge", "out.yaml", stdout="inventory")]
    if number % 10 == 4:
        steps += [survey("--simulate", "fleets/fleet.yaml", *flags, "--record", "out.gmr", "-o", "recorded.yaml",
                         **{"recorded__yaml": "inventory"}),
                  survey("--replay", "out.gmr", "-o", "replayed.yaml", **{"replayed__yaml": "inventory"}),
                  report("rma", "recorded.yaml", "UUID:recorded.yaml", "--record", "out.gmr", "-o", "rma.tar",
                         **{"rma__tar": "archive"})]
    if number % 10 == 7:
        steps += [survey("--simulate", "fleets/fleet.yaml", *flags, "--seed", 77, "--baseline", "out.yaml", "-o", "again.yaml",
                         "--html", "again.html", **{"again__yaml": "inventory", "again__html": "page"}),
                  Do(settle, "again.yaml", 2), report("diff", "out.yaml", "again.yaml", stdout="lines"),
                  report("merge", "out.yaml", "again.yaml", stdout="inventory")]
    return f"fleet-{number:03}", steps


def record_case(path, name):
    """A record of real GPUs; a packed one was unpacked beforehand."""
    steps = [survey("--replay", path, "-o", "out.yaml", "--html", "out.html",
                    **{"out__yaml": "inventory", "out__html": "page"}), Do(settle, "out.yaml"),
             *quick_commands("out.yaml"), report("show", "--topology", "out.yaml", stdout="lines"),
             survey("--replay", path, "--world", "configs/world/nvidia-h200.yaml", "-o", "world.yaml",
                    **{"world__yaml": "inventory"})]
    return f"record-{name}", steps


def uuid_of(path):
    if not path.exists():
        return "GPU-0"
    found = re.search(r"^outliers:\n  - uuid: (\S+)", path.read_text(), re.M) or \
        re.search(r"uuid: \"?([\w-]+)", path.read_text())
    return found[1] if found else "GPU-0"


def inventory_case(path, name):
    """All commands on an inventory that is in the tree."""
    steps = [Do(copy, path, "in.yaml"), *quick_commands("in.yaml"), *page_commands("in.yaml"),
             Do(copy, path, "january.yaml"), Do(settle, "january.yaml"), report("nagios", "january.yaml", stdout="lines"),
             report("nagios", "--max-age", 0, "--warn-watch", "in.yaml", stdout="lines"),
             report("prometheus", "--openmetrics", "in.yaml", stdout="prometheus"),
             report("json", "--mt4g", "in.yaml", stdout="json"),
             report("show", "--color", "always", "--width", 72, "in.yaml", stdout="lines"),
             report("show", "--compare", "in.yaml", stdout="lines"),
             report("show", "--anonymous", "in.yaml", stdout="lines"),
             report("json", "--anonymous", "in.yaml", stdout="inventory"),
             report("html", "--anonymous", "in.yaml", "-o", "out.html", **{"out__html": "page"}),
             report("prometheus", "--anonymous", "in.yaml", "-o", "out.prom", **{"out__prom": "prometheus"}),
             report("merge", "in.yaml", stdout="inventory"),
             report("merge", "in.yaml", "--world", "configs/world/nvidia-h200.yaml", stdout="inventory"),
             report("merge", "--anonymous", "in.yaml", stdout="inventory"),
             report("accept", "in.yaml", "--order", "configs/orders/demo.yaml", "--html", "accept.html", stdout="lines",
                    **{"accept__html": "page"}),
             report("rma", "in.yaml", "UUID:in.yaml", "-o", "rma.tar", **{"rma__tar": "archive"}),
             report("rma", "--anonymous", "in.yaml", "UUID:in.yaml", "-o", "rma-anonymous.tar",
                    **{"rma-anonymous__tar": "archive"}),
             report("diff", "in.yaml", "in.yaml", stdout="lines"),
             report("history", "in.yaml", stdout="lines"), report("history", "--json", "in.yaml", stdout="json"),
             Do(write, "racks.txt", "demo1 r1 s1\ndemo2 r1 s1\ndemo3 r2 s1\ndemo4 r2 s2 # a comment\nother r3\n"),
             report("html", "--racks", "racks.txt", "in.yaml", stdout="page"),
             Do(write, "drained.txt", "demo1|drained|gpumemtopo:degraded:x:y:z:-\ndemo5|drained|by hand\n"),
             report("undrain", "in.yaml", "--drained", "drained.txt", stdout="lines")]
    return f"inventory-{name}", steps


def history_case(slow_from, days=14):
    """A small fleet over two weeks: one GPU becomes slower, one moves, one is swapped."""
    steps = []
    names = []
    for day in range(1, days + 1):
        faults = [f"{{gpu: 0, kind: slow_dram, share: {0.06 if day >= slow_from else 0.001}}}"]
        if day == 5:
            faults.append("{gpu: 1, kind: remap, pending: true}")
        if day >= 9:
            faults.append("{gpu: 2, kind: swapped_die}")
        if day == 11:
            faults.append("{gpu: 3, kind: crash}")
        text = ("seed: 5\nvary: real\nnodes:\n  - {name: a%d, count: 2, gpus: 4, model: demo-h8.yaml}\n"
                "  - name: b\n    gpus: 4\n    model: demo-h8.yaml\n    faults:\n"
                + "".join(f"      - {fault}\n" for fault in faults))
        names.append(f"day{day:02}.yaml")
        steps += [Do(write, f"fleets/day{day:02}.yaml", text),
                  survey("--simulate", f"fleets/day{day:02}.yaml", "--profile", "quick", "--seed", day, "--time-limit", 900,
                         "-o", names[-1],
                         **{names[-1].replace(".", "__"): "inventory"}),
                  Do(settle, names[-1], day)]
    steps += [report("history", *names, stdout="lines"), report("history", "--json", *names, stdout="json"),
              report("history", "--anonymous", *names, stdout="lines"),
              report("history", "--gpu", "b:0", *names, stdout="lines"),
              report("history", "--gpu", "b:0", "--json", *names, stdout="json"),
              report("history", "--gpu", "b:2", "--html", "gpu.html", *names, stdout="lines", **{"gpu__html": "page"}),
              report("history", "--gpu", "b:0", "--metric", "main.latency", *names, stdout="lines"),
              report("history", "--gpu", "nowhere:0", *names, stdout="lines"),
              report("history", "--store", "store", *names[:5], stdout="lines"),
              report("history", "--store", "store", *names[5:], stdout="lines"),
              report("history", "--store", "store", "--gpu", "b:0", stdout="lines"),
              report("diff", names[0], names[-1], stdout="lines"), report("diff", names[-1], names[0], stdout="lines"),
              report("diff", "--anonymous", names[0], names[10], stdout="lines"),
              report("merge", *names, stdout="inventory"),
              report("merge", names[-1], "--baseline", names[0], stdout="inventory"),
              report("share", *names, stdout="yaml"), report("share", "--anonymous", *names, stdout="yaml"),
              report("undrain", *names, "--drained", "drained.txt", stdout="lines"),
              report("drain", names[4], stdout="lines"), report("exclude", names[4], stdout="lines"),
              Do(write, "drained.txt", "b|drained|gpumemtopo:failing:-:-:-:-\n"),
              report("undrain", names[3], names[5], "--drained", "drained.txt", stdout="lines")]
    return "history", steps


def shared_case():
    """Merge and diff of inventories of the tree, together."""
    files = ["tests/records/h200-quick.yaml", "tests/records/h200-standard-1.yaml", "tests/records/h200-standard-2.yaml",
             "tests/records/h200-standard-3.yaml", "tests/records/h200-full.yaml", "tests/records/h200-full-2.yaml"]
    names = [f"in{place}.yaml" for place in range(len(files))]
    steps = [Do(copy, file, name) for file, name in zip(files, names)]
    steps += [Do(settle, name, 1 + place) for place, name in enumerate(names)]
    steps += [report("merge", *names, "-o", "merged.yaml", **{"merged__yaml": "inventory"}), Do(settle, "merged.yaml", 20),
              *quick_commands("merged.yaml"), *page_commands("merged.yaml"), report("share", *names, stdout="yaml"),
              report("history", *names, stdout="lines"), report("history", "--json", *names, stdout="json"),
              report("show", "--compare", names[0], names[4], stdout="lines"),
              report("merge", *names, "reports/demo.yaml", stdout="inventory")]
    steps += [report("diff", old, new, stdout="lines") for old, new in zip(names, names[1:])]
    return "together", steps


def real_fleet_case(folder):
    """The H200 cards of the judge's tests, as one fleet by its own script's files."""
    steps = []
    for name in ("quick", "standard", "application-clock-1200mhz", "locked-900mhz", "power-limit-300w"):
        path = f"tests/judge/{folder}/{name}.yaml"
        steps += [report("validate", path), report("merge", path, stdout="inventory"), report("show", path, stdout="lines")]
    return f"cards-{folder}", steps


def predict(*args, **more):
    return Run("predict", *args, **more)


KERNELS = """2dconv 2mm 3dconv atax1 atax2 bicg1 bicg2 corr covar fdtd1 fdtd2 fdtd3 gesummv gramschm mvt1 mvt2 syr2k syrk bp1 bp2
cfd hotspot nw1 nw2 srad1 srad2 transpose gemm gemm_tiled spmv histogram stencil3d embedding attention""".split()


def predict_cases():
    demo, h200 = "reports/demo.yaml", "reports/h200.yaml"
    yield "predict-list", [predict("--list-kernels", stdout="lines"), predict("--help", stdout="flags"),
                           predict("trace", "--help", stdout="flags")]
    for kernel in KERNELS:
        trace = f"{kernel}.trace"
        yield f"predict-{kernel}", [
            predict(kernel, "--size", 128, "-i", h200, "-i", demo, "-f", "json", "--reuse", stdout="json"),
            predict(kernel, "--size", 64, "-i", h200, "--mshrs", "32,32", "--l2-banks", "4x2", "-f", "yaml", stdout="yaml"),
            predict("trace", "make", kernel, trace, "--size", 64, stdout="lines", **{f"{kernel}__trace": "size"}),
            predict("trace", "check", trace, stdout="yaml"),
            predict(trace, "-i", h200, "--mapping", "rr", stdout="lines")]
    for mapping in ("free", "rr", "part1", "part2", "random"):
        for scheduler in ("rr", "gto"):
            yield f"predict-{mapping}-{scheduler}", [
                predict("2mm", "hotspot", "spmv", "--size", 128, "-i", h200, "--mapping", mapping, "--scheduler", scheduler,
                        "--writes", writes, "-f", "json", stdout="json") for writes in ("through", "won", "rwon", "off")]
    yield "predict-what-if", [
        predict("mvt2", "--size", 64, "-i", h200, "-i", demo, "--what-if", "l1_data.size=32K,64K+l1_data.ways=4,8+l2.size=1M",
                stdout="lines"),
        predict("mvt2", "--size", 64, "-i", h200, "--what-if", "l1_data.carveout=0,64K,228K", "-f", "json", stdout="json"),
        predict("mvt2", "--size", 64, "-i", h200, "--what-if", "l1_data.index=smod3+l1_data.ways=4", stdout="lines"),
        predict("mvt2", "--size", 64, "-i", demo, "--what-if", "l1_data.carveout=16K", stdout="lines"),
        predict("all", "--size", 64, "-i", h200, "-f", "html", stdout="page"),
        predict("2mm", "mvt2", "--size", 64, "-i", h200, "--what-if", "l1_data.policy=fifo", "--reuse", "-f", "html", "-o",
                "page.html", **{"page__html": "page"})]
    yield "predict-convert", [
        step for source, kind in (("new.txt", "nvbit"), ("old.txt", "nvbit"), ("rows.csv", "csv"))
        for step in (predict("trace", "convert", "--from", kind, f"tests/fuzz/corpus/tracetext/{source}", f"{source}.trace",
                             stdout="lines"),
                     predict("trace", "info", f"{source}.trace", stdout="yaml"),
                     predict(f"./{source}.trace", "-i", h200, "-f", "json", stdout="json"))]


BROKEN = {
    "empty": "", "scalar": "12\n", "list": "- 1\n- 2\n", "half": "gpumemtopo: {schema: 1\n", "tab": "a:\n\t- b\n",
    "schema": "gpumemtopo: {schema: 99}\n", "binary": "\x00\x01\x02", "deep": "[" * 3000 + "]" * 3000 + "\n",
    "anchor": "a: &x [1]\nb: *x\n", "twice": "gpumemtopo: {schema: 1}\ngpumemtopo: {schema: 1}\n", "nodes": "nodes: []\n",
    "unknown": "colour: red\nnodes:\n  - {name: a, gpus: 1, model: demo-h8.yaml}\n",
    "type": "seed: many\nnodes:\n  - {name: a, gpus: 1, model: demo-h8.yaml}\n",
    "range": "nodes:\n  - {name: a, gpus: 999, model: demo-h8.yaml}\n",
    "model": "nodes:\n  - {name: a, gpus: 1, model: nothing.yaml}\n",
    "fault": "nodes:\n  - {name: a, gpus: 1, model: demo-h8.yaml, faults: [{gpu: 0, kind: melted}]}\n",
    "index": "nodes:\n  - {name: a, gpus: 1, model: demo-h8.yaml, faults: [{gpu: 4, kind: busy}]}\n",
    "share": "nodes:\n  - {name: a, gpus: 1, model: demo-h8.yaml, faults: [{gpu: 0, kind: slow_dram, share: lots}]}\n",
    "order": "gpumemtopo_order: {schema: 1}\nmodels: []\n",
}
SURVEY_USAGE = [
    ["--ouput", "x"], ["--simulat=x"], ["--frobnicate"], ["-z"], ["fleet.yaml"], ["--output"], ["--output="], ["--simulate", ""],
    ["--quiet=yes"], ["--profile", "fast"], ["--busy", "wait"], ["--seed", "-1"], ["--seed", "1x"], ["--time-limit", "0"],
    ["--time-limit", "nan"], ["--quiet", "--verbose"], ["--replay", "a", "--simulate", "b"], ["--record", "a", "--replay", "b"],
    ["--record", "-"], ["--record", "a", "-o", "a"], ["--simulate", "nothing.yaml"], ["--replay", "nothing.gmr"],
    ["--simulate", "fleets/good.yaml", "-c", "nothing.yaml"], ["--simulate", "fleets/good.yaml", "--baseline", "nothing.yaml"],
    ["--simulate", "fleets/good.yaml", "--world", "nothing.yaml"], ["--simulate", "fleets/good.yaml", "--reference", "nowhere"],
    ["--simulate", "fleets/good.yaml", "--probes", "l9"], ["--simulate", "fleets/good.yaml", "--load", "-1"],
    ["--simulate", "fleets/good.yaml", "-o", "nowhere/out.yaml"], ["--simulate", "fleets/good.yaml", "--load", "x"],
    ["--simulate", "fleets/good.yaml", "--record", "nowhere/a.gmr", "-o", "a.yaml", "--profile", "quick"],
]
REPORT_USAGE = [
    [], ["shw"], ["--frobnicate"], ["show"], ["show", "a", "b", "c"], ["show", "--modell", "x", "in.yaml"], ["diff", "in.yaml"],
    ["show", "--width", "x", "in.yaml"], ["show", "--color", "red", "in.yaml"], ["accept", "in.yaml"],
    ["accept", "in.yaml", "--order", "nothing.yaml"], ["rma", "in.yaml", "GPU-nobody"], ["rma", "in.yaml"],
    ["json", "--model", "x", "in.yaml"], ["json", "--mt4g", "--model", "x", "in.yaml"], ["undrain", "in.yaml"],
    ["undrain", "in.yaml", "--drained", "nothing.txt"], ["html", "--racks", "nothing.txt", "in.yaml"],
    ["html", "--racks", "r.txt", "--anonymous", "in.yaml"], ["drain", "--anonymous", "in.yaml"], ["nagios", "nothing.yaml"],
    ["nagios", "--max-age", "x", "in.yaml"], ["html", "in.yaml", "-o", "nowhere/x.html"], ["history"],
    ["history", "--metric", "main.latency", "in.yaml"], ["merge"], ["merge", "nothing.yaml"], ["merge", "nowhere/"],
    ["merge", "in.yaml", "-c", "nothing.yaml"], ["merge", "in.yaml", "--baseline", "nothing.yaml"],
    ["share", "in.yaml", "-o", "in.yaml"], ["show", "--compare", "--model", "a,b", "in.yaml"], ["history", "--store"],
    ["history", "--keep-all", "in.yaml"],
]
PREDICT_USAGE = [
    [], ["atax1"], ["ataxx", "-i", "in.yaml"], ["atax1", "--whatif", "x=1", "-i", "in.yaml"], ["atax1", "-i", "nothing.yaml"],
    ["atax1", "-i", "in.yaml", "-m", "nobody"], ["atax1", "-i", "in.yaml", "-o", "a", "-o", "b"],
    ["atax1", "-i", "in.yaml", "--format", "xml"], ["atax1", "-i", "in.yaml", "--mapping", "part3"],
    ["atax1", "-i", "in.yaml", "--size", "-1"], ["atax1", "-i", "in.yaml", "--block", "32y8"],
    ["atax1", "-i", "in.yaml", "--block", "24"], ["nw1", "-i", "in.yaml", "--size", "100"], ["-x"], ["-hx"],
    ["2dconv", "-i", "in.yaml", "--size", "2"], ["atax1", "-i", "in.yaml", "--latency", "4"],
    ["mvt2", "-i", "in.yaml", "--what-if", "l1_data.sise=1"], ["mvt2", "-i", "in.yaml", "--what-if", "l1_data.size="],
    ["mvt2", "-i", "in.yaml", "--what-if", "l1_data.line=100"], ["mvt2", "-i", "in.yaml", "--what-if", "l1_data.policy=best"],
    ["trace", "inform", "x"], ["trace", "info"], ["trace", "info", "nothing.trace"], ["trace", "make", "2mn", "x.trace"],
    ["trace", "convert", "--from", "xml", "a", "b"], ["mvt2", "-i", "in.yaml", "--jobs", "0"],
]
GOOD_FLEET = "nodes:\n  - {name: a, gpus: 2, model: demo-h8.yaml}\n"


def bad_cases():
    for name, text in BROKEN.items():
        yield f"bad-{name}", [
            Do(write, "fleets/bad.yaml", text), Do(write, "fleets/good.yaml", GOOD_FLEET),
            Run("survey", "--simulate", "fleets/bad.yaml", "-o", "x.yaml"),
            Run("survey", "--simulate", "fleets/good.yaml", "-c", "fleets/bad.yaml", "-o", "x.yaml"),
            Run("survey", "--simulate", "fleets/good.yaml", "--baseline", "fleets/bad.yaml", "-o", "x.yaml"),
            Run("survey", "--simulate", "fleets/good.yaml", "--world", "fleets/bad.yaml", "-o", "x.yaml"),
            Run("survey", "--replay", "fleets/bad.yaml", "-o", "x.yaml"),
            *(report(command, "fleets/bad.yaml", stdout="lines") for command in (
                "show", "merge", "history", "drain", "exclude", "nagios", "html", "json", "prometheus", "share", "validate")),
            report("diff", "fleets/bad.yaml", "reports/demo.yaml"), report("rma", "fleets/bad.yaml", "GPU-0"),
            report("accept", "reports/demo.yaml", "--order", "fleets/bad.yaml"),
            report("merge", "reports/demo.yaml", "fleets/bad.yaml", stdout="inventory"),
            predict("mvt2", "--size", 64, "-i", "fleets/bad.yaml"),
            predict("./fleets/bad.yaml", "-i", "reports/demo.yaml"),
            predict("trace", "convert", "--from", "csv", "fleets/bad.yaml", "x.trace")]
    prepare = [Do(write, "fleets/good.yaml", GOOD_FLEET), Do(copy, "reports/demo.yaml", "in.yaml"), Do(write, "r.txt", "a r1\n")]
    yield "usage-survey", prepare + [Run("survey", *words) for words in SURVEY_USAGE]
    yield "usage-report", prepare + [report(*words) for words in REPORT_USAGE]
    yield "usage-predict", prepare + [predict(*words) for words in PREDICT_USAGE]
    yield "help", [Run("survey", "--help", stdout="flags"), Run("survey", "--list-probes", stdout="lines"),
                   report("--help", stdout="flags"),
                   *(report(command, "--help", stdout="flags") for command in (
                       "show", "merge", "diff", "history", "accept", "drain", "exclude", "undrain", "rma", "nagios", "html",
                       "json", "prometheus", "share", "validate"))]
    yield "bad-inventory", [step for name, pattern, text in (
        ("number", r"value: [\d.]+", "value: many"), ("status", "status: ok", "status: perfect"),
        ("uuid", r"uuid: \S+", "uuid: GPU-twice"), ("count", r"gpus: \d+", "gpus: 3"), ("unit", "unit: B", "unit: stone"),
        ("key", "  - id:", "  - colour: red\n    id:"), ("model", r"\n    model: \S+", "\n    model: nobody"),
        ("kind", "(kind|verdict): degraded", r"\1: tired"), ("exit", r"exit_code: \d", "exit_code: 0"),
        ("values", r"main.latency: \[[\d.]+", "main.latency: [nan"), ("generated", "generated: [^,]+", "generated: today"),
        ("null", r"spread: [\d.]+", "spread: null"), ("spool", r"pci: \S+", "pci: here"))
        for step in (Do(edit, "reports/demo.yaml", pattern, text, f"{name}.yaml"), report("validate", f"{name}.yaml"),
                     report("show", f"{name}.yaml", stdout="lines"), report("prometheus", f"{name}.yaml", stdout="prometheus"),
                     report("merge", f"{name}.yaml", stdout="inventory"))]
    yield "damaged", [
        Do(write, "fleets/good.yaml", GOOD_FLEET),
        survey("--simulate", "fleets/good.yaml", "--profile", "quick", "--record", "good.gmr", "--spool", "spool", "-o", "out.yaml",
               **{"out__yaml": "inventory"}), Do(settle, "out.yaml"),
        *(step for share in (0, 0.001, 0.1, 0.5, 0.9, 0.999) for step in (
            Do(cut, "good.gmr", share, "cut.gmr"), Run("survey", "--replay", "cut.gmr", "-o", "cut.yaml", "--no-progress",
                                                       **{"cut__yaml": "inventory"}),
            Do(flip, "good.gmr", share, "flip.gmr"), Run("survey", "--replay", "flip.gmr", "-o", "flip.yaml", "--no-progress",
                                                         **{"flip__yaml": "inventory"}),
            Do(cut, "spool", share, f"cut{share}"), report("merge", f"cut{share}", stdout="inventory"),
            Do(flip, "spool", share, f"flip{share}"), report("merge", f"flip{share}", stdout="inventory"),
            Do(cut, "out.yaml", share, "cut.yaml"), report("validate", "cut.yaml"),
            report("rma", "out.yaml", "GPU-", "--record", "cut.gmr", "-o", "x.tar"))),
        Do(copy, "spool", "less"), Do(remove_some, "less", 2), report("merge", "less", stdout="inventory"),
        report("merge", "less", "out.yaml", stdout="inventory"), report("merge", "spool", "spool", stdout="inventory")]
    yield "damaged-traces", [step for name in ("2dconv", "gemm", "nw1", "spmv", "transpose") for step in (
        Do(cut, f"tests/fuzz/corpus/trace/{name}.trace", 0.7, "cut.trace"), predict("trace", "check", "cut.trace"),
        Do(flip, f"tests/fuzz/corpus/trace/{name}.trace", 0.6, "flip.trace"), predict("trace", "check", "flip.trace"),
        predict("trace", "check", f"tests/fuzz/corpus/trace/{name}.trace", stdout="yaml"),
        predict("./flip.trace", "-i", "reports/h200.yaml"))]


def config_case():
    """Settings of a site: how strict the judge is, how many GPUs a node has, limits."""
    steps = [Do(copy, "configs/fleets/demo.yaml", "fleets/demo.yaml")]
    whole = r"main.bandwidth.read: \{.*\}"
    row = "main.bandwidth.read: {worse: %s, floor: 0.02, accuse: 0.02, few: 0.05, peak_share: %s, follows: {%s: 1, memory_bus: 1, sms: 1}}"
    for name, pattern, text in (
            ("better", whole, row % ("higher", 0.7, "memory_clock")), ("peak", whole, row % ("lower", 0.99, "memory_clock")),
            ("sometimes", whole, row % ("sometimes", 0.7, "memory_clock")), ("follows", whole, row % ("lower", 0.7, "moon")),
            ("strict", "false_alarms: 0.01", "false_alarms: 3"), ("lax", "false_alarms: 0.01", "false_alarms: 0.000001"),
            ("node", "  # gpus_per_node: 8", "  gpus_per_node: 5"),
            ("nodes", "  # gpus_per_node: 8", '  gpus_per_node: {"demo[12]": 4, "*": 6}'),
            ("floor", r"(main.latency: \{.*?floor: )0.01", r"\g<1>0.4"), ("accuse", "accuse: 0.09", "accuse: 0.3"),
            ("stagger", "stagger_s: 5", "stagger_s: 0"), ("region", "region: 1 GiB", "region: 3 GiB"),
            ("limit", "quick: 20", "quick: -1"), ("patience", "least: 240", "least: soon"),
            ("unknown", "judge:", "colour: red\njudge:"), ("metric", "    l1_data.size:", "    l1_data.sise:"),
            ("word", r"(main.latency: \{.*?floor: )0.01", r"\g<1>sometimes")):
        steps += [Do(edit, "configs/survey.yaml", pattern, text, f"{name}.yaml"),
                  survey("--simulate", "fleets/demo.yaml", "--profile", "quick", "--time-limit", 900, "-c", f"{name}.yaml",
                         "-o", f"{name}-out.yaml", **{f"{name}-out__yaml": "inventory"})]
    steps += [report("merge", "reports/demo.yaml", "-c", f"{name}.yaml", stdout="inventory") for name in ("strict", "floor", "word")]
    return "config", steps


ORDERS = (("l2", "l2: 2 MiB", "l2: 3 MiB"), ("count", "count: 12", "count: 13"), ("nodes", "demo\\[1-3\\]", "demo[1-2]"),
          ("part", "DEMO-0008-H", "OTHER"), ("figure", "at_least: 310", "at_least: 330"), ("spread", "spread: 0.02", "spread: 0.0001"),
          ("all", "outliers_allowed: .*", "outliers_allowed: [failing, degraded, misconfigured, mismatched]"),
          ("other", "other_nodes: refused", "other_nodes: ignored"), ("unit", "unit: GB/s", "unit: MHz"),
          ("key", "customer:", "costumer:"), ("power", "power_limit_w: 500", "power_limit_w: 400"))


def order_case():
    """A delivery and orders that it does and does not meet."""
    steps = [Do(copy, "reports/demo.yaml", "in.yaml")]
    for name, pattern, text in ORDERS:
        steps += [Do(edit, "configs/orders/demo.yaml", pattern, text, f"{name}.yaml"),
                  report("accept", "in.yaml", "--order", f"{name}.yaml", "--html", f"{name}.html", stdout="lines",
                         **{f"{name}__html": "page"})]
    return "orders", steps


def demo_fleets():
    """The fleets that are shipped, in the profile quick; the demo in standard."""
    for name, flags in (("demo", []), *((name, ["--profile", "quick"]) for name in ("h200", "thesis", "mei"))):
        yield f"shipped-{name}", [
            survey("--simulate", f"configs/fleets/{name}.yaml", *flags, "--time-limit", 900, "-o", "out.yaml", "--html", "out.html",
                   **{"out__yaml": "inventory", "out__html": "page"}),
            Do(settle, "out.yaml"), *quick_commands("out.yaml"), *page_commands("out.yaml")]


def all_cases(old_root, fleet_count, records):
    """(name, steps) of every case. records: (path, name), as seen from the case folders."""
    yield from bad_cases()
    yield from predict_cases()
    for path in sorted(old_root.glob("reports/*.yaml")) + sorted(old_root.glob("tests/records/*.yaml")):
        yield inventory_case(str(path.relative_to(old_root)), path.stem)
    for folder in ("h200", "h200-recent"):
        yield real_fleet_case(folder)
    yield shared_case()
    yield history_case(slow_from=8)
    yield config_case()
    yield order_case()
    yield from demo_fleets()
    for path, name in records:
        yield record_case(path, name)
    for number in range(fleet_count):
        yield fleet_case(number)
