"""Records replay on the other architecture, byte for byte: a worker is compiled for it and run by QEMU.

usage: elsewhere.py SURVEY SPAWN_LIBRARY SOURCE_ROOT BUILD_ROOT NAME...

The survey is the one of this build; its worker, which holds all of the analysis, is the other one. The sources and their
flags are those of this build (compile_commands.json). Skipped where the compiler or QEMU is missing.
"""
import concurrent.futures
import json
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile

SURVEY, SPAWN, ROOT, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
OTHER = {"x86_64": "aarch64", "aarch64": "x86_64"}.get(platform.machine())
FOLDERS = "base", "schema", "inventory", "catalogue", "cpd", "cachesim", "probes", "device/record"
FILES = "device/*.c", "survey/worker.c", "survey/comm/message.c"


def tools():
    """Compiler and emulator of the other architecture; ends the test where there are none."""
    wanted = [(f"{OTHER}-linux-gnu-gcc", f"gcc-{OTHER.replace('_', '-')}-linux-gnu")], [
        (f"qemu-{OTHER}", "qemu-user"), (f"qemu-{OTHER}-static", "qemu-user-static")]
    found = [next(filter(None, (shutil.which(name) for name, _ in names)), None) for names in wanted]
    missing = [names[0] for names, path in zip(wanted, found) if not path]
    for name, package in missing:
        print(f"{name} is not installed (Debian: {package})")
    if missing:
        sys.exit(SKIP)
    return found


def sources():
    """The command that compiles each source of the worker in this build."""
    wanted = {path for folder in FOLDERS for path in (ROOT / "src" / folder).rglob("*.c")}
    wanted |= {path for pattern in FILES for path in (ROOT / "src").glob(pattern)}
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if path in wanted:
            commands[path] = shlex.split(entry["command"])
    return commands


def build(compiler, folder):
    def compile(path, command, number):
        kept = [word for word in command if word.startswith(("-D", "-I", "-f", "-std="))]
        target = folder / f"{number}.o"
        subprocess.run([*cache, compiler, *kept, "-O1", "-ffunction-sections", "-c", path, "-o", target], cwd=BUILD, check=True)
        return target

    commands = sources()
    first = next(iter(commands.values()))
    cache = first[:1] if pathlib.Path(first[0]).name == "ccache" else []
    main = HERE / "elsewhere_worker.c"
    commands[main] = commands[ROOT / "src/survey/worker.c"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile, commands, commands.values(), range(len(commands))))
    worker = folder / "worker"
    # What reads YAML is not reached: libyaml of the other architecture is not needed.
    subprocess.run([compiler, "-static", *objects, "-Wl,--gc-sections", "-lm", "-o", worker], check=True)
    return worker


def main():
    if not OTHER:
        print(f"which architecture is the other one for {platform.machine()} is not known")
        sys.exit(SKIP)
    compiler, emulator = tools()
    with tempfile.TemporaryDirectory(prefix="gpumemtopo-elsewhere-") as folder:
        folder = pathlib.Path(folder)
        worker, log, script = build(compiler, folder), folder / "log", folder / "start"
        script.write_text(f"#!/bin/sh\necho >>{log}\nexec {emulator} {worker} \"$@\"\n")
        script.chmod(0o755)
        done = subprocess.run([sys.executable, HERE / "check.py", SURVEY, ROOT, HERE, *sys.argv[5:]],
                              env={**os.environ, "LD_PRELOAD": str(SPAWN), "OTHER_WORKER": str(script)})
        workers = len(log.read_text()) if log.exists() else 0
        print(f"{workers} workers for {OTHER}")
    sys.exit(done.returncode or (0 if workers >= len(sys.argv[5:]) else 1))


main()
