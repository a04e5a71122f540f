"""tools/gpumemtopo-kit on simulated nodes: kit.py SURVEY REPORT SOURCE_ROOT PREDICT CASE [LIBRARY_PATH]

nvidia-smi is a stand-in that lists the GPUs of the case. In the case `driver`, so is the driver.
"""
import os
import re
import shutil
import subprocess
import sys
import tarfile

from programs import folder, report, root, survey, write_script

predict, case = sys.argv[4:6]
libraries = {}
if case == "driver":
    libraries = {"LD_LIBRARY_PATH": sys.argv[6], "FAKE_CUDA_DEVICES": "4", "FAKE_CUDA_MEMORY": "160"}
NAME = "kit-node7"
USER = "somebody-else"
ORDINARY = "nvidia"  # also a user's name, but it cannot be told from the vendor's


def make_fleet(gpus, more="", name=NAME, config=""):
    """A node of tiny GPUs, whose L2 is smaller still, and one process for all."""
    model = folder / "tiny.yaml"
    model.write_text((root / "tests/survey/tiny.yaml").read_text().replace("256 KiB", "64 KiB").replace("config: {", "config: {" + config))
    fleet = folder / "fleet.yaml"
    fleet.write_text(f"nodes:\n  - {{name: {name}, gpus: {gpus}, model: {model}{more}}}\n")
    return fleet


def listed(fleet):
    """The UUIDs of the GPUs, as a healthy driver would list them."""
    healthy = re.sub(", faults: .*]", "", fleet.read_text())
    plain = folder / "healthy.yaml"
    plain.write_text(healthy)
    subprocess.run([survey, "--simulate", plain, "--probes", "main.size", "--quiet", "-o", folder / "all.yaml"], check=True)
    return re.findall(r"uuid: (GPU-[0-9a-f-]+)", (folder / "all.yaml").read_text())


def make_driver(lines, peers=0):
    cells = [f"GPU{i} " + " ".join("X" if i == j else "OK" for j in range(peers)) for i in range(peers)]
    matrix = "\n".join([" " + " ".join(f"GPU{i}" for i in range(peers)), *cells])
    write_script(folder / "nvidia-smi", 'case "$*" in\n-L) cat <<E\n%s\nE\n;;\n"topo -p2p r") cat <<E\n%s\nE\n;;\nesac\n' %
                 ("\n".join(lines), matrix))


