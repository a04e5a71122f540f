"""Four hosts, each a network namespace with a name of its own, MPI across them by TCP; one is
cut off in the middle of a survey.

usage: several_hosts.py PROGRAM SOURCE_ROOT CASE
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import (MARK, MPICH, PROGRAM, SKIP, SLOWER, busy, check, environment, field, main, marked, node, write_fleet)

HOSTS = 4
PER_HOST = 4
NET = "10.213.7"
SHORT = MARK[:6]  # of names of namespaces and links, which are short
LIMIT_S = 8
HANGS_S = 90 * SLOWER  # where a healthy run is over, on any machine


def ip(*args, quiet=False):
    done = subprocess.run(["ip", *args], capture_output=True, text=True)
    if done.returncode and not quiet:
        raise OSError(f"ip {args}: {done.stderr}")


def space(host):
    return f"gm{SHORT}{host}"


def build():
    """One bridge in a namespace of its own, so that this machine's network is not touched."""
    ip("netns", "add", space(0))
    ip("-n", space(0), "link", "add", "bridge", "type", "bridge")
    ip("-n", space(0), "link", "set", "bridge", "up")
    for host in range(1, HOSTS + 1):
        ip("netns", "add", space(host))
        ip("-n", space(0), "link", "add", f"p{host}", "type", "veth", "peer", "name", "eth0",
           "netns", space(host))
        ip("-n", space(0), "link", "set", f"p{host}", "master", "bridge", "up")
        ip("-n", space(host), "addr", "add", f"{NET}.{host}/24", "dev", "eth0")
        ip("-n", space(host), "link", "set", "eth0", "up")
        ip("-n", space(host), "link", "set", "lo", "up")


def tear_down():
    for host in range(HOSTS + 1):
        ip("netns", "del", space(host), quiet=True)


def agent(folder):
    """What the launcher takes for ssh: AGENT [-x] ADDRESS COMMAND..., into the namespace, under another name."""
    path = folder / "agent"
    path.write_text(f"""#!/bin/sh
[ "$1" != -x ] || shift
host=${{1##*.}}
shift
exec ip netns exec {space('')}$host unshare --uts sh -c "hostname host$host; $*"
""")
    path.chmod(0o755)
    return path


def open_mpi_command(folder, hosts):
    mca = {"plm_rsh_agent": str(agent(folder)), "btl": "tcp,self", "plm_rsh_no_tree_spawn": "1",
           "btl_tcp_if_include": f"{NET}.0/24", "oob_tcp_if_include": f"{NET}.0/24",
           "orte_keep_fqdn_hostnames": "1"}
    command = ["mpirun", "--enable-recovery", "--bind-to", "none", "--host", hosts, "-n",
               str(HOSTS * PER_HOST), "-x", "GPUMEMTOPO_EXIT_FILE", "-x", "GPUMEMTOPO_CONFIG_DIR",
               "-x", "GPUMEMTOPO_TEST_MARK", "-x", "ASAN_OPTIONS"]
    for key, value in mca.items():
        command += ["--mca", key, value]
    return command


def mpich_command(folder, hosts):
    return ["mpiexec.hydra", "-disable-auto-cleanup", "-launcher", "ssh", "-launcher-exec", str(agent(folder)),
            "-iface", "eth0", "-hosts", hosts, "-n", str(HOSTS * PER_HOST), "-genv", "UCX_TLS", "tcp,self",
            "-genv", "UCX_NET_DEVICES", "eth0"]


def start(folder, *args):
    hosts = ",".join(f"{NET}.{host}:{PER_HOST}" for host in range(1, HOSTS + 1))
    code = folder / "code"
    code.write_text("")
    command = mpich_command(folder, hosts) if MPICH else open_mpi_command(folder, hosts)
    env = environment(GPUMEMTOPO_EXIT_FILE=str(code))
    inside = ["ip", "netns", "exec", space(1), "unshare", "--uts", "sh", "-c",
              'hostname host1; exec "$@"', "sh"]
    if MPICH:  # over TCP its ranks wait for each other in MPI_Finalize until the survey gives it up, and compute meanwhile
        inside = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *inside]
    return subprocess.Popen(
        [*inside, *command, PROGRAM, "--simulate", "fleet.yaml", "-o", "out.yaml", "--probes",
         "main.latency", "--time-limit", str(LIMIT_S), "--no-progress", *args], cwd=folder, env=env,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def fleet(folder, faults=""):
    write_fleet(folder, [node(f"n{i + 1}", PER_HOST, faults if i == 3 else "")
                         for i in range(HOSTS)])


def case_together(folder):
    """All four, to the end."""
    fleet(folder)
    run = start(folder)
    try:
        said = run.communicate(timeout=HANGS_S)[1]
    except subprocess.TimeoutExpired:
        check(False, f"does not end; still there: {marked()}, spool: {list(folder.glob('*.spool/*'))}")
    text = (folder / "out.yaml").read_text()
    check((folder / "code").read_text() == "0\n", said)
    check(field(text, "ranks") == "16" and field(text, "measured") == "16", text)


def case_cut_off(folder):
    """Ranks 12 to 15 are on host 4, and their GPUs hang: they have said nothing yet."""
    fleet(folder, "{gpu: all, kind: hang, after: 1}")
    run = start(folder)
    spool = folder / "out.yaml.spool"
    begin = time.monotonic()
    while len(list(spool.glob("gpu-*.spool"))) < (HOSTS - 1) * PER_HOST:
        check(time.monotonic() - begin < HANGS_S, f"not there yet: {marked()}")
        time.sleep(0.1)
    begin = time.monotonic()
    ip("-n", space(0), "link", "set", "p4", "down")
    output = folder / "out.yaml"
    while not output.exists() and time.monotonic() - begin < HANGS_S:
        time.sleep(0.1)
    took_s = time.monotonic() - begin
    check(output.exists(), "no inventory")
    check(took_s < 2 * LIMIT_S + (10 * SLOWER + 5) * busy(), f"took {took_s:.1f} s")  # 5 s: mpirun over four hosts
    text = output.read_text()
    for _ in range(100):  # until all that can leave have left
        if (folder / "code").read_text():
            break
        time.sleep(0.1)
    check(field(text, "measured") == "12" and field(text, "lost_ranks") == "4", text)
    for rank in range(12, 16):
        check(re.search(rf"rank: {rank}, .*status: lost, reason: rank {rank} on host4 fell silent",
                        text), text)
    # mpirun itself waits for its daemon on the lost host, for as long as TCP has hope.
    subprocess.run(["ip", "netns", "exec", space(1), "kill", "-KILL", str(run.pid)])
    run.wait(timeout=60)
    check((folder / "code").read_text() == "4 lost\n", "exit code")


def prepared(case):
    def run(folder):
        if os.getuid() != 0 or not shutil.which("ip"):
            sys.exit(SKIP)
        try:
            build()
        except OSError as error:
            tear_down()
            print(error)
            sys.exit(SKIP)
        try:
            case(folder)
        finally:
            for host in range(1, HOSTS + 1):
                pids = subprocess.run(["ip", "netns", "pids", space(host)], capture_output=True,
                                      text=True).stdout.split()
                for pid in pids:  # who was cut off knows of no end
                    try:
                        os.kill(int(pid), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            tear_down()
    return run


main({name: prepared(case) for name, case in list(globals().items()) if name.startswith("case_")})
