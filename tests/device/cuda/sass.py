#!/usr/bin/env python3
"""The machine code of the kernels is what was meant: sass.py CUOBJDUMP CHASE CLUSTER CHECK STREAM ARCH...

The four are fat binaries of one toolkit. Each chase kernel loads through its own path, and between the two clock
reads of a timed load stands that one load, what waits for it, and nothing else. Streams have their accesses in flight. Kernels that an architecture or a
toolkit cannot have are absent, not empty. Exit 77 without cuobjdump, and without arguments: the build has no such
flavour.
"""
import re
import shutil
import subprocess
import sys

# kernel: what its timed load is from Volta on and before, and what else may stand in the timed part. The texture's
# handle goes through uniform registers, which the assembler loads next to each use.
KERNELS = {
    'chase_global_ca': (r'LDG\.E\.64(\.STRONG\.(SM|CTA))?\s', r'(LDG|LD)\.E\.64\s', ()),
    'chase_global_cg': (r'LDG\.E\.64\.STRONG\.GPU', r'(LDG|LD)\.E\.CG\.64\s', ()),
    'chase_read_only': (r'LDG\.E\.64\.CONSTANT', r'LDG\.E\.(CI\.64|64\.P)\s', ('TEXDEPBAR',)),
    'chase_texture': (r'(TLD|TEX)\b', r'(TLDS?|TEXS?)\b', ('ULDC', 'UMOV', 'R2UR', 'LDCU', 'TEXDEPBAR')),
    'chase_constant': (r'LDC\s+R\d+, c\[0x3\]\[R\d+\]', r'LDC\s+R\d+, c\[0x3\]\[R\d+\]', ()),
    'chase_shared': (r'LDS(\.U)?\s+R\d+, \[R\d+\]', r'LDS(\.U)?(\.32)?\s+R\d+, \[R\d+\]', ()),
    'chase_host': (r'LDG\.E\.64\.STRONG\.SYS', r'(LDG|LD)\.E\.CV\.64\s', ()),
}
# stream: an access of it. Four of them are in flight, and the remainder has one more. Constants have at most 4 bytes.
STREAMS = {
    'stream_read_nc_1_4': r'LDG\.E\.(CI\.)?U8\b',
    'stream_read_nc_16_4': r'LDG\.E\.(CI\.)?128\b',
    'stream_read_texture_1_4': r'(TLD|TEX)S?\b',
    'stream_read_texture_16_4': r'(TLD|TEX)S?\b',
    'stream_read_constant_1_4': r'LDC\.U8\s+R\d+, c\[0x3\]\[R\d+',
    'stream_read_constant_4_4': r'LDC\s+R\d+, c\[0x3\]\[R\d+',
    'stream_write_ca_1_4': r'(STG|ST)\.E\.U8\b',
    'stream_write_ca_16_4': r'(STG|ST)\.E\.128\b',
    'stream_write_shared_1_4': r'STS\.U8\b',
    'stream_write_shared_16_4': r'STS\.128\b',
    'stream_read_ca_2_4': r'(LDG|LD)\.E\.U16\b',
    'stream_read_shared_2_4': r'LDS(\.U)?\.U16\b',
}
# Kernels that load what nobody uses: the assembler must not have dropped the loads.
EVICTORS = ('flush_l2', 'scrub_l1')
VOLTA = 70
CLOCK = re.compile(r'^C?S2R(\.64)?\s+R\d+, SR_CLOCKLO')
LOAD = re.compile(r'^(LDG|LDS|LDC|LD|LDL|TLD|TEX|TLDS|TEXS|ATOM|ATOMS|ATOMG|RED|STG|STL|ST|LDSM)\b')
# What waits for the load: a comparison, before Volta a store of the value to shared memory.
WAIT = {True: re.compile(r'^ISETP\b'), False: re.compile(r'^STS \[0x[0-9a-f]+\], R\d+')}
CLOCK_REST = re.compile(r'^CS2R RZ, SR_CLOCK')  # on Pascal, before each read

# fat binary: its kernels, and the compute capability and the CUDA from which on they exist.
FIRST = {
    'cluster': {'cluster_copy': (90, 12), 'bulk_copy': (90, 12)},
    'check': {'check_wgmma_f16': (90, 12), 'check_mma_fp8': (89, 12), 'check_mma_f16': (80, 11)},
}


def instructions(fatbin, arch, cuobjdump, wanted):
    """The instructions of the wanted kernels, predicates cut off, NOPs left out."""
    text = subprocess.run([cuobjdump, '-sass', '-arch', 'sm_' + arch, '-fun', ','.join(wanted), fatbin], check=True,
                          capture_output=True, text=True).stdout
    kernels, current = {}, None
    for line in text.splitlines():
        header = re.search(r'Function : (\w+)', line)
        if header:
            current = kernels.setdefault(header.group(1), [])
        found = re.search(r'/\*[0-9a-f]{4,}\*/\s+(?:{\s+)?(?:@!?U?P\w+\s+)?([A-Z][^;}]*?)\s*[;}]', line)
        if found and current is not None and not found.group(1).startswith('NOP') and not CLOCK_REST.match(found.group(1)):
            current.append(found.group(1))
    return kernels


