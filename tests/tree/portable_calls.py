"""The programs call nothing that may answer differently on another machine: a record replays to the last bit everywhere.

usage: portable_calls.py PROGRAM...

Of libm they use only what is exact: exp, log, pow and their like round differently from CPU to CPU and from version to version; src/base/portable_math.h
has replacements. Functions that move, cut or compare bits have one result by IEEE 754. qsort may leave
equal items in any order.
"""
import ctypes
import subprocess
import sys

EXACT = set("sqrt fma fmod remainder ceil floor trunc round lround llround rint lrint llrint nearbyint fmin fmax fdim "
            "nextafter logb ilogb".split())
INSTEAD = {"qsort": "src/base/sort.h", "qsort_r": "src/base/sort.h", "rand": "src/base/rng.h", "random": "src/base/rng.h",
           "drand48": "src/base/rng.h"}
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
    for name in sorted(names - EXACT):
        if name not in INSTEAD and not of_libm(name):
            continue
        print(f"{program}: {name} differs between machines: see {INSTEAD.get(name, 'src/base/portable_math.h')}")
        bad += 1
sys.exit(1 if bad else 0)
