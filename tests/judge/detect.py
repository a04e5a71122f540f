"""How well planted faults are found: whole surveys of simulated fleets, judged as shipped, whatever the policy is.

detect.py SURVEY SOURCE_ROOT [FLEETS [GPUS [SEED]]] [--spread PERCENT] [--disturbed SHARE]

Each fleet has GPUS GPUs of one model on nodes of four, about one in thirteen of them with a fault of
the catalogue below, every fault at 2, 5, 10 and 30 % where a size applies; in every eighth fleet one
slot of all nodes has a fault, too. In every other fleet 5, 10, 20 or 50 % of the GPUs or of the nodes
have another board, with 4 % more latency and 2.5 % more bandwidth of main memory, as H200s have; there
some GPUs have DRAM that is 3 % slower, which is counted by board. GPC layouts differ from card to card.

--spread: standard deviation of all figures between healthy GPUs of one board, in per cent. Up to 0.2
all SM clocks are the same, as those of the real cards; above they are 8 % apart, as published. `real`:
each kind of figure as the real cards (docs/simulation.md).
--disturbed: this share of the healthy GPUs is disturbed during its first measurement only: copies, main
memory, the SM clock, or everything for a tenth of a second. Who is accused for that is a false alarm.

Prints for each fault and size how many were found with the right kind and cause, and every false
alarm. Fails at any false alarm, when more than 0.5 % of the healthy undisturbed GPUs are watched, or when
less was found than is wanted: up to a spread of 0.5 % 99 % at 5 % and above, up to 0.2 % also 95 % accused at
2 % and 99 % at 3 % within a board. The rest is only told.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

try:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import fast_yaml as yaml  # noqa: E402
    import sure  # noqa: E402
except ImportError:
    print("not installed: yaml")
    sys.exit(77)

options = argparse.ArgumentParser()
options.add_argument("survey", type=pathlib.Path)
options.add_argument("root", type=pathlib.Path)
options.add_argument("fleets", type=int, nargs="?", default=1)
options.add_argument("gpus", type=int, nargs="?", default=128)
options.add_argument("seed", type=int, nargs="?", default=1)
options.add_argument("--spread", default="0.5")
options.add_argument("--disturbed", type=float, default=0.02)
options = options.parse_args()
SURVEY, ROOT = options.survey.resolve(), options.root.resolve()
FLEETS, GPUS, SEED = options.fleets, options.gpus, options.seed
NARROW = options.spread == "real" or float(options.spread) <= 0.2
WIDE = options.spread != "real" and float(options.spread) > 0.5
PER_NODE = 4
SLOT = 3
WANTED = 0.99
WANTED_SMALL = 0.95
WATCHED_MOST = 0.005
OTHER = "OTHER-BOARD"
ALIKE = 4  # GPUs with the same loss: five of a board would be a group, which is watched (docs/JUDGE.md, Divided)
CALIBRATED = 8  # GPUs of a board that are enough to find 3 % among them

Model = collections.namedtuple("Model", "file sms sm_mhz memory_mhz power_w third held layouts")
# third: stacks or channels that make about a third of the memory.
# held: about a third of the memory. layouts: with their shares; those of the H200 were seen on 17 cards.
# Most fleets are of a small model, whose survey costs less; every eighth is of H200s.
SMALL = Model("demo-h8.yaml", 8, 1700, 2600, 500, 3, "1400 MiB", {"4, 4": 0.7, "2, 6": 0.3})
LARGE = Model("h200.yaml", 132, 1980, 3201, 700, 2, "48 GiB",
              {"16, 16, 16, 16, 16, 16, 18, 18": 0.76, "12, 16, 16, 16, 18, 18, 18, 18": 0.18,
               "14, 16, 16, 16, 16, 18, 18, 18": 0.06})

Fault = collections.namedtuple("Fault", "name size text where kind cause whole_node")
SIZES = (0.02, 0.05, 0.1, 0.3)


def catalogue(model):
    """All faults. where: outlier, watch, node, or the status of one that cannot be judged."""
    faults = []

    def add(name, text, kind, cause, size=None, where="outlier", whole_node=False):
        faults.append(Fault(name, size, text, where, kind, cause, whole_node))

    for size in SIZES:
        left = 1 - size
        add("slow_dram", f"kind: slow_dram, share: {size}", "degraded", "cause unknown", size)
        add("memory_clock", f"kind: memory_clock, mhz: {model.memory_mhz * left:.0f}",
            "misconfigured", "memory clock", size)
        for reason, kind, cause in (("power", "degraded", "power cap"),
                                    ("thermal", "degraded", "heat"),
                                    ("setting", "misconfigured", "application clock")):
            add(f"sm_clock, {reason}",
                f"kind: sm_clock, mhz: {model.sm_mhz * left:.0f}, reason: {reason}", kind, cause,
                size)
        add("l2_slice", f"kind: l2_slice, share: {size}", "degraded", "cause unknown", size)
        add("l2_slice, reported", f"kind: l2_slice, share: {size}, reported: true", "mismatched",
            "L2 .* of its model", size)
        add("slow_sm", f"kind: slow_sm, sm: {model.sms // 2}, share: {size}", "degraded",
            f"SM {model.sms // 2} is slower", size)
        count = max(1, round(model.sms * size))
        add("missing_sms", f"kind: missing_sms, count: {count}", "mismatched", "SMs .* of its model",
            size)
        add("power_limit", f"kind: power_limit, w: {model.power_w * left:.0f}", "misconfigured",
            "power limit", size)
        add("slow node, host link", f"kind: slow_host, share: {size}", "degraded", "cause unknown",
            size, "node", True)
        add("slow host link", f"kind: slow_host, share: {size}", "degraded", "cause unknown", size)
        add("hot node", f"kind: sm_clock, mhz: {model.sm_mhz * left:.0f}, reason: thermal",
            "degraded", "heat", size, "node", True)
        for reason, cause in (("thermal", "sw_thermal"), ("power_brake", "hw_power_brake")):
            add(f"falls under load, {reason}",
                f"kind: falls_under_load, share: {size}, seconds: 3, reason: {reason}", "degraded",
                f"under load the SM clock (fell from|is) .*: {cause}", size)
        if size > 0.02:  # below the resolution of the sweep
            add("l1_ways", f"kind: l1_ways, share: {size}", "degraded", "cause unknown", size)
        if size >= 0.1:  # healthy clocks differ by nearly as much
            add("sm_clock, locked", f"kind: sm_clock, mhz: {model.sm_mhz * left:.0f}, reason: none",
                "misconfigured", "SM clock is locked", size)
        add("slow node, DRAM", f"kind: slow_dram, share: {size}", "degraded", "cause unknown", size,
            "node", True)
    add("missing_sms, hidden", "kind: missing_sms, count: 1, hidden: true", "degraded",
        "measured, the driver reports")
    add("hbm_stack", "kind: hbm_stack", "mismatched", "memory bus")
    add("hbm_stack, hidden", "kind: hbm_stack, hidden: true", "degraded", "cause unknown")
    add("memory lost", f"kind: hbm_stack, count: {model.third}, hidden: true", "degraded",
        "can be allocated")
    add("memory held", f"kind: memory_held, bytes: {model.held}", "degraded", "can be allocated")
    add("pcie generation", "kind: pcie, gen: 4", "degraded", "PCIe link runs generation 4")
    add("pcie width", "kind: pcie, width: 8", "degraded", "PCIe link runs x8")
    add("ecc_off", "kind: ecc_off", "misconfigured", "ECC off")
    add("mig_on", "kind: mig_on", "misconfigured", "MIG on")
    add("remap pending", "kind: remap, pending: true", "failing", "remap is pending")
    add("remap failed", "kind: remap, failed: true", "failing", "remap failed")
    add("remap reserve low", "kind: health, facts: {remap_banks_low: 3}", "degraded",
        "few spare rows")
    add("remap reserve gone", "kind: health, facts: {remap_banks_none: 1}", "degraded",
        "without spare rows")
    add("retired pages", "kind: health, facts: {retired_pages_pending: true}", "failing",
        "page retirement")
    add("inforom", "kind: health, facts: {inforom_valid: false}", "failing", "InfoROM is corrupt")
    add("ecc_errors", "kind: ecc_errors, count: 2", "failing", "uncorrectable ECC")
    add("ecc_errors, new", "kind: health, facts: {ecc_uncorrected_new: 1}", "failing",
        "ECC errors during the survey")
    add("ecc_errors, long ago", "kind: health, facts: {ecc_uncorrected_dram: 1}", "failing",
        "in its life", where="watch")
    add("corrected ECC, storm", "kind: ecc_corrected, per_s: 17700", "degraded",
        "corrected ECC errors during the survey: 177000, 17700 per second")
    add("corrected ECC, a few", "kind: ecc_corrected, per_s: 0.2", "degraded",
        "corrected ECC errors during the survey: 2", where="watch")
    add("corrected ECC, earlier", "kind: health, facts: {ecc_corrected_volatile: 9600000000}",
        "degraded", "corrected ECC errors since the driver was loaded")
    add("replays", "kind: pcie_replays, per_s: 300", "degraded", "PCIe replays during the survey")
    add("replays, a few", "kind: pcie_replays, per_s: 0.5", "degraded", "PCIe replays", where="watch")
    add("NVLink errors", "kind: nvlink_errors, per_s: 200", "degraded", "NVLinks during the survey")
    add("fabric", "kind: fabric, state: in_progress", "failing", "NVLink fabric: in_progress")
    add("fabric, failed", "kind: fabric, state: failed", "failing", "NVLink fabric failed")
    add("Xid 79", "kind: xid, number: 79", "failing", "fallen off the bus")
    add("Xid 74", "kind: xid, number: 74", "degraded", "Xid 74 .* NVLink error")
    add("Xid 31", "kind: xid, number: 31", "degraded", "Xid 31 .* application's fault", where="watch")
    add("hot", "kind: hot, degrees: 30", "degraded", "its peers have 50 C", where="watch")
    add("too hot", "kind: hot, degrees: 40", "degraded", "slows down from 87 C on")
    add("persistence_off", "kind: persistence_off", "misconfigured", "persistence off")
    add("compute_mode", "kind: compute_mode, text: prohibited", "misconfigured",
        "compute mode prohibited")
    add("nvlink_down", "kind: nvlink_down", "failing", "NVLinks down: 1")
    add("vbios", "kind: vbios, text: other", "misconfigured", "VBIOS other")
    add("driver", "kind: driver, text: other", "misconfigured", "driver other")
    add("driver of a node", "kind: driver, text: other", "misconfigured", "driver other",
        where="node", whole_node=True)
    add("hw_slowdown", f"kind: sm_clock, mhz: {model.sm_mhz * 0.9:.0f}, reason: slowdown",
        "degraded", "hardware slows down")
    add("power_brake", f"kind: sm_clock, mhz: {model.sm_mhz * 0.5:.0f}, reason: power_brake",
        "degraded", "power brake")
    add("noisy", "kind: noisy, factor: 20", "unsteady", "scatter")
    add("very noisy", "kind: noisy, factor: 60", "unsteady", "scatter")
    add("busy", "kind: busy", None, None, where="busy")
    add("hang", "kind: hang, after: 30", "failing", "worker hung")
    add("crash", "kind: crash, after: 30", "failing", "worker crashed twice")
    add("crash once", "kind: crash, after: 30, tries: 1", "failing", "worker crashed once", where="watch")
    return faults


def slot_fault(number):
    """What all GPUs of slot SLOT have in this fleet; None: nothing."""
    faults = [Fault("slot, host link", size, f"kind: slow_host, share: {size}", "slot", "degraded",
                    "cause unknown", False) for size in (0.05, 0.1, 0.3)]
    return faults[number // 8 % len(faults)] if number % 8 == 3 else None


def disturbance(draw, model):
    """What disturbs one measurement and is gone at the next."""
    share = draw.choice((0.04, 0.1, 0.3))
    window = f"when: {{sessions: 1, from_ms: {draw.randrange(30, 250)}, for_ms: 100}}"
    first = "when: {sessions: 1}"
    return draw.choice((f"kind: slow_host, share: {share}, {first}",
                        f"kind: slow_host, share: {share}, {window}",
                        f"kind: slow_dram, share: {share}, {first}",
                        f"kind: slow_dram, share: {share}, {window}",
                        f"kind: sm_clock, mhz: {model.sm_mhz * (1 - share):.0f}, reason: none, {first}",
                        f"kind: sm_clock, mhz: {model.sm_mhz * (1 - share):.0f}, reason: power, {window}",
                        f"kind: noisy, factor: 20, {window}"))


def head(number, model):
    """The lines of a fleet file before its nodes."""
    share = (0.05, 0.1, 0.2, 0.5)[number // 2 % 4]
    per = ("gpu", "node")[number // 8 % 2]
    clock = 0 if NARROW else 0.04
    vary = "real" if options.spread == "real" else \
        f"{{sm_clock: {clock}, other: {float(options.spread) / 100}, l2_distance_cycles: 2, timer: 0.0003}}"
    lines = [f"seed: {SEED * 1000 + number}", f"vary: {vary}", "layouts:"]
    lines += [f"  - {{share: {part}, sms_per_gpc: [{sizes}]}}" for sizes, part in model.layouts.items()]
    if number % 2:
        lines += ["batches:", f"  - {{share: {share}, per: {per}, part: {OTHER}, main_latency: 1.04, "
                  "main_read: 1.025, main_write: 1.025, main_copy: 1.025}"]
    return lines


def choose(number, model, draw):
    """Faults by node and GPU, and the places that are free after that."""
    faults = catalogue(model)
    share = max(1, GPUS // 13)
    chosen = [faults[(number * share + i) % len(faults)] for i in range(share)]
    if number % 2:
        chosen += [Fault("slow_dram, by board", 0.03, "kind: slow_dram, share: 0.03", "outlier",
                         "degraded", "cause unknown", False)] * min(ALIKE, max(1, GPUS // 32))
    slot = slot_fault(number)
    free = [(node, gpu) for node in range(GPUS // PER_NODE) for gpu in range(PER_NODE)]
    draw.shuffle(free)
    planted = {}
    if slot:
        free = [place for place in free if place[1] != SLOT]
        planted["slot", SLOT] = slot
        chosen = [fault for fault in chosen if not fault.whole_node]
    for fault in sorted(chosen, key=lambda f: not f.whole_node):
        if fault.whole_node:
            node = next(n for n, _ in free if sum(m == n for m, _ in free) == PER_NODE)
            free = [place for place in free if place[0] != node]
            planted[node, "all"] = fault
        else:
            planted[free.pop()] = fault
    return planted, free


def plant(number, model):
    """A fleet file's text, its faults by node and GPU, and the places that are disturbed once."""
    draw = random.Random(f"{SEED} {number}")
    planted, free = choose(number, model, draw)
    disturbed = {place: disturbance(draw, model) for place in free[:round(options.disturbed * len(free))]}
    lines = head(number, model) + ["nodes:"]
    for node in range(GPUS // PER_NODE):
        mine = [f"{{gpu: {gpu}, {fault.text}}}" for (at, gpu), fault in planted.items()
                if at in (node, "slot")]
        mine += [f"{{gpu: {gpu}, {text}}}" for (at, gpu), text in disturbed.items() if at == node]
        lines.append(f"  - {{name: n{node:03d}, gpus: {PER_NODE}, "
                     f"model: {ROOT / 'configs/sim' / model.file}, faults: [{', '.join(mine)}]}}")
    return "\n".join(lines) + "\n", planted, {(f"n{node:03d}", gpu) for node, gpu in disturbed}


Seen = collections.namedtuple("Seen", "planted disturbed status by_place shared places index board")


def survey(number, model, folder, config):
    text, planted, disturbed = plant(number, model)
    fleet, out = folder / f"{number}.fleet", folder / f"{number}.yaml"
    fleet.write_text(text)
    done = subprocess.run([SURVEY, "--simulate", fleet, "--profile", "quick", "--seed", str(SEED),
                           "--load", "10", "--config", config, "--no-progress", "-o", out],
                          capture_output=True, text=True)
    if done.returncode not in (0, 3, 4):
        sys.exit(f"fleet {number}: exit {done.returncode}\n{done.stderr}")
    text = out.read_text()
    status = {(n, int(i)): s for n, i, s in re.findall(
        r"^    node: (\S+)\n    pci: \S+\n    index: (\d+)\n(?:    .*\n)*?    status: (\w+)", text,
        re.M)}
    places = dict(re.findall(r"^  - uuid: (\S+)\n    node: (\S+)", text, re.M))
    index = {u: int(i) for u, i in re.findall(
        r"^  - uuid: (\S+)\n    node: \S+\n    pci: \S+\n    index: (\d+)", text, re.M)}
    lists = yaml.safe_load(text[text.index("\nnodes:"):])
    by_place = {name: {(e["node"], index[e["uuid"]]): e for e in lists[name]}
                for name in ("outliers", "watch")}
    parts = re.findall(r"^  - uuid: (\S+)\n(?:    .*\n)*?    part: (\S+)", text, re.M)
    board = {(places[uuid], index[uuid]): part for uuid, part in parts}
    return Seen(planted, disturbed, status, by_place, lists["nodes"], places, index, board)


def matches(fault, entry):
    return entry["verdict"] == fault.kind and any(re.search(fault.cause, f["cause"])
                                               for f in entry["evidence"])


def verdict(fault, node, gpu, seen):
    """found, watched, found but otherwise, or missed"""
    status, by_place, shared = seen.status, seen.by_place, seen.shared
    if fault.where == "node":
        listed = [s for s in shared if s["node"] == node and s["verdict"] != "unknown"]
        if any(s["verdict"] == fault.kind and re.search(fault.cause, s["finding"])
               and len(s["gpus"]) >= PER_NODE - 1 for s in listed):
            return "found"
        watched = sum((node, i) in by_place["watch"] or (node, i) in by_place["outliers"]
                      for i in range(PER_NODE))
        return "otherwise" if listed else "watched" if watched >= PER_NODE / 2 else "missed"
    if fault.where == "slot":
        listed = [s for s in shared if s["verdict"] == fault.kind and s["finding"].startswith("slot ")
                  and re.search(fault.cause, s["finding"])]
        everywhere = any(len(s["gpus"]) >= 0.9 * GPUS / PER_NODE for s in listed)
        return "found" if everywhere else "otherwise" if listed else "missed"
    if fault.where == "watch":
        entry = by_place["watch"].get((node, gpu))
        return "found" if entry and any(re.search(fault.cause, f["cause"])
                                        for f in entry["evidence"]) else "missed"
    if fault.where != "outlier":
        return "found" if status.get((node, gpu)) == fault.where else "missed"
    entry = by_place["outliers"].get((node, gpu))
    if entry:
        return "found" if matches(fault, entry) else "otherwise"
    return "watched" if (node, gpu) in by_place["watch"] else "missed"


def said_of(entry):
    return f"{entry['verdict']}, {entry['action']}: " + "; ".join(
        f"{f['metric']} {f['deviation']} (score {f['score']}): {f['cause']} [{f.get('confirmed')}]" for f in entry["evidence"])


def false_alarms(number, seen):
    """Healthy GPUs, what was said about those that are accused, and how many of the others are watched."""
    faulty = {(f"n{node:03d}", i) for at, gpu in seen.planted
              for node in (range(GPUS // PER_NODE) if at == "slot" else [at])
              for i in (range(PER_NODE) if gpu == "all" else [gpu])}
    alarms = [(place, state) for place, state in seen.status.items()
              if state != "ok" and place not in faulty]
    said = []
    for (node, gpu), state in alarms:
        entry = seen.by_place["outliers"].get((node, gpu))
        listed = [s["finding"] for s in seen.shared if s["verdict"] != "unknown"
                  and any(seen.places[u] == node and seen.index[u] == gpu for u in s["gpus"])]
        said.append(f"fleet {number}, {node} GPU {gpu}{' (disturbed)' * ((node, gpu) in seen.disturbed)}: "
                    f"{state}: {said_of(entry) if entry else listed}")
    watched = sum(place not in faulty | seen.disturbed for place in seen.by_place["watch"])
    return len(seen.status) - len(faulty), said, watched


def name_of(fault, place, seen):
    """The name under which the fault is counted: a loss among the cards of a board is the board's."""
    if not fault.name.endswith("by board"):
        return fault.name
    boards = collections.Counter(seen.board.values())
    mine = seen.board.get(place)
    few = boards[mine] < CALIBRATED
    return f"slow_dram, {'other' if mine == OTHER else 'usual'} board{', few' * few}"


def main():
    began = time.monotonic()
    results, alarms, healthy, watched = collections.defaultdict(collections.Counter), [], 0, 0
    odd, disturbed = [], 0
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-detect-") as there, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(there)
        models = [LARGE if number % 8 == 7 else SMALL for number in range(FLEETS)]
        done = pool.map(survey, range(FLEETS), models, [folder] * FLEETS, [sure.config(folder)] * FLEETS)
        for number, seen in enumerate(done):
            count, said, looked = false_alarms(number, seen)
            healthy, watched, alarms = healthy + count, watched + looked, alarms + said
            disturbed += len(seen.disturbed)
            for (node, gpu), fault in seen.planted.items():
                name = node if node == "slot" else f"n{node:03d}"
                result = verdict(fault, name, gpu, seen)
                results[name_of(fault, (name, gpu), seen), fault.size][result] += 1
                if result in ("otherwise", "missed") or (result == "watched" and fault.size != 0.02):
                    entry = seen.by_place["outliers"].get((name, gpu)) or seen.by_place["watch"].get((name, gpu))
                    odd.append(f"fleet {number} {name} {gpu}: {fault.name} {fault.size}: {result}: "
                               f"{said_of(entry) if entry else ''}")
    report(results, odd)
    few_watched = watched <= 1 + WATCHED_MOST * healthy
    print(f"\nspread {options.spread} %; {healthy} healthy GPUs, {disturbed} of them disturbed once: "
          f"{len(alarms)} false alarms ({sum('(disturbed)' in a for a in alarms)} of disturbed ones), "
          f"{watched} undisturbed watched; {time.monotonic() - began:.0f} s")
    print("\n".join(alarms[:20]))
    sys.exit(0 if enough(results) and few_watched and not alarms else 1)


def report(results, odd):
    print(f"{'fault':24} {'size':>5} {'planted':>8} {'found':>7} {'otherwise':>10} {'watched':>8} "
          f"{'missed':>7}")
    for (name, size), counts in sorted(results.items(), key=lambda r: (r[0][0], r[0][1] or 0)):
        print(f"{name:24} {'' if size is None else f'{size:.0%}':>5} {sum(counts.values()):8} "
              f"{counts['found']:7} {counts['otherwise']:10} {counts['watched']:8} "
              f"{counts['missed']:7}")
    print("\n".join(odd[:40]))


def enough(results):
    """Whether what was found is what is wanted."""
    good = total = small_good = small = board_good = board = 0
    for (name, size), counts in results.items():
        planted = sum(counts.values())
        if name.endswith(" board"):
            board, board_good = board + planted, board_good + counts["found"]
        elif size == 0.02:
            small += planted
            small_good += counts["found"] if NARROW else planted - counts["missed"]
        elif not name.endswith(", few"):
            total += planted
            good += counts["found"]
    print(f"\nat 5 % and above and without size: {good} of {total} found with kind and cause; "
          f"at 2 %: {small_good} of {small} found{'' if NARROW else ' or watched'}; "
          f"at 3 % within a board: {board_good} of {board} found")
    enough_small = not NARROW or (small_good >= WANTED_SMALL * small and board_good >= WANTED * board)
    return WIDE or (good >= WANTED * total and enough_small)


main()