def kit(fleet, *flags, code, wrapper="", user=USER, host=NAME):
    """What it prints, and the texts of the files of its archive."""
    programs = folder / "bin"
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir()
    shutil.copy(root / "tools/gpumemtopo-kit", programs)
    for path in (report, predict):
        os.symlink(os.path.abspath(path), programs / os.path.basename(path))
    write_script(programs / "gpumemtopo-survey", wrapper + f'\nexec {survey} "$@"\n')
    archive = folder / "sent.tar.gz"
    archive.unlink(missing_ok=True)
    env = {**os.environ, "NVIDIA_SMI": str(folder / "nvidia-smi"), "USER": user, "HOSTNAME": host, "LOGNAME": ORDINARY, "TMPDIR": str(folder), **libraries}
    done = subprocess.run([programs / "gpumemtopo-kit", *(["--simulate", fleet] if fleet else []), "-o", archive, *flags], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, f"exit code {done.returncode} instead of {code}:\n{done.stdout}"
    left = list(folder.glob("tmp.*"))
    # What was measured is kept if there is no archive of it, and it says where.
    assert bool(left) == ("All files, with names too, are in" in done.stdout), f"{left} left behind:\n{done.stdout}"
    for path in left:
        shutil.rmtree(path)
    if not archive.exists():
        return done.stdout, None
    assert str(archive) in done.stdout.splitlines()[-1], done.stdout
    ordinary = re.search("^Ordinary words of its files, .*: (.*)$", done.stdout, re.M)[1].split()
    assert set(ordinary) == {ORDINARY} | {user, host} - {USER, NAME}, done.stdout
    with tarfile.open(archive) as tar:
        assert all(not item.uname and not item.uid for item in tar)
        files = {os.path.basename(item.name): tar.extractfile(item).read() for item in tar if item.isfile()}
    for name, content in files.items():
        for secret in (NAME, USER, str(folder), *uuids):
            assert secret.encode() not in content, f"{name} has {secret}"
    return done.stdout, files


def line(said, how, step, text=""):
    assert re.search(rf"^{how} +{step} +.*{text}", said, re.M), f"no line '{how} {step} {text}':\n{said}"


CHEAP = "quick-1,quick-2,load,load-one,memory,links,together,repeat,replay,openmpi,mpich,no-mpi,reports"
uuids = []
if case == "four":
    fleet = make_fleet(4, ", links: {shape: switches, gb_per_s: 200}")
    uuids = listed(fleet)
    make_driver([f"GPU {i}: Tiny (UUID: {uuid})" for i, uuid in enumerate(uuids)], peers=4)
    said, files = kit(fleet, "--only", CHEAP, code=0)
    assert "FAILED: 0" in said, said
    line(said, "passed", "list", "GPUs: 4, all that the driver lists")
    line(said, "passed", "links", "all 12 pairs measured, 12 with peer access")
    line(said, "passed", "together", "4 GPUs copied at once")
    line(said, "passed", "repeat", "quick-1 and quick-2 agree")
    line(said, "passed", "replay", "the record of quick-1 gives the same inventory")
    for step in ("load", "load-one", "memory", "reports"):
        line(said, "passed", step)
    assert {"results.txt", "machine.txt", "quick-1.gmr", "links.yaml"} <= set(files), set(files)
    assert b"anonymous: true" in files["links.yaml"]
    # The shipped node to try it with.
    make_driver([])
    said, files = kit(root / "configs/fleets/two.yaml", "--only", "quick-1,load-one,links,together", code=0)
    assert "passed: 7; FAILED: 0; not here: 0" in said, said
    # One GPU less than the driver lists, and pairs that the driver calls peers without peer access.
    make_driver([f"GPU {i}: Tiny (UUID: {uuid})" for i, uuid in enumerate([*uuids, uuids[0].replace("-5", "-6")])], peers=5)
    said, files = kit(fleet, "--only", "links", "--no-records", code=3)
    line(said, "FAILED", "list", "GPUs: 4; 1 of 5")
    line(said, "FAILED", "links", "20 pairs are peers, 12 have")
elif case == "one":
    fleet = make_fleet(1)
    uuids = listed(fleet)
    make_driver([f"GPU 0: Tiny (UUID: {uuids[0]})"])
    said, files = kit(fleet, "--only", "quick-1,standard-1,full,load-one,links,together,repeat,replay,mig,reports", code=0)
    for step in ("links", "together", "load-one"):
        line(said, "not here", step, "it needs two GPUs")
    for step in ("standard-1", "full"):
        line(said, "passed", step, "GPUs: 1;")
    for step in ("quick-1", "standard-1", "full"):
        line(said, "passed", "replay", f"the record of {step} gives")
    line(said, "passed", "repeat", "standard-1 and full agree")
    assert b"<html" in files["full.html"] and "FAILED: 0" in said
    # An anonymous record has no map of latencies between SMs.
    (folder / "full.gmr").write_bytes(files["full.gmr"])
    again = subprocess.run([survey, "--replay", folder / "full.gmr", "--quiet", "-o", "-"], stdout=subprocess.PIPE, text=True)
    cluster = re.search(r"^      cluster:\n(?:        .*\n)*", again.stdout, re.M)[0]
    assert re.search(r"latency: {value: null, status: failed, reason: \"left out", cluster), cluster
    # Steps that have nothing to read say so.
    said, files = kit(fleet, "--only", "quick-1,repeat,replay", "--no-records", code=0)
    line(said, "not here", "repeat", "no two steps")
    line(said, "not here", "replay", "there is no record: --no-records was given")
    fails = 'case "$*" in *quick-2*) exit 1;; esac'
    said, files = kit(fleet, "--only", "quick-1,quick-2,repeat", code=3, wrapper=fails)
    line(said, "not here", "repeat", "quick-1 and quick-2: there is no inventory of quick-2")
elif case == "broken":
    fleet = make_fleet(2, ", links: {shape: switches, gb_per_s: 200}, faults: [{gpu: 1, kind: crash, after: 100}, {gpu: 0, kind: dead_link}]")
    uuids = listed(fleet)
    make_driver([f"GPU {i}: Tiny (UUID: {uuid})" for i, uuid in enumerate(uuids)], peers=2)
    said, files = kit(fleet, "--only", "quick-1,links,replay,reports", code=3)
    line(said, "passed", "list", "GPUs: 2")
    line(said, "FAILED", "quick-1", "1 of 2 GPUs not measured: worker killed by signal 11")
    line(said, "FAILED", "links", "of 2 pairs .* wrong, failed or not measured")
    line(said, "passed", "replay")
    line(said, "passed", "reports")
    # A step that does not end, and one that dies, lose only themselves.
    hang = 'case "$*" in *memory.whole*) sleep 100;; *--load*) echo dies; kill -SEGV $$;; esac'
    said, files = kit(fleet, "--only", "memory,load,together", "--limit", "4", code=3, wrapper=hang)
    line(said, "FAILED", "memory", "it had not ended after its limit")
    line(said, "FAILED", "load", "exit code 139: dies; there is no inventory")
    assert b"together.gpus" in files["together.yaml"]
elif case == "mig":
    fleet = make_fleet(2, ", faults: [{gpu: all, kind: mig_on}]")
    uuids = [*listed(fleet), "MIG-0f0f0f0f-1111-2222-3333-444444444444"]
    make_driver([f"GPU 0: Tiny (UUID: {uuids[0]})", f"GPU 1: Tiny (UUID: {uuids[1]})", f"  MIG 1g.10gb Device 0: (UUID: {uuids[2]})"])
    said, files = kit(fleet, "--only", "mig", code=0)
    line(said, "passed", "mig-1")
    assert b"mig: true" in files["mig-1.yaml"]
    make_driver([f"GPU 0: Tiny (UUID: {uuids[0]})"])
    said, files = kit(fleet, "--only", "mig", code=0)
    line(said, "not here", "mig", "lists no MIG instance")
    # What GPUs of a kind cannot have is not here, with the reason, and nothing else fails.
    pairs = ", links: {shape: switches, gb_per_s: 200}"
    steps = ["load", "load-one", "memory", "links", "together"]
    none = "the simulated node has no links between its GPUs"
    make_driver([])
    for config, more, reasons in (
            ("", "", {"links": none, "together": none}),
            ("mig: true, mig_profile: 1g.1gb, ", pairs, {"links": "a MIG instance has no links", "together": "the MIG instances of a GPU share"}),
            ("virtualization: vgpu, ", pairs, {"load": "others may use", "load-one": "others may use", "memory": "a virtual GPU has a part",
                                               "links": "a virtual GPU has no", "together": "the virtual GPUs"}),
            ('confidential_computing: "on", ', pairs, {"links": "with confidential computing, GPUs do not"})):
        said, files = kit(make_fleet(2, more, config=config), "--only", ",".join(steps), code=0)
        assert "FAILED: 0" in said, said
        for step in steps:
            line(said, "not here" if step in reasons else "passed", step, reasons.get(step, "GPUs: 2"))
    # With two whole GPUs, one that sees the other no longer is a failure; so is a load or a test of memory without a figure.
    lacks = f"""{survey} "$@"; code=$?; case "$*" in *--load*) metric=flops;; *links*) metric=peers;; *) metric=errors;; esac
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
sed -i "s/\\(  $metric: {{value: \\)[^}}]*/\\1null, status: unsupported, reason: it is not a MIG day/; s/\\.$metric: [[][^]]*/.$metric: [null, null, unsupported/" "$2"
exit $code"""
    said, files = kit(make_fleet(2, pairs), "--only", "load,memory,links", code=3, wrapper=lacks)
    for step, metric in (("load", "load.flops"), ("memory", "main.whole.errors"), ("links", "links.peers")):
        line(said, "FAILED", step, f"{metric}: 0 of 2 GPUs have it")
elif case == "driver":
    make_driver([])
    said, files = kit(None, "--only", "memory,links,together", code=0)
    line(said, "passed", "memory", "GPUs: 4;")
    line(said, "passed", "links", "all 12 pairs measured, 12 with peer access")
    line(said, "passed", "together", "4 GPUs copied at once")
    assert b"backend: cuda" in files["links.yaml"]
elif case == "names":
    fleet = make_fleet(1)
    uuids = listed(fleet)
    make_driver([])
    # Programs that do not replace names: of the record, of the inventory, of both.
    forgets = 'for word; do shift; [ "$word" = --anonymous ] || set -- "$@" "$word"; done'
    said, files = kit(fleet, "--only", "quick-1", code=1, wrapper=forgets)
    assert files is None and "quick-1.gmr" in said and "quick-1.yaml" in said, said
    # Names that the programs do not have must stand nowhere. The others, which are words of the inventory or of the page, must not
    # stand where a name can.
    add = f'"{survey}" "$@"; code=$?; while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done; [ $# -eq 0 ] || printf "# %%s\\n" %s >>"$2"; exit $code'
    for user, host, leaks in (
            (USER, NAME, {NAME: NAME, f"x{USER}y": f"x{USER}y", "a.b@machine.example.org": "a.b@machine.example.org", "/home/joe/x": "/home/joe",
                          "GPU-01234567-89ab-cdef-0123-456789abcdef": "GPU-01234567-89ab-cdef-0123"}),
            ("mueller", "gpu017", {"x gpu017 y": "gpu017", "mygpu017": "mygpu017", "/scratch/mueller/x": "mueller", "node: gpu017": "node: gpu017"}),
            ("max", "test", {"/scratch/test/x": "/scratch/test", "/dev/shm/max": "/dev/shm/max", "node: test": "node: test", "USER=max": "USER=max",
                             "SLURMD_NODENAME=test": "NODENAME=test", "joe@test": "e@test", "rank 3 on test fell silent": "on test",
                             "<tr><td>test<td>": "<tr><td>test<"})):
        said, files = kit(fleet, "--only", "quick-2", code=1, wrapper=add % " ".join(f"'{text}'" for text in leaks), user=user, host=host)
        for secret in leaks.values():
            assert f"quick-2.yaml:{secret}\n" in said, f"{secret} was not found:\n{said}"
    for user, host in (("max", "test"), ("mark", "node")):
        kit(fleet, "--only", "standard-1", code=0, user=user, host=host)
    said, files = kit(make_fleet(1, name="test"), "--only", "quick-1", code=1, wrapper=forgets)
    assert files is None and "quick-1.gmr: " in said and "quick-1.yaml:node: test" in said, said
    # A pseudonym stands for a word of the program too, and the record still gives the same inventory.
    said, files = kit(make_fleet(1, name="one"), "--only", "standard-1,replay", code=0, host="one")
    line(said, "passed", "replay", "the record of standard-1")
    assert b"reason: L2 has node-" in files["standard-1.yaml"], files["standard-1.yaml"]
    make_fleet(1)
    # Bad usage, and a node without GPUs.
    for flags in (["--only", "nothing"], ["--limit", "0"], ["--surprise"]):
        assert "gpumemtopo-kit: error: " in kit(fleet, *flags, code=2)[0]
    assert "no GPU was found" in kit(make_fleet(0), code=1)[0]
print(said)
