"""What the offline tools cost for inventories of many GPUs.

tools.py REPORT MAKE_INVENTORY SOURCE_ROOT GPUS...
Prints a table: CPU seconds, peak memory and bytes written of each command. With 100,000 GPUs each takes at most 10 s
and 1 GiB, reading at most 4 s and 600 MiB, JSON at most 600 MiB; ten times as many GPUs cost at most 15 times as much.
"""
import pathlib
import shutil
import sys
import tempfile

from costs import make, run

report, make_inventory, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
LIMITED, CPU_MAX_S, MIB_MAX, READ_MAX_S, READ_MIB_MAX = 100000, 10, 1024, 4, 600
NEEDED_BYTES = 12000  # of memory per GPU, so that the machine is not driven out of it

ORDER = """gpumemtopo_order: {schema: 1, number: "1"}
models:
  - name: Demo H8
    count: %d
    memory: 4 GiB
    figures:
      main.bandwidth.read: {at_least: 310, unit: GB/s, spread: 0.02}
      main.latency: {at_most: 620, unit: cycles}
  - name: Demo T20
    count: %d
    memory: 2 GiB
    figures: {clock.sm: {at_least: 1250, unit: MHz}}
"""


def commands(gpus, inventory, later, folder):
    order, out, store = folder / "order.yaml", folder / "out", folder / "store"
    order.write_text(ORDER % (gpus * 6 // 10, gpus * 4 // 10))
    store.mkdir(exist_ok=True)
    yield "read (nagios)", [report, "nagios", inventory], None
    yield "show", [report, "show", inventory], None
    yield "validate", [report, "validate", inventory], None
    yield "merge", [report, "merge", inventory, "-o", out], out
    yield "diff", [report, "diff", inventory, later], None
    yield "html", [report, "html", inventory, "-o", out], out
    yield "prometheus", [report, "prometheus", inventory, "-o", out], out
    yield "json", [report, "json", inventory, "-o", out], out
    yield "accept", [report, "accept", inventory, "--order", order, "--html", out], out
    yield "history of two", [report, "history", inventory, later], None
    yield "history --store, first", [report, "history", "--store", store, inventory], None
    yield "history --store, second", [report, "history", "--store", store, later], None


def free_bytes():
    words = dict(line.split(":") for line in open("/proc/meminfo"))
    return int(words["MemAvailable"].split()[0]) * 1024


def measure(gpus, folder):
    inventory, later = (make(make_inventory, root, gpus, seed, folder) for seed in (1, 2))
    # A day later: a store keeps inventories by their time.
    run(["sed", "-i", '1s/generated: "2026-11-[0-9]*/generated: "2027-01-18/', later])
    costs = {}
    for name, command, written in commands(gpus, inventory, later, folder):
        cost = run(command)
        # nagios returns 2 for outliers; of all others 2 is bad input.
        assert cost.code in (0, 3, 4) or (cost.code == 2 and "nagios" in name), (name, cost)
        size = written.stat().st_size / 1e6 if written else 0
        print(f"{gpus:9} | {name:24} | {cost.cpu_s:7.2f} s | {cost.mebibytes:6.0f} MiB | {size:7.1f} MB", flush=True)
        costs[name] = cost
    shutil.rmtree(folder / "store")
    for path in folder.iterdir():
        path.unlink(missing_ok=True)
    return costs


def check(all_costs):
    bad = []
    for name, cost in all_costs.get(LIMITED, {}).items():
        reads = name.startswith("read")
        seconds = READ_MAX_S if reads else CPU_MAX_S
        mebibytes = READ_MIB_MAX if reads or name == "json" else MIB_MAX
        if name != "history of two" and (cost.cpu_s > seconds or cost.mebibytes > mebibytes):
            bad.append(f"{name}: more than {seconds} s or {mebibytes} MiB")
        if 10000 in all_costs and cost.cpu_s > 15 * all_costs[10000][name].cpu_s + 0.5:
            bad.append(f"{name}: does not grow linearly")
    return bad


def main(folder):
    all_costs = {}
    for gpus in map(int, sys.argv[4:]):
        if free_bytes() < gpus * NEEDED_BYTES:
            print(f"{gpus} GPUs need {gpus * NEEDED_BYTES >> 30} GiB of free memory: not measured")
            return 77
        all_costs[gpus] = measure(gpus, folder)
    bad = check(all_costs)
    print("\n".join(bad))
    return 1 if bad else 0


with tempfile.TemporaryDirectory() as name:
    sys.exit(main(pathlib.Path(name)))
