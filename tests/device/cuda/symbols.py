#!/usr/bin/env python3
"""The functions that are required of the driver are those of CUDA 11.0: symbols.py DRIVER_H CUDATYPEDEFS_H.

cudaTypedefs.h has a type for each function and version, PFN_cuEventRecord_v2000. The newest one is what cuda.h asks
for. Exit 77 where the toolkit has no such file.
"""
import pathlib
import re
import sys

OLDEST_DRIVER = 11000


def main():
    header, typedefs = (pathlib.Path(name) for name in sys.argv[1:])
    if not typedefs.exists():
        print(f'skipped: no {typedefs}')
        return 77
    versions = {}
    for name, version in re.findall(r'\bPFN_(\w+?)_v(\d{4,5})\b', typedefs.read_text()):
        versions.setdefault(name, set()).add(int(version))
    rows = re.findall(r'^    X\((\w+), (DRIVER_REQUIRED|DRIVER_OPTIONAL|"\w+")\)', header.read_text(), re.M)
    faults = [] if len(rows) > 40 else [f'only {len(rows)} functions found']
    for name, otherwise in rows:
        known = versions.get(re.sub(r'_v\d$', '', name))
        needed = {'DRIVER_REQUIRED': max(known or [0]), 'DRIVER_OPTIONAL': 1}.get(otherwise, min(known or [0]))
        if not known or needed > OLDEST_DRIVER:
            faults.append(f'{name}, {otherwise}: the driver of CUDA 11.0 has none (versions {known})')
        if otherwise != 'DRIVER_REQUIRED' and known and max(known) <= OLDEST_DRIVER and \
                int(re.search(r'CUDA_VERSION (\d+)', (typedefs.parent / 'cuda.h').read_text())[1]) >= 13000:
            faults.append(f'{name}: the driver of CUDA 11.0 has it, so it may be required')
    print('\n'.join(faults) if faults else f'{len(rows)} functions')
    return 1 if faults else 0


sys.exit(main())
