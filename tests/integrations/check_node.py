"""integrations/check-node.sh, alone, in NHC and in node-problem-detector: check_node.py SURVEY REPORT SOURCE_ROOT nhc|npd|script

NHC and node-problem-detector are not in Debian. STAND-INS replace them here: nhc_stand_in.sh sources and calls checks
as the program nhc does; the custom plugin monitor of node-problem-detector is written below.
"""
import json
import os
import re
import subprocess
import sys

import programs
from programs import ALERTED, CRASHED, FAILING, INTEGRATIONS, MISCONFIGURED, folder, run, surveyed

CHECK = INTEGRATIONS / "check-node.sh"
os.environ["NODE_NAME"] = "n1"
HEALTHY = surveyed("healthy", ["n1"], 4)
CASES = [  # inventory, flags, code, what the line has
    (HEALTHY, ["-g", "4"], 0, "4 of 4 GPUs healthy"),
    (HEALTHY, ["-g", "5"], 1, "4 of 5 GPUs are there"),
    (HEALTHY, ["-g", "4", "-n", "N1.example.org"], 0, "4 of 4 GPUs healthy"),
    (HEALTHY, ["-g", "4", "-n", "n2"], 2, "the inventory is of n1, not of n2"),
    (surveyed("several", ["n1", "n2"], 4), ["-g", "4"], 2, "the inventory is of n1 n2, not of n1"),
    (HEALTHY, [], 2, "usage"),
    (HEALTHY, ["-g", "0"], 2, "usage"),
    (HEALTHY, ["-g", "4", "-x"], 2, "usage"),
    (HEALTHY, ["-g", "4", "-a", "soon"], 2, "--max-age"),
    (folder / "none.yaml", ["-g", "4"], 2, "cannot open"),
    (surveyed("failing", ["n1"], 4, FAILING, code=3), ["-g", "4"], 1, "failing: a row remap is pending"),
    (surveyed("misconfigured", ["n1"], 4, MISCONFIGURED, code=3), ["-g", "4"], 1, "misconfigured: memory clock"),
    (surveyed("alerted", ["n1"], 4, ALERTED), ["-g", "4"], 0, "healthy, but GPU-"),
    (folder / "alerted.yaml", ["-g", "4", "-w"], 1, "misconfigured: persistence off"),
]
COUNTS = ["gpus=", "measured=", "drain=", "alert=", "unmeasured=", "busy=",
          "lost_ranks=", "missing="]


def aged(name, old, new):
    """A copy of the healthy inventory in which a text is another."""
    path = folder / f"{name}.yaml"
    text = HEALTHY.read_text(encoding="utf-8")
    assert re.search(old, text), old
    path.write_text(re.sub(old, new, text, count=1), encoding="utf-8")
    return path


def more_cases():
    yield aged("old", r"generated: [^,]+", 'generated: "2026-01-01T00:00:00Z"'), ["-g", "4"], 2, "too old"
    yield aged("busy", "status: ok", "status: busy"), ["-g", "4"], 2, "4 of 4 GPUs measured, 1 busy"
    yield aged("half", "nodes:", "nodes"), ["-g", "4"], 2, "half.yaml"
    crashed = surveyed("crashed", ["n1"], 4, CRASHED, code=4)
    yield crashed, ["-g", "4"], 1, "crash"


def ask(path, flags, programs_folder, check=CHECK):
    done = run([check, *flags, "-f", path], path=programs_folder)
    assert len(done.stdout.encode()) <= 80 and done.stdout.count("\n") == 1, done.stdout
    return done


def check_script():
    real = programs.simulated("bin", "none")
    for path, flags, code, text in [*CASES, *more_cases()]:
        done = ask(path, flags, real)
        assert done.returncode == code and text in done.stdout, (path, flags, done)
    # If a word of the line of gpumemtopo-report is another, nobody is healthy.
    for number, (word, line) in enumerate(programs.renamed(COUNTS).items()):
        done = ask(HEALTHY, ["-g", "4"], programs.simulated(f"bin{number}", "none", line))
        assert done.returncode == 2 and word.strip("=") in done.stdout, (word, done)
    for number, line in enumerate(["exit 0", "exit 1", "exit 2", "exit 139", "echo 'GPUMEMTOPO OK - fine'", "echo 'no such flag'; exit 2"]):
        done = ask(HEALTHY, ["-g", "4"], programs.simulated(f"other{number}", "none", line))
        assert done.returncode == 2, (line, done)
    # The node's own file is found by name.
    done = run([CHECK, "-g", "4"], path=real, env={"NODE_NAME": "no-such-node"})
    assert done.returncode == 2 and "/var/lib/gpumemtopo/no-such-node.yaml" in done.stdout, done


