"""A real Prometheus with the shipped rules: alerts, the queries of the dashboard, the join with dcgm-exporter, OpenMetrics.

live.py REPORT. The test serves what Prometheus scrapes; dcgm.prom is a stand-in for dcgm-exporter, written by hand.
"""
import http.server
import json
import pathlib
import re
import shutil
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import fleets
import servers

REPORT = sys.argv[1]
DCGM = pathlib.Path(__file__).with_name("dcgm.prom")
TEXT, OPENMETRICS = "text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0; charset=utf-8"
PATIENCE_S = 200
page = {"type": TEXT, "body": ""}


class Scraped(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, body = (TEXT, DCGM.read_text(encoding="utf-8")) if self.path == "/dcgm" else (page["type"], page["body"])
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Prometheus:
    def __init__(self, folder, target):
        shutil.copy(fleets.WATCH / "gpumemtopo.rules.yml", folder)
        jobs = [{"job_name": job, "metrics_path": path, "static_configs": [{"targets": [target]}]}
                for job, path in (("gpumemtopo", "/metrics"), ("dcgm", "/dcgm"))]
        config = {"global": {"scrape_interval": "300ms", "evaluation_interval": "300ms"},
                  "rule_files": ["gpumemtopo.rules.yml"], "scrape_configs": jobs}
        (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
        self.base, self.process = servers.start_prometheus(folder, folder / "prometheus.yml")

    def get(self, path, **words):
        with urllib.request.urlopen(f"{self.base}/api/v1/{path}?{urllib.parse.urlencode(words)}") as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def alerts(self):
        """{(name, labels)} of all that fire."""
        return {(one["labels"]["alertname"], frozenset(one["labels"].items())): one
                for one in self.get("alerts")["alerts"] if one["state"] == "firing"}

    def rounds(self, count):
        """Waits until, so many times, everything was scraped and after that every rule evaluated."""
        for _ in range(count):
            start = time.time()
            servers.wait_until(lambda: min(self.scrapes()) > start, PATIENCE_S)
            scraped = max(self.scrapes())
            servers.wait_until(lambda: min(self.evaluations()) > scraped, PATIENCE_S)

    def scrapes(self):
        """When each target was last scraped with success; 0: never."""
        targets = self.get("targets", state="active")["activeTargets"]
        return [servers.seconds(one["lastScrape"]) if one["health"] == "up" else 0 for one in targets] or [0]

    def evaluations(self):
        return [servers.seconds(group["lastEvaluation"]) for group in self.get("rules")["groups"]]


def show(prometheus, folder, data, openmetrics=False):
    page["body"] = fleets.metrics(REPORT, folder, data, *(["--openmetrics"] if openmetrics else []))
    page["type"] = OPENMETRICS if openmetrics else TEXT
    prometheus.rounds(3)  # records are made from samples, alerts from records


def names(prometheus):
    return sorted({name for name, _ in prometheus.alerts()})


def check_healthy(prometheus, folder):
    show(prometheus, folder, fleets.healthy())
    firing = prometheus.alerts()
    assert not firing, f"a healthy fleet: {firing}"
    pending = prometheus.get("alerts")["alerts"]
    assert not pending, f"a healthy fleet: {pending}"


def check_one_bad(prometheus, folder):
    """One planted GPU: one alert, with its name and the cause."""
    data, demo = fleets.healthy(), fleets.demo()
    bad = next(one for one in demo["outliers"] if one["verdict"] == "failing")
    data["gpus"].append(next(gpu for gpu in demo["gpus"] if gpu["uuid"] == bad["uuid"]))
    data["outliers"].append(bad)
    count = len(data["gpus"])
    data["models"][0]["count"] = count
    data["survey"].update(gpus=count, measured=count, outliers=1, exit_code=3, nodes=len({g["node"] for g in data["gpus"]}))
    show(prometheus, folder, data)
    (name, labels), alert = prometheus.alerts().popitem()
    labels = dict(labels)
    assert names(prometheus) == [name] == ["GpumemtopoGpuDrain"], names(prometheus)
    assert (labels["UUID"], labels["hostname"], labels["severity"]) == (bad["uuid"], bad["node"], "critical"), labels
    text = alert["annotations"]["description"]
    assert bad["evidence"][0]["cause"] in text and bad["evidence"][0]["metric"] in text, text


def check_all(prometheus, folder):
    """The demo fleet with all that may be planted: exactly these alerts, for exactly these GPUs and nodes."""
    data = fleets.planted()
    show(prometheus, folder, data)
    firing = prometheus.alerts()
    assert names(prometheus) == [
        "GpumemtopoGpuAlert", "GpumemtopoGpuDrain", "GpumemtopoGpuErrors", "GpumemtopoGpuMissing",
        "GpumemtopoNodeWithoutGpus", "GpumemtopoNotMeasured", "GpumemtopoRanksLost"], names(prometheus)
    for alert, action in ("GpumemtopoGpuDrain", "drain"), ("GpumemtopoGpuAlert", "alert"):
        told = sorted(dict(labels)["UUID"] for name, labels in firing if name == alert)
        assert told == sorted(one["uuid"] for one in data["outliers"] if one["action"] == action), (alert, told)
    hosts = sorted((name, dict(labels).get("hostname")) for name, labels in firing if "UUID" not in dict(labels))
    assert hosts == [("GpumemtopoGpuMissing", "demo7"), ("GpumemtopoNodeWithoutGpus", "demo6"),
                     ("GpumemtopoNotMeasured", "demo4"), ("GpumemtopoNotMeasured", "demo8"), ("GpumemtopoRanksLost", None)], hosts


def check_dashboard(prometheus):
    for title, query in fleets.panels():
        assert prometheus.query(query), f"the query of the panel {title!r} has no data: {query}"


def check_join(prometheus):
    """Queries of the document, with labels of dcgm-exporter."""
    text = (fleets.ROOT / "docs/watch.md").read_text(encoding="utf-8")
    queries = re.findall(r"^```promql\n(.*?)^```", text, re.M | re.S)
    assert len(queries) >= 2, queries
    for query in queries:
        found = prometheus.query(query)
        assert found, f"no data: {query}"
        if "DCGM" in query:
            hot = next(one for one in found if one["metric"]["UUID"] == "GPU-6a15bdf8-29d6-84dd-5e8b-8ca610b0a41a")
            assert hot["value"][1] == "87", hot
            assert (hot["metric"]["hostname"], hot["metric"]["gpu"]) == ("demo3", "1"), hot
    # The labels that both have say the same.
    same = "count(max by (UUID, hostname, gpu) (DCGM_FI_DEV_GPU_TEMP) and on (UUID, hostname, gpu) gpumemtopo_gpu_info)"
    every = "count(max by (UUID) (DCGM_FI_DEV_GPU_TEMP))"
    assert prometheus.query(same)[0]["value"][1] == prometheus.query(every)[0]["value"][1]


def check_openmetrics(prometheus, folder):
    """Prometheus' parser of OpenMetrics finds the same samples."""
    everything = 'sort({__name__=~"gpumemtopo_.*"})'

    def samples():
        return sorted((sorted(one["metric"].items()), one["value"][1]) for one in prometheus.query(everything))
    data = fleets.planted()
    show(prometheus, folder, data)
    before, types = samples(), prometheus.get("targets/metadata", metric="gpumemtopo_gpu_info")
    assert [one["type"] for one in types] == ["gauge"], types
    show(prometheus, folder, data, openmetrics=True)
    assert samples() == before and len(before) > 400, len(before)
    types = prometheus.get("targets/metadata", metric="gpumemtopo_main_bandwidth_read_bytes_per_second")
    assert [(one["type"], one["unit"]) for one in types] == [("gauge", "bytes_per_second")], types


def check_fewer(prometheus, folder):
    """A GPU of the last inventory is gone."""
    data = fleets.healthy()
    nodes = [gpu["node"] for gpu in data["gpus"]]
    gone = data["gpus"].pop(next(i for i, node in enumerate(nodes) if nodes.count(node) > 1))
    count = len(data["gpus"])
    data["models"][0]["count"] = count
    data["survey"].update(gpus=count, measured=count)
    show(prometheus, folder, data)
    told = [(name, dict(labels)["hostname"]) for name, labels in prometheus.alerts()]
    assert told == [("GpumemtopoFewerGpus", gone["node"])], told


def check_old(prometheus, folder):
    show(prometheus, folder, fleets.healthy(age_s=3 * 86400))
    assert "GpumemtopoInventoryOld" in names(prometheus), names(prometheus)


def main():
    servers.need("prometheus")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scraped)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        page["body"] = fleets.metrics(REPORT, folder, fleets.healthy())
        prometheus = Prometheus(folder, "127.0.0.1:%d" % server.server_address[1])
        try:
            check_healthy(prometheus, folder)
            check_fewer(prometheus, folder)
            check_one_bad(prometheus, folder)
            check_all(prometheus, folder)
            check_dashboard(prometheus)
            check_join(prometheus)
            check_openmetrics(prometheus, folder)
            check_old(prometheus, folder)
        finally:
            servers.stop(prometheus.process)
            server.shutdown()


main()
