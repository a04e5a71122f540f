"""Starts and stops real servers for the tests of watch/, each on a free port."""
import datetime
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            print(f"{program} is not installed")
            sys.exit(77)


def wait_until(ready, patience_s):
    end = time.monotonic() + patience_s
    while not ready():
        assert time.monotonic() < end, f"not within {patience_s} s"
        time.sleep(0.05)


def seconds(stamp):
    """Of a time as Prometheus writes it, with any number of digits after the point."""
    whole, part, zone = re.fullmatch(r"(.{19})(\.\d+)?(.*)", stamp).groups()
    zone = "+00:00" if zone == "Z" else zone
    return datetime.datetime.fromisoformat(whole + zone).timestamp() + float(part or 0)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


def stop(process):
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start_prometheus(folder, config, tries=5):
    """(address, process). Another program may take the port between choice and use: then another is tried."""
    for _ in range(tries):
        port = free_port()
        with open(folder / "prometheus.log", "wb") as log:
            process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log, cwd=folder)
        base = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: process.poll() is not None or answers(f"{base}/-/ready"), 200)
        except BaseException:
            stop(process)
            raise
        if process.poll() is None:
            return base, process
    raise AssertionError((folder / "prometheus.log").read_text())
