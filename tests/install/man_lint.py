"""Nothing is wrong with the man pages' markup: man_lint.py PAGE...; a skip without mandoc and man."""
import shutil
import subprocess
import sys

CHECKS = [["mandoc", "-Tlint"], ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]]

there = [check for check in CHECKS if shutil.which(check[0])]
for page in sys.argv[1:]:
    for check in there:
        done = subprocess.run([*check, page], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = done.stderr + (done.stdout if check[0] == "mandoc" else b"")
        assert done.returncode == 0 and not said, f"{check[0]}: {said.decode()}"
if not there:
    print("neither mandoc nor man is installed")
    sys.exit(77)
