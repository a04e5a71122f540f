"""What the metrics say of single GPUs and nodes, compared with the inventory: kinds, counters, nodes, missing results.

states.py REPORT
"""
import sys
import tempfile

import fleets

REPORT = sys.argv[1]


def found(data, name, **wanted):
    """[(labels, value)] of the samples of a metric that have these labels."""
    with tempfile.TemporaryDirectory() as folder:
        return [(labels, value) for own, labels, value in fleets.samples(fleets.metrics(REPORT, folder, data))
                if own == name and wanted.items() <= labels.items()]


def check_places():
    """UUID, hostname and gpu are those of the inventory; an unknown index is empty."""
    data = fleets.demo()
    data["gpus"][0]["index"] = None
    told = {labels["UUID"]: (labels["hostname"], labels["gpu"]) for labels, _ in found(data, "gpumemtopo_gpu_info")}
    buses = {labels["UUID"]: labels["pci_bus_id"] for labels, _ in found(data, "gpumemtopo_gpu_info")}
    assert buses == {gpu["uuid"]: "0000" + gpu["pci"].upper() for gpu in data["gpus"]}, buses
    assert told == {gpu["uuid"]: (gpu["node"], "" if gpu["index"] is None else str(gpu["index"])) for gpu in data["gpus"]}, told


def check_kinds():
    data = fleets.demo()
    told = {labels["UUID"]: labels["verdict"] for labels, _ in found(data, "gpumemtopo_outlier_info")}
    assert told == {one["uuid"]: one["verdict"] for one in data["outliers"]} and len(told) == 9, told
    flags = {labels["UUID"]: value for labels, value in found(data, "gpumemtopo_gpu_outlier")}
    busy = next(gpu["uuid"] for gpu in data["gpus"] if gpu["status"] == "busy")
    assert {uuid for uuid, value in flags.items() if value} == set(told) and busy not in flags, flags
    # A finding about a node makes its GPUs outliers; the stronger action counts.
    fine = [gpu for gpu in data["gpus"] if gpu["status"] == "ok" and gpu["node"] == "demo1"]
    slow = next(one for one in data["outliers"] if one["verdict"] == "degraded")
    data["nodes"].append({"node": "demo1", "finding": "3 of 4 GPUs: host.bandwidth.h2d 6 GB/s, expected 12 GB/s (-50.0 %): a bad riser",
                          "verdict": "failing", "loss": None, "action": "drain", "gpus": [slow["uuid"], *(gpu["uuid"] for gpu in fine)]})
    for gpu in fine:
        gpu["status"] = "outlier"
    data["survey"]["outliers"] += len(fine)
    told = {labels["UUID"]: labels for labels, _ in found(data, "gpumemtopo_outlier_info")}
    for uuid in data["nodes"][-1]["gpus"]:
        assert (told[uuid]["verdict"], told[uuid]["metric"], told[uuid]["cause"]) == (
            "failing", "host.bandwidth.h2d", "a bad riser"), told[uuid]
    assert len(told) == 9 + len(fine), told


def check_health():
    data = fleets.demo()
    fine = [gpu for gpu in data["gpus"] if gpu["status"] == "ok"]
    measured = [gpu for gpu in data["gpus"] if gpu["status"] in ("ok", "outlier")]

    def known(fact):
        return found(data, "gpumemtopo_health_known_gpus", fact=fact)[0][1]
    before = known("pcie_replays"), known("xid")
    assert before == (len(measured), len(measured)), before
    fine[0]["health"] = {"pcie_replays": 7, "remap_failed": True, "xid": "63 (a row), 94 (contained), 63 (a row)"}
    fine[1]["health"] = {"pcie_replays": None, "xid": None}
    told = {labels["fact"]: value for labels, value in found(data, "gpumemtopo_gpu_health", UUID=fine[0]["uuid"])}
    assert told == {"pcie_replays": 7, "remap_failed": 1, "xid_63": 1, "xid_94": 1}, told
    assert not found(data, "gpumemtopo_gpu_health", UUID=fine[1]["uuid"])
    assert (known("pcie_replays"), known("xid")) == (before[0] - 1, before[1] - 1), "not known is not 0"
    # What most GPUs of a model have is not repeated in the inventory. Of GPUs that were not measured it is not known.
    model = data["models"][0]
    model["health"]["retired_pages_corrected"] = 3
    told = {labels["UUID"]: value for labels, value in found(data, "gpumemtopo_gpu_health", fact="retired_pages_corrected")}
    assert told == {gpu["uuid"]: 3 for gpu in measured if gpu["model"] == model["id"]}, told


def check_nodes():
    data = fleets.planted()
    told = {(labels["hostname"], labels["about"], labels["verdict"]) for labels, _ in found(data, "gpumemtopo_node_finding_info")}
    assert told == {("demo6", "no_gpus", "unknown"), ("demo7", "fewer_gpus", "failing")}, told
    told = {(labels["hostname"], labels["status"]): value for labels, value in found(data, "gpumemtopo_node_unmeasured")}
    assert told == {("demo4", "crashed"): 1, ("demo5", "busy"): 1, ("demo8", "lost"): 1}, told
    data["unmeasured"].append(dict(data["unmeasured"][-1], rank=2))
    data["survey"].update(unmeasured=4, lost_ranks=2)
    assert found(data, "gpumemtopo_node_unmeasured", hostname="demo8")[0][1] == 2


check_places()
check_kinds()
check_health()
check_nodes()
