"""tools/gpu-validate predict: compares gpumemtopo-predict with hardware counters.

    tools/gpu-validate predict OUT [--inventory FILE]     on a machine with a GPU
    tools/gpu-validate predict --counters FILE --inventory FILE [--predict PROGRAM] [--set NAME]... [--most N]

The first form builds the CUDA twins of the kernels (tests/predict/twins) with and without L1, runs each once
under ncu with an L2 that has nothing of its arrays, surveys the GPU if there is no inventory, writes
OUT/counters.csv and OUT/inventory.yaml, and compares. The second form compares what was counted before; --most
leaves out launches of more sectors. Both print a row per launch and the mean errors."""
import argparse
import csv
import io
import json
import math
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
TWINS = ROOT / "tests/predict/twins"

L1 = "l1tex__t_sectors_pipe_lsu_mem_global_op_"
L2 = "lts__t_sectors_srcunit_tex_op_"
FAR = "lts__t_sectors_srcunit_ltcfabric_aperture_device_op_"
# Column of counters.csv -> metric of ncu.
COUNTERS = {
    "load_instructions": "smsp__inst_executed_op_global_ld.sum",
    "store_instructions": "smsp__inst_executed_op_global_st.sum",
    "l1_reads": L1 + "ld.sum",
    "l1_read_hits": L1 + "ld_lookup_hit.sum",
    "l1_writes": L1 + "st.sum",
    "l1_fills": "l1tex__m_xbar2l1tex_read_sectors.sum",
    "l2_reads": L2 + "read.sum",
    "l2_read_hits": L2 + "read_lookup_hit.sum",
    "l2_writes": L2 + "write.sum",
    "l2_write_hits": L2 + "write_lookup_hit.sum",
    "far_reads": FAR + "read.sum",
    "far_read_hits": FAR + "read_lookup_hit.sum",
    "main_reads": "dram__sectors_read.sum",
    "main_writes": "dram__sectors_write.sum",
    "carveout": "launch__shared_mem_config_size",
    "ns": "gpu__time_duration.sum",
}
LAUNCH = ["set", "kernel", "size", "block", "registers", "l1"]

# What other units than SMs read and write while a kernel runs: launches that need no main memory show up to some
# thousand sectors. Errors of fewer sectors than this are shares of this.
MAIN_FLOOR = 16384

ALL = """2dconv 2mm 3dconv atax1 atax2 bicg1 bicg2 corr covar fdtd1 fdtd2 fdtd3 gesummv gramschm mvt1 mvt2 syr2k
syrk bp1 bp2 cfd hotspot nw1 nw2 srad1 srad2 transpose gemm gemm_tiled spmv histogram stencil3d embedding
attention""".split()
# Kernels whose accesses grow with their footprint, not faster.
LINEAR = """2dconv 3dconv atax1 atax2 bicg1 bicg2 fdtd1 fdtd2 fdtd3 gesummv mvt1 mvt2 cfd hotspot nw1 nw2 srad1
srad2 transpose spmv histogram stencil3d""".split()
# Sizes and shapes that the model was not fitted to.
ODD = """2dconv 3000 16x16, 2dconv 1000 64x4, 2mm 500 16x16, 3dconv 200 64x4, atax1 6000 128x1, atax2 6000 64x1,
corr 200 64x1, fdtd1 3500 16x16, fdtd2 1500 64x8, fdtd3 2600 128x2, gesummv 3000 64x1, gramschm 100 64x1,
syr2k 300 16x16, syrk 500 16x8, bp2 100000 16x16, cfd 500000 128x1, hotspot 2000 16x16, nw1 2048 16x1,
srad1 1500 16x16, srad2 3000 16x16, transpose 3000 16x16, transpose 2000 64x16, gemm 700 16x16,
gemm_tiled 1600 32x32, spmv 100000 128x1, histogram 1000000 512x1, stencil3d 180 64x4, embedding 50000 32x4,
attention 2048 16x8"""


def footprints(kernel, bytes_of_cache, factors):
    return [word for factor in factors
            for word in (kernel, "--footprint", str(int(bytes_of_cache * factor)))]


def launches_by_set(l1_bytes, l2_bytes):
    """Arguments of predict_twins for each set of launches."""
    by_l2 = [word for kernel in LINEAR for word in footprints(kernel, l2_bytes, (0.5, 1, 2, 4))]
    # A grid has at most 65535 rows of blocks; the others take too long to predict beyond these.
    for kernel, factors in (("bp1", (0.5, 1)), ("bp2", (0.5, 1, 2)), ("gemm_tiled", (0.5, 1, 2)),
                            ("attention", (0.5, 1)), ("gemm", (0.5,)), ("2mm", (0.5,))):
        by_l2 += footprints(kernel, l2_bytes, factors)
    for size in ("32768", "131072", "400000"):
        by_l2 += ["embedding", "--size", size]
    by_l1 = [word for kernel in ALL if kernel != "embedding"
             for word in footprints(kernel, l1_bytes, (1, 2, 4) if kernel == "attention" else (0.5, 1, 2, 4))]
    odd = [word for case in ODD.split(",") for kernel, size, block in [case.split()]
           for word in (kernel, "--size", size, "--block", block)]
    return {"table": ALL, "l1": by_l1, "l2": by_l2, "odd": odd}


