"""A folder of programs for the tests of integrations: the real ones, on simulated GPUs.

Arguments of every test here: SURVEY REPORT SOURCE_ROOT
"""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import zlib

survey, report = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
root = pathlib.Path(sys.argv[3]).resolve()
INTEGRATIONS = root / "integrations"
kept = tempfile.TemporaryDirectory()
folder = pathlib.Path(kept.name)


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(0o755)


def simulated(name, fleet, report_as="exec %s \"$@\"" % shlex.quote(report)):
    """A folder for PATH: gpumemtopo-survey surveys the fleet, gpumemtopo-report is the real one or a shell line."""
    programs = folder / name
    write_script(programs / "gpumemtopo-survey", f'exec {shlex.quote(survey)} --simulate {shlex.quote(str(fleet))} "$@"\n')
    write_script(programs / "gpumemtopo-report", report_as + "\n")
    return programs


def fleet(name, nodes, gpus, faults=""):
    """A file with a fleet; faults are those of the first node, as YAML. Another first node means other GPUs."""
    path = folder / f"{name}.fleet.yaml"
    lines = [f"seed: {zlib.crc32(nodes[0].encode())}", "vary: {sm_clock: 0.01, other: 0.002}", "nodes:"]
    for number, node in enumerate(nodes):
        lines += [f"  - name: {node}", f"    model: {root}/configs/sim/demo-h8.yaml", f"    gpus: {gpus}"]
        lines += [f"    faults: [{faults}]"] if faults and number == 0 else []
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def surveyed(name, nodes, gpus, faults="", code=0):
    """The inventory of a quick survey of such a fleet."""
    path = folder / f"{name}.yaml"
    if not path.exists():
        run([survey, "--no-mpi", "--simulate", fleet(name, nodes, gpus, faults), "--profile", "quick", "--quiet",
             "--no-progress", "-o", path], code=code)
    return path


def run(command, code=None, path=None, **more):
    """The finished process, with its output as text. code: the exit code that it must have."""
    env = {**os.environ, **more.pop("env", {})}
    if path:
        env["PATH"] = f"{path}:{env['PATH']}"
    done = subprocess.run([str(word) for word in command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, stdin=subprocess.DEVNULL, **more)
    assert code is None or done.returncode == code, f"{command}: exit {done.returncode}: {done.stdout}{done.stderr}"
    return done


FAILING = "{gpu: 1, kind: remap, pending: true}"
MISCONFIGURED = "{gpu: 1, kind: memory_clock, mhz: 1300}"
ALERTED = "{gpu: 2, kind: persistence_off}"
CRASHED = "{gpu: 1, kind: crash, after: 500}"


def renamed(words):
    """Shell lines of a gpumemtopo-report in which one word of its output is another."""
    return {word: f"text=$({shlex.quote(report)} \"$@\"); code=$?; printf '%s\\n' \"$text\" | "
                  f"sed 's/{word}/renamed/g'; exit $code" for word in words}
