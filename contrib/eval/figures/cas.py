# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Compare and swap through cuts: are results and words right?

Each CAS expects the value of the one before it on its word. 16 endpoints have batches of 64
on different words; the port goes down at a random time, until enough of them were in
flight at cuts. A CAS that is executed twice returns its own new value; one that is lost
is missing in the word at the end, which is read by an atomic."""

import time

import fabric

MODES = {
    'extended': {'ATOMIC_MODE': 'extended'},
    'proxy': {'ATOMIC_MODE': 'proxy'},
    'native': {'ATOMIC_MODE': 'native'},
    'resend': fabric.SYSTEMS['resend'],
    'resend_cache': fabric.SYSTEMS['resend_cache'],
}
IN_FLIGHT = {'full': 10000, 'quick': 1000, 'miniature': 1}
LOADS = {'full': 'cas:8:64', 'quick': 'cas:8:64', 'miniature': 'cas:8:16'}


def one(mode, load, random):
    with fabric.Fabric(*fabric.TIMED) as net:
        with fabric.faults(net, MODES[mode], load) as pair:
            fabric.begin(net, pair)
            time.sleep(random.uniform(0.1, 0.3))
            net.fault(['link', '1:0', 'down'])
            pair.say('stop')
            outcome = fabric.Outcome(pair.finish())
    in_flight = outcome.stopped[1]
    wrong = sum(ep[2] for ep in outcome.eps)
    failed = sum(ep[3] + ep[6] for ep in outcome.eps)
    words = sum(word[2] + word[3] for word in outcome.words)
    return in_flight, wrong, failed, words


def measure(level, random, rows):
    for mode in MODES:
        total, run = 0, 0
        while total < IN_FLIGHT[level]:
            in_flight, wrong, failed, words = one(mode, LOADS[level], random)
            if in_flight == 0:
                continue
            rows.add('in flight', mode, run, run, in_flight)
            rows.add('wrong results', mode, run, run, wrong)
            rows.add('reported as failed', mode, run, run, failed)
            rows.add('wrong words', mode, run, run, words)
            total += in_flight
            run += 1
