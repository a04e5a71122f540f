"""shellcheck finds nothing in the Slurm scripts, and they name files where packages put them: shellcheck.py SOURCE_ROOT"""
import pathlib
import re
import shutil
import subprocess
import sys

scripts = pathlib.Path(sys.argv[1]) / "slurm"
for path in scripts.iterdir():
    named = re.findall(r"/(?:usr/share|etc)/gpumemtopo/(\S*?\w+\.(?:sh|sbatch))", path.read_text(encoding="utf-8"))
    for name in named:
        assert name.startswith("slurm/") and (scripts.parent / name).is_file(), f"{path.name} names {name}"
if not shutil.which("shellcheck"):
    print("shellcheck is not installed")
    sys.exit(77)
files = sorted(path for path in scripts.iterdir() if path.suffix in (".sh", ".sbatch"))
assert len(files) >= 9, files
sys.exit(subprocess.run(["shellcheck", "-x", "-P", scripts, *files], check=False).returncode)
