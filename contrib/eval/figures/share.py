# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""How much of what is in flight at a cut was executed (figure 3a of the paper).

Plain rc_mlx5. The port goes down at a random time. Batches that were not complete then are
in flight; the last words of their slots in the server's memory tell what was executed."""

import time

import fabric

LOADS = {'CAS, 8 B': 'cas:8', 'write, 64 B': 'put:64', 'write, 4 KB': 'put:4096',
         'write, 64 KB': 'put:65536'}

SIZES = {'full': ([1, 2, 4, 8, 16, 32, 64], 9), 'quick': ([1, 8, 64], 2),
         'miniature': ([1, 64], 1)}

# A cut may find the same share as others, mostly nothing, and a miniature has two for each
# series. So a series that looks constant is cut again, so often at most. If even half of all
# cuts found this share, it would still look constant once in 2^20, a million
MORE = 20


def one(load, random):
    with fabric.Fabric(*fabric.TIMED) as net:
        with fabric.faults(net, 'none', load) as pair:
            fabric.begin(net, pair, 0.05)
            time.sleep(random.uniform(0.2, 0.4))
            net.fault(['link', '1:0', 'down'])
            time.sleep(0.1)  # What has passed the cut arrives
            pair.say('count')
            outcome = fabric.Outcome(pair.finish())
    posted = sum(batch[1] for batch in outcome.in_flight)
    if posted == 0:  # All had just completed
        return one(load, random)
    return 100 * sum(batch[2] for batch in outcome.in_flight) / posted


def measure(level, random, rows):
    sizes, runs = SIZES[level]
    found = {series: set() for series in LOADS}

    def cut(series, size, run):
        share = one('%s:%d' % (LOADS[series], size), random)
        rows.add('share', series, size, run, share)
        found[series].add(share)

    for run in range(runs):
        for series in LOADS:
            for size in sizes:
                cut(series, size, run)
    for series in LOADS:
        for run in range(runs, runs + MORE):
            if len(found[series]) > 1:
                break
            cut(series, sizes[-1], run)
