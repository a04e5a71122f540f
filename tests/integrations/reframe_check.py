"""The test for ReFrame, run by a stand-in: reframe_check.py SURVEY REPORT SOURCE_ROOT"""
import importlib.util
import os
import shlex

import programs
import reframe_stand_in
from programs import CRASHED, FAILING, INTEGRATIONS, MISCONFIGURED, fleet, folder, simulated
from reframe_stand_in import RequiredVariable, SanityError

reframe_stand_in.install()
place = importlib.util.spec_from_file_location("check", INTEGRATIONS / "reframe/gpumemtopo_check.py")
check = importlib.util.module_from_spec(place)
place.loader.exec_module(check)


def stages(name, path, **variables):
    stagedir = folder / f"{name}.stage"
    stagedir.mkdir()
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    return reframe_stand_in.run_stages(check.GpumemtopoCheck, stagedir, env, **variables)


def refused(name, path, text, error=SanityError, **variables):
    try:
        figures = stages(name, path, **variables)
    except error as why:
        assert text in str(why), (name, why)
        return
    raise AssertionError(f"{name} passed: {figures}")


healthy = simulated("healthy", fleet("healthy", ["n1"], 4))
figures = stages("good", healthy, gpus=4)
inventory = programs.surveyed("healthy", ["n1"], 4).read_text(encoding="utf-8")
assert {name: unit for name, (_, unit) in figures.items()} == {
    "memory_read": "GB/s", "host_to_device": "GB/s", "memory_latency": "cycles"}
for name, (value, _) in figures.items():
    assert f"[{value:.6g}," in inventory, (name, value, "is not a value of the inventory")
stages("baseline", healthy, gpus=4, baseline=str(folder / "healthy.yaml"))
refused("no_count", healthy, "gpus", error=RequiredVariable)
refused("too_few", healthy, "GPUs there: 4, expected: 5", gpus=5)
refused("bad_profile", healthy, "no inventory", gpus=4, profile="none")
for name, faults, text in (("failing", FAILING, "failing"), ("misconfigured", MISCONFIGURED, "misconfigured"),
                           ("crashed", CRASHED, "GPUs measured: 3")):
    refused(name, simulated(name, fleet(name, ["n1"], 4, faults)), text, gpus=4)

# A key or metric that has another name makes it fail; none of them is skipped. The inventory is the healthy one.
report = shlex.quote(programs.report)
for number, word in enumerate(["survey", "gpus", "measured", "unmeasured", "lost_ranks", "exit_code", "outliers", "nodes",
                               "status", "values", "main.bandwidth.read", "host.bandwidth.h2d", "main.latency"]):
    line = f"{report} \"$@\" && sed -i 's/\"{word}\":/\"renamed\":/g' inventory.json"
    path = simulated(f"renamed{number}", "none", line)
    programs.write_script(path / "gpumemtopo-survey", f"cp {folder}/healthy.yaml inventory.yaml\n")
    refused(f"renamed{number}", path, word, gpus=4, error=(SanityError, KeyError))
