# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Repeat everything, or what was lost (figures 3b and 11 of the paper).

16 endpoints post a batch of 64 puts each, and wait for the last one. While the link transmits
them, at a random time, which is the same for all systems, the port goes down. Then no batch
begins, so the other link carries the recovery only. It ends when the last batch is complete.
What was executed, and so what has to be repeated, follows from the rate of the link and the
time of the cut.

In the paper's setting only the last put of a batch is signaled, so the requester knows nothing
of a batch that was cut. By default rc_varuna, and so its baselines, signal each 16th put."""

import itertools
import time

import fabric

SYSTEMS = {
    'resend': {}, 'resend_cache': {},
    'rc_varuna': {'UCX_RC_VARUNA_DC_NUM_DCI': '1'},
    'rc_varuna fallback': {'UCX_RC_VARUNA_DC_NUM_DCI': '1'},
    # The default: endpoints that recover wait less for each other
    'rc_varuna 8 DCI': {'UCX_RC_VARUNA_DC_NUM_DCI': '8'},
}
# The end of a panel's name
SETTINGS = {', one completion': fabric.ONE_COMPLETION, '': {}}
LOADS = {'4 KB': 4096, '64 KB': 65536}
RUNS = {'full': 9, 'quick': 2, 'miniature': 1}
LONG = 65536  # Takes seconds, so "quick" has it once


TRIES = 4


def one(system, setting, size, phase):
    """Repeat it if some endpoints had no RC connection yet, as on a busy machine"""
    for attempt in range(TRIES):
        outcome, result = cut(system, setting, size, phase, 0.2 * 3**attempt)
        if all(switch['was'] == 'rc' for switch in outcome.switches):
            return result
    raise fabric.Failure('%s: not all endpoints are connected' % system)


def cut(system, setting, size, phase, quiet):
    batch_time = 16 * 64 * size * 8 / (fabric.RATE_MBPS * 1e6)
    with fabric.Fabric(*fabric.TIMED) as net:
        with fabric.faults(net, system.replace(' 8 DCI', ''), 'put:%d:64' % size,
                           options={**SYSTEMS[system], **SETTINGS[setting]}) as pair:
            ready = fabric.begin(net, pair, quiet)
            time.sleep(max(0, ready / 1e9 + phase * batch_time - time.time()))
            before = net.port(1, 1)['counters']['tx_bytes']
            at = net.fault(['link', '1:0', 'down'])
            pair.say('stop')
            outcome = fabric.Outcome(pair.finish())
            sent = net.port(1, 1)['counters']['tx_bytes'] - before
    if outcome.failed_eps() or not outcome.switches:
        raise fabric.Failure('%s: %d endpoints failed' % (system, outcome.failed_eps()))
    end = max(batch[2] for batch in outcome.batches)
    repeated = sum(switch['repeated'] for switch in outcome.switches) * size
    return outcome, ((end - at) / 1e6, sent / 1e6, repeated / 1e6)


def measure(level, random, rows):
    sizes = LOADS if level != 'miniature' else {'1 KB': 1024}
    for run in range(RUNS[level]):
        phase = random.uniform(0.1, 0.9)  # The same for all systems
        for name, size in sizes.items():
            if level == 'quick' and size == LONG and run > 0:
                continue
            for setting, system in itertools.product(SETTINGS, SYSTEMS):
                times, sent, repeated = one(system, setting, size, phase)
                rows.add('recovery time' + setting, system, name, run, times)
                rows.add('bytes sent' + setting, system, name, run, sent)
                rows.add('bytes repeated' + setting, system, name, run, repeated)
