# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Emulated fabrics, and programs on them: what the figures are measured with."""

import json
import os
import re
import subprocess
import tempfile
import time

PREFIX = os.environ.get('RCV_PREFIX', '')
BUILD = os.environ.get('RCV_BUILD', '')
# The plugin with baselines, which is rc_varuna if none is selected
PLUGIN = BUILD + '/src/uct/ib/varuna/.libs/libuct_varuna_baselines.so'
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# The paper's 25 Gb/s divided by SCALE. A completion after less than 1 ms is not accurate,
# so each of its four links has 250 us: together 4 us of the paper's time. At higher rates
# a port's queue, which has 5 ms of each endpoint, would hold whole batches
SCALE = 250
RATE = '100Mbps'
RATE_MBPS = 100
TIMED = ['--rate', RATE, '--latency', '250us']

# A NIC gives up after 3 x 134 ms; the port's queue of 16 endpoints has 84 ms
DETECTION = {
    'UCX_RC_MLX5_TIMEOUT': '120ms', 'UCX_RC_MLX5_RETRY_COUNT': '2',
    'UCX_DC_MLX5_TIMEOUT': '120ms', 'UCX_DC_MLX5_RETRY_COUNT': '2',
}

# A connection for each endpoint, and small receive queues: nobody receives
COMMON = {
    'UCX_LOG_LEVEL': 'info',
    'UCX_RC_MLX5_RX_QUEUE_LEN': '64',
    'UCX_RC_VARUNA_STANDBY_RX_QUEUE_LEN': '64',
    'UCX_RC_VARUNA_SPARE_QPS': '64',
    'UCX_RC_VARUNA_PACKET_LIFETIME': '100ms',
}

# The paper's batches have one completion: rc_varuna signals the last one of 64 puts, and its
# RC lane does not signal one of 64 puts and 64 log entries by itself: it would after a quarter
# of its queue. UCX's own rc_mlx5 signals each put_zcopy, whatever the options
ONE_COMPLETION = {
    'UCX_RC_VARUNA_TX_CQ_MODERATION': '64',
    'UCX_RC_MLX5_TX_CQ_MODERATION': '256', 'UCX_RC_MLX5_TX_QUEUE_LEN': '1024',
}

# Baselines write no log, whatever LOG is
SYSTEMS = {
    'none': None,
    'resend': {'BASELINE': 'resend', 'ATOMIC_MODE': 'native'},
    'resend_cache': {'BASELINE': 'resend_cache', 'ATOMIC_MODE': 'native'},
    'rc_varuna': {'LOG': 'all', 'ATOMIC_MODE': 'extended'},
    'rc_varuna fallback': {'LOG': 'fallback', 'ATOMIC_MODE': 'extended'},
}


class Failure(Exception):
    """A program that did not do what a figure needs."""


def system_options(system, more=None):
    """The options of UCX for a system, or for a dict of options of rc_varuna."""
    options = SYSTEMS[system] if isinstance(system, str) else system
    env = {('RC_VARUNA_' if key == 'BASELINE' else 'UCX_RC_VARUNA_') + key: value
           for key, value in (options or {}).items()}
    env.update(more or {})
    return env


class Fabric:
    """Two hosts with two links each, while the "with" statement lasts."""

    def __init__(self, *options):
        self.options = options
        self.name = 'eval-%d-%d' % (os.getpid(), time.monotonic_ns() % 10**9)

    def __enter__(self):
        self.run('up', '--hosts', '2', '--links', '2', '--trace', '0', *self.options)
        return self

    def __exit__(self, *_):
        self.run('down', '--force')

    def run(self, verb, *words):
        done = subprocess.run([PREFIX + '/bin/mlx5emu', verb, '-n', self.name, *words],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure('mlx5emu %s: %s' % (verb, done.stderr.strip()))
        return done.stdout

    def fault(self, words):
        """Change a link or a NIC; returns the time before it, in ns: a program may notice
        while the command still runs."""
        before = time.time_ns()
        self.run(*words)
        return before

    def port(self, host, link):
        for port in json.loads(self.run('status', '--json'))['ports']:
            if port['host'] == host and port['link'] == link:
                return port
        raise Failure('there is no port %d:%d' % (host, link))

    def command(self, host, words, launcher=True):
        start = [PREFIX + '/bin/rc_varuna_run', '-l', PLUGIN] if launcher else []
        return [PREFIX + '/bin/mlx5emu', 'exec', '-n', self.name, str(host), '--',
                *start, *words]


def environment(options):
    env = {k: v for k, v in os.environ.items() if not k.startswith('UCX_')}
    env.update(options)
    return env


class Pair:
    """A program as server and as client, on the two hosts."""

    def __init__(self, fabric, program, args, options, launcher=True, limit=120):
        self.dir = tempfile.TemporaryDirectory(prefix='eval-')
        self.socket = self.dir.name + '/socket'
        env = environment(options)

        def start(host, role):
            words = [BUILD + '/src/tools/bench/' + program, role, self.socket, *args]
            log = open('%s/%s.log' % (self.dir.name, role), 'w')
            return subprocess.Popen(
                ['timeout', str(limit), *fabric.command(host, words, launcher)], env=env,
                stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, text=True)

        self.server = start(0, 'server')
        self.client = start(1, 'client')

    def log(self, role='client'):
        with open('%s/%s.log' % (self.dir.name, role)) as log:
            return log.read()

    def await_line(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.log(), re.M)
            if found:
                return found
            if self.client.poll() is not None:
                break
            time.sleep(0.005)
        raise Failure('no "%s": %s' % (pattern, self.tail()))

    def say(self, line):
        try:
            os.write(self.client.stdin.fileno(), (line + '\n').encode())
        except BrokenPipeError:
            pass  # It has ended: all endpoints have failed

    def tail(self):
        return ' / '.join((self.log('server')[-300:] + self.log()[-600:]).split('\n'))

    def finish(self):
        """Wait for both; returns the client's output."""
        if self.client.wait() != 0:
            self.server.kill()
            raise Failure('the client failed: ' + self.tail())
        if self.server.wait() != 0:
            raise Failure('the server failed: ' + self.tail())
        return self.log()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.client, self.server):
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdin.close()
        self.dir.cleanup()


