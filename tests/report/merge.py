"""gpumemtopo-report merge and drain on what real surveys leave behind.

usage: merge.py PROGRAM SOURCE_ROOT CASE REPORT_PROGRAM
"""
import itertools
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "tests" / "survey"))
from harness import (FAST, MODEL, ROOT, SLOWER, check, environment, field, main, masked,  # noqa: E402
                     node, survey, write_fleet)

REPORT = pathlib.Path(sys.argv[4]).resolve()


def report(folder, *args, code=0):
    done = subprocess.run([REPORT, *args], cwd=folder, env=environment(), capture_output=True,
                          text=True)
    check(done.returncode == code, f"{args}: {done.returncode}, {done.stderr}")
    check("Sanitizer" not in done.stderr, done.stderr)
    return done


def surveyed(folder, name, nodes, *more, code=0, ranks=0, seed=1):
    there = folder / name
    there.mkdir()
    fleet = write_fleet(there, nodes)
    fleet.write_text(fleet.read_text().replace("seed: 1", f"seed: {seed}"))
    spool = () if "--spool" in more else ("--spool", "spool")
    got, _, said = survey(there, ranks, "--simulate", "fleet.yaml", "-o", "out.yaml", *spool, *FAST,
                          *more)
    check(code is None or got == code, f"{name}: exit code {got}, {said}")
    return there


def statuses(text):
    return re.findall(r"^  - uuid: (\S+)\n(?:    .*\n)*?    status: (\w+)", text, re.M)


def case_same(folder):
    """From the spool the inventory that the survey made, and from an inventory itself. ASan: the same, with ranks only."""
    demo = ROOT / "configs/fleets/demo.yaml"
    wrong = write_fleet(folder, [node("n1", 4, "{gpu: 1, kind: wrong_sm, sm: 0, share: 0.9, path: special}, "
                                               "{gpu: 2, kind: wrong_sm, sm: 1, share: 0.5, path: l1}")])
    cases = [(demo, 4, ranks, "--profile", "quick") for ranks in ((0, 3) if SLOWER == 1 else (3,))]
    for number, (fleet, wanted, ranks, *flags) in enumerate([*cases, (wrong, 3, 0, "--probes", "compute.screen")]):
        there = folder / str(number)
        there.mkdir()
        code, _, said = survey(there, ranks, "--simulate", str(fleet), "-o", "out.yaml", "--spool",
                               "spool", *flags)
        check(code == wanted, said)
        check(fleet == demo or "; wrong again in " in (there / "out.yaml").read_text(), "no second look is told")
        for source in ("spool", "out.yaml"):
            report(there, "merge", source, "-o", "merged.yaml", code=wanted)
            check(masked(there / "merged.yaml") == masked(there / "out.yaml"),
                  f"{source} gives another inventory: "
                  + subprocess.run(["diff", "out.yaml", "merged.yaml"], cwd=there,
                                   capture_output=True, text=True).stdout)
        report(there, "validate", "merged.yaml")


def case_partitions(folder):
    """GPUs of several surveys, as spools, as inventories and mixed, are judged as one fleet."""
    slow = "{gpu: 3, kind: slow_dram, share: 0.4}"
    figures = ("--probes", "main.latency,main.bandwidth")  # a single figure would only be watched
    surveyed(folder, "left", [node("n1", 6)], *figures)
    surveyed(folder, "right", [node("n2", 4, slow), "{name: bare, gpus: 0}"], *figures, code=None,
             seed=2)
    for sources in (("left/spool", "right/spool"), ("left/out.yaml", "right/out.yaml"),
                    ("left/out.yaml", "right/spool")):
        text = report(folder, "merge", *sources, code=3).stdout
        check(field(text, "nodes") == "3" and field(text, "gpus") == "10", text)
        check(field(text, "measured") == "10" and field(text, "outliers") == "1", text)
        check(field(text, "ranks") == "2" and field(text, "seed") == "1", text)
        check("command: [gpumemtopo-report, merge," in text, text)
        check(text.count("no GPU visible on this node") == 1, text)
        found = re.search(r"\noutliers:\n  - uuid: .*\n    node: n2\n(?:.*\n)*?"
                          r"      - {metric: main.latency, value: \S+, expected: (\S+),", text)
        check(found and abs(float(found[1]) - 404.5) < 1, text)
        check(re.search(rf"latency: {{value: {re.escape(found[1])}, .*gpus: 9,", text), "consensus of all that are well")
        (folder / "merged.yaml").write_text(text)
        report(folder, "validate", "merged.yaml")


