#!/usr/bin/env python3
"""Whole GPUs drawn at random, with all that the profile `full` looks at: whole_gpus.py SURVEY COUNT [SEED [AT_ONCE [NUMBER]]].

As gpus.py, and every GPU also has TLBs, instructions, caches of instructions, clusters, banks of shared memory and
limits of its streams. All probes run in one survey, so that one may disturb the other. Fails when a value was wrong and
called confident. NUMBER: only this GPU of the seed.
"""
import pathlib
import random
import sys

import yaml

import gpus

SCOPES = ('sm', 'tpc', 'gpc', 'gpu')
INSTRUCTION_BYTES = 16
SUB_CORES, LANES = 4, 32
CHAINS_IN_FLIGHT = 32  # of a sub-core: four chains of each of eight warps
SECOND_COPY_BYTES = 170 * 1024  # sharing of larger caches is not looked at: there is no second copy of so much code
EXACT = ('entries', 'span', 'levels', 'banks', 'bank_width', 'shared_by', 'size_max', 'count', 'sms')
# Latencies and rates; penalties of TLBs and cycles of code that replaces other code are rougher.
TOLERANCES = {'latency': 0.025, 'rate': 0.02, 'penalty': 0.1, 'cycles': 0.04, 'saturated': 0.03, 'largest': 0.03,
              'interval': 0.05, 'latency_loaded': 0.04, 'latency_doubles': 0.04,
              'latency_far': 0.025, 'p1': 0.025, 'p2': 0.025, 'p3': 0.025, 'own': 0.02}


def draw_tlbs(rng):
    """One or two levels on pages as GPUs have them. At least as many SMs share the second one as the first."""
    levels, entries, page, scope = [], rng.randint(4, 63), 1 << rng.randint(20, 22), 0
    for number in range(rng.randint(1, 2)):
        scope = rng.randint(scope, 3 if number else 1)
        ways = rng.choice([0, 0, rng.randint(2, 8)]) or (4 if number else 0)
        entries = max(entries - entries % ways, ways) if ways else entries
        levels.append({'entries': entries, 'ways': ways or entries, 'page': page,
                       'policy': 'lru' if number else rng.choice(['lru', 'lru', 'fifo', 'random']),
                       'scope': SCOPES[scope], 'miss_cycles': rng.randint(20, 320)})
        entries *= rng.randint(4, 11)
        page <<= rng.randint(0, 1)
    return levels


def draw_instructions(rng, names):
    return {name: [rng.randint(3, 62), rng.choice([1, 1.5, 2, 4, 8, 16])] for name in names if rng.random() < 0.8}


def draw_instruction_caches(rng):
    """As in test_instruction_cache.c."""
    count, line = rng.randint(1, 3), rng.choice([32, 64, 128, 256])
    size, scope, cycles, levels = 8192 + 1024 * rng.randint(0, 5 if count == 3 else 39), 0, rng.uniform(1, 2), []
    cost = cycles
    for _ in range(count):
        ways = rng.choice([1, 2, 4, 8, 16])
        size -= size % (line * ways)
        scope = rng.randint(scope, 3)
        more = cost * rng.uniform(0.3, 2.3)
        levels.append({'size': size, 'line': line, 'ways': ways, 'scope': SCOPES[scope],
                       'miss_cycles': round(more * line / INSTRUCTION_BYTES, 3)})
        cost += more
        size *= rng.randint(3, 4)
    return {'cycles': round(cycles, 3), 'levels': levels}


def draw_clusters(rng):
    return {'size': rng.randint(2, 16), 'own_cycles': rng.randint(25, 44), 'other_cycles': rng.randint(120, 269),
            'distance_cycles': rng.randint(5, 44), 'own_read': 90, 'read': rng.randint(8, 67),
            'copy_cycles': rng.randint(0, 299), 'copy': rng.randint(8, 67), 'bulk_cycles': rng.randint(50, 249),
            'bulk_interval': 4, 'bulk': 50}


