#!/usr/bin/env python3
"""Whole GPUs drawn at random: gpus.py SURVEY COUNT [SEED].

Each has every memory, of any size, line, sharing and latency; the survey's `standard` profile is held
against what was drawn. Prints what was right, what was told with doubt (noisy, failed) and what was wrong
and called confident; fails when there is any of the last.
"""
import pathlib
import random
import subprocess
import sys
import tempfile

import yaml

PATHS = {'l1_data': 'global_ca', 'texture': 'texture', 'read_only': 'read_only', 'constant_l1': 'constant'}
TOLERANCES = {'size': 0.03, 'latency': 0.025, 'latency_far': 0.025, 'read': 0.03, 'write': 0.03, 'h2d': 0.03,
              'd2h': 0.03}
SM_BYTES_PER_CYCLE = 64
CONFIDENT = 0.9


def draw_cache(rng, low, high, lines, ways):
    line = rng.choice(lines)
    count = rng.randint(low // line, high // line)
    return {'line': line, 'sector': rng.choice([s for s in (32, 64, 128, line) if line % s == 0]),
            'size': count * line, 'ways': rng.choice(ways), 'index': rng.choice(['modulo', 'hashed']),
            'policy': rng.choice(['lru', 'lru', 'random', 'fermi'])}


def draw_constant(rng, caches, l2, main):
    """Constant L1 and, often, L1.5. Sets in their usual order only: of hashed ones the bank's beginning is no
    beginning, and an array of the cache's size does not fit (docs/METHOD.md, "Can go wrong")."""
    first = rng.randint(15, 40)
    caches['c1'] = draw_cache(rng, 1024, 8192, (32, 64, 128), (1, 2, 4, 8, 'full'))
    caches['c1']['index'] = 'modulo'
    if rng.random() < 0.3:
        return [{'c1': first}, {'l2': l2 + 10}, {'main': main + 10}]
    low, high = rng.choice([(24576, 49152), (90000, 140000)])
    caches['c15'] = draw_cache(rng, low, high, (256,), (4, 8, 16))
    caches['c15']['sector'] = max(caches['c15']['sector'], caches['c1']['sector'])
    caches['c15']['scope'] = rng.choice(['sm', 'tpc'])
    caches['c15']['index'] = 'modulo'
    return [{'c1': first}, {'c15': first + rng.randint(30, 60)}, {'l2': l2 + 70}, {'main': main + 70}]


def draw_l2(rng):
    l2 = draw_cache(rng, 512 * 1024, 6 * 1024 * 1024, (32, 64, 128, 128), (4, 8, 16))
    del l2['policy']
    l2['size'] -= l2['size'] % (2 * l2['line'])
    l2['parts'] = rng.choice(['one', 'one', 'homes', 'copies'])
    if l2['parts'] != 'one':
        l2['far_cycles'] = rng.randint(40, 120)
    return l2


def draw_gpu(rng, number):
    near = rng.randint(20, 90)
    l2 = near + rng.randint(90, 250)
    main = l2 + rng.randint(250, 500)
    shift = rng.randint(0, 60)
    lines, ways = (32, 64, 96, 128, 128, 256), (1, 2, 3, 4, 6, 8, 16, 'full')
    caches = {'l1': draw_cache(rng, 8192, 256 * 1024, lines, ways)}
    paths = {'global_ca': [{'l1': near}, {'l2': l2}, {'main': main}], 'global_cg': [{'l2': l2}, {'main': main}]}
    for path, own in (('texture', 'tex'), ('read_only', 'ro')):
        name = rng.choice(['l1', own])
        if name == own:
            caches[own] = draw_cache(rng, 4096, 64 * 1024, lines, ways)
            caches[own]['instances'] = rng.choice([1, 1, 2, 4])
        paths[path] = [{name: near + shift}, {'l2': l2 + shift}, {'main': main + shift}]
    paths['constant'] = draw_constant(rng, caches, l2, main)
    paths.update(shared=rng.randint(15, 60), host=rng.randint(700, 2500))
    gaps = [list(b.values())[0] - list(a.values())[0] for p in paths.values() if isinstance(p, list)
            for a, b in zip(p, p[1:])]
    part = draw_l2(rng)
    gaps.append(part.get('far_cycles', 1000))
    rates = {name: rng.randint(100, 1500) for name in ('l2_read', 'l2_write')}
    rates.update({name: rng.randint(60, 90) for name in ('main_read', 'main_write', 'main_copy')})
    rates.update({name: rng.randint(5, 50) for name in ('h2d', 'd2h', 'bidir')}, sm=SM_BYTES_PER_CYCLE)
    return {'name': f'Drawn {number}', 'pci': {'device': f'10de:{0xe000 + number:04x}', 'subsystem': '10de:1'},
            'sms': rng.choice([6, 8, 12, 20, 30, 46]), 'sms_per_tpc': 2,
            'clock': {'sm_mhz': rng.randint(700, 2500), 'ramp_ms': rng.randint(0, 40)},
            'timer': {'overhead_cycles': rng.randint(0, 30), 'granularity_cycles': rng.choice([1, 1, 2, 4])},
            'noise': {'jitter_cycles': round(min(gaps) * rng.uniform(0.01, 0.15), 2),
                      'spike_rate': round(rng.uniform(0, 0.005), 4), 'spike_cycles': rng.randint(100, 900),
                      'bandwidth': round(rng.uniform(0.001, 0.01), 4)},
            'caches': caches, 'l2': part, 'memory': {'size': '8 GiB'}, 'paths': paths, 'bandwidth': rates}


def truth_of(gpu):
    """What there is to find: metric, value; None where the value is only known to be large."""
    caches, paths, part = gpu['caches'], gpu['paths'], gpu['l2']
    first = {memory: next(iter(paths[path][0].items())) for memory, path in PATHS.items()}
    for memory, (name, latency) in first.items():
        cache = caches[name]
        yield f'{memory}.size', cache['size']
        yield f'{memory}.line', cache['line']
        yield f'{memory}.fetch', cache['sector']
        yield f'{memory}.latency', latency
        yield f'{memory}.per_sm', cache.get('instances', 1)
        yield f'{memory}.shared_with', [m for m in first if m != memory and first[m][0] == name]
    if 'c15' in caches:
        fits = caches['c15']['size'] > 65536
        yield 'constant_l15.size', None if fits else caches['c15']['size']
        yield 'constant_l15.fetch', caches['c15']['sector']
        yield 'constant_l15.latency', paths['constant'][1]['c15']
    yield 'l2.size', part['size']
    yield 'l2.line', part['line']
    yield 'l2.fetch', part['sector']
    yield 'l2.latency', paths['global_cg'][0]['l2']
    yield 'l2.parts', 1 if part['parts'] == 'one' else 2
    yield 'main.latency', paths['global_cg'][1]['main'] + part.get('far_cycles', 0) / 2
    yield 'shared.latency', paths['shared']
    yield 'host.latency', paths['host']
    most = gpu['sms'] * SM_BYTES_PER_CYCLE * gpu['clock']['sm_mhz'] / 1000
    for memory in ('l2', 'main'):
        for kind in ('read', 'write'):
            yield f'{memory}.bandwidth.{kind}', min(most, gpu['bandwidth'][f'{memory}_{kind}'])
    for kind in ('h2d', 'd2h'):
        yield f'host.bandwidth.{kind}', gpu['bandwidth'][kind]


def find(memory, metric):
    for key in metric.split('.'):
        memory = memory.get(key) if isinstance(memory, dict) else None
    return memory if isinstance(memory, dict) else {'value': memory}


def is_right(metric, truth, found):
    value = found.get('value')
    if isinstance(truth, list):
        return value == truth
    if truth is None:
        return found.get('bound') == 'at_least'
    tolerance = TOLERANCES.get(metric.split('.')[-1], 0)
    return isinstance(value, (int, float)) and abs(value - truth) <= tolerance * truth


def survey(program, folder, gpu):
    model, fleet, out = folder / 'model.yaml', folder / 'fleet.yaml', folder / 'out.yaml'
    model.write_text(yaml.safe_dump(gpu, sort_keys=False), encoding='utf-8')
    fleet.write_text(f'nodes:\n  - {{name: n, gpus: 1, model: {model}}}\n', encoding='utf-8')
    subprocess.run([program, '--simulate', fleet, '--quiet', '-o', out], check=False)
    return yaml.safe_load(out.read_text(encoding='utf-8'))['models'][0]['memory']


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20261115
    tally = {'right': 0, 'doubtful': 0, 'wrong': 0}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            gpu = draw_gpu(random.Random(seed * 1000 + number), number)
            memory = survey(program, pathlib.Path(folder), gpu)
            for metric, truth in truth_of(gpu):
                found = find(memory, metric)
                told = found.get('status', 'ok') != 'ok' or found.get('confidence', 1) <= CONFIDENT
                kind = 'right' if is_right(metric, truth, found) else 'doubtful' if told else 'wrong'
                tally[kind] += 1
                if kind != 'right':
                    print(f'GPU {number}: {metric} is {truth}: {kind}: {found}'[:300])
    total = sum(tally.values())
    print(f'{count} GPUs, {total} attributes: {100 * tally["right"] / total:.2f} % right, '
          f'{tally["doubtful"]} with doubt, {tally["wrong"]} wrong and called confident (wanted 0)')
    sys.exit(tally['wrong'] > 0)


main()
