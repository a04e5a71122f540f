"""shellcheck finds nothing in the shell parts of the recipes: scripts.py SOURCE_ROOT"""
import pathlib
import re
import subprocess
import sys

import made

made.skip_without("shellcheck")
root = pathlib.Path(sys.argv[1])


def containerfile_scripts():
    text = re.sub(r"\\\n", " ", (root / "packaging/Containerfile").read_text(encoding="utf-8"))
    return re.findall(r"^RUN (.*)$", text, re.M)


def definition_scripts():
    text = (root / "packaging/gpumemtopo.def").read_text(encoding="utf-8")
    return re.findall(r"^%(?:post|test|runscript|environment)\n(.*?)(?=^%|^Bootstrap|\Z)", text, re.M | re.S)


def spec_scripts():
    """With macros replaced by a word; lines of conditions are rpm's."""
    text = (root / "packaging/gpumemtopo.spec").read_text(encoding="utf-8")
    parts = re.findall(r"^%(?:build|install|check)\n(.*?)(?=^%(?:build|install|check|files)|\Z)", text, re.M | re.S)
    parts = [re.sub(r"^%(if|endif).*$", "", part, flags=re.M) for part in parts]
    return [re.sub(r"%\{[^}]*\}+", "word", part) for part in parts]


scripts = containerfile_scripts() + definition_scripts() + spec_scripts()
assert len(scripts) >= 10, len(scripts)
for script in scripts:
    done = subprocess.run(["shellcheck", "-s", "sh", "-e", "SC2035,SC1091", "-"], input=script, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
made.run("shellcheck", root / "tests/package/lmod.sh")
made.run("shellcheck", root / "integrations/check-node.sh", root / "tools/gpumemtopo-kit")
made.run("shellcheck", "-s", "bash", root / "integrations/nhc/gpumemtopo.nhc")
made.run("shellcheck", "-s", "bash", "-e", "SC2034", root / "packaging/health.conf")