SWITCHED = re.compile(r'^\[([0-9.]+)\].*rc_varuna: switched .* was=(\w+) .*executed=(\d+) '
                      r'lost=(\d+) repeated=(\d+) .*time_us=(\d+)', re.M)


class Outcome:
    """What varuna_faults printed. Times are in ns since 1970."""

    def __init__(self, text):
        def lines(name):
            return [[int(word) for word in line.split()[1:]]
                    for line in text.split('\n') if line.startswith(name + ' ')]

        self.ready = lines('ready')[0][0]
        self.stopped = (lines('stopped') or [[0, 0]])[0]
        self.in_flight = lines('inflight')
        self.words = lines('words')
        self.batches = lines('batch')
        self.bins = dict(lines('bin'))
        self.latency = (lines('latency') or [None])[0]
        self.eps = lines('ep')
        # Of each switch: its end, and its time
        self.switches = [{
            'end': int(float(found[0]) * 1e9), 'was': found[1],
            'executed': int(found[2]), 'lost': int(found[3]),
            'repeated': int(found[4]), 'ns': int(found[5]) * 1000
        } for found in SWITCHED.findall(text)]
        if '\nend' not in text:
            raise Failure('the client did not end')

    def failed_eps(self):
        return sum(1 for ep in self.eps if ep[1] != 0)


def executed(text, ready):
    """Puts that came into the server's memory, by ms since the load began. Those between two
    looks at it came evenly, for all that is known."""
    looks = [((int(at) - ready) // 10**6, int(puts))
             for at, puts in re.findall(r'^executed (\d+) (\d+)$', text, re.M)]
    return {ms: (after - before) / (end - start)
            for (start, before), (end, after) in zip(looks, looks[1:])
            for ms in range(start, end)}


def in_use(net):
    """Queue pairs, and KB of their queues"""
    return [int(word) for word in
            re.search(r'QPs (\d+),.* queues (\d+) KB', net.run('status')).groups()]


def await_connected(net, pair, quiet=0.2):
    """Until no queue pair has been made for a while. Returns them, and KB of their queues"""
    since = time.monotonic()
    last = in_use(net)
    while last[0] == 0 or time.monotonic() < since + quiet:
        time.sleep(0.02)
        now = in_use(net)
        if pair.client.poll() is not None:
            raise Failure('the client has ended: ' + pair.tail())
        if now != last:
            since, last = time.monotonic(), now
    return last


def begin(net, pair, quiet=0.2):
    """Begin the load when all endpoints are connected. Returns the time, in ns"""
    await_connected(net, pair, quiet)
    pair.say('go')
    return int(pair.await_line(r'^ready (\d+)').group(1))


def faults(fabric, system, load, eps=16, limit=20000, options=None):
    """Start varuna_faults over a system; a Pair. begin() begins the load."""
    is_plain = system == 'none'
    transport = ['rc_mlx5', 'mlx5_0:1'] if is_plain else ['rc_varuna', 'varuna_mlx5_0:1']
    env = {**COMMON, **DETECTION, **system_options(system, options)}
    return Pair(fabric, 'varuna_faults',
                [*transport, str(eps), load, '200000', str(limit)], env,
                launcher=not is_plain, limit=120)


def later(seconds, start, call):
    """Call it at a time after start (time.monotonic), in this thread."""
    time.sleep(max(0, start + seconds - time.monotonic()))
    return call()


def tool(words, options=None, limit=600):
    """Run a script of contrib/bench; returns its output."""
    done = subprocess.run(['timeout', str(limit), TOP + '/contrib/bench/' + words[0],
                           *words[1:]], env=environment(options or {}),
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure('%s: %s' % (' '.join(words), done.stderr[-500:]))
    return done.stdout
