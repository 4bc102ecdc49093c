# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Latency and bandwidth without failures, by size (figure 8 of the paper), and
instructions of an operation by callgrind (contrib/bench/run.sh)."""

import fabric
import steady

SIZES = {'full': [16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576],
         'quick': [16, 4096, 65536, 1048576], 'miniature': [16, 65536]}
ROUNDS = {'full': (9, 40), 'quick': (5, 30), 'miniature': (3, 10)}
INSTRUCTIONS = {'put_short': 'put, 8 B', 'put_bcopy': 'put, 2 KB', 'put_zcopy': 'put, 4 KB',
                'get_zcopy': 'get, 4 KB'}


def instructions(rows):
    series = 'rc_varuna'
    for line in fabric.tool(['run.sh', '-s', '-i']).split('\n'):
        words = line.split()
        if 'LOG=fallback' in line:
            series = 'rc_varuna fallback'
        elif "UCX's defaults" in line:
            return
        elif words and words[0] in INSTRUCTIONS:
            rows.add('instructions', series, INSTRUCTIONS[words[0]], 0, float(words[-1]))


def measure(level, random, rows):
    sizes = SIZES[level]
    loads = ['put:%d:%d' % (size, count) for size in sizes for count in (1, 64)]
    times = steady.run(steady.SYSTEMS, loads, 1, *ROUNDS[level])
    for size in sizes:
        one, many = 'put:%d:1' % size, 'put:%d:64' % size
        steady.add_ratios(rows, 'latency', size, times, one)
        steady.add_ratios(rows, 'bandwidth', size, times, many, inverse=True)
        for system in steady.SYSTEMS:
            for run in range(len(times[system, one])):
                rows.add('microseconds', system, size, run, times[system, one][run] / 1e3)
                rows.add('MB per second', system, size, run,
                         size * 64 * 1e3 / times[system, many][run])
    if level == 'full':
        instructions(rows)