def draw_banks(rng):
    width = rng.choice([4, 8])
    return {'banks': rng.choice([8, 16, 32, 64]), 'bank_width': width, 'interleave': rng.choice([4, width]),
            'conflict_cycles': rng.randint(4, 43) / 4}


def draw_gpu(rng, number, names):
    gpu = gpus.draw_gpu(rng, number)
    gpu.update(tlb=draw_tlbs(rng), instructions=draw_instructions(rng, names), shared=draw_banks(rng),
               instruction_caches=draw_instruction_caches(rng), memory={**gpu['memory'], 'size': '16 GiB'},
               hardware={'compute_capability': '9.0', 'cores_per_sm': 128})
    gpu['bandwidth']['main_add'] = rng.randint(60, 90)
    gpu['bandwidth']['shared'] = rng.randint(32, 128)
    if rng.random() < 0.7:
        gpu['clusters'] = draw_clusters(rng)
    for bracket in gpu['paths']['global_cg']:
        (memory, cycles), = bracket.items()
        gpu['bandwidth'][f'{memory}_loaded_cycles'] = round(cycles * rng.uniform(1, 3))
    if rng.random() < 0.7:
        gpu['bandwidth']['l2_way'] = rng.randint(20, 400)
    draw_unified(rng, gpu)
    draw_sub_core(rng, gpu['instruction_caches'])
    return gpu


def draw_unified(rng, gpu):
    """A constant L1.5 that constants do not fill is often also the last cache of instructions."""
    caches, l15 = gpu['instruction_caches'], gpu['caches'].get('c15')
    if not l15 or l15['size'] <= 65536 or rng.random() < 0.4:
        return
    line, ways = l15['line'], rng.choice([4, 8, 16])
    size = l15['size'] - l15['size'] % (line * ways)
    l15.update(size=size, ways=ways, policy='lru', sector=line)
    before = [level for level in caches['levels'] if level['size'] <= size / 3]
    last = caches['levels'][-1]
    caches['levels'] = before + [{'size': size, 'line': line, 'ways': ways, 'scope': last['scope'],
                                  'miss_cycles': round(last['miss_cycles'] * line / last['line'], 3)}]
    caches['constants'] = True


def draw_sub_core(rng, caches):
    """Only jumping code shows it: at most half as large as the first level."""
    first, ways = caches['levels'][0], rng.choice([2, 4, 8])
    sets = first['size'] // 2 // first['line'] // ways
    if sets < 1 or sets * ways * first['line'] < 2048 or rng.random() < 0.4:
        return
    size = max(2048, rng.randint(1, sets) * ways * first['line'])
    caches['sub_core'] = {'size': size - size % (ways * first['line']), 'line': first['line'], 'ways': ways,
                          'miss_cycles': rng.randint(5, 25)}


def sharers(gpu, scope):
    """SMs that share a cache of SM 0."""
    return {'sm': 1, 'tpc': 2, 'gpc': gpu['sms_per_gpc'][0], 'gpu': gpu['sms']}[scope]


def seen_tlbs(gpu, memory):
    """The levels that the probe could see: it says how small a rise it may overlook."""
    found = gpus.find(memory, 'tlb.levels')
    first, least = gpu['tlb'][0], found.get('smallest_rise', 0)
    overlooked = (found.get('value') or 0) < len(gpu['tlb']) and first['miss_cycles'] <= least
    return gpu['tlb'][1:] if overlooked else gpu['tlb']


def tlb_truths(gpu, memory):
    tlbs = seen_tlbs(gpu, memory)
    yield 'tlb.levels', len(tlbs)
    for number, level in enumerate(tlbs, 1):
        yield f'tlb.l{number}.entries', level['entries']
        yield f'tlb.l{number}.span', level['page']
        yield f'tlb.l{number}.penalty', level['miss_cycles']
        yield f'tlb.l{number}.sms', sharers(gpu, level['scope'])
    if gpu['l2']['parts'] == 'one' and len(tlbs) == 2:
        noise = gpu['noise']  # P1 to P6 are means of all loads, spikes included
        cycles = gpu['paths']['global_cg'][0]['l2'] + noise['spike_rate'] * noise['spike_cycles']
        for number, more in enumerate([0] + [level['miss_cycles'] for level in tlbs], 1):
            cycles += more
            yield f'spectrum.p{number}', cycles


