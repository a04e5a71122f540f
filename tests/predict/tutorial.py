"""Runs every command of docs/PREDICT-TUTORIAL.md and compares what it prints: tutorial.py PREDICT SOURCE_ROOT [--write]

A block "console" has commands after "$ " and their output; "..." stands for omitted lines. A command's exit code
is 0, or what a comment "# exit code N" behind it says. --write puts in what the commands print now, except where
lines are omitted.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

predict, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
page = root / "docs/PREDICT-TUTORIAL.md"
COMMAND = re.compile(r"^\$ (.*?)(?: +# exit code (\d))?$")


def run(command, folder, code):
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    assert done.returncode == code, f"{command}: exit code {done.returncode}, the tutorial says {code}"
    return done.stdout.decode().splitlines()


def split(block):
    """The commands of a block: line, command, exit code, output as shown."""
    parts = []
    for line in block.splitlines():
        match = COMMAND.match(line)
        if match:
            parts.append((line, match[1], int(match[2] or 0), []))
        else:
            parts[-1][3].append(line)
    return parts


def agrees(shown, told):
    """All lines that are shown, in order; without "...", nothing else."""
    if "..." not in shown:
        return shown == told
    rest = iter(told)
    return all(line in rest for line in shown if line != "...")


def main():
    text = page.read_text(encoding="utf-8")
    commands, wrong = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "bin").mkdir()
        (folder / "bin/gpumemtopo-predict").symlink_to(predict)
        shutil.copy(root / "reports/demo.yaml", folder / "fleet.yaml")

        def again(match):
            nonlocal commands
            lines = []
            for line, command, code, shown in split(match[1]):
                told = run(command, folder, code)
                commands += 1
                if not agrees(shown, told):
                    wrong.append((command, shown, told))
                lines += [line, *(shown if agrees(shown, told) else told)]
            return "```console\n" + "\n".join(lines) + "\n```"

        written = re.sub(r"^```console\n(.*?)\n```", again, text, flags=re.M | re.S)
    if "--write" in sys.argv:
        page.write_text(written, encoding="utf-8")
        return
    for command, shown, told in wrong:
        print(f"{page.name}: {command}\nshows:\n", "\n".join(shown), "\nprinted:\n", "\n".join(told), sep="")
    assert commands >= 8, f"{commands} commands: the pattern no longer fits the page"
    sys.exit(1 if wrong else 0)


main()
