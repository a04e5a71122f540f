"""PyYAML, a YAML 1.1 reader, must find the same values in the rich inventory as were put in."""
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("python3-yaml is not installed")
    sys.exit(77)

HOSTILE = {
    4: "yes", 13: "12", 15: "9.0", 16: "1e5", 23: "12:30:45", 24: "0000:1b:00.0",
    25: "2026-11-14", 26: "2026-11-14T12:00:00Z", 27: "0.1.0", 58: "line\nbreak",
    60: "\x01\x02\x1b[31mred\x07\x7f", 61: "C1 \x85\x9b",
}


def main():
    text = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE).stdout
    data = yaml.safe_load(text.decode("utf-8"))
    assert list(data) == ["gpumemtopo", "survey", "models", "gpus", "nodes", "outliers", "watch",
                          "unmeasured"], list(data)
    assert data["gpumemtopo"]["version"] == "0.1.0"
    assert data["gpumemtopo"]["generated"] == "2026-11-14T12:00:00Z"
    assert data["gpumemtopo"]["seed"] == 2**64 - 1
    for node in data["nodes"]:
        assert isinstance(node["finding"], str), node
    for index, wanted in HOSTILE.items():
        assert data["nodes"][index]["finding"] == wanted, (index, data["nodes"][index])
    assert data["nodes"][-1] == {"node": None, "finding": '"' * 65536, "verdict": "built_slower", "loss": None, "action": "tell", "gpus": []}
    model = data["models"][0]
    identity = model["identity"]
    assert identity["compute_capability"] == "9.0" and identity["ecc"] is True
    assert identity["clock_mhz"] == 1980.5 and identity["broken"] is None
    assert identity["odd key: #"] == "on"
    memory = model["memory"]
    assert memory["main"]["bandwidth"]["read"]["value"] == 4534.5
    assert memory["main"]["latency"]["spread"] == 1 / 3
    assert memory["l1_data"]["reach"]["value"] == 1e17
    assert memory["l1_data"]["shared_with"]["value"] == ["texture", "read_only", "off"]
    assert memory["tlb.reach.l1"]["value"] == 5e-324
    gpu = data["gpus"][0]
    assert gpu["pci"] == "0000:00:00.0" and gpu["serial"] == "1650000000001"
    assert gpu["values"]["main.latency"] == [None, 0.30000000000000004, "failed"]
    finding = data["outliers"][0]["evidence"][1]
    assert finding["score"] is None and finding["deviation"] == -0.327


main()