def timed_parts(code):
    """What stands between two clock reads, where that is short and has no branch."""
    clocks = [i for i, text in enumerate(code) if CLOCK.match(text)]
    for first, second in zip(clocks, clocks[1:]):
        part = code[first + 1:second]
        if len(part) <= 12 and any(LOAD.match(text) for text in part) and \
                not any(re.match(r'(BRA|BSYNC|BAR|CALL|EXIT|S2R|CS2R)', text) for text in part):
            yield part


def check(name, code, load, extra, wait):
    faults = []
    parts = [part for part in timed_parts(code) if any(wait.match(t) for t in part)]
    if len(parts) != 1:
        return [f'{name}: {len(parts)} timed loads, expected one']
    loads = [text for text in parts[0] if LOAD.match(text)]
    if len(loads) != 1 or not re.match(load, loads[0]):
        faults.append(f'{name}: between the clock reads stands {loads}, expected {load}')
    for text in parts[0]:
        if not (LOAD.match(text) or wait.match(text) or text.split('.')[0].split()[0] in extra):
            faults.append(f'{name}: "{text}" between the clock reads')
    if not wait.match(parts[0][-1]):
        faults.append(f'{name}: the second clock read does not wait for the load')
    # Outside the timed part: the chain of an average, 16 loads each taking the last one's value.
    if sum(bool(re.match(load, text)) for text in code) < 16:
        faults.append(f'{name}: no unrolled chain of {load}')
    if any(re.match(r'(LDL|STL)\b', text) for text in code):
        faults.append(f'{name}: registers are spilled to memory, through L1')
    return faults


def stacks(fatbin, arch, cuobjdump):
    """How many bytes each kernel keeps in memory that registers had no room for."""
    text = subprocess.run([cuobjdump, '-res-usage', '-arch', 'sm_' + arch, fatbin], check=True, capture_output=True,
                          text=True)
    return {name: int(size) for name, size in
            re.findall(r'Function (\w+):\s+REG:\d+ STACK:(\d+)', text.stdout + text.stderr)}


def check_evictors(kernels):
    for name in EVICTORS:
        if not any(re.match(r'(LDG|LD)\b', text) for text in kernels.get(name, [])):
            yield f'{name}: no loads'


def check_streams(kernels):
    for name, access in STREAMS.items():
        code = kernels.get(name, [])
        count = sum(bool(re.match(access, text)) for text in code)
        if count != 5:
            yield f'{name}: {count} times {access}, expected 4 in flight and 1'
        if any(re.match(r'(LDL|STL)\b', text) for text in code):
            yield f'{name}: registers are spilled to memory'


def toolkit_of(cuobjdump):
    text = subprocess.run([cuobjdump, '--version'], check=True, capture_output=True, text=True).stdout
    return int(re.search(r'release (\d+)', text)[1])


def check_others(key, fatbin, arch, cuobjdump):
    kernels, toolkit = stacks(fatbin, arch, cuobjdump), toolkit_of(cuobjdump)
    for name, (capability, cuda) in FIRST[key].items():
        exists = int(arch) >= capability and toolkit >= cuda and ('wgmma' not in name or int(arch) == 90)
        if (name in kernels) != exists:
            yield f'{name}: {"there" if name in kernels else "absent"}'
    if key == 'check' and kernels.get('check_registers') != 0:
        yield f'check_registers: spilled to memory, {kernels.get("check_registers")} bytes'


def main():
    if len(sys.argv) < 2:
        print('skipped: no kernels by CUDA 11')
        return 77
    cuobjdump, chase, cluster, checks, stream, *archs = sys.argv[1:]
    if not shutil.which(cuobjdump):
        print('skipped: no cuobjdump')
        return 77
    faults = []
    for arch in archs:
        new, found = int(arch) >= VOLTA, []
        kernels = instructions(chase, arch, cuobjdump, [*KERNELS, *EVICTORS])
        for name, (load, older, extra) in KERNELS.items():
            found += check(name, kernels.get(name, []), load if new else older, extra, WAIT[new])
        found += check_evictors(kernels)
        found += check_streams(instructions(stream, arch, cuobjdump, STREAMS))
        found += check_others('check', checks, arch, cuobjdump)
        if int(arch) >= 90:  # before, none is ever launched
            found += check_others('cluster', cluster, arch, cuobjdump)
        faults += [f'sm_{arch}: {fault}' for fault in found]
    print('\n'.join(faults) if faults else f'{len(KERNELS) + len(EVICTORS) + len(STREAMS)} kernels are as meant on sm_{" ".join(archs)}')
    return 1 if faults else 0


sys.exit(main())
