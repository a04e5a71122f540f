#!/usr/bin/env python3
"""Sustained load and the test of the whole memory, seen from outside: cuda_load.py PROGRAM ROOT LIBRARY_PATH.

The program runs on stand-ins for libcuda.so.1 and libnvidia-ml.so.1. On a terminal it says how long it will load
the GPUs. A load ends, with what it has, at the time limit, at a hardware slowdown and when another process comes;
a signal ends it at once. With --load-one one GPU of a node works at a time. Nodes begin at different times. Error
counters are read before and after the memory is tested.
"""
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time

try:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import fast_yaml as yaml  # noqa: E402
except ImportError:
    print("not installed: yaml")
    sys.exit(77)

PROGRAM, ROOT, LIBRARIES = sys.argv[1:4]


def environment(changes):
    usual = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    usual.update(LD_LIBRARY_PATH=LIBRARIES, GPUMEMTOPO_CONFIG_DIR=f"{ROOT}/configs",
                 ASAN_OPTIONS="detect_leaks=0")
    return dict(usual, **changes)


def check(condition, *text):
    if not condition:
        sys.exit("FAILED " + "\n".join(map(str, text)))


def survey(folder, flags, changes=None, before=()):
    out = pathlib.Path(folder) / "out.yaml"
    out.unlink(missing_ok=True)
    done = subprocess.run([*before, PROGRAM, "--no-progress", "-o", out, *flags], env=environment(changes or {}),
                          capture_output=True, text=True)
    check(done.returncode in (0, 3) and out.exists(), flags, changes, done.returncode, done.stderr)
    return yaml.safe_load(out.read_text())


def figures(inventory):
    return inventory["models"][0]["memory"]


def check_ends(folder):
    """The load ends early for each of these reasons, and its figures say so."""
    for flags, changes, reason in (
            (["--load", "600", "--time-limit", "60"], {}, "the time limit of the GPU"),
            (["--load", "10"], {"FAKE_CUDA_LATER": "40:FAKE_NVML=throttle=8"}, "the hardware slowed itself down"),
            (["--load", "10"], {"FAKE_CUDA_LATER": "40:FAKE_NVML_PIDS=99"}, "another process came")):
        load = figures(survey(folder, ["--probes", "load", *flags], changes))["load"]
        check(load["flops"]["status"] == "noisy" and reason in load["flops"]["reason"], reason, load)
        wanted = float(flags[1])
        check(0 < load["seconds"]["value"] < wanted and load["flops"]["value"] > 0, load)
    load = figures(survey(folder, ["--probes", "load", "--load", "10"]))["load"]
    check(10 <= load["seconds"]["value"] < 10.2 and "ended after" not in load["flops"].get("reason", ""), load)


def launches(path):
    """Begin and end of all launches, by process."""
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        pid, begin, end = map(int, line.split())
        found.setdefault(pid, []).append((begin, end))
    return found


def check_one(folder):
    """One GPU at a time; the waits are those that the launches show."""
    log = f"{folder}/one.log"
    inventory = survey(folder, ["--probes", "load", "--load", "1", "--load-one"],
                       {"FAKE_CUDA_DEVICES": "3", "FAKE_CUDA_PACE": log})
    spans = sorted((times[0][0], times[-1][1]) for times in launches(log).values())
    check(len(spans) == 3, spans)
    for (_, end), (begin, _) in zip(spans, spans[1:]):
        check(end <= begin, "two GPUs at once", spans)
    loads = [gpu["load"] for gpu in inventory["gpus"]]
    check([load["gpus_of_node"] for load in loads] == ["one after the other"] * 3, loads)
    together = survey(folder, ["--probes", "load", "--load", "1"], {"FAKE_CUDA_DEVICES": "3"})
    check([gpu["load"]["gpus_of_node"] for gpu in together["gpus"]] == ["together"] * 3, together["gpus"])
    check(all(gpu["load"]["begun_after_s"] < 1 for gpu in together["gpus"]), "one node does not wait")


def check_signal(folder):
    """SIGTERM in the middle of a load: no launch comes after the survey has ended."""
    log, out = pathlib.Path(folder) / "signal.log", pathlib.Path(folder) / "signal.yaml"
    child = subprocess.Popen([PROGRAM, "--no-progress", "--probes", "main.size", "--load", "600", "-o", out],
                             env=environment({"FAKE_CUDA_PACE": str(log)}), stderr=subprocess.PIPE, text=True)
    while not log.exists() or not launches(log):
        check(child.poll() is None, "ended before the load", child.returncode)
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM)
    said = child.communicate()[1]
    ended_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    check(child.returncode == 4 and out.exists(), child.returncode, said)
    (pid,) = launches(log)
    check(not pathlib.Path(f"/proc/{pid}").exists(), "the worker lives")
    time.sleep(0.2)
    check(max(end for _, end in launches(log)[pid]) <= ended_ns, "a launch after the end")


