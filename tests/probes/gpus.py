#!/usr/bin/env python3
"""Whole GPUs drawn at random: gpus.py SURVEY COUNT [SEED [AT_ONCE [structure]]].

Each has every memory, of any size, line, sharing and latency; the survey's `standard` profile is held
against what was drawn. Prints what was right, what was told with doubt (noisy, failed, a lower bound) and
what was wrong and called confident; then, attribute by attribute, how often values of a confidence were
right (docs/METHOD.md has this table). Fails when a value was wrong and called confident. With `structure`
as last argument it compares sets, ways, index and policy with what was drawn instead.
"""
import concurrent.futures
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import yaml

PATHS = {'l1_data': 'global_ca', 'texture': 'texture', 'read_only': 'read_only', 'constant_l1': 'constant'}
TOLERANCES = {'size': 0.03, 'latency': 0.025, 'latency_far': 0.025, 'miss_penalty': 0.03, 'read': 0.03, 'write': 0.03, 'h2d': 0.03,
              'd2h': 0.03}
SM_BYTES_PER_CYCLE = 64
CONFIDENT = 0.9
ABSENT = 'absent'


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
    caches['c15']['scope'] = rng.choice(['sm', 'tpc', 'gpc', 'gpc', 'gpu'])
    caches['c15']['index'] = 'modulo'
    return [{'c1': first}, {'c15': first + rng.randint(30, 60)}, {'l2': l2 + 70}, {'main': main + 70}]