def unified_truths(gpu):
    """Where code and constants are in one cache. What is drawn for that is found, or stays a bound."""
    if 'c15' not in gpu['caches']:
        return
    last = len(gpu['instruction_caches']['levels'])
    one = gpu['instruction_caches'].get('constants')
    yield 'constant_l15.shared_with', [f'instruction_cache.level{last}'] if one else []
    yield 'constant_l15.line', gpu['caches']['c15']['line']


def instruction_truths(gpu, memory):
    for name, (latency, interval) in gpu['instructions'].items():
        yield f'instructions.{name}.latency', max(latency, interval)
        if name.startswith(('fp32_add', 'fp32_mul', 'fp32_fma', 'fp64')):
            each = max(interval, 1, latency / CHAINS_IN_FLIGHT)
            operations = 2 if name.endswith('fma') else 1  # a multiply-add is two
            yield f'instructions.{name}.rate', operations * SUB_CORES * LANES / each
    cost = gpu['instruction_caches']['cycles']
    found = gpus.find(memory, 'instruction_cache.l0.size').get('value')
    sub_core = gpu['instruction_caches'].get('sub_core', {'size': 0})
    if found:
        yield 'instruction_cache.l0.size', sub_core['size']
    yield 'instruction_cache.levels', len(gpu['instruction_caches']['levels']) + bool(found)
    for number, level in enumerate(gpu['instruction_caches']['levels'], 1):
        yield f'instruction_cache.level{number}.size', level['size']
        yield f'instruction_cache.level{number}.cycles', cost
        if level['size'] <= SECOND_COPY_BYTES:
            yield f'instruction_cache.level{number}.shared_by', sharers(gpu, level['scope'])
        cost += level['miss_cycles'] * INSTRUCTION_BYTES / level['line']


