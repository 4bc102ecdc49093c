# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Batches of 64 writes, or of 16 times one CAS and three reads, by 1 to 16 threads
(figure 10 of the paper)."""

import steady

from threads import ROUNDS, THREADS


def measure(level, random, rows):
    for threads in THREADS[level]:
        times = steady.run(steady.SYSTEMS, ['put:4096:64'], threads, *ROUNDS[level])
        steady.add_ratios(rows, 'write', threads, times, 'put:4096:64', inverse=True)
        times = steady.run(steady.CAS_SYSTEMS, ['casread:512:64'], threads, *ROUNDS[level])
        steady.add_ratios(rows, 'CAS and reads', threads, times, 'casread:512:64',
                          inverse=True)
