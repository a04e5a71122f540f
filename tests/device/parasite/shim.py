"""The parasite's shim lets a survey through and measures before and after it: shim.py SHIM SURVEY FOLDER_OF_FAKE_DRIVER"""
import os
import pathlib
import subprocess
import sys
import tempfile

SHIM, SURVEY, DRIVER = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:4])

with tempfile.TemporaryDirectory(prefix="gpumemtopo-parasite-") as there:
    inventory, truth = pathlib.Path(there, "out.yaml"), pathlib.Path(there, "truth.csv")
    done = subprocess.run([SURVEY, "--probes", "main.size", "--no-progress", "-o", inventory], capture_output=True, text=True,
                          env={**os.environ, "LD_PRELOAD": SHIM, "LD_LIBRARY_PATH": DRIVER, "PARASITE": "none 0 0",
                               "PARASITE_TRUTH": str(truth)})
    rows = [line.split(",") for line in truth.read_text().splitlines()]
    wanted = [(phase, figure) for phase in "01" for figure in ("main.read", "main.write", "l2.read", "l2.write")]
    if done.returncode not in (0, 3) or "measured: 1" not in inventory.read_text():
        sys.exit(f"FAILED: exit {done.returncode}: {done.stderr}")
    # On a busy machine the rank ends its worker while the shim measures the second time.
    seen = [tuple(row[:2]) for row in rows]
    if len(seen) < len(wanted) / 2 or seen != wanted[:len(seen)]:
        sys.exit(f"FAILED: the shim measured {rows}")
