"""Seeded fleets: number N gives the same fleet file and the same flags of the survey, always.

Most fleets are small and surveyed in the profile quick, so that 200 of them take minutes. Every tenth is surveyed in the
profile standard, every tenth in full; these have one to three GPUs. The time limit is long: on a busy machine no GPU may
exceed it.
"""
import random

# Small models first: they are drawn more often.
SMALL = ["demo-h8", "demo-t20"]
OTHERS = ["a100", "geforce-840m", "geforce-gtx-560-ti", "geforce-gtx-780", "geforce-gtx-980", "h100", "h200",
          "hostile-dies", "hostile-groups", "hostile-hashed", "hostile-no-l1", "hostile-noise", "hostile-odd",
          "hostile-pairs", "hostile-split", "hostile-tiny-l2", "quadro-p6000", "rtx-2060", "rtx-2080-ti", "tesla-k20c",
          "tesla-v100"]
STATES = ["none", "not_started", "in_progress", "failed", "degraded"]
HEALTH = ["remap_pending: true", "remap_failed: true", "ecc_uncorrected_dram: 3", "ecc_uncorrected_sram: 1",
          "ecc_corrected_dram: 900", "retired_pages_pending: true", "retired_pages_uncorrected: 61",
          "remapped_rows_uncorrected: 2", "remap_banks_none: 1", "inforom_valid: false", "pcie_replays: 5000",
          "nvlink_errors: 77", "violation_thermal_ns: 900000000", "violation_power_ns: 800000000",
          "temperature_c: 88", "temperature_memory_c: 99", "ecc_uncorrected_volatile: 4", "nvlinks_down: 1"]
PROBES = ["tlb,spectrum", "shared.banks,instructions", "surface", "instruction_cache,l2.prefetch",
          "cluster,bulk_copy", "structure", "links,host.together", "die.map,die.bandwidth,die.memory", "load",
          "memory.whole", "l1_data,l2", "main,host,clock"]


def share(rng):
    return rng.choice([0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5])


# What a fault needs beside its kind. A parameter that does not fit a model makes the survey refuse the fleet, which is
# compared too.
FAULTS = {
    "slow_dram": lambda r: f"share: {share(r)}",
    "memory_clock": lambda r: f"mhz: {r.choice([600, 900, 1300])}",
    "hbm_stack": lambda r: r.choice(["count: 1", "count: 1, hidden: true"]),
    "sm_clock": lambda r: f"mhz: {r.choice([600, 700, 800])}, reason: "
                          + r.choice(["power", "thermal", "setting", "slowdown", "power_brake", "none"]),
    "l2_slice": lambda r: f"share: {share(r)}" + r.choice(["", ", reported: true"]),
    "missing_sms": lambda r: r.choice(["count: 1", "count: 1, hidden: true"]),
    "slow_sm": lambda r: f"sm: {r.randrange(3)}, share: {share(r)}",
    "l1_ways": lambda r: "share: 0.25",
    "pcie": lambda r: r.choice(["gen: 1", "width: 4", "gen: 2, width: 8"]),
    "slow_host": lambda r: f"share: {share(r)}",
    "nvlink_down": lambda r: "count: 1",
    "ecc_off": lambda r: "",
    "mig_on": lambda r: "",
    "persistence_off": lambda r: "",
    "compute_mode": lambda r: "text: exclusive_process",
    "power_limit": lambda r: f"w: {r.choice([60, 100, 120])}",
    "remap": lambda r: r.choice(["pending: true", "failed: true"]),
    "ecc_errors": lambda r: f"count: {r.randrange(1, 9)}",
    "ecc_corrected": lambda r: f"per_s: {r.choice([1, 50])}",
    "pcie_replays": lambda r: f"per_s: {r.choice([1, 50])}",
    "nvlink_errors": lambda r: f"per_s: {r.choice([1, 50])}",
    "xid": lambda r: f"number: {r.choice([13, 31, 43, 48, 63, 64, 74, 79, 94, 95, 119])}",
    "fabric": lambda r: f"state: {r.choice(STATES)}",
    "hot": lambda r: f"degrees: {r.choice([10, 25])}",
    "vbios": lambda r: 'text: "96.00.00.00.77"',
    "driver": lambda r: 'text: "570.00"',
    "noisy": lambda r: f"factor: {r.choice([3, 10])}",
    "busy": lambda r: "",
    "health": lambda r: f"facts: {{{r.choice(HEALTH)}}}",
    "weak_region": lambda r: f"bytes: 70 MiB, share: {share(r)}, corrected: 2",
    "bit_error": lambda r: "bytes: 90 MiB, count: 3",
    "wrong_sm": lambda r: "sm: 1, share: 0.5",
    "falls_under_load": lambda r: f"share: {share(r)}, seconds: 2, reason: thermal",
    "dead_link": lambda r: "",
    "slow_link": lambda r: f"share: {share(r)}, ns: 300",
    "fabric_down": lambda r: "",
    "swapped_die": lambda r: "",
    "memory_held": lambda r: "bytes: 512 MiB",
    "crash": lambda r: f"after: {r.choice([0, 5, 40])}" + r.choice(["", ", tries: 1"]),
    "missing": lambda r: "",
}
MAY_COME_AND_GO = ("slow_dram", "memory_clock", "sm_clock", "slow_host", "noisy")
OF_LINKS = ("dead_link", "slow_link", "fabric_down")  # refused if the node has no links
WHEN = ["{sessions: 1}", "{chance: 0.5, each: session}", "{from_ms: 100}", "{grow_ms: 200}"]


