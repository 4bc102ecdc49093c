# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""A replicated store through cuts (figures 13 and 14 of the paper): src/examples/store.

Three replicas and two clients with a host each. The port of the first client goes down
again and again; what is plotted is this client's. At the end all replicas are compared with
the transactions that clients have committed."""

import os
import subprocess
import tempfile
import time

import fabric
from data import median

SYSTEMS = ['none', 'resend', 'resend_cache', 'rc_varuna']
REPLICAS, CLIENTS = 3, 2
# Runs, and cuts of a run
PLAN = {'full': (3, 6), 'quick': (1, 4), 'miniature': (1, 1)}
# Seconds: before the first cut, of a cut, and after it
TIMES = {'full': (1.0, 0.5, 0.5), 'quick': (0.8, 0.5, 0.5), 'miniature': (0.4, 0.2, 0.2)}
BIN = 50  # ms


class Store:
    """Its processes, while the "with" statement lasts."""

    def __init__(self, net, system):
        self.net = net
        self.dir = tempfile.TemporaryDirectory(prefix='eval-')
        is_plain = system == 'none'
        self.env = fabric.environment({
            **fabric.COMMON, **fabric.DETECTION, **fabric.system_options(system),
            'UCX_LOG_LEVEL': 'warn', 'UCX_WARN_UNUSED_ENV_VARS': 'n',
            'UCX_TLS': 'rc_x' if is_plain else 'rc_varuna',
            'UCX_NET_DEVICES': 'mlx5_0:1' if is_plain else 'varuna_mlx5_0:1'})
        self.launcher = not is_plain
        self.replicas = [self.start(i, 'replica', i) for i in range(REPLICAS)]
        self.clients = [self.start(REPLICAS + i, 'client', i) for i in range(CLIENTS)]

    def start(self, host, role, index):
        words = [fabric.BUILD + '/src/examples/store/varuna_store', role, self.dir.name,
                 str(index)]
        with open('%s/%s.%d.log' % (self.dir.name, role, index), 'w') as log:
            return subprocess.Popen(
                ['timeout', '120', *self.net.command(host, words, self.launcher)],
                env=self.env, stdout=log, stderr=subprocess.STDOUT)

    def path(self, name):
        return '%s/%s' % (self.dir.name, name)

    def touch(self, name):
        open(self.path(name), 'w').close()
        return time.time_ns()

    def tail(self, role, index):
        with open(self.path('%s.%d.log' % (role, index))) as log:
            return log.read()[-500:].replace('\n', ' / ')

    def await_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while not all(os.path.exists(self.path('ready.%d' % i)) for i in range(CLIENTS)):
            if time.monotonic() > end or any(process.poll() is not None
                                             for process in self.replicas + self.clients):
                raise fabric.Failure('the store does not start: ' + self.tail('client', 0))
            time.sleep(0.02)

    def commits(self, client):
        """[(end, duration)] of its transactions so far, in ns"""
        found = [[int(word) for word in line.split()[1:]]
                 for line in self.run('history').stdout.split('\n') if line]
        return sorted((end, duration) for index, end, duration in found if index == client)

    def run(self, verb):
        return subprocess.run([fabric.BUILD + '/src/examples/store/varuna_store', verb,
                               self.dir.name], capture_output=True, text=True)

    def stop(self):
        """The exit status of each client"""
        self.touch('stop')
        try:
            ends = [client.wait(60) for client in self.clients]
        except subprocess.TimeoutExpired:
            raise fabric.Failure('a client does not end: ' + self.tail('client', 0))
        self.touch('end')
        for index, replica in enumerate(self.replicas):
            if replica.wait(60) != 0:
                raise fabric.Failure('a replica failed: ' + self.tail('replica', index))
        return ends

    def broken(self):
        """{invariant: records}"""
        done = self.run('check')
        if done.returncode not in (0, 3):
            raise fabric.Failure('varuna_store check: ' + done.stderr)
        return {line.split()[1]: int(line.split()[2]) for line in done.stdout.split('\n')
                if line.startswith('broken ')}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.clients + self.replicas:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.dir.cleanup()


def await_commits(store, count, seconds=60):
    """Until transactions are committed: on a busy machine it may take a while"""
    end = time.monotonic() + seconds
    while len(store.commits(0)) < count:
        if time.monotonic() > end:
            raise fabric.Failure('no transaction was committed: ' + store.tail('client', 0))
        time.sleep(0.05)


def one(system, cuts, times, random):
    """Returns the time of the first cut, the commits of the client whose link fails, the
    exit status of each client, and what is broken"""
    before, down, up = times
    with fabric.Fabric('--hosts', str(REPLICAS + CLIENTS), *fabric.TIMED) as net:
        with Store(net, system) as store:
            store.await_ready()
            store.touch('go')
            await_commits(store, 20)
            time.sleep(before + random.uniform(0, 0.1))
            await_commits(store, len(store.commits(0)) + 1)
            first = time.time_ns()
            for _ in range(1 if system == 'none' else cuts):
                net.fault(['link', '%d:0' % REPLICAS, 'down'])
                time.sleep(down)
                net.fault(['link', '%d:0' % REPLICAS, 'up'])
                time.sleep(up)
            ends = store.stop()
            return first, store.commits(0), ends, store.broken()


def add_rates(rows, system, run, first, commits, times):
    """Rows of throughput and latency"""
    after = times[1] + times[2]
    windows = {'before': (commits[0][0], first),
               'through a cut': (first, first + after * 1e9)}
    full = sum(1 for end, _ in commits if end < first) / ((first - commits[0][0]) / 1e9)
    for start in range(-500, int(after * 1000) - BIN, BIN):
        count = sum(1 for end, _ in commits if start * 1e6 <= end - first < (start + BIN) * 1e6)
        rows.add('throughput', system, start, run, 100 * count / (BIN / 1000) / full)
    for name, (start, end) in windows.items():
        latencies = sorted(ns / 1e6 for at, ns in commits if start <= at < end)
        rows.add('rate', system, name, run, len(latencies) / ((end - start) / 1e9))
        if latencies:
            rows.add('p50', system, name, run, median(latencies))
            rows.add('p99', system, name, run, latencies[len(latencies) * 99 // 100])


def measure(level, random, rows):
    runs, cuts = PLAN[level]
    for run in range(runs):
        for system in SYSTEMS:
            first, commits, ends, broken = one(system, cuts, TIMES[level], random)
            if ends[1] != 0:
                raise fabric.Failure('%s: the client without a failure ended with %d' %
                                     (system, ends[1]))
            add_rates(rows, system, run, first, commits, TIMES[level])
            rows.add('dead clients', system, 'clients', run, int(ends[0] != 0))
            if system != 'none':
                for invariant, records in broken.items():
                    rows.add('broken', system, invariant, run, records)
