"""From nothing to an alarm: site.py SOURCE_ROOT FOLDER

Builds the Debian package, installs it into a scratch root, and runs the prolog, epilog, health check and sweep from
there under a real Slurm, on simulated GPUs. A real Prometheus with the rules from there raises no alert for the healthy
fleet, and exactly one for a GPU that fails then. FOLDER: of the packages, shared with the tests of packages.
"""
import http.server
import json
import pathlib
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(sys.argv[1]).resolve()
for name in ("package", "watch", "slurm"):
    sys.path.insert(0, str(ROOT / "tests" / name))
import cluster  # noqa: E402
import installed  # noqa: E402
import made  # noqa: E402
import servers  # noqa: E402

PATIENCE_S = 200
BAD = "n3"


class Watch:
    """A Prometheus that scrapes what the report program makes of an inventory."""

    def __init__(self, folder, report, rules):
        self.folder, self.report, self.body = folder, report, b""
        owner = self

        class Scraped(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(owner.body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scraped)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        target = "127.0.0.1:%d" % self.server.server_address[1]
        config = {"global": {"scrape_interval": "300ms", "evaluation_interval": "300ms"}, "rule_files": [str(rules)],
                  "scrape_configs": [{"job_name": "gpumemtopo", "static_configs": [{"targets": [target]}]}]}
        (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
        self.base, self.process = servers.start_prometheus(folder, folder / "prometheus.yml")

    def get(self, path):
        with urllib.request.urlopen(f"{self.base}/api/v1/{path}") as answer:
            return json.load(answer)["data"]

    def evaluated(self):
        return min(servers.seconds(group["lastEvaluation"]) for group in self.get("rules")["groups"])

    def alerts(self, inventory):
        """{(name, node)} of what fires for this inventory: records are made from samples, alerts from records."""
        self.body = made.run(self.report, "prometheus", inventory).encode()
        for _ in range(4):
            start = time.time()
            servers.wait_until(lambda: self.evaluated() > start + 0.4, PATIENCE_S)
        return {(one["labels"]["alertname"], one["labels"].get("hostname")) for one in self.get("alerts")["alerts"]
                if one["state"] == "firing"}

    def stop(self):
        servers.stop(self.process)
        self.server.shutdown()


def sweep(site, scripts, count):
    """A sweep of all nodes; the inventory of them."""
    done = site.run(scripts / "sweep.sh", "-p", "gpu", "-n", str(count), "-t", "now", "-m", "5", "-o", "fleet.yaml",
                    "-d", "nodes", "--", "--profile", "quick", cwd=site.folder)
    assert done.returncode == 0, done.stderr
    site.until(lambda: not site.run("squeue", "-h").stdout.strip(), "end of the sweep", PATIENCE_S)
    made.run("sh", "-c", "scontrol -o show reservation | sed -n 's/^ReservationName=\\([^ ]*\\).*/\\1/p' | "
             "while read -r name; do scontrol delete ReservationName=$name; done", env=site.cluster.env)
    site.until(lambda: site.cluster.idle() == count, "idle nodes", PATIENCE_S)
    return site.folder / "fleet.yaml"


def main(scratch):
    root = installed.scratch_root(scratch / "root")
    installed.dpkg(root, "-i", *made.get(ROOT, sys.argv[2]).debs.values())
    share, report = root / "usr/share/gpumemtopo", root / "usr/bin/gpumemtopo-report"
    scripts = share / "slurm"
    sys.argv = [sys.argv[0], str(root / "usr/bin/gpumemtopo-survey"), str(ROOT), "site", str(report), str(scripts)]
    import operation  # noqa: PLC0415: it reads sys.argv

    work = scratch / "work"
    work.mkdir()
    site = operation.Site(work, operation.HOOKS)
    del site.cluster.env["GPUMEMTOPO_CONFIG_DIR"]  # the installed files are found without it
    watch = None
    try:
        watch = Watch(scratch, report, share / "watch/gpumemtopo.rules.yml")
        operation.part_prolog(site)
        healthy = watch.alerts(sweep(site, scripts, cluster.NODES))
        assert healthy == set(), healthy
        site.plant(BAD, in_jobs=operation.FAILING)
        found = watch.alerts(sweep(site, scripts, cluster.NODES))
        assert found == {("GpumemtopoGpuDrain", BAD)}, found
        drain = made.run(report, "drain", site.folder / "fleet.yaml")
        assert drain.count("scontrol update") == 1 and f"NodeName={BAD} " in drain, drain
    except BaseException:
        site.cluster.show_logs()
        raise
    finally:
        if watch:
            watch.stop()
        site.cluster.stop()


why = cluster.missing()
if why:
    print(why)
    sys.exit(made.SKIPPED)
made.skip_without("dh", "dpkg-buildpackage", "prometheus")
with tempfile.TemporaryDirectory(prefix="gpumemtopo-site-") as name:
    pathlib.Path(name).chmod(0o755)
    main(pathlib.Path(name))