def check_nhc():
    """By a stand-in for nhc. A node is healthy only if check-node.sh returns 0."""
    real = programs.simulated("bin", "none")
    stand_in = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nhc_stand_in.sh")
    scripts = folder / "scripts"
    scripts.mkdir()
    (scripts / "gpumemtopo.nhc").write_bytes((INTEGRATIONS / "nhc/gpumemtopo.nhc").read_bytes())
    # The line of the comment at its head is the one that is run.
    documented = re.search(r"^#\s+(\* \|\| check_gpumemtopo -g) \d+$", (scripts / "gpumemtopo.nhc").read_text(), re.M)[1]
    for path, flags, code, text in [*CASES, *more_cases()]:
        if flags[:1] != ["-g"]:
            continue
        conf = folder / "nhc.conf"
        conf.write_text(f"# a comment\n* || true\nother* || false\n{documented} {' '.join(flags[1:])} -f {path}\n")
        for every in "0", "1":
            done = run(["bash", stand_in, scripts, conf], path=real,
                       env={"GPUMEMTOPO_CHECK": str(CHECK), "NHC_CHECK_ALL": every})
            assert (done.returncode == 0) == (code == 0), (path, flags, done)
            assert code == 0 or text in done.stdout and "ERROR:  nhc:  Health check failed:" in done.stdout, done
            assert ("not known to be healthy" in done.stdout) == (code == 2), done
    done = run(["bash", stand_in, scripts, conf], path=real, env={"GPUMEMTOPO_CHECK": str(folder / "gone")})
    assert done.returncode == 1 and "not known to be healthy" in done.stdout, done


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", text).groups()
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


# As pkg/custompluginmonitor/types of node-problem-detector reads it; Go ignores keys that it does not know.
PLUGIN_KEYS = {"invoke_interval": str, "timeout": str, "max_output_length": int, "concurrency": int,
               "enable_message_change_based_condition_update": bool, "skip_initial_status": bool}
RULE_KEYS = {"type": str, "condition": str, "reason": str, "path": str, "args": list, "timeout": str}
CONDITION_KEYS = {"type": str, "reason": str, "message": str}
TOP_KEYS = {"plugin": str, "pluginConfig": dict, "source": str, "conditions": list, "rules": list, "metricsReporting": bool}


def check_keys(given, known):
    assert all(isinstance(value, known[key]) for key, value in given.items()), given


def npd_rule(config, rule, env):
    """A stand-in for one call of a rule: (status of the condition, message)."""
    limit = config["pluginConfig"]["max_output_length"]
    try:
        done = subprocess.run([rule["path"], *rule.get("args", [])], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds(rule["timeout"]), check=False)
        code, text = done.returncode, done.stdout[:4096].decode().strip()
    except (OSError, subprocess.TimeoutExpired):
        code, text = -1, ""
    return {0: "False", 1: "True"}.get(code, "Unknown"), text[:limit]


def check_npd():
    """By a stand-in for the custom plugin monitor. Only False means that there is no problem."""
    config = json.loads((INTEGRATIONS / "node-problem-detector/gpumemtopo-monitor.json").read_text(encoding="utf-8"))
    check_keys(config, TOP_KEYS)
    check_keys(config["pluginConfig"], PLUGIN_KEYS)
    assert config["plugin"] == "custom"
    for condition in config["conditions"]:
        check_keys(condition, CONDITION_KEYS)
    # Before the first call it must not say that all is well.
    assert config["pluginConfig"]["skip_initial_status"] is True
    (rule,) = config["rules"]
    check_keys(rule, RULE_KEYS)
    assert rule["type"] == "permanent" and rule["condition"] in [c["type"] for c in config["conditions"]]
    assert 11 < seconds(rule["timeout"]) <= seconds(config["pluginConfig"]["timeout"]), "the script may need 11 s"
    assert rule["path"] == "/usr/share/gpumemtopo/integrations/check-node.sh"
    rule["path"] = str(CHECK)
    given = rule["args"]
    assert given[given.index("-g") + 1] == "8"
    given[given.index("-g") + 1] = "4"
    real = programs.simulated("bin", "none")
    env = {**os.environ, "PATH": f"{real}:{os.environ['PATH']}"}
    wanted = {0: "False", 1: "True", 2: "Unknown"}
    for path, flags, code, text in [*CASES, *more_cases()]:
        if flags == ["-g", "4"]:
            rule["args"] = [*given, "-f", str(path)]
            status, message = npd_rule(config, rule, env)
            assert status == wanted[code] and text in message, (path, status, message)
    rule["path"] = str(folder / "gone")
    assert npd_rule(config, rule, env)[0] == "Unknown"


{"script": check_script, "nhc": check_nhc, "npd": check_npd}[sys.argv[4]]()
