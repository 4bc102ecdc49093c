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
            # mode, operation, and minimum / median / maximum of three columns
            cells = [cell.strip() for cell in line.strip('| ').split('|')]
            if len(cells) == 6 and ' / ' in line and cells[0] != 'rc_mlx5':
                for panel, cell in (('latency', cells[2]), ('rate', cells[3])):
                    rows.add(panel, cells[0], cells[1], run, float(cell.split('/')[1]))
                rows.add('messages', cells[0], cells[1], run, float(cells[5]))
