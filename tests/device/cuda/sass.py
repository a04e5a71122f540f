#!/usr/bin/env python3
"""The machine code of the chase kernels is what was meant: sass.py FATBIN ARCH [CUOBJDUMP].

Each kernel loads through its own path, and between the two clock reads of a timed load stands that
one load, the comparison that waits for it, and nothing else. Exit 77 where cuobjdump is absent.
"""
import re
import shutil
import subprocess
import sys

# kernel: what its timed load is, and what else may stand in the timed part. The texture's handle
# goes through uniform registers, which the assembler loads next to each use.
KERNELS = {
    'chase_global_ca': (r'LDG\.E\.64(\.STRONG\.SM)?\s', ()),
    'chase_global_cg': (r'LDG\.E\.64\.STRONG\.GPU', ()),
    'chase_read_only': (r'LDG\.E\.64\.CONSTANT', ()),
    'chase_texture': (r'(TLD|TEX)\b', ('ULDC', 'UMOV', 'R2UR', 'LDCU')),
    'chase_constant': (r'LDC\s+R\d+, c\[0x3\]\[R\d+\]', ()),
    'chase_shared': (r'LDS\s+R\d+, \[R\d+\]', ()),
    'chase_host': (r'LDG\.E\.64\.STRONG\.SYS', ()),
}
CLOCK = re.compile(r'^CS2R(\.64)?\s+R\d+, SR_CLOCKLO')
LOAD = re.compile(r'^(LDG|LDS|LDC|LD|LDL|TLD|TEX|TLDS|ATOM|ATOMS|ATOMG|RED|STG|STS|STL|ST|LDSM)\b')
COMPARE = re.compile(r'^ISETP\b')


def instructions(fatbin, arch, cuobjdump):
    """The instructions of each kernel, predicates cut off, NOPs left out."""
    text = subprocess.run([cuobjdump, '-sass', '-arch', 'sm_' + arch, fatbin], check=True,
                          capture_output=True, text=True).stdout
    kernels, current = {}, None
    for line in text.splitlines():
        header = re.search(r'Function : (\w+)', line)
        if header:
            current = kernels.setdefault(header.group(1), [])
        found = re.search(r'/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][^;]*?)\s*;', line)
        if found and current is not None and not found.group(1).startswith('NOP'):
            current.append(found.group(1))
    return kernels


def timed_parts(code):
    """What stands between two clock reads, where that is short and has no branch."""
    clocks = [i for i, text in enumerate(code) if CLOCK.match(text)]
    for first, second in zip(clocks, clocks[1:]):
        part = code[first + 1:second]
        if len(part) <= 12 and any(LOAD.match(text) for text in part) and \
                not any(re.match(r'(BRA|BSYNC|BAR|CALL|EXIT)', text) for text in part):
            yield part


def check(name, code, load, extra):
    faults = []
    parts = [part for part in timed_parts(code) if any(COMPARE.match(t) for t in part)]
    if len(parts) != 1:
        return [f'{name}: {len(parts)} timed loads, expected one']
    loads = [text for text in parts[0] if LOAD.match(text)]
    if len(loads) != 1 or not re.match(load, loads[0]):
        faults.append(f'{name}: between the clock reads stands {loads}, expected {load}')
    for text in parts[0]:
        if not (LOAD.match(text) or COMPARE.match(text) or text.split('.')[0].split()[0] in extra):
            faults.append(f'{name}: "{text}" between the clock reads')
    if not COMPARE.match(parts[0][-1]):
        faults.append(f'{name}: the second clock read does not wait for the load')
    # Outside the timed part: the chain of an average, 16 loads each taking the last one's value.
    if sum(bool(re.match(load, text)) for text in code) < 16:
        faults.append(f'{name}: no unrolled chain of {load}')
    if any(re.match(r'(LDL|STL)\b', text) for text in code):
        faults.append(f'{name}: registers are spilled to memory, through L1')
    return faults


def main():
    fatbin, arch = sys.argv[1:3]
    cuobjdump = sys.argv[3] if len(sys.argv) > 3 else shutil.which('cuobjdump')
    if not cuobjdump or not shutil.which(cuobjdump):
        print('skipped: no cuobjdump')
        return 77
    kernels = instructions(fatbin, arch, cuobjdump)
    faults = []
    for name, (load, extra) in KERNELS.items():
        faults += check(name, kernels.get(name, []), load, extra)
    print('\n'.join(faults) if faults else f'{len(KERNELS)} kernels are as meant on sm_{arch}')
    return 1 if faults else 0


sys.exit(main())