def build_twins(tool, out, cached):
    """The program of all twins for the GPU at hand."""
    capability = tool.output_of("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").split()[0]
    program = out / ("twins" if cached else "twins_past_l1")
    sources = [TWINS / name for name in ("main.cu", "polybench.cu", "rodinia.cu", "others.cu")]
    past = [] if cached else ["-Xptxas", "-dlcm=cg"]
    subprocess.run(["nvcc", "-std=c++17", "-O3", f"-arch=sm_{capability.replace('.', '')}", *past, "-o", program,
                    *sources], check=True, stdout=sys.stderr)
    return program


def count(tool, out, program, arguments):
    """Rows of counters, one per launch. What the program says (once per pass) names the launches."""
    log = out / "ncu.csv"
    log.unlink(missing_ok=True)
    done = subprocess.run(
        ["ncu", "--replay-mode", "application", "--cache-control", "none", "--clock-control", "none",
         "--kernel-name", "regex:^twin_", "--metrics", ",".join(COUNTERS.values()), "--csv", "--page", "raw",
         "--print-units", "base", "--log-file", log, program, *arguments],
        capture_output=True, text=True, check=False)
    said = (log.read_text(encoding="utf-8") if log.exists() else "") + done.stdout + done.stderr
    if "ERR_NVGPUCTRPERM" in said:
        raise tool.Skip("the GPU's counters may not be read (ERR_NVGPUCTRPERM): ncu needs the permission")
    if done.returncode:
        raise tool.Mismatch(f"ncu ended with {done.returncode}: {said.strip()[-500:]}")
    counted = tool.read_counters(log.read_text(encoding="utf-8"))
    return [row_of(tool, line.split(), launch) for line, launch in zip(launch_lines(done.stdout, len(counted)), counted)]


def launch_lines(text, launches):
    """The lines of predict_twins about the first pass: "atax1 4096 256x1 22 0 8"."""
    lines = [line for line in text.splitlines() if len(line.split()) == 6 and line.split()[1].isdigit()]
    if len(lines) < launches:
        raise ValueError(f"{launches} launches were counted, {len(lines)} were named")
    return lines[:launches]


def row_of(tool, words, launch):
    kernel, size, block, registers = words[:4]
    row = {"kernel": kernel, "size": size, "block": block, "registers": registers}
    for column, metric in COUNTERS.items():
        value = tool.read_number(launch.get(metric))
        row[column] = "" if value is None else f"{value:.0f}"
    return row


def count_all(tool, out, l1_bytes, l2_bytes):
    rows = []
    for cached in (True, False):
        program = build_twins(tool, out, cached)
        for name, arguments in launches_by_set(l1_bytes, l2_bytes).items():
            rows += [{"set": name, "l1": "on" if cached else "off", **row}
                     for row in count(tool, out, program, arguments)]
    return rows