def draw_l2(rng):
    """One part, two, or two dies of two each; slices at any distance below that of the parts. Slices in two groups
    only with copies: without, two groups of slices that SMs see the other way round are two parts."""
    l2 = draw_cache(rng, 512 * 1024, 6 * 1024 * 1024, (32, 64, 128, 128), (4, 8, 16))
    del l2['policy']
    l2['parts'] = rng.choice(['one', 'one', 'homes', 'copies'])
    gap = rng.randint(40, 120)
    if l2['parts'] == 'one':
        l2['slice_cycles'] = rng.choice([0, rng.randint(5, 60)])
    else:
        l2['far_cycles'] = rng.choice([gap, gap, [gap, 2 * gap + rng.randint(0, 40)]])
        l2['slice_cycles'] = rng.choice([0, rng.randint(5, gap - 5)])
    if l2['parts'] == 'copies' and l2['slice_cycles'] < gap / 2:
        l2['group_cycles'] = rng.choice([0, rng.randint(5, gap // 3)])
    l2['size'] -= l2['size'] % (4 * l2['line'])
    return l2


def far_levels(l2):
    """How much further the other parts are."""
    far = l2.get('far_cycles', [])
    return [far[0], far[1], far[1]] if isinstance(far, list) and far else [far] if far else []


def draw_tlbs(rng):
    """None, one or two levels, that reach from 2 MiB to beyond the memory, on pages of any size."""
    levels, reach, pages = [], 2 << 20, [4 << 10, 64 << 10, 2 << 20]
    for _ in range(rng.randint(0, 2)):
        page = rng.choice([p for p in pages if not levels or p >= levels[0]['page']])
        reach = int(reach * 2 ** rng.uniform(0, 13))
        entries = min(max(reach // page, 1), 65536)
        reach = entries * page
        ways = ['full'] + [w for w in (4, 8) if w <= entries]
        levels.append({'entries': entries, 'ways': rng.choice(ways), 'page': page,
                       'miss_cycles': rng.randint(20, 500)})
    return levels


def draw_gpcs(rng, sms):
    sizes = []
    while sum(sizes) < sms:
        sizes.append(min(2 * rng.randint(1, 5), sms - sum(sizes)))
    return sizes


def groups_of(gpu):
    """The SMs that share a constant L1.5."""
    sms, scope = gpu['sms'], gpu['caches']['c15']['scope']
    if scope == 'sm':
        return list(range(sms))
    if scope == 'gpu':
        return [0] * sms
    if scope == 'tpc':
        return [i // 2 for i in range(sms)]
    sizes, found = list(gpu['sms_per_gpc']), []
    gpc, across = 0, gpu['sm_order'] == 'across'
    left = list(sizes)
    while len(found) < sms:
        if left[gpc]:
            take = 2 if across else left[gpc]
            found += [gpc] * take
            left[gpc] -= take
        gpc = (gpc + 1) % len(sizes)
    numbers = {}
    return [numbers.setdefault(g, len(numbers)) for g in found]


def draw_gpu(rng, number):
    near = rng.randint(20, 90)
    l2 = near + rng.randint(90, 250)
    main = l2 + rng.randint(250, 500)
    shift = rng.randint(0, 60)
    lines, ways = (32, 64, 96, 128, 128, 256), (1, 2, 3, 4, 6, 8, 16, 'full')
    caches = {'l1': draw_cache(rng, 8192, 256 * 1024, lines, ways)}
    caches['l1']['scope'] = rng.choice(['sm', 'sm', 'tpc'])
    paths = {'global_ca': [{'l1': near}, {'l2': l2}, {'main': main}], 'global_cg': [{'l2': l2}, {'main': main}]}
    for path, own in (('texture', 'tex'), ('read_only', 'ro')):
        name = rng.choice(['l1', own])
        if name == own:
            caches[own] = draw_cache(rng, 4096, 64 * 1024, lines, ways)
            caches[own]['instances'] = rng.choice([1, 1, 2, 4])
            if caches[own]['instances'] == 1:
                caches[own]['scope'] = rng.choice(['sm', 'sm', 'tpc'])
        paths[path] = [{name: near + shift}, {'l2': l2 + shift}, {'main': main + shift}]
    paths['constant'] = draw_constant(rng, caches, l2, main)
    paths.update(shared=rng.randint(15, 60), host=rng.randint(700, 2500))
    gaps = [list(b.values())[0] - list(a.values())[0] for p in paths.values() if isinstance(p, list)
            for a, b in zip(p, p[1:])]
    part = draw_l2(rng)
    gaps += far_levels(part)
    rates = {name: rng.randint(100, 1500) for name in ('l2_read', 'l2_write')}
    rates.update({name: rng.randint(60, 90) for name in ('main_read', 'main_write', 'main_copy')})
    rates.update({name: rng.randint(5, 50) for name in ('h2d', 'd2h', 'bidir')}, sm=SM_BYTES_PER_CYCLE)
    sms = rng.choice([6, 8, 12, 20, 30, 46])
    gpu = {'name': f'Drawn {number}', 'pci': {'device': f'10de:{0xe000 + number:04x}', 'subsystem': '10de:1'},
           'sms': sms, 'sms_per_tpc': 2, 'sms_per_gpc': draw_gpcs(rng, sms),
           'sm_order': rng.choice(['along', 'across']),
           'clock': {'sm_mhz': rng.randint(700, 2500), 'ramp_ms': rng.randint(0, 40)},
           'timer': {'overhead_cycles': rng.randint(0, 30), 'granularity_cycles': rng.choice([1, 1, 1, 2, 4, 16, 32, 64])},
           'noise': {'jitter_cycles': round(min(gaps) * rng.uniform(0.01, 0.15), 2),
                     'spike_rate': round(rng.uniform(0, 0.005), 4), 'spike_cycles': rng.randint(100, 900),
                     'bandwidth': round(rng.uniform(0.001, 0.01), 4)},
           'caches': caches, 'l2': part, 'memory': {'size': '8 GiB'}, 'paths': paths, 'bandwidth': rates}
    tlbs = draw_tlbs(rng)
    if rng.random() < 0.5:
        gpu['memory'].update(slow_share=round(rng.uniform(0, 0.3), 3), slow_cycles=rng.randint(0, 600))
    return {**gpu, 'tlb': tlbs} if tlbs else gpu


def loads(cycles, jitter):
    """Median and mean of loads: one takes a cycle at least, so that much jitter makes the mean of short ones longer."""
    if not jitter:
        return cycles
    low = (cycles - 1) / jitter
    density = math.exp(-low * low / 2) / math.sqrt(2 * math.pi)
    return cycles, cycles + jitter * (density - low * math.erfc(low / math.sqrt(2)) / 2)


def truth_of(gpu):
    """What there is to find: metric, value; None where the value is only known to be large; a pair: from, to."""
    caches, paths, part = gpu['caches'], gpu['paths'], gpu['l2']
    jitter = gpu['noise']['jitter_cycles']
    first = {memory: next(iter(paths[path][0].items())) for memory, path in PATHS.items()}
    for memory, (name, latency) in first.items():
        cache = caches[name]
        yield f'{memory}.size', cache['size']
        yield f'{memory}.line', cache['line']
        yield f'{memory}.fetch', cache['sector']
        yield f'{memory}.latency', loads(latency, jitter)
        yield f'{memory}.per_sm', cache.get('instances', 1)
        yield f'{memory}.shared_with', [m for m in first if m != memory and first[m][0] == name]
    if 'c15' in caches:
        fits = caches['c15']['size'] > 65536
        yield 'constant_l15.size', None if fits else caches['c15']['size']
        yield 'constant_l15.fetch', caches['c15']['sector']
        yield 'constant_l15.latency', loads(paths['constant'][1]['c15'], jitter)
        groups = groups_of(gpu)
        yield 'sm.groups', len(set(groups))
        yield 'sm.groups.map', list(groups)
    else:
        yield 'constant_l15.size', ABSENT
    yield 'l2.size', part['size']
    yield 'l2.line', part['line']
    yield 'l2.fetch', part['sector']
    yield 'l2.latency', paths['global_cg'][0]['l2']
    far = far_levels(part)
    yield 'l2.parts', 1 + len(far)
    if far:
        yield 'l2.latency_far', paths['global_cg'][0]['l2'] + sum(far) / len(far)
    slow = gpu['memory'].get('slow_share', 0) * gpu['memory'].get('slow_cycles', 0) / 2
    yield 'l2.miss_penalty', paths['global_cg'][1]['main'] - paths['global_cg'][0]['l2'] + slow
    yield 'main.latency', paths['global_cg'][1]['main'] + sum(far) / (1 + len(far)) + slow
    yield 'shared.latency', loads(paths['shared'], jitter)
    yield 'host.latency', paths['host']
    most = gpu['sms'] * SM_BYTES_PER_CYCLE * gpu['clock']['sm_mhz'] / 1000
    for memory in ('l2', 'main'):
        for kind in ('read', 'write'):
            yield f'{memory}.bandwidth.{kind}', min(most, gpu['bandwidth'][f'{memory}_{kind}'])
    for kind in ('h2d', 'd2h'):
        yield f'host.bandwidth.{kind}', gpu['bandwidth'][kind]


def index_of(cache, sets):
    if sets == 1:
        return 'one_set'
    if cache['index'] == 'hashed':
        return 'hashed'
    period = sets * cache['line']
    if period & (period - 1):
        return f'modulo_{period}'
    low, high = cache['line'].bit_length() - 1, period.bit_length() - 2
    return f'bit_{low}' if sets == 2 else f'bits_{low}_to_{high}'


def structure_of(gpu):
    """Sets, ways, index and policy. "not_lru" is no error where it is random: only less than there is to say."""
    words = {'lru': 'lru', 'random': 'random', 'fermi': 'biased'}
    for memory, path in PATHS.items():
        cache = gpu['caches'][next(iter(gpu['paths'][path][0]))]
        lines = cache['size'] // cache['line']
        sets = 1 if cache['ways'] == 'full' else lines // cache['ways']
        ways = lines // sets
        yield f'{memory}.sets', sets
        yield f'{memory}.ways', ways
        yield f'{memory}.index', [index_of(cache, sets)]
        yield f'{memory}.policy', ['direct_mapped' if ways == 1 else words[cache['policy']]]
    sets = gpu['l2']['size'] // gpu['l2']['line'] // gpu['l2']['ways'] // (1 if gpu['l2']['parts'] == 'one' else 2)
    if gpu['l2']['index'] == 'hashed':
        yield 'l2.index', ['not_by_bits']
    elif sets & -sets >= 256:  # an odd number of sets is not by bits either
        yield 'l2.index', ['regular']
    yield 'l2.policy', ['lru']


def find(memory, metric):
    if metric.endswith('.map'):
        found = find(memory, metric[:-len('.map')])
        return {**found, 'value': found.get('map')}
    for key in metric.split('.'):
        memory = memory.get(key) if isinstance(memory, dict) else None
    return memory if isinstance(memory, dict) else {'value': memory}


def is_right(metric, truth, found):
    value = found.get('value')
    if truth == ABSENT:
        return found.get('status') == 'unsupported'
    if isinstance(truth, (list, str)):
        return value == truth
    if truth is None:
        return found.get('bound') == 'at_least'
    tolerance = 0 if metric.endswith(('.sets', '.ways')) else TOLERANCES.get(metric.split('.')[-1], 0)
    low, high = truth if isinstance(truth, tuple) else (truth, truth)
    return isinstance(value, (int, float)) and (1 - tolerance) * low <= value <= (1 + tolerance) * high


def is_lower_bound(metric, truth, found):
    """Numbers of levels are no excuse: all levels that are drawn can be seen."""
    return (found.get('bound') == 'at_least' and isinstance(truth, (int, float)) and found['value'] <= truth
            and not metric.endswith('.levels'))


def survey(program, folder, gpu, probes):
    model, fleet, out = folder / 'model.yaml', folder / 'fleet.yaml', folder / 'out.yaml'
    model.write_text(yaml.safe_dump(gpu, sort_keys=False), encoding='utf-8')
    # Units of a model differ in latencies: here the model itself is the truth.
    fleet.write_text(f'vary: none\nnodes:\n  - {{name: n, gpus: 1, model: {model}}}\n', encoding='utf-8')
    subprocess.run([program, '--simulate', fleet, '--quiet', '--time-limit', '3600', '-o', out, *probes], check=False)
    return yaml.safe_load(out.read_text(encoding='utf-8'))['models'][0]['memory']


def measure(program, gpu, probes):
    with tempfile.TemporaryDirectory() as folder:
        return survey(program, pathlib.Path(folder), gpu, probes)


def judge(memory, truths, may_be_silent=False):
    """(metric, truth, found, kind) of each attribute. may_be_silent: what is not reported at all is no claim."""
    judged = []
    for metric, truth in truths:
        found = find(memory, metric)
        silent = may_be_silent and found == {'value': None}
        # "unsupported" says that there is no such thing: that is sure.
        told = (found.get('status', 'ok') not in ('ok', 'unsupported') or (found.get('confidence') or 1) <= CONFIDENT
                or is_lower_bound(metric, truth, found) or (found.get('value') == ['not_lru'] and truth != ['lru']))
        kind = 'right' if is_right(metric, truth, found) else 'doubtful' if told or silent else 'wrong'
        judged.append((metric, truth, found, kind))
    return judged


def judge_drawn(program, seed, number, structure):
    gpu = draw_gpu(random.Random(seed * 1000 + number), number)
    memory = measure(program, gpu, ['--probes', 'structure'] if structure else [])
    return judge(memory, structure_of(gpu) if structure else truth_of(gpu))


def lower_bound(right, count):
    """Of the share of right ones, with 95 % confidence (Clopper, Pearson 1934), by bisection."""
    def chance(share):
        return sum(math.comb(count, k) * share ** k * (1 - share) ** (count - k) for k in range(right, count + 1))
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) > 0.05 else (middle, high)
    return low


def reliability(results):
    """Lines of a table: values that were given with a confidence, and how many of them were right."""
    by_metric = {}
    for metric, truth, found, _ in results:
        sure = found.get('confidence')
        if found.get('status', 'ok') == 'ok' and sure is not None and 'bound' not in found:
            by_metric.setdefault(metric, []).append((sure, is_right(metric, truth, found)))
    yield '| attribute | given | >= 0.99 | right | at least | >= 0.9 | right | at least |'
    yield '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
    for metric, values in by_metric.items():
        cells = []
        for limit in (0.99, 0.9):
            right = [is_it for sure, is_it in values if sure >= limit]
            share = (f'{100 * sum(right) / len(right):.1f} % | {100 * lower_bound(sum(right), len(right)):.1f} %'
                     if right else '- | -')
            cells += [str(len(right)), share]
        yield f'| {metric} | {len(values)} | ' + ' | '.join(cells) + ' |'


def judge_all(judge_one, count, at_once):
    """Judges so many GPUs and prints what was not right; the exit code."""
    results = []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for number, judged in enumerate(pool.map(judge_one, range(count))):
            for metric, truth, found, kind in judged:
                if kind != 'right':
                    print(f'GPU {number}: {metric} is {truth}: {kind}: {found}'[:300], flush=True)
            results += judged
    print(*reliability(results), sep='\n')
    kinds = [kind for _, _, _, kind in results]
    wrong = kinds.count('wrong')
    print(f'{count} GPUs, {len(kinds)} attributes: {100 * kinds.count("right") / len(kinds):.2f} % right, '
          f'{kinds.count("doubtful")} with doubt, {wrong} wrong and called confident (wanted 0)')
    return int(wrong > 0)


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20261115
    at_once = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    structure = sys.argv[5:] == ['structure']
    sys.exit(judge_all(lambda number: judge_drawn(program, seed, number, structure), count, at_once))


if __name__ == '__main__':
    main()
