"""docs/COVERAGE.md is what tools/coverage makes of what the GPU printed. usage: coverage.py SOURCE_ROOT"""
import pathlib
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
made = subprocess.run([sys.executable, root / "tools/coverage", root / "tests/device/cuda/screen_kernels.log"], check=True,
                      stdout=subprocess.PIPE).stdout.decode()
if made != (root / "docs/COVERAGE.md").read_text(encoding="utf-8"):
    sys.exit("docs/COVERAGE.md is another page: tools/coverage tests/device/cuda/screen_kernels.log > docs/COVERAGE.md")
