"""The programs use only those functions of libm that are exact: a record replays to the last bit everywhere.

usage: libm.py PROGRAM...

exp, log, pow and their like round differently from CPU to CPU and from version to version; src/base/portable_math.h
has replacements. Functions that move, cut or compare bits have one result by IEEE 754.
"""
import ctypes
import subprocess
import sys

EXACT = set("sqrt fma fmod remainder ceil floor trunc round lround llround rint lrint llrint nearbyint fmin fmax fdim "
            "nextafter logb ilogb".split())
EXACT |= {name + "f" for name in EXACT}
libm, libc = ctypes.CDLL("libm.so.6"), ctypes.CDLL("libc.so.6")


def of_libm(name):
    return hasattr(libm, name) and not hasattr(libc, name)


assert of_libm("exp") and not of_libm("malloc")
bad = 0
for program in sys.argv[1:]:
    out = subprocess.run(["nm", "-D", "--undefined-only", program], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    if "malloc" not in names:
        print(f"{program}: not a program that is linked with libc")
        bad += 1
    for name in sorted(filter(of_libm, names - EXACT)):
        print(f"{program}: {name} of libm differs between machines: see src/base/portable_math.h")
        bad += 1
sys.exit(1 if bad else 0)
