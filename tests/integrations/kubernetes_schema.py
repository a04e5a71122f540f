"""The fields of batch/v1 Job and of kubeflow.org/v2beta1 MPIJob that the manifests use, as JSON schemas.

Types and meanings are those of the API references; a field that is not here is refused, so that a misspelt one is.
"""
NAME = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}
COUNT = {"type": "integer", "minimum": 0}
TEXT = {"type": "string", "minLength": 1}


def record(required=(), **fields):
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": fields}


def several(items):
    return {"type": "array", "minItems": 1, "items": items}


# A quantity of resource.Quantity; extended resources such as nvidia.com/gpu are whole numbers, and only limits.
QUANTITY = {"anyOf": [COUNT, {"type": "string", "pattern": "^[0-9]+(m|Ki|Mi|Gi|Ti|k|M|G|T)?$"}]}
LABELS = {"type": "object", "additionalProperties": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{0,63}$"}}
ENV = {"oneOf": [
    record(["name", "value"], name=TEXT, value={"type": "string"}),
    record(["name", "valueFrom"], name=TEXT, valueFrom=record(
        ["fieldRef"], fieldRef=record(["fieldPath"], fieldPath={
            "enum": ["metadata.name", "metadata.namespace", "spec.nodeName", "status.hostIP", "status.podIP"]}))),
]}
CONTAINER = record(
    ["name", "image"], name=NAME, image=TEXT, command=several({"type": "string"}), args=several({"type": "string"}),
    env=several(ENV),
    resources=record(limits={"type": "object", "additionalProperties": False,
                             "properties": {"cpu": QUANTITY, "memory": QUANTITY, "nvidia.com/gpu": COUNT}}),
    volumeMounts=several(record(["name", "mountPath"], name=NAME, mountPath={"type": "string", "pattern": "^/"})))
ANTI_AFFINITY = record(["requiredDuringSchedulingIgnoredDuringExecution"],
                       requiredDuringSchedulingIgnoredDuringExecution=several(
                           record(["topologyKey", "labelSelector"], topologyKey={"const": "kubernetes.io/hostname"},
                                  labelSelector=record(["matchLabels"], matchLabels=LABELS))))


def pod(restart):
    """A pod template. restart: where the policy is, in the pod (True) or in the replica of an MPIJob."""
    spec = record(
        ["containers", *(["restartPolicy"] if restart else [])], containers=several(CONTAINER),
        automountServiceAccountToken={"type": "boolean"}, hostNetwork={"type": "boolean"},
        dnsPolicy={"enum": ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]},
        affinity=record(podAntiAffinity=ANTI_AFFINITY),
        tolerations=several(record(key=TEXT, operator={"enum": ["Exists", "Equal"]},
                                   effect={"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]})),
        volumes=several(record(["name", "persistentVolumeClaim"], name=NAME,
                               persistentVolumeClaim=record(["claimName"], claimName=NAME))))
    if restart:  # a Job allows no Always
        spec["properties"]["restartPolicy"] = {"enum": ["Never", "OnFailure"]}
    return record(["spec"], metadata=record(labels=LABELS), spec=spec)


METADATA = record(["name"], name=NAME, labels=LABELS)
JOB = record(
    ["apiVersion", "kind", "metadata", "spec"], apiVersion={"const": "batch/v1"}, kind={"const": "Job"},
    metadata=METADATA, spec=record(
        ["template"], completionMode={"enum": ["Indexed", "NonIndexed"]}, completions=COUNT, parallelism=COUNT,
        backoffLimit=COUNT, backoffLimitPerIndex=COUNT, maxFailedIndexes=COUNT,
        activeDeadlineSeconds={"type": "integer", "minimum": 1}, template=pod(True)))
# These two exist for indexed jobs only, and need each other as the reference says.
JOB["properties"]["spec"]["dependentRequired"] = {"maxFailedIndexes": ["backoffLimitPerIndex"],
                                                  "backoffLimitPerIndex": ["completionMode"]}
REPLICA = record(["template"], replicas=COUNT, restartPolicy={"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
                 template=pod(False))
MPI_JOB = record(
    ["apiVersion", "kind", "metadata", "spec"], apiVersion={"const": "kubeflow.org/v2beta1"}, kind={"const": "MPIJob"},
    metadata=METADATA, spec=record(
        ["mpiReplicaSpecs"], slotsPerWorker=COUNT, mpiImplementation={"enum": ["OpenMPI", "Intel", "MPICH"]},
        runPolicy=record(cleanPodPolicy={"enum": ["None", "Running", "All"]}, backoffLimit=COUNT,
                         activeDeadlineSeconds={"type": "integer", "minimum": 1}),
        mpiReplicaSpecs=record(["Launcher", "Worker"], Launcher=REPLICA, Worker=REPLICA)))
SCHEMAS = {"Job": JOB, "MPIJob": MPI_JOB}
