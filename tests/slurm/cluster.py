"""A Slurm cluster of four nodes on this machine, in a temporary folder: munged, slurmctld, slurmd."""
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

# An end by signal, when ./check is interrupted, must not leave the daemons.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

NODES = 4
GPUS = 4  # per node
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo", "scontrol",
            "squeue")


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Why no cluster can be had here; None: it can."""
    if os.getuid() != 0:
        return "Slurm's daemons need root"
    for program in PROGRAMS:
        if not find(program):
            return f"{program} is not installed"
    return None


# Control groups of version 1 or 2, whichever the machine has: cgroup.conf, a file that must be writable, and the folder
# in which Slurm makes its own. It makes those of version 2 without systemd.
CGROUPS = (
    ("CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n", pathlib.Path("/sys/fs/cgroup/freezer/release_agent"),
     pathlib.Path("/sys/fs/cgroup/freezer")),
    ("CgroupPlugin=cgroup/v2\nCgroupMountpoint=/sys/fs/cgroup\nIgnoreSystemd=yes\n",
     pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control"), pathlib.Path("/sys/fs/cgroup/system.slice")),
)
CGROUP = next((row for row in CGROUPS if os.access(row[1], os.W_OK)), None)


def missing_proctrack(name):
    """Why Slurm cannot track processes in this way here; None: it can."""
    return "no control groups that may be written" if name == "cgroup" and not CGROUP else None


def free_ports(count):
    """Below those that the system hands out: another program may get these before our daemons bind them. Clusters that
    are made at the same time, by other processes, look elsewhere."""
    held, port = [], 10000 + os.getpid() * 16 % 20000
    while len(held) < count:
        s = socket.socket()
        try:
            s.bind(("", port))
            held.append(s)
        except OSError:
            s.close()
        port += 1
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


CONFIG = """
ClusterName=gpumemtopo
FirstJobId={first_job}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/slurmd.%n
TmpFS={folder}/tmp.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
MpiDefault=pmix
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=10
UnkillableStepTimeout=20
MailProg=/bin/true
{more}
{nodes}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


# What slurmd calls gets no variable of ours, so these name the settings. Health checks come every two seconds, but
# only on nodes for which watch() asks.
HOOK = """#!/bin/sh
{only}export GPUMEMTOPO_TEST_MARK={mark}
export GPUMEMTOPO_HEALTH_CONF={folder}/health.conf
exec {script}
"""
HOOKS = ("Prolog", "Epilog", "HealthCheckProgram")


