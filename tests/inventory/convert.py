"""tools/convert-inventory: convert.py ROOT REPORT

Old texts become the lists that the programs write, line breaks included; what is converted stays as it is; and every
inventory of the tree is converted.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    print("not installed: yaml")
    sys.exit(77)

ROOT, REPORT = pathlib.Path(sys.argv[1]), sys.argv[2]
HEAD = """gpumemtopo: {schema: %d, version: 0.1.0, generated: "2026-11-14T12:00:00Z", command: [a], seed: 1, backend: sim}
survey: {nodes: 1, ranks: 1, gpus: 1, measured: 1, unmeasured: 0, lost_ranks: 0, outliers: 0, wall_s: 1, exit_code: 0}
models:
  - id: m
    name: M
    key: k
    count: 1
    identity: {sms: 1}
    config: {}
    health: {}
    memory:
      l2:
        size: {value: 1, unit: B, spread: 0, confidence: 1, n: 1, method: x, %s}
gpus:
  - uuid: GPU-1
    node: n
    pci: p
    index: 0
    rank: 0
    model: m
    status: ok
    config: {}
    health: {}
    values: {l2.size: [1, 0], links.peers: [3, 0]}
    links: {%s}
    load: {throttle: "", %s}
nodes: []
outliers: []
watch: []
unmeasured: []
"""
OLD = HEAD % (1, 'curve: "hit 29.1 far 0 miss 280; bytes cycles missed; 1024 29.1 0; 2048 280 0.25"',
              'gpus: "GPU-2 GPU-3 GPU-4", state: "ok host failed", read: "398.1 24.5 -", write: "397 24 -", latency: "1737 - -"',
              'curve: "s MHz W C C; 0.25 1980 690 45 50; 0.5 1975 700 46 0"')
NEW = HEAD.replace("x, %s", "x,%s") % (4, """
              curve_levels: [29.1, null, 280], curve_bytes: [1024, 2048], curve_cycles: [29.1, 280],
              curve_missed: [0, 0.25]""",
              """gpus: [GPU-2, GPU-3, GPU-4], state: [ok, host, failed], read: [398.1, 24.5, null],
          write: [397, 24, null], latency: [1737, null, null]""",
              "curve_s: [0.25, 0.5], curve_mhz: [1980, 1975], curve_w: [690, 700],\n"
              "          curve_c: [45, 46], curve_memory_c: [50, null]")
# Texts of notes, and what they become.
NOTES = [
    ('table: "cycles by threads with strides of 1 2 words; 1 23.0 23.5; 2 25.0 29.0"',
     {"table_threads": [1, 2], "table_strides": [1, 2], "table": [[23, 23.5], [25, 29]]}),
    ('surface: "GB/s by bytes x threads with 1 2 blocks per SM; 4x32 21 1.25e+04; 8x64 9 7; 4x32, 2 blocks, 1 2 4 ... in flight 5 12.5"',
     {"surface_bytes": [4, 8], "surface_threads": [32, 64], "surface_blocks": [1, 2], "surface": [[21, 12500], [9, 7]],
      "surface_in_flight_by": [4, 32, 2], "surface_in_flight_at": [1, 2], "surface_in_flight": [5, 12.5]}),
    ('from_cycles: 200.6, step_cycles: 2, slice_map: "AB _A", last: 3', {"slice_map": [[202, 204], [328, 202]], "last": 3}),
    ('region_map: "635 4 4096 AB Ba"', {"region_bytes": 4096, "region_map": [[637, 641], [641, 741]]}),
]
SMS = [('sms: "0"', [0]), ('sms: 0 1 16', [0, 1, 16])]
BOARDS = [
    ('fingerprint: "1 282.0 0.21 f_gAgBiA"', {"fingerprint": [-0.1, 0, 0.1, 12.8], "fingerprint_cycles": 282, "fingerprint_noise": 0.21}),
    ('sm_bandwidth: "1 240.00 0.0034 gAgAf_"', {"sm_bandwidth": [240, 240, 239.88], "sm_bandwidth_noise": 0.0034}),
    ('sm_bandwidth: "1 240.00 0.0034 gAgAf_ AAB 100.5 99.5"',
     {"sm_bandwidth": [240, 240, 239.88], "sm_bandwidth_noise": 0.0034, "sm_group": [0, 0, 1], "sm_group_bandwidth": [100.5, 99.5]}),
]
ONE_PEER = ('gpus: GPU-2, state: ok, read: 398', "gpus: [GPU-2], state: [ok], read: [398]")


def converted(text):
    return subprocess.run([ROOT / "tools/convert-inventory", "-"], input=text, check=True, capture_output=True, text=True).stdout


def main():
    assert converted(OLD) == NEW, converted(OLD)
    assert converted(NEW) == NEW, converted(NEW)
    assert ONE_PEER[1] in converted(HEAD % (1, "a: 1", ONE_PEER[0], "b: 1"))
    assert converted(NEW.replace("status: ok", "status: ok\n    gpus_given: 8")) == NEW.replace(
        "status: ok", "status: ok\n    gpus_allocated: 8")
    streams = "      %s:\n        %s: {read: 1}\n"
    for memory in "main", "l2":
        old = HEAD.replace("gpus:\n", streams % (memory, "bandwidth") + "gpus:\n", 1).replace("l2.size: [1", f"{memory}.bandwidth.read: [1")
        new = old.replace("bandwidth", "bandwidth_equal")
        for schema in 1, 2:
            assert converted(old % (schema, "a: 1", "why: x", "b: 1")) == new % (4, "a: 1", "why: x", "b: 1"), old
    other = HEAD.replace("l2.size: [1", "host.bandwidth.h2d: [2, 0], shared.bandwidth.read: [1") % (2, "a: 1", "why: x", "b: 1")
    assert converted(other) == other.replace("schema: 2", "schema: 4"), converted(other)
    levels = "        levels: {value: %s, unit: %s%s%s, pages: 9}\n"
    level = "        l1:\n          %s: {value: 4, unit: B, spread: 0, confidence: 1, n: 1, method: x}\n"
    for memory, value, more, bound in (("tlb", 2, ", method: x y", ", bound: at_least"), ("tlb", "null", ", status: failed, reason: no", ""),
                                       ("tlb", 1, ", method: x, status: noisy, reason: no", ", bound: at_least"),
                                       ("instruction_cache", 2, ", method: x", ", bound: at_least"), ("other", 2, ", method: x", "")):
        old, new = ((HEAD % (schema, "a: 1", "why: x", "b: 1")).replace(
            "gpus:\n", f"      {memory}:\n" + levels % (value, '""', more, end) + level % name + "gpus:\n", 1)
                    for schema, end, name in ((2, "", "page"), (4, bound, "span" if memory == "tlb" else "page")))
        assert converted(old) == new == converted(new), converted(old)
    rates = ("      compute:\n        rate:\n          int: {value: %s, unit: %s, method: x}\n          fp32: {value: 238.5, unit: %s, method: x}\n"
             "      instructions:\n        fp32_fma:\n          rate: {value: %s, unit: %s%s, method: x}\n"
             "        sin:\n          rate: {value: 16, unit: %s, method: x}\n")
    old, new = ((HEAD % (4, "a: 1", "why: x", "b: 1")).replace("gpus:\n", rates % (first, unit, unit, fma, unit, sure, unit) + "gpus:\n", 1).replace(
        "l2.size: [1", f"compute.rate.int: [{first}") for first, fma, unit, sure in ((122, 128, "1/cycle", ", confidence: null"),
                                                                                    (183, 256, "op/cycle", "")))
    assert converted(old) == new == converted(new), converted(old)
    entry = "  - uuid: GPU-1\n    node: n\n    pci: p\n    model: m\n"
    finding = "      - {metric: %s, value: 1, expected: 2, unit: W, deviation: %s, score: null, basis: fleet, cause: x}\n"
    findings = finding % ("main.bandwidth.read", "-0.0712") + finding % ("config.power_limit_w", "-0.5")
    lists = ("nodes:\n  - {node: n, finding: x, kind: null, gpus: []}\n  - {node: n, finding: \"a (-4.0 %%): b\", kind: degraded, gpus: [GPU-1]}\n"
             "outliers:\n%s    kind: degraded\n    findings:\n%swatch:\n%s    findings: []\n" % (entry, findings, entry))
    wanted = ("nodes:\n  - {node: n, finding: x, verdict: unknown, loss: null, action: tell, gpus: []}\n"
              "  - {node: n, finding: \"a (-4.0 %%): b\", verdict: degraded, loss: 0.04, action: alert, gpus: [GPU-1]}\n"
              "outliers:\n%s    verdict: degraded\n    loss: 0.0712\n    action: drain\n    evidence:\n%s"
              "watch:\n%s    verdict: unknown\n    loss: null\n    action: tell\n    evidence: []\n" % (entry, findings, entry))
    old, new = ((HEAD % (schema, "a: 1", "why: x", "b: 1")).replace("nodes: []\noutliers: []\nwatch: []\n", text)
                for schema, text in ((3, lists), (4, wanted)))
    assert converted(old) == new == converted(new), converted(old)
    world = "gpumemtopo_world: {schema: %d, version: 1}\nmodels:\n  - metrics: {main.bandwidth%s.read: {n: 1}}\n"
    assert converted(world % (1, "")) == world % (2, "_equal") == converted(world % (2, "_equal")), converted(world % (1, ""))
    for old, lists in NOTES:
        new = converted(HEAD % (1, old, "why: x", "b: 1"))
        notes = yaml.safe_load(new)["models"][0]["memory"]["l2"]["size"]
        assert {key: notes[key] for key in list(notes)[6:]} == lists, (old, new)
        assert converted(new) == new, new
    for old, sms in SMS:
        new = converted((HEAD % (1, old, "why: x", "b: 1")).replace("      l2:", "      instruction_cache:"))
        assert yaml.safe_load(new)["models"][0]["memory"]["instruction_cache"]["size"]["sms"] == sms, new
        assert converted(new) == new, new
    for old, lists in BOARDS:
        new = converted((HEAD % (1, "a: 1", "why: x", "b: 1")).replace("    links:", f"    board: {{{old}}}\n    links:"))
        assert yaml.safe_load(new)["gpus"][0]["board"] == lists, (old, new)
        assert converted(new) == new, new
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-convert-") as folder:
        old, new = pathlib.Path(folder) / "old.yaml", pathlib.Path(folder) / "new.yaml"
        old.write_text(OLD)
        new.write_text(NEW)
        read = subprocess.run([REPORT, "merge", new], capture_output=True, text=True)
        refused = subprocess.run([REPORT, "validate", old], capture_output=True, text=True)
    assert refused.returncode and "convert it with tools/convert-inventory" in refused.stderr, refused
    links = NEW[NEW.index("    links:"):NEW.index("    load:")]
    assert links in read.stdout, (links, read)
    lists = yaml.safe_load(read.stdout)["gpus"][0]["links"]
    assert lists["read"] == [398.1, 24.5, None] and lists["gpus"] == ["GPU-2", "GPU-3", "GPU-4"], read
    count = 0
    for folder in "tests", "reports", "configs":
        for path in (ROOT / folder).rglob("*.yaml"):
            text = path.read_text(errors="replace")
            if text.startswith("gpumemtopo: {schema:"):
                count += 1
                assert converted(text) == text, f"{path}: not converted"
    assert count >= 18, count


main()
