"""Runs a program and says what it cost; makes inventories of any size."""
import collections
import os
import subprocess

Cost = collections.namedtuple("Cost", "code cpu_s mebibytes")


def run(command, stdout=subprocess.DEVNULL):
    """CPU time and peak memory of one process."""
    child = subprocess.Popen([str(word) for word in command], stdout=stdout, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Cost(child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def make(make_inventory, root, gpus, seed, folder):
    path = folder / f"{gpus}-{seed}.yaml"
    with path.open("wb") as out:
        code = run([make_inventory, root / "reports/demo.yaml", gpus, seed], out).code
    assert code == 0, code
    return path