def case_twice(folder):
    """The same GPUs again: the newest word counts, and it is said."""
    old = surveyed(folder, "old", [node("n1", 3)])
    time.sleep(1.1)  # an inventory's time is in seconds
    new = surveyed(folder, "new", [node("n1", 3, "{gpu: 1, kind: crash, after: 1}")], code=4)
    for sources in (("old/spool", "new/spool"), ("new/spool", "old/spool"),
                    ("old/out.yaml", "new/out.yaml"), ("new/out.yaml", "old/spool")):
        done = report(folder, "merge", *sources, code=4)
        check(sorted(s for _, s in statuses(done.stdout)) == ["crashed", "ok", "ok"], done.stdout)
        said = re.findall(r"(GPU-\S+) is in (\S+) and (\S+): the first is newer and is used",
                          done.stderr)
        check(len(said) == 3 and all(kept.startswith("new") for _, kept, _ in said), done.stderr)
    # Nothing was heard of a lost GPU since its survey began: what its rank spooled is newer.
    lost = (old / "out.yaml").read_text().replace("status: ok", "status: lost", 1)
    lost = lost.replace("wall_s: ", "wall_s: 9", 1)
    first = statuses(lost)[0][0]
    lost = lost.replace("unmeasured: []", "unmeasured:\n  - {node: n1, rank: 0, uuid: " + first +
                        ", status: lost, reason: silent}")
    (old / "lost.yaml").write_text(lost)
    done = report(folder, "merge", "old/lost.yaml", "old/spool", code=0)
    check(sorted(s for _, s in statuses(done.stdout)) == ["ok"] * 3, done.stdout)


def case_earlier(folder):
    """What a newer survey did not look for is told as not measured again, until one looks for it."""
    wrong, screen = "{gpu: 1, kind: wrong_sm, sm: 0, share: 0.9, path: special}", ("--probes", "compute.screen")

    def merged(*sources, code=0):
        report(folder, "merge", *sources, "-o", "merged.yaml", code=code)
        report(folder, "validate", "merged.yaml")
        return (folder / "merged.yaml").read_text()

    old = surveyed(folder, "old", [node("n1", 3, wrong)], *screen, code=3)
    stamp = re.search(r'generated: "(.*?)"', (old / "out.yaml").read_text())[1]
    told = (f'basis: earlier, cause: "found by the survey of {stamp}, not measured again since: '
            "wrong launches in the screen of special functions: ")
    time.sleep(1.1)  # an inventory's time is in seconds
    surveyed(folder, "quick", [node("n1", 3, wrong)])
    for sources in (("old/out.yaml", "quick/out.yaml"), ("quick/out.yaml", "old/out.yaml"), ("old/out.yaml", "quick/spool")):
        text = merged(*sources)
        check(text.count(told) == 1 and "outliers: []" in text, f"{sources}: {text}")
    said = report(folder, "merge", "old/out.yaml", "quick/out.yaml", "-o", "both.yaml").stderr
    check("1 finding was not looked for by the newer results" in said and "1 to watch; 2 without findings" in said, said)
    check(merged("both.yaml").count(told) == 1, "it is lost when merged again")
    check(merged("both.yaml", "old/out.yaml", "quick/out.yaml").count(told) == 1, "told once")
    text = merged("old/out.yaml", "old/spool", code=3)
    check("basis: earlier" not in text and "; wrong again in " in text, text)
    time.sleep(1.1)
    surveyed(folder, "new", [node("n1", 3)], *screen)
    check("basis: earlier" not in merged("both.yaml", "new/out.yaml"), "it was looked for")
    time.sleep(1.1)
    surveyed(folder, "last", [node("n1", 3)])
    check("basis: earlier" not in merged("old/out.yaml", "new/out.yaml", "last/out.yaml"), "it was looked for since")


