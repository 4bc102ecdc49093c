# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Throughput through failures (figure 12 of the paper).

16 endpoints with batches of 64. Some time after the fault the link or the NIC returns.

Each operation has a completion, which is counted. In the paper's setting a batch has only one:
there the server counts the puts that are new in its memory, because batches complete too rarely
to show a throughput."""

import subprocess
import time

import fabric

SYSTEMS = list(fabric.SYSTEMS)
SCENARIOS = {
    'cut': (['link', '1:0', 'down'], ['link', '1:0', 'up']),
    'silent': (['link', '1:0', 'silent'], ['link', '1:0', 'up']),
    'flap': (['link', '1:0', 'flap', '200ms,0.5'], ['link', '1:0', 'up']),
    'dead NIC': (['nic', '1:0', 'kill'], ['nic', '1:0', 'revive']),
}
PLAN = {'full': (3, list(SCENARIOS)), 'quick': (1, list(SCENARIOS)),
        'miniature': (1, ['cut'])}
# Seconds: until the fault, until the repair, and after it
TIMES = {'full': (0.6, 1.0, 0.9), 'quick': (0.5, 0.7, 0.5), 'miniature': (0.5, 0.2, 0.2)}
BIN = 25  # ms


def one(system, scenario, load, times):
    fault, repair = SCENARIOS[scenario]
    start, outage, after = times
    one_completion = load.endswith(':watch')
    options = fabric.ONE_COMPLETION if one_completion else None
    with fabric.Fabric(*fabric.TIMED) as net:
        with fabric.faults(net, system, load, options=options) as pair:
            ready = fabric.begin(net, pair, 0.5) / 1e9
            time.sleep(max(0, ready + start - time.time()))
            at = net.fault(fault)
            time.sleep(max(0, ready + start + outage - time.time()))
            net.fault(repair)
            time.sleep(max(0, ready + start + outage + after - time.time()))
            pair.say('stop')
            try:
                pair.client.wait(30)
            except subprocess.TimeoutExpired:
                raise fabric.Failure('%s does not end after %s' % (system, scenario))
            outcome = fabric.Outcome(pair.finish())
            if one_completion:
                outcome.bins = fabric.executed(pair.log('server'), outcome.ready)
    return at, outcome


TRIES = 3


def before(outcome, at):
    """Operations per ms in the 300 ms before the fault"""
    fault = round((at - outcome.ready) / 1e6)
    return sum(n for ms, n in outcome.bins.items() if fault - 300 <= ms < fault) / 300


def one_that_ran(system, scenario, load, times):
    """On a very busy machine nothing may have completed before the fault"""
    for _ in range(TRIES):
        at, outcome = one(system, scenario, load, times)
        if before(outcome, at) > 0:
            return at, outcome
    raise fabric.Failure('%s: nothing completed before the fault' % system)


def shares(outcome, at, seconds):
    """(ms since the fault, throughput in % of that before it)"""
    fault = round((at - outcome.ready) / 1e6)
    full = before(outcome, at)
    last = int(seconds * 1000)
    points = []
    for start in range(fault - 10 * BIN, last - BIN, BIN):
        operations = sum(outcome.bins.get(ms, 0) for ms in range(start, start + BIN))
        points.append((start - fault, 100 * operations / BIN / full))
    return points


def first(outcome, at):
    """ms until the failure was detected, and from then to the first completion, but for those
    of the same ms, which had come before; None if no endpoint has switched because of this
    fault. A switch that began before it has another cause."""
    switches = [switch for switch in outcome.switches if switch['end'] - switch['ns'] >= at]
    if not switches:
        return None
    detected = min(switch['end'] - switch['ns'] for switch in switches)
    after = [ms for ms in outcome.bins if outcome.ready + (ms - 0.5) * 1e6 > detected]
    completed = outcome.ready + (min(after) + 0.5) * 1e6
    return (detected - at) / 1e6, max(0, (completed - detected) / 1e6)


def measure(level, random, rows):
    runs, scenarios = PLAN[level]
    times = TIMES[level]
    loads = [(name, name, 'put:4096:64:each') for name in scenarios]
    loads.append(('cut, one completion', 'cut', 'put:4096:64:watch'))
    if level == 'full':
        loads.append(('cut, CAS and reads', 'cut', 'casread:512:64:each'))
    for run in range(runs):
        for panel, scenario, load in loads:
            for system in SYSTEMS:
                at, outcome = one_that_ran(system, scenario, load, times)
                for ms, share in shares(outcome, at, sum(times)):
                    rows.add(panel, system, ms, run, share)
                if system == 'none':
                    continue
                found = first(outcome, at)
                if found is None:
                    raise fabric.Failure('%s: nothing switched (%s)' % (system, panel))
                detection, recovery = found
                rows.add('failed endpoints', system, panel, run, outcome.failed_eps())
                if outcome.latency:  # Of operations with completions
                    rows.add('detection', system, panel, run, detection)
                    rows.add('recovery', system, panel, run, recovery)
                    rows.add('p50', system, panel, run, outcome.latency[1] / 1e3)
                    rows.add('p99', system, panel, run, outcome.latency[2] / 1e3)
