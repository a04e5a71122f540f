"""Runs the commands of docs/watch.md: a simulated fleet, a real node_exporter and a real Prometheus, until the alarm.

docs.py REPORT SURVEY. Only the ports, the folder of the installation and the pace (1 s instead of 1 min) differ.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import fleets
import servers

PROGRAMS = [pathlib.Path(word).resolve() for word in sys.argv[1:3]]
PATIENCE_S = 200


class PortTaken(Exception):
    """Another program took a port between its choice and its use."""


OWN_PORTS = ("9100", "9090")
ALERTS = "GpumemtopoNotMeasured",


def blocks():
    text = (fleets.ROOT / "docs/watch.md").read_text(encoding="utf-8")
    found = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.M | re.S)
    assert len(found) == 4, found
    return found


def installed(folder):
    """A folder like /usr/share/gpumemtopo."""
    share = folder / "share"
    share.mkdir()
    for path in (fleets.ROOT / "configs").iterdir():
        (share / path.name).symlink_to(path)
    (share / "watch").mkdir()
    for path in fleets.WATCH.iterdir():
        text = path.read_text(encoding="utf-8")
        (share / "watch" / path.name).write_text(re.sub(r"(_interval): 1m", r"\1: 1s", text), encoding="utf-8")
    return share


def adapt(text, share, ports):
    for old, new in ports.items():
        text = text.replace(f"localhost:{old}", f"localhost:{new}")
    return text.replace("/usr/share/gpumemtopo", str(share)).replace("/var/lib/prometheus/node-exporter", "textfiles")


def start(folder, share, ports, env):
    """The first block in a session of its own; it ends with the last of its processes."""
    first = adapt(blocks()[0], share, ports)
    # The survey finds the planted faults: its exit code is not 0.
    script = "trap 'kill $(jobs -p) 2>/dev/null; wait' TERM\n" + first + "wait\n"
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(["bash", "-c", script], cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True)


def ask(folder, share, ports, env):
    done = subprocess.run(["bash", "-c", adapt(blocks()[1], share, ports)], cwd=folder, env=env, capture_output=True,
                          text=True, check=False)
    return done.stdout


def run_all(folder):
    share = installed(folder)
    ports = {old: str(servers.free_port()) for old in OWN_PORTS}
    config = share / "watch/prometheus.yml"
    config.write_text(adapt(config.read_text(encoding="utf-8"), share, ports), encoding="utf-8")
    path = ":".join([*(str(program.parent) for program in PROGRAMS), os.environ["PATH"]])
    env = dict(os.environ, PATH=path, GPUMEMTOPO_CONFIG_DIR=str(share))
    running = start(folder, share, ports, env)
    try:
        told = ""

        def alarmed():
            nonlocal told
            log = (folder / "log").read_text()
            if "address already in use" in log:
                raise PortTaken
            assert running.poll() is None, log
            told = ask(folder, share, ports, env)
            # Groups of rules are evaluated one after the other.
            return told.count("GpumemtopoGpuDrain") == 9 and all(alert in told for alert in ALERTS)
        try:
            servers.wait_until(alarmed, PATIENCE_S)
        except AssertionError:
            print(told, (folder / "log").read_text())
            raise
        for block in blocks()[2:]:
            done = subprocess.run(["bash", "-ec", adapt(block, share, ports)], cwd=folder / "watching", env=env,
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0 and not done.stderr, done.stderr
        assert (folder / "watching/fleet.openmetrics").read_text().endswith("# EOF\n")
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        running.wait()


servers.need("prometheus", "promtool", "prometheus-node-exporter")
for left in reversed(range(5)):
    try:
        with tempfile.TemporaryDirectory() as name:
            run_all(pathlib.Path(name))
        break
    except PortTaken:
        assert left, "every port is taken"