def case_once(folder):
    """Files of one survey, however often they are named, count its ranks once."""
    there = surveyed(folder, "here", [node("n1", 3)], ranks=3)
    shutil.copytree(there / "spool", there / "copy")
    shutil.copy(there / "out.yaml", there / "copy.yaml")
    for sources in (("spool", "spool"), ("spool", "copy"), ("out.yaml", "copy.yaml"),
                    ("out.yaml", "spool"), ("copy", "out.yaml", "spool")):
        text = report(there, "merge", *sources).stdout
        check(field(text, "ranks") == "3" and field(text, "gpus") == "3", f"{sources}: {text}")
    (sorted((there / "spool").glob("gpu-*"))[0]).unlink()
    text = report(there, "merge", "spool", "spool", code=4).stdout
    check(field(text, "ranks") == "3" and field(text, "lost_ranks") == "1", text)
    surveyed(folder, "other", [node("n2", 3)], ranks=3, seed=2)
    text = report(folder, "merge", "here/out.yaml", "other/out.yaml").stdout
    check(field(text, "ranks") == "6", text)


def case_missing(folder):
    """GPUs that were to be measured and left nothing are lost, by name."""
    there = surveyed(folder, "here", [node("n1", 3)], ranks=3)
    gone = sorted((there / "spool").glob("gpu-*"))[1]
    gone.unlink()
    (there / "spool" / (gone.name + ".tmp.77.0")).write_bytes(b"half")
    done = report(there, "merge", "spool", code=4)
    uuid = gone.name[4:-6]
    check(dict(statuses(done.stdout))[uuid] == "lost", done.stdout)
    check(field(done.stdout, "lost_ranks") == "1", done.stdout)
    check(re.search(rf"uuid: {uuid}, status: lost, reason: its rank left no result", done.stdout),
          done.stdout)
    # Its rank is lost no more once somebody measured that GPU again.
    (there / "lost.yaml").write_text(done.stdout)
    time.sleep(1.1)  # an inventory's time is in seconds
    surveyed(folder, "again", [node("n1", 3)], ranks=3)
    for sources in (("here/spool", "again/spool"), ("here/lost.yaml", "again/out.yaml"),
                    ("again/spool", "here/lost.yaml")):
        text = report(folder, "merge", *sources).stdout
        check(field(text, "lost_ranks") == "0" and field(text, "measured") == "3", text)
    # Without the survey's own file the GPUs' files still make an inventory, but nobody knows what is missing.
    next((there / "spool").glob("survey-*.spool")).unlink()
    done = report(there, "merge", "spool", code=4)
    check("the plan of the survey that measured 2 of the GPUs (survey-*.spool) is missing" in done.stderr, done.stderr)
    check(field(done.stdout, "gpus") == "2" and field(done.stdout, "nodes") == "1", done.stdout)
    # Everybody who reads that inventory knows it, until its GPUs are measured by a survey with a plan.
    (there / "planless.yaml").write_text(done.stdout)
    check(field(done.stdout, "unplanned") == "2", done.stdout)
    check("GPUs may be missing: the plan of the survey that measured 2" in report(there, "show", "planless.yaml").stdout, "show")
    check("WARNING - 2 without a plan: others may be missing, 2 of 2 GPUs" in report(there, "nagios", "planless.yaml", code=1).stdout,
          "nagios")
    report(there, "validate", "planless.yaml")
    report(there, "html", "planless.yaml", "-o", "page.html")
    check("<b class=bad>2</b>GPUs without a plan" in (there / "page.html").read_text(), "page")
    text = report(folder, "merge", "here/planless.yaml", code=4).stdout
    check(field(text, "unplanned") == "2" and field(text, "exit_code") == "4", text)
    text = report(folder, "merge", "here/planless.yaml", "again/out.yaml").stdout
    check("unplanned" not in text and field(text, "exit_code") == "0", text)
    # A file that cannot be read may have had more GPUs.
    (there / "damaged.yaml").write_text("gpumemtopo: {schema: 2")
    text = report(folder, "merge", "again/out.yaml", "here/damaged.yaml", code=4).stdout
    (there / "unread.yaml").write_text(text)
    check(field(text, "unread_files") == "1" and "1 file could not be read" in report(there, "show", "unread.yaml").stdout, text)
    check("WARNING - 1 file not read, " in report(there, "nagios", "unread.yaml", code=1).stdout, "nagios")
    check(field(report(there, "merge", "unread.yaml", code=4).stdout, "unread_files") == "1", "merged again")


