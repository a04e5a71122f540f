#!/usr/bin/env python3
"""The simulated H200 against the real one: overlay.py SURVEY SOURCE_ROOT RECORD.

Lays the sweeps of every cache over each other: outside 5 % of the step the shares of misses differ by
less than 10 points, and the median latencies of sizes at which all loads hit or all miss by less than
5 % (single sizes differ more: each is measured on another SM, and SMs are not equally far from L1.5 and
L2). L1 is compared at a carve-out of 32 KiB, which the record has. At the smallest one the simulated L1 has up to 28
points more misses: its lines are replaced by LRU (docs/simulation.md).
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile

import unpack
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fast_yaml as yaml  # noqa: E402

MEMORIES = ('l1_data', 'texture', 'read_only', 'constant_l1', 'constant_l15', 'l2')
SHARE_TOLERANCE, LATENCY_TOLERANCE, STEP = 0.10, 0.05, 0.05
SETTLED = 0.01  # so near to 0 or 1 all loads hit or miss


def survey(program, arguments):
    """The memory section of the first model of a survey."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / 'out.yaml'
        subprocess.run([program, *arguments, '--quiet', '-o', out], check=True)
        with open(out, encoding='utf-8') as file:
            return yaml.safe_load(file)['models'][0]['memory']


def replaced(text, old, new):
    assert text.count(old) == 1, f'the model has no {old}'
    return text.replace(old, new)


def simulated(program, root):
    text = pathlib.Path(root, 'configs/sim/h200.yaml').read_text(encoding='utf-8')
    text = replaced(replaced(text, 'steps: [8 KiB, 16 KiB, ', 'steps: ['), 'nominal: 248 KiB', 'nominal: 224 KiB')
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as model, \
            tempfile.NamedTemporaryFile('w', suffix='.yaml') as fleet:
        model.write(text)
        fleet.write(f'nodes:\n  - {{name: n, gpus: 1, model: {model.name}}}\n')
        model.flush()
        fleet.flush()
        probes = ','.join(memory + '.size' for memory in MEMORIES)
        return survey(program, ['--simulate', fleet.name, '--profile', 'full', '--probes', probes])


def curve_of(memory):
    """Levels and points (bytes, cycles, share of misses) of a kept sweep."""
    size = memory['size']
    levels = dict(zip(('hit', 'far', 'miss'), (level or 0 for level in size['curve_levels'])))
    return levels, list(zip(size['curve_bytes'], size['curve_cycles'], size['curve_missed']))


def value_at(points, size, column):
    """Between the two points next to a size; None outside."""
    for left, right in zip(points, points[1:]):
        if left[0] <= size <= right[0]:
            part = (size - left[0]) / (right[0] - left[0])
            return left[column] + part * (right[column] - left[column])
    return None


def steps_of(memory):
    """Where the sweep steps up: for L2 twice."""
    return [memory[name]['value'] for name in ('size', 'step_half') if name in memory and
            memory[name].get('bound') != 'at_least']


def medians_of(points):
    """The median latency of the sizes at which all loads hit, and of those at which all miss."""
    hits = [cycles for _, cycles, missed in points if missed < SETTLED]
    misses = [cycles for _, cycles, missed in points if missed > 1 - SETTLED]
    return {name: statistics.median(values) for name, values in
            (('all hit', hits), ('all miss', misses)) if len(values) > 2}


def compare_latencies(name, real, sim, faults):
    worst = 0
    for what, cycles in real.items():
        off = abs(sim[what] - cycles) / cycles if cycles and what in sim else 0
        worst = max(worst, off)
        if off > LATENCY_TOLERANCE:
            faults.append(f'{name}: {what} {sim[what]:.1f}, in fact {cycles:.1f} cycles')
    return worst


def compare(name, real, sim):
    faults, compared, worst_share = [], 0, 0
    real_levels, real_points = curve_of(real)
    sim_levels, sim_points = curve_of(sim)
    if real['size'].get('bound') == 'at_least':
        del real_levels['miss']  # no load of the sweep missed
    worst_latency = max(
        compare_latencies(name, real_levels, sim_levels, faults),
        compare_latencies(name, medians_of(real_points), medians_of(sim_points), faults))
    for size, _, missed in real_points:
        share = value_at(sim_points, size, 2)
        if share is None or any(abs(size - step) < STEP * step for step in steps_of(real)):
            continue
        compared += 1
        worst_share = max(worst_share, abs(share - missed))
        if abs(share - missed) > SHARE_TOLERANCE:
            faults.append(f'{name}: at {size:.0f} B {share:.3f} miss, in fact {missed:.3f}')
    if compared < len(real_points) / 2:
        faults.append(f'{name}: only {compared} of {len(real_points)} sizes could be compared')
    print(f'{name:13} {compared:3} sizes, misses within {100 * worst_share:.1f} points, '
          f'latencies within {100 * worst_latency:.1f} %')
    return faults


def main():
    program, root, record = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        real = survey(program, ['--replay', unpack.plain(record, folder)])
    sim = simulated(program, root)
    faults = [fault for name in MEMORIES for fault in compare(name, real[name], sim[name])]
    print('\n'.join(faults))
    return 1 if faults else 0


sys.exit(main())
