"""Run with a stand-in for ReFrame only (docs/integrations.md), never in ReFrame itself.

A ReFrame test: surveys the GPUs of a node, fails if one is not known to be healthy, and logs their figures.

reframe -c gpumemtopo_check.py -r -S gpus=8

For a partition, set gpus in a class of your own that inherits from this one, and reference as usual.
"""
import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.exceptions import SanityError


@rfm.simple_test
class GpumemtopoCheck(rfm.RunOnlyRegressionTest):
    descr = "GPUs of a node: memory hierarchy, compared with each other and with the models as shipped"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    gpus = variable(int)  # number of GPUs that the node must have; no default: fewer must not pass unnoticed
    profile = variable(str, value="quick")
    baseline = variable(str, value="")  # the last inventory of all nodes: each GPU is compared with itself
    executable = "gpumemtopo-survey"
    num_tasks = 1
    exclusive_access = True
    time_limit = "10m"
    keep_files = ["inventory.yaml"]

    @run_before("run")
    def set_command(self):
        self.executable_opts = ["--no-mpi", "--profile", self.profile, "--no-progress", "-o", "inventory.yaml"]
        if self.baseline:
            self.executable_opts += ["--baseline", self.baseline]
        self.postrun_cmds = ["gpumemtopo-report json -o inventory.json inventory.yaml"]

    def inventory(self):
        try:
            with open(os.path.join(self.stagedir, "inventory.json"), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise SanityError(f"the survey left no inventory: {error}") from error

    @sanity_function
    def all_healthy(self):
        inventory = self.inventory()
        survey = inventory["survey"]
        bad = [f"{outlier['node']} {outlier['uuid']}: {outlier['verdict']}" for outlier in inventory["outliers"]]
        bad += [f"{place['node']}: {place['finding']}" for place in inventory["nodes"] if place["action"] in ("alert", "drain")]
        return sn.all([
            sn.assert_eq(survey["gpus"], self.gpus, "GPUs there: {0}, expected: {1}"),
            sn.assert_eq(survey["measured"], self.gpus, "GPUs measured: {0}, expected: {1}"),
            sn.assert_eq(survey["unmeasured"] + survey["lost_ranks"], 0, "not measured: {0}"),
            sn.assert_eq([gpu["uuid"] for gpu in inventory["gpus"] if gpu["status"] not in ("ok", "outlier")], [],
                         "GPUs without a verdict: {0}"),
            sn.assert_eq(bad, [], "outliers: {0}"),
            sn.assert_eq(survey["exit_code"], 0, "exit code of the survey: {0}"),
        ])

    def worst(self, metric, choose):
        """The worst value of all GPUs. A value that is missing or noisy fails the test; it is never a number."""
        values = []
        for gpu in self.inventory()["gpus"]:
            entry = gpu["values"].get(metric)
            if not entry or entry[0] is None or len(entry) > 2:
                raise SanityError(f"{metric} of {gpu['uuid']} was not measured well: {entry}")
            values.append(entry[0])
        return choose(values)

    @performance_function("GB/s")
    def memory_read(self):
        return self.worst("main.bandwidth.read", min)

    @performance_function("GB/s")
    def host_to_device(self):
        return self.worst("host.bandwidth.h2d", min)

    @performance_function("cycles")
    def memory_latency(self):
        return self.worst("main.latency", max)
