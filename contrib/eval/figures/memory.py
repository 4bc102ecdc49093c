# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Memory of many endpoints, and the time until all of them have left a link.

Memory is that of the queues of all queue pairs, which a driver pins, and the anonymous
memory of both processes. The switch is on a fabric without time, with one put in flight
on each endpoint, so it shows what software costs, the emulator's included."""

import glob
import re
import time

import fabric

SYSTEMS = ['none', 'resend', 'resend_cache', 'rc_varuna']
SWITCHING = ['resend', 'resend_cache', 'rc_varuna']
COUNTS = {'full': [1, 64, 512, 4096], 'quick': [1, 512], 'miniature': [1, 32]}
RUNS = {'full': 3, 'quick': 1, 'miniature': 1}
MOST = 4096  # Takes a minute each, so it has one run


def memory_of(socket):
    """Anonymous memory of the processes that have this argument, in KB"""
    total = 0
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            with open(path) as line:
                words = line.read().split('\0')
            if words[0].endswith('/varuna_faults') and socket in words:
                with open(path.replace('cmdline', 'status')) as status:
                    total += int(re.search(r'RssAnon:\s+(\d+)', status.read()).group(1))
        except (FileNotFoundError, ProcessLookupError):
            pass  # It has ended
    return total


def one(system, count):
    options = {'UCX_RC_VARUNA_HEARTBEAT_INTERVAL': '0', 'UCX_RC_VARUNA_SPARE_QPS': '4'}
    with fabric.Fabric() as net:
        with fabric.faults(net, system, 'put:8:1', eps=count, limit=60000,
                           options=options) as pair:
            qps, queues = fabric.await_connected(net, pair, max(0.3, count / 500))
            memory = (queues + memory_of(pair.socket)) / 1024
            if system not in SWITCHING:
                return qps, memory, None
            fabric.begin(net, pair)
            time.sleep(0.2)
            net.fault(['link', '1:0', 'down'])
            end = time.monotonic() + 90
            while (pair.log().count('rc_varuna: switched') < count and
                   time.monotonic() < end):
                time.sleep(0.05)
            pair.say('stop')
            outcome = fabric.Outcome(pair.finish())
    if outcome.failed_eps() or len(outcome.switches) < count:
        raise fabric.Failure('%s: %d of %d endpoints switched, %d failed' %
                             (system, len(outcome.switches), count, outcome.failed_eps()))
    # From the first endpoint that leaves the link to the last one that has
    begin = min(switch['end'] - switch['ns'] for switch in outcome.switches)
    return qps, memory, (max(switch['end'] for switch in outcome.switches) - begin) / 1e6


def instructions(rows):
    for line in fabric.tool(['switch.sh']).split('\n'):
        words = line.split()
        if words and words[0].isdigit():
            rows.add('instructions', 'first endpoint', int(words[0]), 0, int(words[1]))
            rows.add('instructions', 'all endpoints', int(words[0]), 0, int(words[2]))


def log_bytes():
    with open(fabric.TOP + '/src/uct/ib/varuna/core/varuna_def.h') as header:
        text = header.read()
    size, count = (int(re.search(r'#define UCT_VARUNA_LOG_%s +(\d+)' % name, text).group(1))
                   for name in ('SIZE', 'COUNT'))
    return size * count * 8


def measure(level, random, rows):
    rows.add('log', 'completion logs of an endpoint', 'bytes', 0, log_bytes())
    for run in range(RUNS[level]):
        for count in COUNTS[level]:
            if count == MOST and run > 0:
                continue
            for system in SYSTEMS:
                qps, memory, switch = one(system, count)
                rows.add('queue pairs', system, count, run, qps)
                rows.add('memory', system, count, run, memory)
                if switch is not None:
                    rows.add('switch', system, count, run, switch)
    if level == 'full':  # It builds the unit tests
        instructions(rows)