def case_one_folder(folder):
    """Two surveys spool into one folder that was named: what the first missed is still known."""
    both = folder / "both"
    surveyed(folder, "left", [node("n1", 3)], "--spool", str(both))
    gone = sorted(both.glob("gpu-*"))[1]
    gone.unlink()
    surveyed(folder, "right", [node("n2", 2)], "--spool", str(both), seed=2)
    text = report(folder, "merge", "both", code=4).stdout
    found = dict(statuses(text))
    check(len(found) == 5 and found[gone.name[4:-6]] == "lost", text)
    check(field(text, "measured") == "4" and field(text, "ranks") == "2", text)


def figures(text):
    """Every figure of the first model: name, value, unit and the rest of its line."""
    memory = text.split("\n    memory:\n", 1)[1].split("\ngpus:", 1)[0]
    found, at = {}, []
    for line in memory.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2 - 3
        key, _, rest = line.strip().partition(":")
        at = at[:depth] + [key]
        if rest:
            found[".".join(at)] = rest
    return found


def number(line, key="value"):
    found = re.search(rf"\b{key}: (-?[\d.e+-]+)", line)
    return float(found[1]) if found else None


def merged_in_any_order(folder, files, code):
    """In every order; ASan, with which all run the same code: in eight."""
    texts = set()
    for order in itertools.islice(itertools.permutations(files), 0, None, 1 if SLOWER == 1 else 17):
        text = report(folder, "merge", *order, code=code).stdout
        texts.add(re.sub(r"command: \[.*?\]", "command: []", text))
        check(len(texts) == 1, f"another file in the order {order}")
    return texts.pop()


