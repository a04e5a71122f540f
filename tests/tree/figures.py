"""Sentences of the documents that give a figure of the code: thresholds, time limits, defaults, exit codes.

usage: figures.py SOURCE_ROOT

Each row has a document, a sentence with {} for each figure, and where the figures are: "FILE NAME" is a constant of
the code, or a key of a YAML file ("judge.false_alarms"). The sentence with the figures of the code must be in the
document. So neither can change alone. A row that is found no more means that the sentence was rewritten: change the row.
"""
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(sys.argv[1])
JUDGE, METHOD, SCALE, CLUSTER = "docs/JUDGE.md", "docs/METHOD.md", "docs/SCALE.md", "docs/cluster.md"
EVIDENCE, CONFIG, LIMITS = "src/judge/evidence/", "configs/survey.yaml", "src/survey/comm/limits.h"


def defined(path, name):
    """What the file gives a constant: all definitions, as text."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
    table, _, index = name.partition("[")
    if index:
        bodies = re.findall(rf"\b{table}\[\w*\] = {{(.*?)}};", text, re.S)
        text, name = "\n".join(bodies), "[" + index
    return re.findall(rf"(?<![\w.>]){re.escape(name)} ?= ?([^,;}}]+)", text)


def constant(source):
    """The value of "FILE NAME", where NAME may be an element: TABLE[INDEX]. A constant that has moved is found in another
    file of its module, if it is the only one of that name there."""
    file, name = source.split()
    if file.endswith(".yaml"):
        value = yaml.safe_load((ROOT / file).read_text())
        for key in name.split("/"):
            value = value[key]
        return value
    path = ROOT / file
    found = defined(path, name) if path.exists() else []
    if not found:
        module = ROOT / "src" / file.split("/")[1]
        found = [text for other in sorted(module.rglob("*.[ch]")) for text in defined(other, name)]
    if len(found) != 1:
        raise SystemExit(f"{file}: {len(found)} constants {name}: change tests/tree/figures.py if it was renamed or moved")
    return eval(re.sub(r"U?INT64_C", "", found[0]), {"__builtins__": {}})  # a number, perhaps 1 << 20


def number(value):
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.10g}"


def same(source):
    return number(constant(source))


def percent(source):
    return number(round(100 * constant(source), 9)) + " %"


def times(source, factor):
    return number(round(constant(source) * factor, 9))


def word(source):
    value = constant(source)
    words = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 10: "ten", 20: "twenty", 0.75: "three quarters", 0.5: "half", 1 / 3: "a third",
             0.25: "a quarter", 0.2: "a fifth", 0.1: "a tenth", 2 / 3: "two thirds"}
    return words.get(value, number(value))


ROWS = [
    # The judge
    (JUDGE, "A model with fewer than {} GPUs, without reference", same("src/judge/model.h PEERS_MIN")),
    (JUDGE, "| {} GPUs for figures (two to four", same("src/judge/model.h PEERS_MIN")),
    (JUDGE, "from a loss of about `few` on ({}; {} for `load.flops`, in which healthy H200s differ by 10 %; {} for the SM clock)",
     percent("src/judge/model.c FEW"), percent(CONFIG + " judge/metrics/load.flops/few"), percent(CONFIG + " judge/metrics/clock.sm/few")),
    (JUDGE, "**Large groups** have at least {} GPUs and {} of the n GPUs each (at least {} GPUs if the medians differ by less than {})",
     same(EVIDENCE + "stages.h DIVIDED_MIN"), word(EVIDENCE + "divided.c GROUP_SHARE"), same(EVIDENCE + "divided.c NEAR_MIN"),
     percent(EVIDENCE + "divided.c NEAR")),
    (JUDGE, "by at least {} + {} / n standard deviations of the wider group; at most {} of the GPUs lie in the middle third",
     same(EVIDENCE + "divided.c APART"), same(EVIDENCE + "divided.c APART_FEW"), percent(EVIDENCE + "divided.c BETWEEN")),
    (JUDGE, "of a score of {} and more and a loss between {} and 1.5 times theirs they are at least {} GPUs and {} of their population and on at least {} nodes, with a median loss below {}.",
     same(EVIDENCE + "divided.c SMALL_SCORE"), same(EVIDENCE + "divided.c ALIKE"), same(EVIDENCE + "divided.c SMALL_MIN"),
     percent(EVIDENCE + "divided.c SMALL_SHARE"), same(EVIDENCE + "divided.c SMALL_NODES"), percent("src/judge/model_constants.c model_constants[BUILT_APART]")),
    (JUDGE, "A figure scatters by at least {} and by at least `accuse`, so that a GPU must be at least {} worse",
     percent(EVIDENCE + "blind_spots.c SCATTER"), percent(EVIDENCE + "blind_spots.c BLIND")),
    (JUDGE, "with {} GPUs and more, the slope of a resistant line", same("src/judge/model.c SLOPE_MIN")),
    (JUDGE, "A GPU of a kind with {} GPUs or fewer is compared with the others alone", same("src/judge/model.h OTHERS_MAX")),
    (JUDGE, "of fewer than {} such GPUs, that of those elsewhere", same("src/judge/model.h PEERS_MIN")),
    (JUDGE, "within ({} + {} / n) × 1.4826 × MAD", same("src/judge/robust.c FAR"), same("src/judge/robust.c FAR_FEW")),
    (JUDGE, "those of the world (`WORLD_SURE` of its GPUs, at most {} GPUs", same("src/judge/model.c WORLD_DOF_MAX")),
    (JUDGE, "In a kind with fewer than {} GPUs here and elsewhere", same("src/judge/model.c KIND_MIN")),
    (JUDGE, "So {} false alarms are expected in a survey of healthy GPUs", same(CONFIG + " judge/false_alarms")),
    (JUDGE, "from {} (heavy) to {} (nearly normal), `TAIL_DOF` with fewer than {} deviations",
     same("src/judge/robust.h ROBUST_DOF_MIN"), same("src/judge/robust.h ROBUST_DOF_MAX"), same("src/judge/model.c TAIL_MIN")),
    (JUDGE, "If {} figures on the better side have a kurtosis below {} ", same("src/judge/model.c OWN_TAIL"), same("src/judge/robust.c SHARP")),
    (JUDGE, "The floors are {} for main memory, {} for L2 bandwidth and the host link, {} for L2 latency, {} for the rates of units.",
     percent(CONFIG + " judge/metrics/main.bandwidth.read/floor"), percent(CONFIG + " judge/metrics/l2.bandwidth.read/floor"),
     percent(CONFIG + " judge/metrics/l2.latency/floor"), percent(CONFIG + " judge/metrics/compute.rate.fp32/floor")),
    (JUDGE, "does not know it: {} for reading L2", percent(CONFIG + " judge/metrics/l2.bandwidth.read/accuse")),
    (JUDGE, "that deviates by {} times the spread of its repetitions", same(EVIDENCE + "confirmations.c AGREE")),
    (JUDGE, "| `PRIOR_PART` | 1 / {} |", number(1 / constant("src/judge/model_constants.c model_constants[PRIOR_PART]"))),
    *((JUDGE, f"| `{name}` | {{}} |", same(f"src/judge/model_constants.c model_constants[{name}]"))
      for name in re.findall(r"\s\[(\w+)\] = ", (ROOT / "src/judge/model_constants.c").read_text()) if name != "PRIOR_PART"),
    (JUDGE, "repetitions scatter by more than {} times the usual", same(EVIDENCE + "steadiness.c TIMES_USUAL")),
    (JUDGE, "the sum of their scores (each at most {} times the median score)", same(EVIDENCE + "weak_nodes.c SCORE_MOST")),
    (JUDGE, "flagged if the loss exceeds `accuse` ({})", percent(CONFIG + " judge/metrics/clock.sm/accuse")),
    (JUDGE, "flagged if the loss is at least {}, or reaches the floor", percent(EVIDENCE + "clocks.c LOSS")),
    (JUDGE, "lower than usual and explains the loss within {} (clock limit", percent(EVIDENCE + "clocks.c FIT")),
    (JUDGE, "The other is a throttle reason that at most {} of the model has", word(EVIDENCE + "clocks.c UNUSUAL")),
    (JUDGE, "is at most {} of the allowed one (the lower of clock limit and application clock), its repetitions scatter by at most {}, the driver reports the same clock within {},",
     same(EVIDENCE + "settings.c LOCKED"), percent(EVIDENCE + "settings.c STEADY"), percent(EVIDENCE + "settings.c SAME")),
    (JUDGE, "off in the same direction by at least {} as much", word(EVIDENCE + "confirmations.c SEEN_AGAIN_SHARE")),
    (JUDGE, "Two of them must have a score of at least {},", same(EVIDENCE + "confirmations.c COMPANION_SCORE")),
    (JUDGE, "the SM clock falls by {} or more after the first second of the sustained load, with a throttle reason that at most {} of its model has",
     percent(EVIDENCE + "load.c FALL"), word(EVIDENCE + "load.c USUAL")),
    (JUDGE, "L2 measured below {} of the reported size", same(EVIDENCE + "claims.c L2_SEEN")),
    (JUDGE, "less than {} of the memory can be allocated", same(EVIDENCE + "claims.c MEMORY_FREE")),
    (JUDGE, "SM clock {} below the reported one ({}: watched)", percent(EVIDENCE + "claims.c CLOCK_ACCUSE"), percent(EVIDENCE + "claims.c CLOCK_WATCH")),
    (JUDGE, "copies to the GPU below {} of the rate of the link", word(EVIDENCE + "claims.c LINK_REACHED")),
    (JUDGE, "{} less memory can be allocated than on its peers, and no other process uses the GPU ({}: watched)",
     percent(EVIDENCE + "claims.c MEMORY_ACCUSE"), percent(EVIDENCE + "claims.c MEMORY_WATCH")),
    (JUDGE, "memory clock under load below {} of the driver's highest ({}: watched)",
     same(EVIDENCE + "claims.c MEMORY_CLOCK_ACCUSE"), same(EVIDENCE + "claims.c MEMORY_CLOCK_WATCH")),
    (JUDGE, "corrected ECC errors or NVLink errors during the survey: at least {}, and {} per second",
     same(EVIDENCE + "counters.c STORM_COUNT"), same(EVIDENCE + "counters.c STORM_PER_S")),
    (JUDGE, "or {} × those of its model | degraded", same(EVIDENCE + "counters.c COUNTER_FAR")),
    (JUDGE, "and more than {} × those of its model", same(EVIDENCE + "counters.c UNUSUAL")),
    (JUDGE, "{} C and {} standard deviations hotter", same(EVIDENCE + "heat.c HOT_C"), same(EVIDENCE + "heat.c HOT_SIGMA")),
    (JUDGE, "both measured less than {} of what is expected", same(EVIDENCE + "link_matrix.c BAD_MERITS[LINK_READ]")),
    (JUDGE, "a latency of more than {} × what is expected", number(1 / constant(EVIDENCE + "link_matrix.c BAD_MERITS[LINK_CYCLES]"))),
    (JUDGE, "in the same places, if they are at least {}. With fewer nodes it is the median of all their links, if {} of them agree",
     word(EVIDENCE + "link_matrix.c ALIKE_MIN"), word(EVIDENCE + "link_matrix.c MOST_SHARE")),
    (JUDGE, "at less than {} of what is expected | failing", word(EVIDENCE + "links.c WITHOUT_NVLINK")),
    (JUDGE, "the best link is below {} GB/s for each active NVLink", same(EVIDENCE + "links.c NVLINK_LEAST")),
    (JUDGE, "if the same link is slow on at least {} nodes and more than {} of them; without NVLinks, on more than {}",
     word(EVIDENCE + "link_matrix.c SLOW_MIN"), word(EVIDENCE + "links.c COMMON_NVLINK"), word(EVIDENCE + "links.c COMMON")),
    (JUDGE, "if they are at least {} and all GPUs took part. Below {} of the median", word(EVIDENCE + "host_shares.c ALIKE_MIN"),
     same(EVIDENCE + "host_shares.c BAD")),
    (JUDGE, "If at least {} nodes and more than {} of them have it", word(EVIDENCE + "host_shares.c LOW_MIN"), word(EVIDENCE + "host_shares.c COMMON")),
    # Waiting
    (SCALE, "by default {} s + {} s per rank, almost three", same(CONFIG + " start_timeout_s/least"), same(CONFIG + " start_timeout_s/per_rank")),
    (SCALE, "`start_timeout_s` ({} s + {} s per rank)", same(CONFIG + " start_timeout_s/least"), same(CONFIG + " start_timeout_s/per_rank")),
    (SCALE, "is delayed by up to {} s (by `--time-limit` if that is less)", same(LIMITS + " LIMIT_LISTING_S")),
    (SCALE, "lower than the number of ranks plus {},", same("src/survey/root/resources.c OTHER_FILES")),
    (SCALE, "*Memory*, from {} GPUs on", same("src/survey/root/resources.h RESOURCES_FEW_GPUS")),
    (SCALE, "and {} KB per GPU must be below what is free", times("src/survey/root/resources.c WRITE_BYTES", 1e-3)),
    (SCALE, "not even room to collect ({} KB per GPU)", times("src/survey/root/resources.c COLLECT_BYTES", 1e-3)),
    (CLUSTER, "by default {} s + {} s per rank", same(CONFIG + " start_timeout_s/least"), same(CONFIG + " start_timeout_s/per_rank")),
    (CLUSTER, "misconfigured GPUs | {} s |", same(CONFIG + " time_limit_s/quick")),
    (CLUSTER, "the whole topology | {} s |", same(CONFIG + " time_limit_s/standard")),
    (CLUSTER, "links between GPUs, and {} s of full load", same("src/probes/checks/load.c LOAD_S")),
    (CLUSTER, "bandwidth streams | {} s |", number(constant(CONFIG + " time_limit_s/full")).replace(",", "")),
    (CLUSTER, "spread over {} s (`load.stagger_s`", same(CONFIG + " load/stagger_s")),
    ("src/survey/options.c", "(default {}, {}, {} by profile)", *(str(constant(f"{CONFIG} time_limit_s/{p}")) for p in ("quick", "standard", "full"))),
    ("src/survey/options.c", "(default: {} with full, else 0)", same("src/probes/checks/load.c LOAD_S")),
    ("src/survey/survey.c", "FULL_LOAD_S = {}", same("src/probes/checks/load.c LOAD_S")),
    (METHOD, "belongs to the profile `full` ({} s)", same("src/probes/checks/load.c LOAD_S")),
    (METHOD, "Launches take about {} ms, and {} of them are queued", times("src/device/cuda/load.c LAUNCH_NS", 1e-6), word("src/device/cuda/load.c LAUNCHES")),
    (METHOD, "Every {} ms the counts", same("src/probes/checks/load.c SAMPLE_MS")),
    (METHOD, "have up to {} points of clock", same("src/probes/checks/load.c CURVE_POINTS")),
    (METHOD, "range of the rates in the {} quarters of the last third / their mean. *Steady* means at most {}",
     word("src/probes/checks/load.c SLICES"), percent("src/probes/checks/load.c STEADY")),
    (METHOD, "the time limit of the GPU (less {} s)", same("src/probes/checks/load.c MARGIN_S")),
    (METHOD, "A worker that has waited {} s for a turn", times("src/device/turn.h TURN_LINK_MS", 1e-3)),
    (METHOD, "It looks at one peer for {} s", times("src/probes/links/links.c LOOK_MS", 1e-3)),
    (METHOD, "measures for {} ms when all copy", same("src/probes/links/host_memory.c WINDOW_MS")),
    (METHOD, "for about {} ms each (`full`: {} ms in launches of {} ms)", same("src/probes/checks/compute_check.c TARGET_MS"),
     same("src/probes/checks/compute_check.c FULL_TARGET_MS"), same("src/device/cuda/checks.c LAUNCH_MS")),
    (METHOD, "lasts at least {} ms (a copy: {} ms)", times("src/probes/streams/bandwidth.c STREAM_NS", 0.5e-6),
     times("src/probes/streams/bandwidth.c COPIES_NS", 0.5e-6)),
    (METHOD, "It is read at most every {} ms while a kernel runs", times("src/device/cuda/health.c POLL_NS", 1e-6)),
    # Reports
    ("docs/report.md", "`--max-age HOURS` ({} if not given)", same("src/report/commands/nagios.c default_max_age_h")),
    ("src/report/commands.c", "(default: {}; 0: any age)", same("src/report/commands/nagios.c default_max_age_h")),
    ("docs/report.md", "all inventories of the last {} days; of the {} weeks before", same("src/report/history/history_store.h HISTORY_THIN_DAYS"),
     same("src/report/history/history_store.h HISTORY_THIN_WEEKS")),
    ("docs/report.md", "At least {} surveys are needed", word("src/report/history/history_changes.h HISTORY_CHANGE_VALUES_MIN")),
    ("docs/report.md", "level {})", percent("src/report/history/history_changes.c alpha")),
    ("docs/report.md", "the text has at most {} entries", same("src/report/history/history_text.c ENTRIES_MAX")),
]


def plain(text):
    """In one line, without the line breaks, comment marks and joints of literals that a file puts in."""
    return re.sub(r"\s+", " ", text.replace('"\n', "").replace("\n *", "\n"))


def heartbeats():
    """Both formulas, and what they give for some numbers of ranks."""
    text = plain((ROOT / LIMITS).read_text())
    most, base, factor = re.search(r"ranks > (\d+) \? ranks / \1\.0 : 1; } .* return (\d+) \+ (\d+) \* limit_beat_s", text).groups()

    def silence(ranks):
        return number(int(base) + int(factor) * max(1, ranks / int(most)))

    return [(SCALE, "every b = max(1, ranks / {}) seconds, so rank 0 receives at most {} per second", most, number(int(most))),
            (SCALE, "for {} + {} × b seconds: {} s up to {} ranks, {} s with 10,000, {} s with 100,000", base, factor, silence(1),
             number(int(most)), silence(10000), silence(100000)),
            (SCALE, "is lost only after {} s of silence with 10,000 ranks", silence(10000)),
            (CLUSTER, "after {} s without a message (more above {} ranks)", silence(1), number(int(most)))]


def exit_codes():
    """The tables of exit codes have a row for each code of the programs, in order."""
    survey = re.search(r"enum survey_exit \{(.*?)\}", (ROOT / "src/survey/start/exit_file.h").read_text(), re.S)
    report = re.search(r"enum \w* ?\{\s*EXIT_DONE = 0(.*?)\}", (ROOT / "src/report/command.h").read_text(), re.S)
    rows = []
    for document, heading, codes in ((CLUSTER, "| code | meaning |", len(re.findall(r"SURVEY_EXIT_\w+,", survey[1]))),
                                     ("docs/report.md", "| exit code | meaning |", 1 + len(re.findall(r"EXIT_\w+ = ", report[1]))),
                                     ("docs/ACCEPT.md", "| exit code | meaning |", 1 + len(re.findall(r"EXIT_\w+ = ", report[1])))):
        table = (ROOT / document).read_text().split(heading)[1].split("\n\n")[0]
        listed = re.findall(r"^\| (\d+) \|", table, re.M)
        if listed != [str(code) for code in range(codes)]:
            rows.append(f"{document}: lists the exit codes {' '.join(listed)}; the program has 0 to {codes - 1}")
    return rows


def xid_kinds():
    """The numbers in the table of Xid events are of that kind in the code."""
    code = {int(number): "watched" if flags == "false" else kind.lower()
            for number, flags, kind in re.findall(r"\{(\d+), (true|false), VERDICT_(\w+),", (ROOT / "src/inventory/xid.c").read_text())}
    problems, listed = [], set()
    for kind, numbers in re.findall(r"^\| (failing|degraded|watched) \| (\d[^|]*) \|", (ROOT / JUDGE).read_text(), re.M):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", numbers):
            for xid in range(int(first), int(last or first) + 1):
                listed.add(xid)
                if code.get(xid) != kind:
                    problems.append(f"{JUDGE}: Xid {xid} is {kind} there, {code.get(xid)} in src/inventory/xid.c")
    # 0 stands for all others.
    problems += [f"{JUDGE}: Xid {xid} is not listed" for xid in sorted(set(code) - listed - {0})]
    return problems


def stages():
    """The suites of each stage of ./check, as docs/develop.md has them; every suite is in tests/README.md."""
    suites = {line.split()[0] for line in (ROOT / "tests/list.txt").read_text().splitlines() if line[:1] not in ("", "#")}
    check, problems = (ROOT / "check").read_text(), []
    described = dict(re.findall(r"^\| (gcc|asan|mpich) \| `[\w-]+` \| (.*) \|$", (ROOT / "docs/develop.md").read_text(), re.M))
    for stage, words in re.findall(r"^ *report (gcc|asan|mpich) \"\$here/(?:build|build-asan)\" (.*)$", check, re.M):
        if words == "unit tree":  # ./check quick
            continue
        told = described.pop(stage, "")
        named = suites if told.startswith("all suites") else suites & set(re.findall(r"`(\w+)`", told))
        if named != set(words.split()):
            problems.append(f"docs/develop.md: stage {stage} runs {words}")
    listed = set(re.findall(r"^\| `(\w+)` \| .* \| .* \|$", (ROOT / "tests/README.md").read_text(), re.M))
    problems += [f"tests/README.md does not list the suite {suite}" for suite in sorted(suites - listed)]
    return problems + [f"./check does not report the stage {stage}" for stage in described]


failures = exit_codes() + xid_kinds() + stages()
rows = ROWS + heartbeats()
for document, sentence, *figures in rows:
    wanted = plain(sentence.format(*figures))
    if wanted not in plain((ROOT / document).read_text()):
        failures.append(f"{document} does not say: {wanted}")
print("\n".join(failures) or f"{len(rows)} sentences")
sys.exit(1 if failures else 0)