class Cluster:
    """hooks: scripts by the keys of slurm.conf in HOOKS, as installed or of the source. Their settings are in the
    file health_conf, which the caller writes. proctrack: how Slurm finds the processes of a step (cgroup, pgid,
    linuxproc)."""

    def __init__(self, mark="", more="SlurmdTimeout=20", hooks=None, proctrack="linuxproc"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpumemtopo-slurm-"))
        self.folder.chmod(0o755)
        self.daemons = {}
        self.proctrack = proctrack
        # Slurm names its control groups by node and job: those of two clusters must differ.
        prefix = f"p{os.getpid()}n" if proctrack == "cgroup" else "n"
        self.nodes = [f"{prefix}{i + 1}" for i in range(NODES)]
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("OMPI_", "PMIX_", "SLURM_", "PRTE_"))}
        # The "nodes" have one host name: shared memory between them would be tried and missed.
        self.env.update(SLURM_CONF=str(self.folder / "slurm.conf"), OMPI_MCA_btl="tcp,self",
                        OMPI_MCA_btl_tcp_if_include="lo",
                        PATH=os.environ["PATH"] + ":/usr/sbin:/sbin", GPUMEMTOPO_TEST_MARK=mark)
        self.health_conf = self.folder / "health.conf"
        self.configure(more + "".join(self.hook(key, script, mark) for key, script in (hooks or {}).items()))
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def hook(self, key, script, mark):
        """The line of slurm.conf for one script."""
        assert key in HOOKS, key
        path = self.folder / key.lower()
        health = key == "HealthCheckProgram"
        path.write_text(HOOK.format(folder=self.folder, script=script, mark=mark,
                                    only=f"[ -e {self.folder}/watch.$SLURMD_NODENAME ] || exit 0\n" if health else ""))
        path.chmod(0o755)
        return f"\n{key}={path}" + ("\nHealthCheckInterval=2\nHealthCheckNodeState=IDLE" if health else "")

    def watch(self, node, on=True):
        """Begins or ends the health checks of a node."""
        path = self.folder / f"watch.{node}"
        if on:
            path.touch()
        else:
            path.unlink()

    def configure(self, more):
        ports = free_ports(NODES + 1)
        host = socket.gethostname()
        for name in ("munge", "state", "gpus"):
            (self.folder / name).mkdir(mode=0o755)
        lines, gres = [], []
        for i, node in enumerate(self.nodes):
            (self.folder / f"slurmd.{node}").mkdir()
            (self.folder / f"tmp.{node}").mkdir()
            lines.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 "
                         f"Port={ports[i]} CPUs={GPUS} RealMemory=500 Gres=gpu:{GPUS}")
            for gpu in range(GPUS):
                file = self.folder / "gpus" / f"{node}-{gpu}"
                os.mknod(file, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
                gres.append(f"NodeName={node} Name=gpu File={file}")
        (self.folder / "slurm.conf").write_text(CONFIG.format(
            host=host, ctld_port=ports[-1], folder=self.folder, nodes="\n".join(lines), more=more,
            proctrack=self.proctrack, first_job=1 + os.getpid() % 60000 * 1000))  # other clusters run on this host
        if self.proctrack == "cgroup":
            (self.folder / "cgroup.conf").write_text(CGROUP[0])
            CGROUP[2].mkdir(exist_ok=True)
        (self.folder / "gres.conf").write_text("\n".join(gres) + "\n")

    def spawn(self, name, *command):
        log = open(self.folder / f"{name}.out", "ab")
        self.daemons[name] = subprocess.Popen(
            [find(command[0]), *command[1:]], env=self.env, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, start_new_session=True)
        log.close()

    def start(self):
        munge = self.folder / "munge"
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        self.spawn("munged", "munged", "--foreground", "--force", f"--socket={munge}/socket",
                   f"--key-file={munge}/key", f"--pid-file={munge}/pid",
                   f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.until(lambda: (munge / "socket").exists(), "munged's socket")
        self.spawn("slurmctld", "slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        for node in self.nodes:
            self.start_node(node)
        self.until(lambda: self.idle() == NODES, "idle nodes")

    def start_node(self, node, *before):
        """before: words of a command that runs slurmd."""
        self.spawn(node, *before, find("slurmd"), "-D", "-N", node, "-f", str(self.folder / "slurm.conf"))

    def hide(self, node, folder):
        """The node has a folder of its own at this path."""
        self.stop_daemon(node)
        self.start_node(node, "unshare", "-m", "sh", "-c", f'mount -t tmpfs none "{folder}" && exec "$@"', "sh")
        self.until(lambda: self.idle() == NODES and self.daemons[node].poll() is None, "idle nodes")

    def unhide(self, node):
        self.stop_daemon(node)
        self.start_node(node)
        self.until(lambda: self.idle() == NODES, "idle nodes")

    def idle(self):
        done = self.run("sinfo", "-h", "-N", "-o", "%T")
        return done.stdout.split().count("idle")

    def state(self, node):
        """State and reason, such as "drained gpumemtopo:failing:..."."""
        return self.run("sinfo", "-h", "-N", "-n", node, "-o", "%T %E").stdout.strip()

    def resume(self, node):
        self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self.until(lambda: self.state(node).startswith("idle"), f"idle {node}")

    def run(self, *command, **more):
        return subprocess.run([find(str(command[0])) or command[0], *command[1:]],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              **{"timeout": 120, "env": self.env, **more})

    def until(self, condition, what, limit_s=180):
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end:
                self.show_logs()
                sys.exit(f"FAILED: no {what} within {limit_s} s")
            time.sleep(0.1)

    def show_logs(self):
        for log in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")):
            print(f"== {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]))

    def stop_daemon(self, name, number=signal.SIGTERM):
        daemon = self.daemons.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(timeout=20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def stop(self):
        if "slurmctld" in self.daemons:
            self.run("scancel", "--full", "--signal=KILL", "--state=RUNNING", "--user=root")
        for name in list(self.daemons):
            if name in self.nodes:
                self.stop_daemon(name)
        for name in ("slurmctld", "munged"):
            if name in self.daemons:
                self.stop_daemon(name)
        kill_below(self.folder)
        if self.proctrack == "cgroup":
            self.remove_groups()
        shutil.rmtree(self.folder, ignore_errors=True)

    def remove_groups(self):
        """The control groups that Slurm left. Processes that were just killed may still be in one."""
        end = time.monotonic() + 5
        for node in self.nodes:
            for group in sorted(CGROUP[2].glob(f"*{node}*/**/"), reverse=True):
                while group.exists():
                    try:
                        group.rmdir()
                    except OSError:
                        if time.monotonic() > end:
                            return
                        time.sleep(0.05)


def kill_below(folder):
    """What still runs with this folder's slurm.conf in its environment (step daemons)."""
    sign = f"SLURM_CONF={folder}/slurm.conf".encode()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if sign in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass
