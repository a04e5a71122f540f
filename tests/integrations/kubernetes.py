"""The manifests of integrations/kubernetes against schemas, and their command lines: kubernetes.py SURVEY REPORT SOURCE_ROOT

The commands run as they are in the manifests, with the volume in a scratch folder and simulated GPUs. There is no
Kubernetes: that pods are placed and volumes mounted as the manifests say is not tested.
"""
import re
import shutil
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"not installed: {missing.name}")
    sys.exit(77)

import programs
from kubernetes_schema import SCHEMAS
from programs import CRASHED, FAILING, INTEGRATIONS, fleet, folder, run, simulated

MANIFESTS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in (INTEGRATIONS / "kubernetes").glob("*.yaml")}
out = folder / "out"


def load(text):
    return yaml.load(text, yaml.CSafeLoader)


def check_schemas():
    assert set(MANIFESTS) == {"survey-job", "merge-job", "survey-mpijob"}, set(MANIFESTS)
    for name, manifest in MANIFESTS.items():
        schema = SCHEMAS[manifest["kind"]]
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(manifest, schema)
        validator = jsonschema.Draft202012Validator(schema)
        text = yaml.safe_dump(manifest)
        # The schema notices misspelt fields: each one is misspelt in turn.
        for field in set(re.findall(r"^ *-? ?([a-z][A-Za-z]+):", text, re.M)) - {"app"}:
            assert not validator.is_valid(load(re.sub(rf"\b{field}:", f"{field}x:", text))), (name, field)


def pod_of(template):
    """The container, and its environment; every volume that it mounts is there."""
    (container,) = template["spec"]["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"out": "/out"} and {v["name"] for v in template["spec"]["volumes"]} == {"out"}
    return container, {entry["name"]: entry.get("value") for entry in container.get("env", [])}


def check_places(template, gpus):
    """One pod per node, with all its GPUs, named as the node."""
    spec = template["spec"]
    (rule,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert spec["hostNetwork"] and spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == gpus
    assert any(entry["key"] == "nvidia.com/gpu" for entry in spec["tolerations"])


def start(container, env, path, code=None):
    """Runs the command of a container; /out is the scratch folder."""
    words = [word.replace("/out", str(out)) for word in [*container["command"], *container["args"]]]
    return run(words, code=code, path=path, env=env, cwd=folder)


def check_jobs():
    job, merge = MANIFESTS["survey-job"]["spec"], MANIFESTS["merge-job"]["spec"]
    nodes = job["completions"]
    assert job["completionMode"] == "Indexed" and job["parallelism"] == nodes
    check_places(job["template"], 8)
    survey_pod, env = pod_of(job["template"])
    merge_pod, merge_env = pod_of(merge["template"])
    assert merge_env["RUN"] == env["RUN"] and merge_env["NODES"] == str(nodes)
    assert merge["template"]["spec"]["volumes"] == job["template"]["spec"]["volumes"]
    assert env["NODE_NAME"] is None, "from the downward API"

    def survey_node(node, faults="", code=0):
        path = simulated(f"pod-{node}", fleet(node, [node], 8, faults))
        return start(survey_pod, {**env, "NODE_NAME": node, "PROFILE": "quick"}, path, code)

    def merged(code):
        return start(merge_pod, merge_env, simulated("merge", "none"), code)

    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    merged(1)  # nothing was surveyed: neither healthy nor a crash
    survey_node("n1", code=0)
    first = out / env["RUN"] / "n1.yaml"
    before = first.read_bytes()
    done = merged(4)
    assert f"1 of {nodes} nodes were surveyed" in done.stderr, done
    done = survey_node("n1", code=0)  # a second pod on the same node
    assert "surveyed by another pod" in done.stderr and first.read_bytes() == before, done
    survey_node("n2", code=0)
    done = merged(0)
    assert "16 GPUs on 2 nodes (simulated): 16 measured" in done.stdout, done
    (out / env["RUN"] / "n2.yaml").unlink()
    survey_node("n2", FAILING)
    merged(3)
    (out / env["RUN"] / "n2.yaml").unlink()
    survey_node("n2", CRASHED)
    done = merged(4)
    assert "1 not measured" in done.stdout, done
    # A survey that fails is a pod that fails.
    first.unlink()
    assert start(survey_pod, {**env, "NODE_NAME": "n1"}, simulated("bad", "no-such-fleet.yaml")).returncode == 2


def check_mpi_job():
    spec = MANIFESTS["survey-mpijob"]["spec"]
    workers = spec["mpiReplicaSpecs"]["Worker"]
    slots, count = spec["slotsPerWorker"], workers["replicas"]
    check_places(workers["template"], slots)
    launcher, env = pod_of(spec["mpiReplicaSpecs"]["Launcher"]["template"])
    worker, _ = pod_of(workers["template"])
    script = launcher["args"][0]
    assert f"-n {slots * count} " in script and worker["command"] == ["/usr/sbin/sshd"]
    assert f"-p {worker['args'][worker['args'].index('-p') + 1]} " in script, "ssh and sshd use the same port"
    if not shutil.which("mpirun"):
        print("mpirun is not installed")
        sys.exit(77)
    out.mkdir(exist_ok=True)
    # As the operator does: the hosts are in a file that the environment names.
    hosts = folder / "hostfile"
    hosts.write_text(f"localhost slots={slots * count}\n")
    env = {**env, "PROFILE": "quick", "OMPI_MCA_orte_default_hostfile": str(hosts)}
    for name, faults, code in (("mpi", "", 0), ("mpi-bad", FAILING, 3)):
        start(launcher, env, simulated(name, fleet(name, ["n1", "n2"], slots, faults)), code)
        inventory = yaml.safe_load((out / f"{env['RUN']}.yaml").read_text())
        assert inventory["survey"]["gpus"] == slots * count == inventory["survey"]["ranks"], inventory["survey"]
    start(launcher, env, simulated("mpi-none", "no-such-fleet.yaml"), 1)  # the old inventory does not count


{"schema": check_schemas, "jobs": check_jobs, "mpijob": check_mpi_job}[sys.argv[4]]()
