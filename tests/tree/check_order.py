"""./survey and then ./check in one clone: ./check finds the packages that came in between, and notices
tests that are missing for whatever reason.

usage: check_order.py SOURCE_ROOT
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
STAGE = ["gcc", "unit", "tree", "sim", "replay", "mpi", "slurm", "gpu"]


def run(*command, code=0, **env):
    done = subprocess.run(command, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if code is not None and done.returncode != code:
        sys.exit(f"FAILED: {command}: {done.returncode}: {done.stdout}")
    return done.stdout


def configured(build):
    return {test["name"] for test in json.loads(run("meson", "introspect", "--tests", str(build)))}


def reported(source, build, results):
    """What ./check would say of a run with these results."""
    log = build / "meson-logs/testlog.json"
    log.write_text("".join(json.dumps({"name": f"gpumemtopo:x / {name}", "result": result}) + "\n"
                           for name, result in results.items()))
    text = run(sys.executable, str(source / "tools/tests.py"), "report", str(build), *STAGE)
    failed = int(text.splitlines()[-1].split()[2])
    return failed, text


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


folder = pathlib.Path(tempfile.mkdtemp(prefix="gpumemtopo-order-"))
try:
    # A clone, as far as meson looks at it.
    source, build = folder / "clone", folder / "clone/build"
    names = run("git", "-C", str(ROOT), "ls-files").split() if (ROOT / ".git").exists() else []
    top = {name.split("/")[0] for name in names} or {p.name for p in ROOT.iterdir() if "build" not in p.name}
    shutil.copytree(ROOT, source, ignore=lambda path, there: [] if path != str(ROOT) else
                    [name for name in there if name not in top and name != "meson.build"])
    # As ./survey sets it up where cmocka is not installed.
    hidden = folder / "bin"
    hidden.mkdir()
    for tool in ("pkg-config", "cmake"):
        real = shutil.which(tool)
        (hidden / tool).write_text(f'#!/bin/sh\ncase "$*" in *cmocka*) exit 1 ;; esac\n'
                                   + (f'exec {real} "$@"\n' if real and tool == "pkg-config" else "exit 1\n"))
        (hidden / tool).chmod(0o755)
    configure = f'. "{source}/tools/setup.sh" && setup_configure "{source}" "{build}"'
    run("bash", "-c", configure, PATH=f"{hidden}:{os.environ['PATH']}")
    check(len(configured(build)) < 10, f"cmocka is still found: {configured(build)}")
    failed, text = reported(source, build, {name: "OK" for name in configured(build)})
    check(failed > 150 and "did not run: base_str (not configured)" in text, text)

    # As ./check then does.
    run("bash", "-c", configure)
    names = configured(build)
    check(len(names) > 200, f"configured again: {len(names)} tests")
    failed, text = reported(source, build, {name: "OK" for name in names})
    check(failed == 0, text)

    # Each way to lose a test.
    for name, result in (("base_str", "FAIL"), ("base_str", "TIMEOUT"), ("base_str", "ERROR")):
        failed, text = reported(source, build, {**{n: "OK" for n in names}, name: result})
        check(failed == 1, text)
    failed, text = reported(source, build, {n: "OK" for n in names if n != "base_str"})
    check(failed == 1 and "did not run: base_str\n" in text, text)
    failed, text = reported(source, build, {n: "SKIP" if n == "base_str" else "OK" for n in names})
    check(failed == 0 and "1 skipped" in text, text)
    lines = (source / "tests/meson.build").read_text()
    (source / "tests/meson.build").write_text(lines.replace("subdir('install')\n", ""))
    run("bash", "-c", configure)
    failed, text = reported(source, build, {name: "OK" for name in configured(build)})
    check(failed > 1 and "did not run: man_pages (not configured)" in text, text)
finally:
    shutil.rmtree(folder)
