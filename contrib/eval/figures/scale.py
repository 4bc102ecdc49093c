# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Thousands of endpoints lose a switch, in virtual time (src/tools/scale)."""

import subprocess

import fabric

SCENARIOS = {
    'cut': [],
    'silent': ['-s'],
    'two hosts': ['-n', '2'],
}
# Runs, which differ by their seed, endpoints, and hosts
PLAN = {'full': (5, 10000, 1000), 'quick': (3, 10000, 1000), 'miniature': (2, 1000, 100)}
SECONDS = 20     # Of virtual time
SHOWN = 1000     # ms after the cut whose messages are plotted
PLACES = ('first', 'median', '99 %', 'all')


def one(options):
    done = subprocess.run([fabric.BUILD + '/src/tools/scale/varuna_scale', '-b', '-t',
                           str(SECONDS), *options], capture_output=True, text=True)
    if done.returncode != 0:
        raise fabric.Failure('varuna_scale: ' + done.stderr)
    return [line.split() for line in done.stdout.split('\n') if line]


def measure(level, random, rows):
    runs, endpoints, hosts = PLAN[level]
    for run in range(runs):
        for name, options in SCENARIOS.items():
            lines = one(['-e', str(endpoints), '-n', str(hosts), '-r', str(run + 1),
                         *options])
            values = {words[0]: words[1:] for words in lines}
            bins = {int(words[1]): sum(map(int, words[2:])) for words in lines
                    if words[0] == 'bin'}
            for ms in range(0, SHOWN, 10):
                rows.add('control messages', name, ms, run, bins.get(ms, 0) / endpoints)
            for panel in ('moved', 'rebuilt'):
                if int(values[panel][0]) != endpoints:
                    raise fabric.Failure('%s: %s of %d have %s' %
                                         (name, values[panel][0], endpoints, panel))
                for place, ms in zip(PLACES, values[panel][1:]):
                    rows.add(panel, name, place, run, float(ms))
            rows.add('fairness', name, 'index', run, float(values['fairness'][0]))
            total = sum(int(words[2]) for words in lines if words[0] == 'messages' and
                        words[1] not in ('ping', 'pong'))
            rows.add('messages of an endpoint', name, 'without heartbeat', run,
                     total / endpoints)