def fault(rng, where, linked=False):
    kind = rng.choice([kind for kind in sorted(FAULTS) if linked or kind not in OF_LINKS])
    words = [where, f"kind: {kind}", FAULTS[kind](rng)]
    if kind in MAY_COME_AND_GO and rng.random() < 0.25:
        words.append(f"when: {rng.choice(WHEN)}")
    return "{" + ", ".join(word for word in words if word) + "}"


def node(rng, name, gpus, model, count=1):
    words = [f"  - name: {name}", f"    model: {model}.yaml", f"    gpus: {gpus}"]
    if count > 1:
        words.append(f"    count: {count}")
    linked = gpus > 1 and rng.random() < 0.3
    if linked:
        shape = rng.choice(["switches", "pcie", "hypercube" if gpus != 3 else "switches"])
        words.append(f"    links: {{shape: {shape}, gb_per_s: {rng.choice([25, 150, 400])}}}")
    faults = []
    while rng.random() < 0.6 and len(faults) < 3:
        index = "all" if rng.random() < 0.15 else rng.randrange(gpus)
        faults.append(fault(rng, f"gpu: {index}", linked))
    if rng.random() < 0.04:
        faults = ["{gpu: all, kind: dead_driver}"]
    if faults and count == 1:
        words += ["    faults:"] + [f"      - {text}" for text in faults]
    return words


def fleet(number):
    """The text of the fleet file, and the flags of the survey."""
    rng = random.Random(20260000 + number)
    profile = "full" if number % 10 == 9 else "standard" if number % 10 == 2 else "quick"
    flags = ["--profile", profile, "--seed", str(rng.randrange(1, 1000)), "--time-limit", "900"]
    models = [rng.choice(SMALL if rng.random() < 0.6 else OTHERS)]
    if profile == "full":
        models = [rng.choice(SMALL + ["hostile-groups", "tesla-k20c", "a100"])]
        if rng.random() < 0.7:
            flags[:2] = ["--probes", rng.choice(PROBES)]
    elif rng.random() < 0.3:
        models.append(rng.choice(SMALL + OTHERS))
    lines = [f"seed: {rng.randrange(1, 10000)}", "visibility: " + rng.choice(["own", "all"])]
    lines.append("vary: " + rng.choice(["real", "none", "published", "{sm_clock: 0.01, other: 0.002}",
                                        "{other: 0.005, l2_distance_cycles: 4}"]))
    if profile == "quick" and rng.random() < 0.3:
        lines += ["racks: {nodes: 2}", "batches:",
                  "  - {share: 0.4, per: node, part: OTHER-PART, main_latency: 1.04, main_read: 1.025}"]
    if profile == "quick" and rng.random() < 0.2:
        lines += ["faults:", "  - " + fault(rng, f"hits: {rng.choice([0.1, 0.3])}, per: {rng.choice(['gpu', 'node'])}")]
    lines.append("nodes:")
    if profile == "quick":
        for i, model in enumerate(models):
            lines += node(rng, f"p{i}n%02d", rng.choice([2, 3, 4]), model, count=rng.choice([2, 3]))
            lines += node(rng, f"bad{i}", rng.choice([1, 2, 4]), model)
        if rng.random() < 0.1:
            lines.append("  - {name: login1, gpus: 0}")
    else:
        lines += node(rng, "one", rng.choice([1, 2, 3] if profile == "standard" else [1, 2]), models[0])
        if len(models) > 1:
            lines += node(rng, "two", 1, models[1])
    if rng.random() < 0.1:
        flags += ["--busy", "measure"]
    if rng.random() < 0.1:
        flags += ["--load", "3"]
    if rng.random() < 0.08:
        flags += ["--anonymous"]
    return "\n".join(lines) + "\n", flags
