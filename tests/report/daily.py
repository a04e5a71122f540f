"""Commands for daily use on inventories of many GPUs: daily.py CASE REPORT SURVEY SOURCE_ROOT

history: many GPUs over many surveys; rma: what is in the archive; drain: reasons that can be split
"""
import copy
import datetime
import io
import json
import lzma
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tarfile
import tempfile

import fleet

CASE, REPORT, SURVEY, ROOT = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
ENV = dict(os.environ, GPUMEMTOPO_CONFIG_DIR=str(ROOT / "configs"))


def check(right, why):
    if not right:
        sys.exit(why)


def report(folder, *words, code=0, text=True):
    done = subprocess.run([REPORT.resolve(), *words], cwd=folder, env=ENV, capture_output=True, text=text)
    check(done.returncode == code, f"{words}: {done.returncode}\n{done.stderr}")
    return done


def surveys(folder, base, days, fate, seed=1, name="day"):
    """One inventory per day; fate(number of the GPU, metric, day) is a factor."""
    rng = random.Random(seed)
    paths = []
    for day in range(days):
        data = copy.copy(base)
        when = datetime.datetime(2026, 3, 1) + datetime.timedelta(days=day)
        data["gpumemtopo"] = dict(base["gpumemtopo"], generated=when.strftime("%Y-%m-%dT%H:%M:%SZ"))
        data["gpus"] = []
        for number, gpu in enumerate(base["gpus"]):
            values = {metric: list(value) for metric, value in gpu["values"].items()}
            for metric, value in values.items():
                if value[0] and value[0] % 1:
                    value[0] = float("%.6g" % (value[0] * rng.gauss(1, 0.001) * fate(number, metric, day)))
            data["gpus"].append(dict(gpu, values=values))
        paths.append(fleet.write(data, folder / f"{name}{day:02}.yaml").name)
    return paths


def cpu(folder, *words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = report(folder, *words)
    return done, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def case_history(folder):
    def falls(number, metric, day):
        return 1 - 0.006 * day if number == 17 and metric == "main.bandwidth.read" else 1

    base = fleet.base(ROOT / "reports/demo.yaml")
    large = fleet.enlarge(copy.deepcopy(base), 3000, 3)
    small = fleet.enlarge(copy.deepcopy(base), 1100, 3)
    paths = surveys(folder, large, 6, falls)
    done, of_large = cpu(folder, "history", "--json", *reversed(paths))
    found = json.loads(done.stdout)
    check(found["gpus_seen"] == 3000 and len(found["surveys"]) == 6, done.stdout[:2000])
    check([s["file"] for s in found["surveys"]] == paths, "not in the order of time")
    check([(g["outlier"], g["states"]) for g in found["gpus"]] == [(6, 6 * "O")] * 3, found["gpus"])
    check([(t["uuid"], t["metric"]) for t in found["trends"]] == [(large["gpus"][17]["uuid"], "main.bandwidth.read")],
          f"trends: {found['trends']}")
    trend = found["trends"][0]
    check(abs(trend["change"] + 0.03) < 4 * trend["error"] and trend["days"] == 5, trend)
    check(not found["events"], found["events"][:3])
    text = report(folder, "history", *paths).stdout
    check("Getting steadily worse" in text and "6 surveys, 3000 GPUs" in text, text)
    check(max(map(len, text.splitlines())) <= 100, "lines are too long")
    _, of_small = cpu(folder, "history", "--json", *surveys(folder, small, 6, falls, name="small"))
    print(f"6 x 3000 GPUs: {of_large:.2f} s, 6 x 1100 GPUs: {of_small:.2f} s")
    check(of_large < 10 * of_small, "the time grows faster than the number of GPUs")
    report(folder, "history", *paths, "-o", "out.json", "--json")
    check(json.loads((folder / "out.json").read_text()) == found, "the order of the files matters")
    # Hostile names stay data.
    hostile = fleet.hostile(fleet.base(ROOT / "reports/demo.yaml"))
    hostile["gpumemtopo"]["generated"] = "2026-03-01T00:00:00Z"
    fleet.write(hostile, folder / "hostile.yaml")
    text = report(folder, "history", "hostile.yaml", paths[1]).stdout
    check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text), "control characters get out")


def unpack(data):
    with tarfile.open(fileobj=io.BytesIO(data), format=tarfile.USTAR_FORMAT) as archive:
        for member in archive:
            check((member.uid, member.gid, member.mode, member.isreg()) == (0, 0, 0o644, True), member)
        return {pathlib.Path(m.name).name: archive.extractfile(m).read() for m in archive}


