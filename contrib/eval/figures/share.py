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
    for run in range(runs):
        for series, load in LOADS.items():
            for size in sizes:
                rows.add('share', series, size, run, one('%s:%d' % (load, size), random))