def cluster_truths(gpu):
    clusters = gpu.get('clusters')
    if not clusters:
        yield 'cluster.size_max', gpus.ABSENT
        return
    size = clusters['size']
    while not sum(gpc // size for gpc in gpu['sms_per_gpc']):
        size -= 1
    yield 'cluster.size_max', size
    yield 'cluster.count', sum(gpc // size for gpc in gpu['sms_per_gpc'])
    yield 'cluster.own_latency', clusters['own_cycles']
    yield 'cluster.bandwidth.own', clusters['own_read']
    for two_power in (2, 4, 8, 16):
        if two_power <= size:
            yield f'cluster.bandwidth.size_{two_power}', clusters['read']
            yield f'bulk_copy.cluster.size_{two_power}', clusters['copy']
    if gpu['l2']['parts'] == 'one':
        yield 'bulk_copy.latency.l2', gpu['paths']['global_cg'][0]['l2'] + clusters['bulk_cycles']


def shared_truths(gpu):
    yield 'shared.banks', gpu['shared']['banks']
    yield 'shared.bank_width', gpu['shared']['bank_width']
    yield 'shared.conflict.latency', gpu['shared']['conflict_cycles']


def surface_truths(gpu):
    rates = gpu['bandwidth']
    cycles_per_ns = gpu['sms'] * gpu['clock']['sm_mhz'] / 1000
    most = gpus.SM_BYTES_PER_CYCLE * cycles_per_ns
    yield 'surface.copy_threads.saturated', min(most, rates['main_copy'])
    yield 'surface.l2_threads.saturated', min(most, rates['l2_read'])
    yield 'surface.shared_blocks.saturated', rates['shared'] * cycles_per_ns
    for kind, rate in (('copy', 'main_copy'), ('mul', 'main_copy'), ('add', 'main_add'), ('triad', 'main_add')):
        yield f'surface.stream_size.{kind}.largest', min(most, rates[rate])
        yield f'surface.stream_threads.{kind}.saturated', min(most, rates[rate])


def loaded_truths(gpu):
    """Latency rises with the fifth power of the share of the limit that the other SMs read. Nine tenths of the highest
    rate, and where the latency doubles, if it does."""
    rates, alone = gpu['bandwidth'], dict(gpus.truth_of(gpu))
    chasers = min(max(gpu['sms'] // 16, 1), 4)
    most = gpus.SM_BYTES_PER_CYCLE * (gpu['sms'] - chasers) * gpu['clock']['sm_mhz'] / 1000
    for bracket in gpu['paths']['global_cg']:
        (memory, cycles), = bracket.items()
        limit, more = rates[f'{memory}_read'], rates[f'{memory}_loaded_cycles'] - cycles
        highest, latency = min(most, limit), alone[f'{memory}.latency']
        if memory == 'l2' and gpu['l2']['parts'] == 'homes':
            latency += sum(gpus.far_levels(gpu['l2'])) / (1 + len(gpus.far_levels(gpu['l2'])))
        yield f'{memory}.latency_loaded', latency + more * (0.9 * highest / limit) ** 5
        doubled = limit * (latency / more) ** 0.2 if more else highest
        if not 0.97 < doubled / highest < 1.03:
            yield f'{memory}.latency_doubles', min(doubled, highest)


def way_truths(gpu):
    """Half of what L2 delivers, or what the way lets pass, where a few SMs are no limit."""
    if len(gpus.far_levels(gpu['l2'])) != 1:
        return
    most = gpus.SM_BYTES_PER_CYCLE * gpu['sms'] * gpu['clock']['sm_mhz'] / 1000
    for kind in ('read', 'write'):
        rate = min(gpu['bandwidth'][f'l2_{kind}'] / 2, gpu['bandwidth'].get('l2_way', 1e6))
        if rate < most / 4:
            yield f'l2.way.{kind}', rate


def truths_of(gpu, memory):
    for truths in (gpus.truth_of, gpus.structure_of, unified_truths, cluster_truths, shared_truths, surface_truths,
                   loaded_truths, way_truths):
        for metric, truth in truths(gpu):
            filled = metric == 'constant_l15.size' and gpu['instruction_caches'].get('constants')
            yield metric, gpu['caches']['c15']['size'] if filled else truth
    yield from instruction_truths(gpu, memory)
    yield from tlb_truths(gpu, memory)


def is_right(metric, truth, found):
    """Beyond what gpus.py compares: sizes of instruction caches to what the loop around the code takes."""
    key, value = metric.split('.')[-1], found.get('value')
    if metric.startswith(('instruction_cache', 'instructions', 'tlb', 'spectrum', 'cluster', 'bulk_copy', 'surface',
                          'shared.', 'l2.way', 'l2.latency_', 'main.latency_')) and isinstance(truth, (int, float)) and isinstance(value, (int, float)):
        if metric == 'instruction_cache.l0.size':
            return abs(value - truth) <= max(1024, 0.15 * truth)
        if metric.startswith('instruction_cache') and key == 'size':
            return abs(value - truth) <= (512 if truth < 65536 else 2048) + 3 * 256
        tolerance = 0 if key in EXACT else TOLERANCES.get(key, 0.03)
        return abs(value - truth) <= tolerance * truth
    return gpus_is_right(metric, truth, found)


def instruction_names(source):
    """Of the table that the simulated H200 has."""
    return list(yaml.safe_load((source / 'configs/sim/h200.yaml').read_text(encoding='utf-8'))['instructions'])


gpus_is_right, gpus.is_right = gpus.is_right, is_right


def judge_drawn(program, seed, number, names, probes=()):
    gpu = draw_gpu(random.Random(seed * 1000 + number), number, names)
    memory = gpus.measure(program, gpu, ['--profile', 'full', *probes])
    return gpus.judge(memory, truths_of(gpu, memory), True)


def main():
    program, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20261118
    at_once = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    only = int(sys.argv[5]) if len(sys.argv) > 5 else None
    names = instruction_names(pathlib.Path(__file__).resolve().parents[2])

    def judge_one(number):
        return judge_drawn(program, seed, number, names) if only in (None, number) else []
    sys.exit(gpus.judge_all(judge_one, count, at_once))


if __name__ == '__main__':
    main()