def case_rma(folder):
    subprocess.run([SURVEY.resolve(), "--simulate", ROOT / "configs/fleets/demo.yaml", "--profile", "quick", "--quiet",
                    "--no-progress", "-c", ROOT / "configs/survey.yaml", "--record", "fleet.gmr", "-o", "fleet.yaml"],
                   cwd=folder, env=ENV, check=False)
    data = fleet.base(folder / "fleet.yaml")
    accused = next(o for o in data["outliers"] if o["verdict"] == "degraded")
    uuid = accused["uuid"]
    prefix = uuid[4:12].upper()
    done = report(folder, "rma", "fleet.yaml", prefix, "--record", "fleet.gmr")
    path = folder / f"gpumemtopo-rma-{uuid}.tar"
    check(str(path.name) in done.stderr and not done.stdout, done.stderr)
    files = unpack(path.read_bytes())
    check(list(files) == ["README.txt", "gpu.json", "record.gmr"], list(files))
    check(files["record.gmr"] == (folder / "fleet.gmr").read_bytes(), "another record")
    again = report(folder, "rma", "fleet.yaml", uuid, "--record", "fleet.gmr", "-o", "-", text=False).stdout
    check(again == path.read_bytes(), "the archive is not the same each time")
    subprocess.run(["tar", "xf", path.name], cwd=folder, check=True)
    # The text: identity, every finding, how to replay. Nothing about other GPUs.
    gpu = next(g for g in data["gpus"] if g["uuid"] == uuid)
    readme, facts = files["README.txt"].decode(), json.loads(files["gpu.json"])
    for word in uuid, gpu["serial"], gpu["vbios"], gpu["driver"], gpu["part"], "--replay record.gmr", "Health:":
        check(str(word) in readme, f"{word} is not in\n{readme}")
    for finding in accused["evidence"]:
        check(finding["metric"] in readme, f"{finding} is not in\n{readme}")
    check([f["metric"] for f in facts["evidence"]] == [f["metric"] for f in accused["evidence"]], facts["evidence"])
    for other in data["gpus"]:
        if other["uuid"] != uuid:
            check(other["uuid"] not in readme + files["gpu.json"].decode(), f"tells about {other['uuid']}")
    # The figures are those of healthy GPUs of the model, by another way of counting.
    peers = [g for g in data["gpus"] if g["status"] == "ok" and g["model"] == gpu["model"]]
    check(facts["peers"] == len(peers), facts["peers"])
    metric = accused["evidence"][0]["metric"]
    values = sorted(g["values"][metric][0] for g in peers)
    median = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    figure = next(f for f in facts["figures"] if f["metric"] == metric)
    check(abs(figure["median"] / median - 1) < 1e-5, (figure, median))
    check(abs(figure["deviation"] - (gpu["values"][metric][0] / median - 1)) < 1e-3, figure)
    # What the text says can be done can be done.
    where = folder / path.stem
    subprocess.run([SURVEY.resolve(), "--replay", "record.gmr", "-o", "replayed.yaml", "--quiet"], cwd=where, env=ENV, check=False)
    replayed = fleet.base(where / "replayed.yaml")
    check(uuid in [o["uuid"] for o in replayed["outliers"]], "the replay does not show it")
    # A record that is cut off is added, and the text does not say that it can be replayed.
    (folder / "cut.gmr").write_bytes((folder / "fleet.gmr").read_bytes()[:-1])
    done = report(folder, "rma", "fleet.yaml", uuid, "--record", "cut.gmr", "-o", "cut.tar")
    check("warning: cut.gmr is cut off" in done.stderr, done.stderr)
    text = unpack((folder / "cut.tar").read_bytes())["README.txt"].decode()
    check("The record is cut off" in text and "--replay" not in text and "cut off" not in readme, text)
    # A GPU that could not be measured has a report too, but its record must be one of it.
    lost = next(u["uuid"] for u in data["unmeasured"] if u["uuid"])
    text = unpack(report(folder, "rma", "fleet.yaml", lost, "-o", "-", text=False).stdout)["README.txt"].decode()
    check("No figure was measured." in text and "There is no record" in text, text)
    foreign = folder / "foreign.gmr"
    foreign.write_bytes(lzma.decompress((ROOT / "tests/records/h200-quick.gmr.xz").read_bytes()))
    check(f"has no record of {uuid}" in report(folder, "rma", "fleet.yaml", uuid, "--record", foreign, code=2).stderr, "foreign")
    check("GPUs begin with \"gpu-\": " in report(folder, "rma", "fleet.yaml", "gpu-", code=2).stderr, "not unique")
    check_wrong_results(folder)


