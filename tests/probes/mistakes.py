#!/usr/bin/env python3
"""Drawn GPUs of which a figure was once wrong and called confident: mistakes.py SURVEY [EVERY].

Each row is a GPU of whole_gpus.py (seed and number), the survey's seed, the probes that measure the figure, and the figure. Fails when any
figure of these probes is wrong and called confident, or when the survey no longer reports the figure. EVERY: only every so many rows.
"""
import pathlib
import sys

import gpus
import whole_gpus

MISTAKES = [
    # seed, number, survey, probes, figure: what was wrong
    (1001, 49, 1, 'tlb', 'tlb.l1.span'),  # half of it: sets were filled at random
    (1002, 34, 1, 'tlb,spectrum', 'spectrum.p3'),  # lines that fell into few sets of L2
    (1002, 36, 1, 'tlb', 'tlb.l1.sms'),  # 2 of 12: another SM kept the pages in a TLB that was not seen
    (1004, 13, 1, 'structure.l2', 'l2.index'),  # regular: a hash that suits some powers of two badly
    (1005, 41, 1, 'instruction_cache.l0', 'instruction_cache.l0.size'),  # a rise that sets bend
    (1006, 29, 1, 'constant_l15.size', 'constant_l15.size'),  # at least 64 KiB: constant L1 held what was loaded
    (1008, 42, 3, 'tlb', 'tlb.levels'),  # 1 of 2: one rise of the latency seemed to have both
    (1009, 9, 1, 'instruction_cache', 'instruction_cache.levels'),  # 2 of 3: code that replaces level 2 costs as much as beyond level 3
    (31415, 45, 1, 'tlb,spectrum', 'spectrum.p2'),  # 345 of 432 cycles: what misses of TLBs add was not compared
    (60061, 31, 1, 'structure.l1_data', 'l1_data.policy'),  # not_lru: hashed sets that fill unevenly, one stray miss
    (60061, 33, 1, 'tlb', 'tlb.l2.span'),  # half of it
    (99137, 49, 1, 'tlb', 'tlb.levels'),  # at least 0, rises of 38 cycles seen: one of 52 rose so slowly that the base followed
]


def main():
    program = sys.argv[1]
    names = whole_gpus.instruction_names(pathlib.Path(__file__).resolve().parents[2])
    bad, rows = 0, MISTAKES[::int(sys.argv[2]) if len(sys.argv) > 2 else 1]
    for seed, number, survey, probes, figure in rows:
        judged = whole_gpus.judge_drawn(program, seed, number, names, ['--seed', str(survey), '--probes', probes])
        known = [kind for metric, _, found, kind in judged if metric == figure and found != {'value': None}]
        for metric, truth, found, kind in judged:
            if kind == 'wrong' or metric == figure:
                print(f'{seed} {number}: {metric} is {truth}: {kind}: {found}'[:300], flush=True)
        bad += len(known) != 1 or any(kind == 'wrong' for _, _, _, kind in judged)
    print(f'{len(rows)} GPUs, {bad} with a mistake (wanted 0)')
    sys.exit(bad > 0)


if __name__ == '__main__':
    main()