def on_terminal(folder, flags):
    """What the program says on a terminal."""
    leader, follower = pty.openpty()
    child = subprocess.Popen([PROGRAM, "--probes", "main.size", "-o", f"{folder}/pty.yaml", *flags],
                             env=environment({}), stdout=subprocess.DEVNULL, stderr=follower, stdin=follower)
    os.close(follower)
    said = b""
    try:
        while more := os.read(leader, 4096):
            said += more
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    child.wait()
    return said.decode()


def check_terminal(folder):
    words = "At the end each GPU is put under full load for 2.5 s, "
    for flags, expected in ((["--load", "2.5"], words + "all GPUs of a node together."),
                            (["--load", "2.5", "--load-one"], words + "one GPU of a node after the other.")):
        said = on_terminal(folder, flags)
        check(expected in said, flags, said)
        check(said.index(expected) < said.index("measured"), "said too late", said)
    for flags in ([], ["--load", "0"], ["--load", "2.5", "--quiet"]):
        check("full load" not in on_terminal(folder, flags), flags)


def check_nodes(folder):
    """Two nodes, each in a namespace with a name of its own: they wait, each for its time at least."""
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode:
        print("no namespaces: nodes are not tried")
        return
    text = pathlib.Path(f"{ROOT}/configs/survey.yaml").read_text()
    config = pathlib.Path(folder) / "config.yaml"
    check("stagger_s: 5" in text)
    config.write_text(text.replace("stagger_s: 5", "stagger_s: 1"))
    named = "hostname node$OMPI_COMM_WORLD_RANK && FAKE_CUDA_NODE=$OMPI_COMM_WORLD_RANK exec \"$@\""
    inventory = survey(folder, ["--probes", "load", "--load", "1", "--config", config],
                       {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
                       ["mpirun", "--oversubscribe", "-n", "2", "unshare", "--uts", "sh", "-c", named, "sh"])
    waits = {gpu["node"]: gpu["load"]["begun_after_s"] for gpu in inventory["gpus"]}
    check(set(waits) == {"node0", "node1"}, waits)
    for node, waited in waits.items():
        check(waited >= planned(folder, config, node) - 0.002, node, waited)


def planned(folder, config, node):
    """How long a simulated node of this name waits, which is not by any clock."""
    fleet = pathlib.Path(folder) / "fleet.yaml"
    model = f"{ROOT}/configs/sim/h200.yaml"
    fleet.write_text(yaml.safe_dump({"nodes": [{"name": name, "gpus": 1, "model": model}
                                               for name in (node, "other")]}))
    inventory = survey(folder, ["--simulate", fleet, "--probes", "load", "--config", config])
    return next(gpu["load"]["begun_after_s"] for gpu in inventory["gpus"] if gpu["node"] == node)


def check_memory(folder):
    """What comes during the test is counted; what was there before is not."""
    usual = figures(survey(folder, ["--probes", "memory.whole"]))["main"]["whole"]
    before = [usual[key]["before"] for key in ("ecc_corrected", "ecc_uncorrected")]
    check(before[0] > 0 and [usual[key]["value"] for key in ("ecc_corrected", "ecc_uncorrected")] == [0, 0], usual)
    later = f"3:FAKE_NVML=ecc_corrected={before[0] + 7} ecc_uncorrected={before[1] + 1}"
    inventory = survey(folder, ["--probes", "memory.whole"], {"FAKE_CUDA_LATER": later})
    whole = figures(inventory)["main"]["whole"]
    check([whole[key]["value"] for key in ("ecc_corrected", "ecc_uncorrected")] == [7, 1], whole)
    causes = [finding["cause"] for entry in inventory["outliers"] for finding in entry["evidence"]]
    check("uncorrectable ECC errors while all memory was written and read: 1" in causes, causes)


with tempfile.TemporaryDirectory(prefix="gpumemtopo-test-") as there:
    for case in check_memory, check_ends, check_one, check_signal, check_terminal, check_nodes:
        case(there)
print("ok")