def check_wrong_results(folder):
    """What a vendor needs to know of wrong results, from a survey of the profile `standard`."""
    (folder / "wrong.fleet.yaml").write_text(f"""seed: 1
nodes:
  - name: n
    gpus: 8
    model: {(ROOT / "configs/sim/demo-h8.yaml").resolve()}
    faults: [{{gpu: 2, kind: wrong_sm, sm: 5, share: 0.9, path: fp64}}, {{gpu: 4, kind: wrong_card, path: mma_tf32}}]
""")
    subprocess.run([SURVEY.resolve(), "--no-mpi", "--simulate", "wrong.fleet.yaml", "--probes", "compute.check,compute.screen", "--quiet",
                    "--no-progress", "-o", "wrong.yaml"], cwd=folder, env=ENV, check=False)
    report(folder, "merge", "wrong.yaml", "-o", "merged.yaml", code=3)
    for name in "wrong.yaml", "merged.yaml":
        check_wrong_archives(folder, name)


def check_wrong_archives(folder, inventory):
    wrong = {o["evidence"][-1]["metric"]: o["uuid"] for o in fleet.base(folder / inventory)["outliers"]}
    texts, figures = {}, {}
    for metric, uuid in wrong.items():
        files = unpack(report(folder, "rma", inventory, uuid, "-o", "-", text=False).stdout)
        texts[metric] = files["README.txt"].decode()
        facts = json.loads(files["gpu.json"])
        figures[metric] = {figure["metric"]: figure for figure in facts["figures"]}
        lanes = [noted["notes"]["lane"] for noted in facts["noted"]]
        check(lanes == ([7] if metric == "compute.wrong_on.fp64" else []), facts["noted"])
        for name in figures[metric]:
            check(re.search(rf"^  {re.escape(name)} +\S", texts[metric], re.M), f"{name} is cut or touches its value\n{texts[metric]}")
    text = texts["compute.wrong_on.fp64"]
    for part in (
            r"wrong launches in\s+the\s+screen\s+of\s+FP64 units: \d+,\s+most\s+on\s+SM\s+5,\s+sub-core\s+2: \d+ of \d+;\n",
            r"\n    wrong again in \d+ of 16 launches;\n",
            r"\n    lane 7, set 1, period 3, step \d+, word \d+: 0x\w+ instead of 0x\w+, of operands( +\n? *0x\w{8}|\s+0x\w{8}){5};\n",
            r"\n    bits 0x00002000;\n", r"\n    at \d+ MHz, \d+ W, \d+ degrees C\n"):
        check(re.search(part, text), f"{part} is not in\n{text}")
    # Beside the wrong digest stands the one of the healthy GPUs.
    digest = figures["compute.digest.mma_tf32"]["compute.digest.mma_tf32"]
    check(digest["usual"] not in (None, digest["value"]) and digest["usual_on"] == 6 and digest["median"] is None, digest)
    check(re.search(rf"^  compute\.digest\.mma_tf32 +{digest['value']} +{digest['usual']} +6 of 6, it differs$",
                    texts["compute.digest.mma_tf32"], re.M), texts["compute.digest.mma_tf32"])
    check(f"digest {digest['value']} instead of {digest['usual']}" in " ".join(texts["compute.digest.mma_tf32"].split()), digest)


def case_drain(folder):
    """Thousands of outliers with any text: each reason has its fields."""
    data = fleet.enlarge(fleet.base(ROOT / "reports/demo.yaml"), 3000, 1000)
    rng = random.Random(1)
    for outlier in data["outliers"]:
        text = rng.choice(fleet.HOSTILE)
        outlier["evidence"][0]["cause"] = text + " " + " ".join(rng.choice(fleet.HOSTILE) for _ in range(3))
    fleet.write(data, folder / "fleet.yaml")
    lines = report(folder, "drain", "fleet.yaml").stdout.splitlines()
    check(len(lines) == len({o["node"] for o in data["outliers"]}), len(lines))
    outliers = {o["uuid"] for o in data["outliers"]}
    for line in lines:
        match = re.fullmatch(r'scontrol update NodeName=gpu\d+ State=DRAIN Reason="([ -~]*)"', line)
        check(match and len(match[1]) <= 255 and not re.search(r"['\"$`\\!]", match[1]), line)
        fields = match[1].split(":")
        check(len(fields) in (6, 7) and fields[:2] == ["gpumemtopo", "degraded"] and fields[2] in outliers and
              fields[4:6] == ["main.bandwidth.read", "-20.0%"], line)
        check(len(fields) == 6 or re.fullmatch(r"\+\d GPUs?", fields[6]), line)


with tempfile.TemporaryDirectory() as name:
    globals()["case_" + CASE](pathlib.Path(name))
