# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Atomics of each mode relative to those of rc_mlx5, by contrib/bench/atomics.sh."""

import fabric

ITERATIONS = {'full': (2000, 5, 3), 'quick': (1000, 3, 1), 'miniature': (50, 1, 1)}


def measure(level, random, rows):
    iterations, rounds, runs = ITERATIONS[level]
    for run in range(runs):
        output = fabric.tool(['atomics.sh', '-n', str(iterations), '-r', str(rounds),
                              'speed'])
        for line in output.split('\n'):
            words = line.split()
            if len(words) == 5 and words[0] not in ('mode', 'rc_mlx5'):
                rows.add('latency', words[0], words[1], run, float(words[2]))
                rows.add('rate', words[0], words[1], run, float(words[3]))
            elif len(words) == 3 and words[0] not in ('mode', 'rc_mlx5'):
                rows.add('messages', words[0], words[1], run, float(words[2]))
