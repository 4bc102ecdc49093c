# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Batches without failures, on a fabric without time, over all systems in turn."""

import collections

import fabric

# With the mode of atomics that is fastest and still exact, and with the default
CAS_SYSTEMS = ['none', 'resend', 'rc_varuna', 'rc_varuna proxy']
SYSTEMS = ['none', 'resend', 'rc_varuna', 'rc_varuna fallback']

OPTIONS = {**fabric.SYSTEMS, 'rc_varuna proxy': {'LOG': 'all', 'ATOMIC_MODE': 'proxy'}}


def way(system):
    transport = 'rc_mlx5/mlx5_0:1' if system == 'none' else 'rc_varuna/varuna_mlx5_0:1'
    options = fabric.system_options(OPTIONS[system])
    name = system.replace(' ', '_')
    return ','.join(['%s=%s' % (name, transport),
                     *('%s=%s' % pair for pair in options.items())])


def run(systems, loads, threads, rounds, milliseconds):
    """{(system, load): [nanoseconds of a batch, one for each round]}"""
    env = {**fabric.COMMON, 'UCX_LOG_LEVEL': 'warn', 'UCX_RC_VARUNA_SPARE_QPS': '4'}
    with fabric.Fabric() as net:
        with fabric.Pair(net, 'varuna_steady',
                         [str(threads), str(rounds), str(milliseconds),
                          *(way(system) for system in systems), *loads], env,
                         limit=300) as pair:
            output = pair.finish()
    times = collections.defaultdict(list)
    names = {system.replace(' ', '_'): system for system in systems}
    for line in output.split('\n'):
        words = line.split()
        if len(words) == 5 and words[1] in loads:
            times[names[words[0]], words[1]].append(int(words[4]) / int(words[3]))
    for system in systems:
        for load in loads:
            if len(times[system, load]) != rounds:
                raise fabric.Failure('%s over %s: %d rounds' %
                                     (load, system, len(times[system, load])))
    return times


def add_ratios(rows, panel, x, times, load, inverse=False):
    """Rows of this load relative to "none" in the same round; with inverse, rates."""
    plain = times['none', load]
    for (system, name), values in times.items():
        if name == load and system != 'none':
            for i, value in enumerate(values):
                ratio = value / plain[i]
                rows.add(panel, system, x, i, 1 / ratio if inverse else ratio)
