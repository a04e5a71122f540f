"""The programs are built as docs/SECURITY.md says: hardened.py PROGRAM..."""
import re
import shutil
import subprocess
import sys

if not shutil.which("readelf"):
    print("readelf is not installed")
    sys.exit(77)


def read(*args):
    return subprocess.run(["readelf", "-W", *args], check=True, capture_output=True, text=True).stdout


for program in sys.argv[1:]:
    head, segments, dynamic, symbols = (read(flag, program) for flag in ("-h", "-l", "-d", "--dyn-syms"))
    stack = re.search(r"GNU_STACK.*", segments)
    checks = {
        "position-independent": re.search(r"Type:\s+DYN", head),
        "relocations read-only": "GNU_RELRO" in segments,
        "relocations bound at start": re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic),
        "no executable stack": stack and "E" not in stack[0].split()[-2],
        "stack protector": "__stack_chk_fail" in symbols,
        "checked functions of the C library": re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", "")),
    }
    missing = [name for name, found in checks.items() if not found]
    assert not missing, f"{program}: {missing}"