def write_counters(path, facts, rows):
    text = io.StringIO()
    text.write("".join(f"# {fact}\n" for fact in facts))
    writer = csv.DictWriter(text, LAUNCH + list(COUNTERS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def read_counters(path):
    """The launches of the file, each with its counters with L1 ("on") and past it ("off")."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    launches = {}
    for row in csv.DictReader(lines):
        key = tuple(row[column] for column in LAUNCH[:-1])
        counters = {column: float(row[column] or "nan") for column in COUNTERS}
        launches.setdefault((row["set"], row["kernel"], row["size"], row["block"]), {"launch": key})[row["l1"]] = counters
    return [launch for launch in launches.values() if "on" in launch and "off" in launch]


def predict(program, inventory, launch):
    _, kernel, size, block, registers = launch["launch"]
    done = subprocess.run([program, kernel, "--size", size, "--block", block, "--registers", registers,
                           "--inventory", inventory, "--format", "json"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{kernel} --size {size} --block {block}: {done.stderr.strip()}")
    return json.loads(done.stdout)["predictions"][0]


def l2_hits(counted):
    return 100 * min(1, (counted["l2_read_hits"] + counted["l2_write_hits"]) / (counted["l2_reads"] + counted["l2_writes"]))


def relative(predicted, counted, floor=1):
    return 100 * (predicted - counted) / max(counted, floor)


def compare(launch, predicted):
    """Name -> (predicted, counted, error). Hits in percent and points, transactions in sectors and percent."""
    on, off = launch["on"], launch["off"]
    l1, behind, past = predicted["l1"], predicted["l2"], predicted["l2_without_l1"]
    hits = {"l1": (100 * (l1["read_hits"] or 0), 100 * on["l1_read_hits"] / max(on["l1_reads"], 1)),
            "l2": (100 * behind["hits"], l2_hits(on)),
            "l2_past_l1": (100 * past["hits"], l2_hits(off))}
    sums = {"l1_sectors": (l1["reads"] + l1["writes"], on["l1_reads"] + on["l1_writes"], 1),
            "l2_sectors": (behind["transactions"], on["l2_reads"] + on["l2_writes"], 1),
            "main_sectors": (behind["main_reads"] + behind["main_writes"], on["main_reads"] + on["main_writes"],
                             MAIN_FLOOR)}
    result = {name: (p, c, p - c) for name, (p, c) in hits.items()}
    result.update({name: (p, c, relative(p, c, floor)) for name, (p, c, floor) in sums.items()})
    return result


NAMES = ["l1", "l2", "l2_past_l1", "l1_sectors", "l2_sectors", "main_sectors"]
HEADS = ["L1 read hits %", "L2 hits %", "L2 hits % past L1", "L1 sectors", "L2 sectors", "main sectors"]


def shown(name, result):
    predicted, counted, error = result[name]
    if name in ("l1", "l2", "l2_past_l1"):
        return f"{predicted:.1f} / {counted:.1f}"
    return f"{counted:,.0f} ({error:+.1f} %)"


def table(rows):
    lines = ["| kernel | size | block | " + " | ".join(HEADS) + " |", "| --- | ---: | --- |" + " ---: |" * len(HEADS)]
    for launch, result in rows:
        _, kernel, size, block, _ = launch["launch"]
        lines.append(f"| {kernel} | {size} | {block} | " + " | ".join(shown(name, result) for name in NAMES) + " |")
    return "\n".join(lines)


def means(rows):
    """Mean absolute errors: points of hits, percent of sectors."""
    return {name: sum(abs(result[name][2]) for _, result in rows) / max(len(rows), 1) for name in NAMES}


def print_means(title, rows):
    errors = means(rows)
    print(f"{title}: {len(rows)} launches; mean absolute errors: "
          + ", ".join(f"{head} {errors[name]:.2f}" for name, head in zip(NAMES, HEADS)))


def hold(program, inventory, launches):
    """(launch, comparison) of each, predicted on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        predictions = list(pool.map(lambda launch: predict(program, inventory, launch), launches))
    return [(launch, compare(launch, predicted)) for launch, predicted in zip(launches, predictions)]


def cost(launch):
    return launch["on"]["l1_reads"] + launch["on"]["l1_writes"]


def survey(tool, out):
    """The inventory of the GPU at hand and the two sizes that the launches are made for."""
    folder = tool.setup_build()
    subprocess.run(["meson", "compile", "-C", folder, "gpumemtopo-survey", "gpumemtopo-predict"], cwd=ROOT, check=True,
                   stdout=sys.stderr)
    subprocess.run([folder / "src/survey/gpumemtopo-survey", "--profile", "full", "-o", out / "inventory.yaml"],
                   check=True, stdout=sys.stderr)
    return out / "inventory.yaml"


def size_in(inventory, cache):
    """The measured size of a cache, in bytes, from the YAML text."""
    inside = False
    for line in inventory.read_text(encoding="utf-8").splitlines():
        if line.startswith("      ") and not line.startswith("       "):
            inside = line.strip() == f"{cache}:"
        if inside and line.strip().startswith("size: {value: "):
            return float(line.split("value: ")[1].split(",")[0])
    raise ValueError(f"{inventory} has no size of {cache}")


def read_arguments(arguments):
    parser = argparse.ArgumentParser(prog="tools/gpu-validate predict", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--counters", type=pathlib.Path)
    parser.add_argument("--inventory", type=pathlib.Path)
    parser.add_argument("--predict", type=pathlib.Path, default=ROOT / "build-gpu/src/predict/gpumemtopo-predict")
    parser.add_argument("--set", action="append")
    parser.add_argument("--most", type=float, default=math.inf)
    chosen = parser.parse_args(arguments)
    if bool(chosen.out) == bool(chosen.counters) or (chosen.counters and not chosen.inventory):
        parser.error("give OUT, or --counters and --inventory")
    return chosen


def main(arguments, tool):
    chosen = read_arguments(arguments)
    if chosen.out:
        out = chosen.out.resolve()
        out.mkdir(parents=True, exist_ok=True)
        facts = tool.describe()
        chosen.inventory = chosen.inventory or survey(tool, out)
        rows = count_all(tool, out, size_in(chosen.inventory, "l1_data"), size_in(chosen.inventory, "l2"))
        chosen.counters = out / "counters.csv"
        write_counters(chosen.counters, facts, rows)
    launches = [launch for launch in read_counters(chosen.counters)
                if cost(launch) <= chosen.most and (not chosen.set or launch["launch"][0] in chosen.set)]
    rows = hold(chosen.predict, chosen.inventory, launches)
    print(table(rows))
    for name in dict.fromkeys(launch["launch"][0] for launch, _ in rows):
        print_means(name, [row for row in rows if row[0]["launch"][0] == name])
    print_means("all", rows)
    return tool.AGREE if rows else tool.DIFFER
