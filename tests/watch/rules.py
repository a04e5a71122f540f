"""The shipped rules: promtool's syntax check, and its tests of rules*_test.yml, which must cover every rule."""
import pathlib
import re
import subprocess
import tempfile

import fleets
import servers

TESTS = sorted(pathlib.Path(__file__).parent.glob("rules*_test.yml"))


def promtool(*words, cwd):
    done = subprocess.run(["promtool", *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout.decode()


def covered():
    tests = [test for path in TESTS for test in fleets.yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]]
    fired = {one["alertname"] for test in tests for one in test.get("alert_rule_test", []) if one["exp_alerts"]}
    return fired | {one["expr"] for test in tests for one in test.get("promql_expr_test", []) if one["exp_samples"]}


names = {rule.get("alert") or rule["record"] for rule in fleets.rules()}
assert names == covered(), f"rules and their tests differ: {names ^ covered()}"
page = (fleets.ROOT / "docs/watch.md").read_text(encoding="utf-8")
for rule in fleets.rules():
    if "alert" in rule:
        assert f"| `{rule['alert']}` | {rule['labels']['severity']} |" in page, f"docs/watch.md lacks {rule['alert']}"
servers.need("promtool")
for host in "hostname", "Hostname":  # the second for `prometheus --old-labels`, as docs/watch.md says
    with tempfile.TemporaryDirectory() as folder:
        for path in *fleets.WATCH.glob("*.yml"), *TESTS:
            pathlib.Path(folder, path.name).write_text(re.sub(r"\bhostname\b", host, path.read_text(encoding="utf-8")))
        promtool("check", "rules", "gpumemtopo.rules.yml", cwd=folder)
        promtool("check", "config", "prometheus.yml", cwd=folder)
        promtool("test", "rules", *(path.name for path in TESTS), cwd=folder)
