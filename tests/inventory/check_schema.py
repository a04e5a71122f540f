"""The rich inventory must satisfy the published schema, and the schema must refuse mistakes."""
import copy
import json
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"not installed: {missing.name}")
    sys.exit(77)


def at(data, path):
    for key in path[:-1]:
        data = data[key]
    return data, path[-1]


SIZE = ["models", 0, "memory", "l1_data", "size"]
MISTAKES = [
    (["extra"], 1),
    (["gpumemtopo", "schema"], 1),
    (["gpumemtopo", "extra"], 1),
    (["gpumemtopo", "generated"], "yesterday"),
    (["survey", "exit_code"], 5),
    (["survey", "nodes"], -1),
    (["models", 0, "id"], None),
    (["models", 0, "extra"], 1),
    (["models", 0, "identity", "list"], [1]),
    (["models", 0, "memory", "l1_data", "odd"], 3),
    (SIZE + ["value"], "big"),
    (SIZE + ["value"], None),
    (SIZE + ["confidence"], 1.5),
    (SIZE + ["confidence"], None),
    (SIZE + ["n"], -1),
    (SIZE + ["status"], "fine"),
    (SIZE + ["status"], "failed"),
    (SIZE + ["bound"], "at_most"),
    (["gpus", 0, "status"], "fine"),
    (["gpus", 0, "extra"], 1),
    (["gpus", 0, "values", "main.latency"], [1]),
    (["gpus", 0, "values", "main.latency"], [1, "x"]),
    (["gpus", 0, "values", "main.latency"], [1, 1, "x"]),
    (["gpus", 0, "first_try"], {"status": "ok", "reason": None}),
    (["gpus", 0, "measured_again"], {"main.latency": "slow"}),
    (["gpus", 0, "measured_again"], {"main.latency": -1}),
    (["nodes", 0, "verdict"], "x"),
    (["outliers", 0, "verdict"], "odd"),
    (["outliers", 0, "evidence", 0, "metric"], None),
    (["outliers", 0, "evidence", 0, "confirmed"], "by 1 figures"),
    (["outliers", 0, "evidence", 0, "confirmed"], "3 of 2"),
    (["watch", 0, "action"], "jump"),
    (["outliers", 0, "loss"], "much"),
    (["unmeasured", 0, "status"], "odd"),
]
MISSING = [["watch"], ["survey", "ranks"], SIZE + ["value"], SIZE + ["unit"], ["gpus", 0, "values"],
           ["outliers", 0, "verdict"], ["unmeasured", 0, "reason"]]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    validator_class = jsonschema.validators.validator_for(schema)
    validator_class.check_schema(schema)
    validator = validator_class(schema)
    text = subprocess.run([sys.argv[2]], check=True, stdout=subprocess.PIPE).stdout
    data = yaml.safe_load(text.decode("utf-8"))
    validator.validate(data)
    for path, value in MISTAKES:
        wrong = copy.deepcopy(data)
        parent, key = at(wrong, path)
        parent[key] = value
        assert not validator.is_valid(wrong), f"accepted: {path} = {value}"
    for path in MISSING:
        wrong = copy.deepcopy(data)
        parent, key = at(wrong, path)
        del parent[key]
        assert not validator.is_valid(wrong), f"accepted without {path}"


main()
