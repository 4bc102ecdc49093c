# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Synchronous operations of 1 to 16 threads (figure 9 of the paper)."""

import steady

THREADS = {'full': [1, 2, 4, 8, 16], 'quick': [1, 16], 'miniature': [1, 2]}
ROUNDS = {'full': (7, 60), 'quick': (5, 50), 'miniature': (3, 20)}


def measure(level, random, rows):
    for threads in THREADS[level]:
        times = steady.run(steady.SYSTEMS, ['put:4096:1'], threads, *ROUNDS[level])
        steady.add_ratios(rows, 'write', threads, times, 'put:4096:1', inverse=True)
        times = steady.run(steady.CAS_SYSTEMS, ['cas:8:1'], threads, *ROUNDS[level])
        steady.add_ratios(rows, 'CAS', threads, times, 'cas:8:1', inverse=True)
