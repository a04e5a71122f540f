#!/usr/bin/env python3
"""What goes wrong with a real GPU, seen from outside: cuda_errors.py PROGRAM ROOT LIBRARY_PATH OLDER_DRIVER.

The program runs on stand-ins for libcuda.so.1 and libnvidia-ml.so.1 that fail on demand. Whatever
happens ends in a clear status for the GPU, and what NVML told of it is in the inventory.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM, ROOT, LIBRARIES, OLDER = sys.argv[1:5]
SERIAL = "1650000000007"

# environment, further flags, exit code, status, reason (a regular expression)
CASES = [
    # The stand-in's GPU has uncorrectable errors: measured, and named.
    ({}, (), 3, "outlier", None),
    ({"FAKE_NVML_PIDS": "own"}, (), 3, "outlier", None),
    ({"FAKE_NVML_PIDS": "99,own"}, (), 4, "busy", r"1 other process computes on the GPU$"),
    ({"FAKE_NVML_PIDS": "98,99"}, (), 4, "busy", r"2 other processes compute on the GPU$"),
    ({"FAKE_NVML_PIDS": "99,own"}, ("--busy", "measure"), 0, "busy", None),
    ({"FAKE_CUDA_FAULT": "cuDevicePrimaryCtxRetain:1:46"}, (), 4, "busy",
     r"another process holds the GPU.* during opening"),
    ({"FAKE_CUDA_FAULT": "cuDevicePrimaryCtxRetain:1:46", "FAKE_NVML": "compute_mode=2"}, (), 4,
     "failed", r"compute mode is prohibited"),
    ({"FAKE_CUDA_FAULT": "cuDevicePrimaryCtxRetain:1:2"}, (), 4, "failed", r"\(2\).* during opening"),
    ({"FAKE_CUDA_FAULT": "cuModuleLoadData:1:209"}, (), 4, "failed", r"\(209\)"),
    ({"FAKE_CUDA_FAULT": "cuLaunchKernel:9:700:sticky"}, (), 4, "failed", r"\(700\).* during"),
    ({"FAKE_CUDA_FAULT": "cuStreamSynchronize:20:214:sticky"}, (), 4, "failed",
     r"\(214\).* during warm-up"),
    ({"FAKE_CUDA_FAULT": "cuStreamSynchronize:230:719:sticky"}, (), 4, "failed",
     r"\(719\).* during main.latency"),
]

# One of three GPUs fails, and costs its own result only; what was read after that is there.
ONE_OF_THREE = {"FAKE_CUDA_DEVICES": "3", "FAKE_CUDA_FAULTY": "1",
                "FAKE_CUDA_FAULT": "cuStreamSynchronize:230:719:sticky"}

# The workers of a node meet: all host links at once, then every pair in turn. A GPU that fails before
# that is not waited for, and its links are measured by the others.
NODE = {"FAKE_CUDA_DEVICES": "4", "FAKE_CUDA_MEMORY": "160"}
NODES = [(NODE, 4, 12), ({**NODE, "FAKE_CUDA_FAULTY": "1", "FAKE_CUDA_FAULT": "cuStreamSynchronize:20:214:sticky"}, 3, 9)]

# No GPU at all: no inventory, and the reason in one line.
NOTHING = [
    ({"FAKE_CUDA_INIT": "100"}, r"finds no GPU"),
    ({"FAKE_CUDA_INIT": "100", "CUDA_VISIBLE_DEVICES": "7"}, r'CUDA_VISIBLE_DEVICES is "7"'),
    ({"FAKE_CUDA_INIT": "803"}, r"cuInit: .*\(803\)"),
    ({"FAKE_CUDA_VERSION": "10020"}, r"too old: it supports CUDA 10\.2"),
    ({"LD_LIBRARY_PATH": ""}, r"no NVIDIA driver|finds no GPU|shows no GPU"),
]


def survey(folder, changes, flags, probes="main.latency"):
    inventory = pathlib.Path(folder) / "out.yaml"
    inventory.unlink(missing_ok=True)
    environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    environment.update(LD_LIBRARY_PATH=LIBRARIES, GPUMEMTOPO_CONFIG_DIR=f"{ROOT}/configs",
                       ASAN_OPTIONS="detect_leaks=0")  # many short processes; others look for leaks
    environment.update(changes)
    done = subprocess.run([PROGRAM, "--quiet", "--probes", probes, "-o", inventory, *flags],
                          env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr, inventory.read_text() if inventory.exists() else ""


def check_nodes(folder):
    for changes, gpus, pairs in NODES:
        got, said, text = survey(folder, changes, ("--time-limit", "1000"), "links,host.together")  # waiting may use most of it
        check(got in (3, 4), got, said, text)
        states = re.sub(r"[\s,]+", " ", " ".join(re.findall(r"^    links: {gpus: [^{}]*?,\s+state: \[([a-z,\s]+)\]", text, re.M))).split()
        check(states == ["ok"] * pairs, changes, states, text)
        check(re.findall(r"host\.together\.gpus: \[(\d+)", text) == [str(gpus)] * gpus, changes, text)


def check_older(folder):
    """A GPU of compute capability 6.1 with the driver of CUDA 11.0: measured if the build has kernels for it."""
    older = {"LD_LIBRARY_PATH": f"{OLDER}:{LIBRARIES}", "FAKE_CUDA_CAPABILITY": "61:98304"}
    built = re.search(r"CUDA 11\.(\d+): sm_(?:.* )?60\b", subprocess.run([PROGRAM, "--version"], capture_output=True, text=True).stdout)
    got, said, text = survey(folder, older, ())
    if built:
        check(got in (0, 3) and f"kernels: sm_60 of CUDA 11.{built[1]}" in text and "architecture: pascal" in text and
              re.search(r"main\.latency: \[\d", text), got, said, text)
        # NVML has five of these GPUs, all with MIG, whose instances that driver does not tell apart. The sixth is measured.
        got, said, text = survey(folder, {**older, "FAKE_CUDA_DEVICES": "6", "FAKE_NVML": "mig_mode=1"}, ())
        found = re.findall(r"^  - {node: .* reason: \"a GPU with MIG needs a driver that supports CUDA 11\.4", text, re.M)
        check(got == 4 and len(found) == 5 and len(re.findall(r"main\.latency: \[\d", text)) == 1, got, said, text)
    else:
        check(re.search(r"use a newer driver, or a build that also|the GPU is too old", said + text), got, said, text)


def check_toolkit(folder):
    """A toolkit that was not compiled in is refused at the start, in one line that names those that were."""
    about = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, env={**os.environ, "GPUMEMTOPO_CUDA_TOOLKIT": "9.9"})
    built = re.findall(r"^kernels of CUDA (\S+):", about.stdout, re.M)
    check(about.returncode == 0 and built, about)
    for value in ("9.9", "13", "x"):
        for flags in ((), ("--simulate", f"{ROOT}/configs/fleets/demo.yaml")):
            got, said, text = survey(folder, {"GPUMEMTOPO_CUDA_TOOLKIT": value}, flags)
            check(got == 2 and not text and said.count("\n") == 1 and f'GPUMEMTOPO_CUDA_TOOLKIT is "{value}"' in said and
                  f"expected {' or '.join(built)}," in said, value, got, said)
    for value in ("", built[0]):
        got, said, text = survey(folder, {"GPUMEMTOPO_CUDA_TOOLKIT": value}, ())
        check(got == 3 and not said, value, got, said)


def check(condition, *text):
    if not condition:
        sys.exit("FAILED " + "\n".join(map(str, text)))


def main():
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-test-") as folder:
        for changes, flags, code, status, reason in CASES:
            got, said, text = survey(folder, changes, flags)
            check(got == code, changes, f"exit code {got}", said, text)
            check(re.findall(r"^    status: (\w+)", text, re.M) == [status], changes, text)
            check(re.findall(r'^    serial: "(\d+)"', text, re.M) == [SERIAL], changes, text)
            found = re.findall(r"^  - {node: .*reason: \"?(.*?)\"?}$", text, re.M)
            check(len(found) == (1 if reason else 0) and
                  (not reason or re.search(reason, found[0])), changes, found)
            check(bool(re.search(r"main\.latency: \[\d", text)) == (code in (0, 3)), changes, text)
        got, said, text = survey(folder, ONE_OF_THREE, ())
        check(got == 4, got, said, text)
        check(re.findall(r"^    status: (\w+)", text, re.M) == ["outlier", "failed", "outlier"], text)
        check(len(re.findall(r"main\.latency: \[\d", text)) == 2, text)
        config = re.findall(r"^    config: {(.*)}", text, re.M)[-3:]  # the first is the model's
        check(config == ["", "pcie_gen: 1, pcie_under_load: false, pcie_width: 2", ""], config)
        check_nodes(folder)
        check_older(folder)
        check_toolkit(folder)
        for changes, reason in NOTHING:
            if not changes.get("LD_LIBRARY_PATH", "-") and os.path.exists("/dev/nvidia0"):
                continue
            got, said, text = survey(folder, changes, ())
            check(got == 1 and not text and re.search(reason, said), changes, got, said)


main()
