# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""UCX's own failover (UCP_ERR_HANDLING_MODE_FAILOVER) over two rc_mlx5 lanes, on the fabrics of
the figures. Called by contrib/eval.sh --ucx-failover PREFIX."""

import os
import re
import subprocess
import sys
import tempfile
import time

import fabric

HERE = os.path.dirname(os.path.abspath(__file__))
OPERATIONS = [('put', 8), ('put', 4096), ('put', 65536), ('get', 8), ('get', 65536), ('add', 8),
              ('cswap', 8), ('tag', 8), ('tag', 1048576), ('am', 8)]
NAMES = {'add': 'fetch and add', 'cswap': 'compare and swap', 'am': 'active message'}
PUTS = 100
RUNS = 3
ABA_SIZE = 264
ENDED = r'^put .*count=(?!1 ).*status=(.*)$'  # Of the load, not of the first put


class Jobs:
    """A server and a client over this UCX, while the "with" statement lasts."""

    def __init__(self, net, prefix, program):
        self.dir = tempfile.TemporaryDirectory(prefix='eval-')
        self.env = fabric.environment({
            'UCX_TLS': 'rc_x', 'UCX_NET_DEVICES': 'mlx5_0:1,mlx5_1:1',
            'UCX_WARN_UNUSED_ENV_VARS': 'n', 'LD_LIBRARY_PATH': prefix + '/lib',
            'UCX_KEEPALIVE_INTERVAL': '1s', **fabric.DETECTION})
        self.jobs = {}
        for host, role in enumerate(('server', 'client')):
            log = open('%s/%s.log' % (self.dir.name, role), 'w')
            self.jobs[role] = subprocess.Popen(
                ['timeout', '120', *net.command(host, [program, role, self.dir.name],
                                                launcher=False)],
                env=self.env, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
                text=True)

    def log(self, role='client'):
        with open('%s/%s.log' % (self.dir.name, role)) as log:
            return log.read()

    def say(self, line, role='client'):
        try:
            self.jobs[role].stdin.write(line + '\n')
            self.jobs[role].stdin.flush()
        except BrokenPipeError:
            pass

    def await_line(self, pattern, role='client', seconds=90):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.log(role), re.M)
            if found:
                return found
            if self.jobs[role].poll() is not None:
                break
            time.sleep(0.005)
        return None

    def ended(self, name, size):
        """(operations, how they ended)"""
        found = self.await_line(r'^%s %d count=(\d+) .*status=(.*)$' % (name, size))
        return (int(found.group(1)), found.group(2)) if found else (0, 'the client died')

    def done(self):
        """Times of completions, in s since 1970"""
        return [float(text) for text in re.findall(r'^done ([0-9.]+)$', self.log(), re.M)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.jobs.values():
            job.stdin.close()
            if job.poll() is None:
                job.kill()
            job.wait()
        self.dir.cleanup()


def messages(net, link):
    """Requests that host 1 has executed on this link"""
    return net.port(1, link)['counters']['wqes']


def supports(prefix, program):
    rows = []
    for name, size in OPERATIONS:
        with fabric.Fabric() as net, Jobs(net, prefix, program) as jobs:
            jobs.say('%s %d 2' % (name, size))
            count, status = jobs.ended(name, size)
            refused = re.search(r'(cannot find remote protocol|no .*protocol)', jobs.log())
            ok = status == 'Success' and count == 2
            rows.append('| %s, %d B | %s |' % (NAMES.get(name, name), size, 'yes' if ok else
                        'no: no protocol has this mode' if refused else 'no: ' + status))
    return rows


def messages_per_put(prefix, program):
    found = {}
    for size in (8, 65536):
        with fabric.Fabric() as net, Jobs(net, prefix, program) as jobs:
            jobs.say('put %d 2' % size)
            jobs.ended('put', size)
            before = [messages(net, link) for link in (0, 1)]
            jobs.say('put %d %d' % (size, PUTS))
            jobs.await_line(r'count=%d ' % PUTS)
            after = [messages(net, link) for link in (0, 1)]
            found[size] = [(b - a) / PUTS for a, b in zip(before, after)]
    return found


def silent_cut(prefix, program, size):
    """ms from a silent cut to the first completion after it, and from the repair until the
    link is used again (None: not within 10 s); and how the puts ended"""
    with fabric.Fabric(*fabric.TIMED) as net, Jobs(net, prefix, program) as jobs:
        jobs.say('put %d 1' % size)
        jobs.ended('put', size)
        used = max((0, 1), key=lambda link: messages(net, link))
        jobs.say('put %d 1000000' % size)
        jobs.await_line('^done ')
        time.sleep(0.5)
        cut = net.fault(['link', '1:%d' % used, 'silent']) / 1e9
        end = time.monotonic() + 30
        while time.monotonic() < end and not any(at > cut + 0.02 for at in jobs.done()):
            if jobs.await_line(ENDED, seconds=0.05):
                break
        after = [at for at in jobs.done() if at > cut + 0.02]
        if not after:
            found = re.search(ENDED, jobs.log(), re.M)
            return None, None, found.group(1) if found else 'nothing completes'
        time.sleep(2)
        before = messages(net, used)
        repaired = net.fault(['link', '1:%d' % used, 'up']) / 1e9
        again = None
        while time.time() < repaired + 10 and again is None:
            if messages(net, used) > before + 10:
                again = 1000 * (time.time() - repaired)
            time.sleep(0.01)
        return 1000 * (min(after) - cut), again, 'goes on'


def overwritten(prefix, program):
    """A put of A is executed, its acknowledgement is lost; B is written over it. What is
    there at the end?"""
    with fabric.Fabric() as net, Jobs(net, prefix, program) as jobs:
        jobs.say('put 4096 2')
        jobs.ended('put', 4096)
        used = max((0, 1), key=lambda link: messages(net, link))
        net.run('fault', 'add', 'ack', 'link=%d' % used, 'op=write', 'size=%d' % ABA_SIZE,
                'silent=1:%d' % used)
        jobs.say('put %d 1' % ABA_SIZE)
        looks = 0
        while not re.search('^word A', jobs.log('server'), re.M) and looks < 100:
            jobs.say('?', 'server')
            looks += 1
            time.sleep(0.02)
        jobs.say('B', 'server')
        count, status = jobs.ended('put', ABA_SIZE)
        jobs.say('?', 'server')
        jobs.await_line(r'^(word .\n){%d}' % (looks + 2), 'server')
        words = re.findall('^word (.)', jobs.log('server'), re.M)
        return words, status


def text_of(cut):
    first, again, status = cut
    if first is None:
        return 'no completion within 20 s: ' + status
    return '%.0f ms to the first completion; the repaired link is %s' % (
        first, 'used again after %.0f ms' % again if again else 'not used within 10 s')


def section(prefix, program):
    version = subprocess.run([prefix + '/bin/ucx_info', '-v'], capture_output=True, text=True,
                             env=fabric.environment({'LD_LIBRARY_PATH': prefix + '/lib'}))
    name = re.search(r'version: (\S+)', version.stdout).group(1)
    commit = os.environ.get('RC_VARUNA_UCX_COMMIT', '')
    out = ['## UCX\'s own failover', '',
           'UCX %s%s with `UCP_ERR_HANDLING_MODE_FAILOVER` and two `rc_mlx5` lanes, on the '
           'same emulated NICs (`contrib/eval.sh --ucx-failover PREFIX`). NICs give up after '
           '3 x 134 ms, as in the other figures.' %
           (name, ' (commit %s)' % commit if commit else ''), '',
           '| operation | supported |', '|---|---|', *supports(prefix, program), '',
           '| | result |', '|---|---|']
    for size, found in messages_per_put(prefix, program).items():
        out.append('| wire messages of a put of %d B and a flush, on each link | %.2f, %.2f |' %
                   (size, *found))
    for size in (8, 65536):
        for run in range(RUNS):
            out.append('| silent cut with puts of %d B, run %d | %s |' %
                       (size, run + 1, text_of(silent_cut(prefix, program, size))))
    for run in range(RUNS):
        words, status = overwritten(prefix, program)
        ends = 'the put was not executed' if 'A' not in words[:-1] else \
            'A was written again over B' if words[-1] == 'A' else 'B is still there'
        out.append('| a put of A whose acknowledgement is lost, B over it, run %d | %s; '
                   'the put: %s |' % (run + 1, ends, status))
    return '\n'.join(out) + '\n'


def main():
    prefix, directory = sys.argv[1], os.path.abspath(sys.argv[2])
    os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='eval-') as build:
        program = build + '/ucx_failover'
        subprocess.run(['cc', '-O2', '-Wall', '-I' + prefix + '/include',
                        HERE + '/ucx_failover.c', '-o', program, '-L' + prefix + '/lib',
                        '-lucp', '-lucs'], check=True)
        found = section(prefix, program)
    print(found)
    paths = [directory + '/ucx_failover.md']
    if '--document' in sys.argv[3:]:
        paths.append(fabric.TOP + '/docs/evaluation/ucx_failover.md')
    for path in paths:
        with open(path, 'w') as file:
            file.write(found)


main()