def case_order(folder):
    """One card per file: medians and majorities of all, in any order of the files, as one survey has them."""
    names = [f"n{i}" for i in range(5)]
    probes = ("--probes",
              "main.latency,main.bandwidth,host.latency,l2.latency,l1_data.latency,clock.sm,l2.size")
    for seed, name in enumerate(names):
        there = folder / name
        there.mkdir()
        fleet = write_fleet(there, [node(name, 1)])
        fleet.write_text(fleet.read_text().replace("seed: 1\nvary: none",
                                                   f"seed: {seed}\nvary: {{sm_clock: 0.04, other: 0.005}}"))
        code, _, said = survey(there, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--spool", "spool", *probes)
        check(code == 0, said)
    files = [f"{name}/out.yaml" for name in names]
    one = [figures((folder / name).read_text()) for name in files]
    merged = figures(merged_in_any_order(folder, files, 0))
    real = [path for kind in ("h200", "h200-recent") for path in sorted((ROOT / "tests/judge" / kind).glob("*.yaml"))
            if path.name != "verdicts.yaml"]
    merged_in_any_order(folder, real[:5], 3)  # with several results of some cards
    differ = 0
    for name, line in merged.items():
        values = [number(other[name]) for other in one if name in other]
        if None in values or number(line) is None:
            continue
        differ += len(set(values)) > 1
        wanted = statistics.median(values)
        check(abs(number(line) - wanted) <= 1e-5 * abs(wanted), f"{name}: {line}, not the median of {values}")
        check(number(line, "gpus") == len(values), f"{name}: {line}: gpus is not {len(values)}")
        ns = [number(other[name], "ns") for other in one]
        if None not in ns:
            clock = statistics.median(value / duration for value, duration in zip(values, ns))
            check(abs(number(line) / number(line, "ns") - clock) <= 2e-5 * clock, f"{name}: {line}: clock is {clock}")
    check(differ >= 5 and any("host.latency" in name for name in merged), f"{differ} of {sorted(merged)}")
    report(folder, "merge", *[f"{name}/spool" for name in names], "-o", "spools.yaml")
    check(figures((folder / "spools.yaml").read_text()) == merged, "spools of the same cards give other figures")


def case_used_again(folder):
    """The same GPUs every night into one folder: the last night counts, and nothing adds up."""
    nights = folder / "nights"
    for _ in range(3):
        surveyed(folder, "here", [node("n1", 3)], "--spool", str(nights))
        shutil.rmtree(folder / "here")
    check(len(list(nights.glob("survey-*"))) == 3, "one plan per survey")
    done = report(folder, "merge", "nights")
    check(field(done.stdout, "ranks") == "1" and field(done.stdout, "measured") == "3", done.stdout)
    check("counts" not in done.stderr, done.stderr)


def case_bad_files(folder):
    there = surveyed(folder, "here", [node("n1", 2)])
    spool = there / "spool"
    good = sorted(spool.glob("gpu-*"))[0].read_bytes()
    inventory = (there / "out.yaml").read_text()
    bad = {
        "cut": good[:-7],
        "empty": b"",
        "flipped": good[:200] + bytes([good[200] ^ 1]) + good[201:],
        "future.spool": b"gpumemtopo spool 99\n" + good,
        "future.yaml": inventory.replace("schema: 4", "schema: 99").encode(),
        "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        "notes.txt": b"to do: buy GPUs\n",
        "half.yaml": inventory[:len(inventory) // 2].encode(),
    }
    for name, content in bad.items():
        (spool / name).write_bytes(content)
    os.mkfifo(spool / "fifo")
    (spool / "folder").mkdir()
    done = report(there, "merge", "spool", code=4)
    for name in bad:
        check(re.search(rf"skipped: (spool/)?{re.escape(name)}|skipped: .*{re.escape(name)}",
                        done.stderr), f"{name} is not named: {done.stderr}")
    check(done.stderr.count("skipped:") == len(bad), done.stderr)
    check("not merged: spool/folder:" in done.stderr, done.stderr)
    check("newer" in done.stderr and "schema 99" in done.stderr, done.stderr)
    check(sorted(s for _, s in statuses(done.stdout)) == ["ok", "ok"], done.stdout)
    check(field(done.stdout, "exit_code") == "4", done.stdout)
    # Of a rank that wrote, though nobody can read it, is not said that it is lost.
    ours = sorted(spool.glob("gpu-*"))
    for content in (good[:-7], b"", b"\0" * 100):
        ours[0].write_bytes(content)
        text = report(there, "merge", "spool", code=4).stdout
        check(field(text, "lost_ranks") == "0" and field(text, "measured") == "1", text)
        check(re.search(rf"uuid: {ours[0].name[4:-6]}, status: failed, "
                        "reason: its spool file is damaged", text), text)
        text = report(there, "merge", "spool", "out.yaml", code=4).stdout  # the inventory has its result
        check(field(text, "measured") == "2" and field(text, "unmeasured") == "0", text)
        names = [path.name for path in spool.glob("*.spool") if path.name != "future.spool"]
        done = subprocess.run([REPORT, "merge", *names], cwd=spool, env=environment(),
                              capture_output=True, text=True)
        check(done.returncode == 4 and field(done.stdout, "lost_ranks") == "0", done.stdout)
    ours[0].write_bytes(good)
    linked = surveyed(folder, "linked", [node("n1", 1)]) / "spool"
    (linked / "gpu-elsewhere.spool").symlink_to("nowhere")
    done = report(folder, "merge", "linked/spool", code=4)
    check("skipped: linked/spool/gpu-elsewhere.spool: cannot open" in done.stderr, done.stderr)
    (folder / "nothing").mkdir()
    report(folder, "merge", "nothing", code=1)
    report(folder, "merge", "here/spool/notes.txt", code=1)
    report(folder, "merge", "absent", code=2)
    report(folder, "merge", code=2)
    report(folder, "merge", "-o", code=2)
    report(folder, "merge", "--nonsense", "here/spool", code=2)
    done = subprocess.run([REPORT, "merge", "spool"], cwd=there, env=environment(),
                          stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, text=True)
    check(done.returncode == 1 and "No space" in done.stderr, done.stderr)


def case_versions(folder):
    """The versions that measured are told; the version of the program that merges is not put on their figures."""
    for number, name in enumerate("ab"):
        surveyed(folder, name, [node(name, 3)], seed=number + 1)
    own = re.search(r"version: ([\d.]+),", (folder / "a/out.yaml").read_text())[1]
    (folder / "old.yaml").write_text((folder / "b/out.yaml").read_text().replace(f"version: {own},", "version: 0.1.9,", 1))

    def head_of(*sources):
        report(folder, "merge", *sources, "-o", "merged.yaml")
        report(folder, "validate", "merged.yaml")
        head = (folder / "merged.yaml").read_text().split("\n", 1)[0]
        check(f"version: {own}," in head, head)
        found = re.search(r"measured_by: \[(.*?)\]", head)
        return found[1].split(", ") if found else None

    check(head_of("a/out.yaml", "b/spool") is None, "all by this version")
    check(head_of("old.yaml") == ["0.1.9"], "one file of another version")
    both = sorted(["0.1.9", own])
    check(head_of("a/spool", "old.yaml") == both, "a spool and an older inventory")
    (folder / "merged.yaml").rename(folder / "both.yaml")
    check(head_of("both.yaml") == both, "a merged inventory, merged again")
    check(head_of("both.yaml", "a/out.yaml") == both, "and with one more")
    page = report(folder, "html", "both.yaml").stdout
    check(f"gpumemtopo {own}, merged; measured by gpumemtopo {both[0]}, {both[1]}" in page, "the page says it")
    check(f'programs: ["{both[0]} sim", "{both[1]} sim"]' in report(folder, "share", "both.yaml").stdout,
          "figures that are shared have the versions that measured")


def case_drain(folder):
    """A node of which every GPU is failing is drained like one with a single one."""
    every, one = "{gpu: all, kind: remap, pending: true}", "{gpu: 1, kind: remap, pending: true}"
    fleets = {"one": [node("n1", 4, one)], "all": [node("n1", 4, every)],
              "nodes": [node(f"n{i}", 2, every) for i in (1, 2, 3)]}
    for name, nodes in fleets.items():
        there = surveyed(folder, name, nodes, code=3)
        lines = report(there, "drain", "out.yaml").stdout.splitlines()
        check(len(lines) == len(nodes), f"{name}: {lines}")
        for i, line in enumerate(lines):
            check(f"NodeName=n{i + 1} " in line and "\"gpumemtopo:failing:GPU-" in line, line)
        report(there, "validate", "out.yaml")


def head_of(path):
    return path.read_text().split("\n", 1)[0]


def case_policy(folder):
    """Merged inventories are judged by the policy that their surveys had, wherever they are merged."""
    patient = folder / "patient.yaml"
    shipped = ROOT / "configs/survey.yaml"
    patient.write_text("time_limit_s: {quick: 20, standard: 120, full: 1200}\n"
                       "judge: {}\npolicy: {drain: 60 %}\n")
    slow = node("n1", 12, "{gpu: 11, kind: slow_dram, share: 0.4}")
    there = surveyed(folder, "there", [slow], "--config", str(patient))
    check("policy: {drain: 60 %}" in head_of(there / "out.yaml"), "the policy is not in the inventory")
    report(there, "merge", "out.yaml", "-o", "merged.yaml")
    report(there, "merge", "merged.yaml", "-o", "again.yaml")
    check("policy: {drain: 60 %}" in head_of(there / "again.yaml"), "it is lost by merging")
    check(not report(there, "drain", "again.yaml").stdout, "a node is drained against the policy")
    report(there, "merge", "out.yaml", "--config", str(shipped), "-o", "other.yaml", code=3)
    check("configuration" not in head_of(there / "other.yaml"), "the usual policy is named")
    surveyed(folder, "usual", [node("n2", 12)], seed=2)
    said = report(folder, "merge", "there/out.yaml", "usual/out.yaml", "-o", "both.yaml", code=3).stderr
    check("had different configurations: judged by that of the newest, usual/out.yaml" in said, said)
    text = (there / "out.yaml").read_text()
    (there / "bad.yaml").write_text(text.replace("drain: 60 %", "drain: 160 %"))
    said = report(there, "merge", "bad.yaml", "-o", "no.yaml", code=1).stderr
    check("(--config chooses another one)" in said and "bad.yaml, configuration:1:" in said and "160 %" in said, said)
    # What is not used ends nothing; an anonymous file says nothing of the policy.
    bad = re.sub(r"generated: \"\d+", "generated: \"2020", (there / "bad.yaml").read_text())
    (folder / "bad.yaml").write_text(bad)
    said = report(folder, "merge", "bad.yaml", "there/out.yaml", "-o", "good.yaml").stderr
    check("different configurations: judged by that of the newest, there/out.yaml" in said, said)
    report(folder, "merge", "there/out.yaml", "--anonymous", "-o", "zz.yaml")
    check("configuration" not in head_of(folder / "zz.yaml"), "an anonymous file has the configuration")
    said = report(folder, "merge", "zz.yaml", "there/out.yaml", "-o", "good.yaml").stderr
    check("different" not in said, said)



HOSTILE = ["new\nline", "quote\"s'", "<script>alert(1)</script>", "\x1b[2J\x1b[31mred", "$(reboot)",
           "; reboot #", "x" * 255, "../../up", "- {a: b}", "null", "\u202eevil"]


def yaml_quoted(text):
    return '"' + "".join(c if c.isalnum() and ord(c) < 128 else f"\\x{ord(c):02x}"
                         if ord(c) < 256 else f"\\u{ord(c):04x}" for c in text) + '"'


def case_hostile(folder):
    """Names stay data in every output, and do nothing in a shell."""
    sys.path.insert(0, str(ROOT / "tests"))
    import fast_yaml as yaml
    # In different slots: the same one everywhere would be the slot's fault.
    nodes = [f"{{name: {yaml_quoted(name)}, model: {MODEL}, gpus: 12, "
             f"faults: [{{gpu: {i}, kind: slow_dram, share: 0.4}}]}}"
             for i, name in enumerate(HOSTILE)]
    nodes.append(node("n1", 12, "{gpu: 11, kind: slow_dram, share: 0.4}"))
    write_fleet(folder, nodes)
    code, _, said = survey(folder, 0, "--simulate", "fleet.yaml", "-o", "out.yaml", "--spool",
                           "spool", *FAST)
    check(code == 3, f"{code}, {said[:2000]}")
    merged = report(folder, "merge", "spool", "-o", "merged.yaml", code=3)
    shown = report(folder, "show", "merged.yaml")
    drained = report(folder, "drain", "merged.yaml")
    for text in (said, merged.stderr, shown.stdout, shown.stderr, drained.stdout, drained.stderr):
        check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text), "control characters get out")
        check("new\nline" not in text, "a name breaks a line")
    for name in ("out.yaml", "merged.yaml"):
        content = yaml.safe_load((folder / name).read_text())
        found = {gpu["node"] for gpu in content["gpus"]}
        check(found == set(HOSTILE) | {"n1"}, f"{name}: other names: {found}")
    check(masked(folder / "out.yaml") == masked(folder / "merged.yaml"), "merged otherwise")
    # A shell that runs the lines calls scontrol with four words, and nothing else.
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    calls = folder / "calls"
    for name in ("scontrol", "reboot"):
        (bin_folder / name).write_text(
            f'#!/bin/sh\necho {name} $# >>"{calls}"\nfor a in "$@"; do echo "$a" >>"{calls}"; done\n')
        (bin_folder / name).chmod(0o755)
    subprocess.run(["sh", "-e"], input=drained.stdout, text=True, check=True,
                   env={"PATH": f"{bin_folder}:/usr/bin:/bin"})
    lines = calls.read_text().splitlines()
    check(len(lines) % 5 == 0, str(lines))
    called = [lines[i:i + 5] for i in range(0, len(lines), 5)]
    fit = {name for name in HOSTILE if re.fullmatch(r"[\w.-]+", name, re.A)} | {"n1"}
    check({c[2] for c in called} == {f"NodeName={name}" for name in fit}, str(called))
    for call in called:
        check(call[:2] + call[3:4] == ["scontrol 4", "update", "State=DRAIN"] and
              re.fullmatch(r"Reason=gpumemtopo:degraded:GPU-[^:]*:[^:]+:[^:]+:[^:]+(:\+[^:]+)?", call[4]), str(call))
    shutil.rmtree(bin_folder)


main(globals())
