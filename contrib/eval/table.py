# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""The figures: what is measured, over which series, and what the paper says.

A figure NAME is measured by figures/NAME.py, whose rows have a panel, a series, x, the
number of the run, and the value. Each series of each panel here must have rows; plot.py
plots them, report.py prints the claims."""

import dataclasses
import statistics

ALL_LEVELS = ('miniature', 'quick', 'full')
NOT_MINIATURE = ('quick', 'full')

# Why a series may have the same value everywhere
RIGHT = 'no error is the aim'
CONSTANT = 'it is a constant of the source'


@dataclasses.dataclass
class Panel:
    name: str
    series: list
    x: str
    y: str
    kind: str = 'line'            # or 'bar', or 'total': a bar for each series
    log_x: bool = False
    log_y: bool = False
    constant: str = ''            # Why a series may be constant
    levels: tuple = ALL_LEVELS
    plotted: bool = True
    single: bool = False          # Whether one value of a series is enough


@dataclasses.dataclass
class Claim:
    """One result: the paper's value, and ours as a function of the data (a list with a
    value for each run). "why" says what differs."""
    text: str
    unit: str
    paper: float | None
    ours: object
    why: str
    paper_text: str = ''          # If the paper has no number
    levels: tuple = ALL_LEVELS


@dataclasses.dataclass
class Figure:
    name: str
    number: int                   # Of the task that asks for it
    paper: str                    # Figures of the paper
    title: str
    ran: str
    panels: list
    claims: list


def ratio(panel, one, other, x, change=False):
    """Of the series "one" to "other" at x, in %; or by how much less it is."""
    def ours(data):
        pairs = zip(data.values(panel, one, x), data.values(panel, other, x))
        return [100 * (a / b - 1) if change else 100 * a / b for a, b in pairs]
    return ours


def largest(panel, series=None):
    """The largest median of a series, or of all."""
    def ours(data):
        points = [data.values(panel, s, x) for s, x in data.points(panel)
                  if series in (None, s)]
        return max(points, key=lambda values: sorted(values)[len(values) // 2])
    return ours


def total(panel, series):
    def ours(data):
        return [sum(sum(data.values(panel, s, x)) for s, x in data.points(panel)
                    if s == series)]
    return ours


def extreme(panel, series, least_x, smallest, scale=lambda value: value):
    """The smallest or largest median from x on."""
    def ours(data):
        points = [data.values(panel, s, x) for s, x in data.points(panel)
                  if s == series and float(x) >= least_x]
        chosen = (min if smallest else max)(
            points, key=lambda values: sorted(values)[len(values) // 2])
        return [scale(value) for value in chosen]
    return ours


def difference(panel, one, other, least_x, most_x):
    """The largest median difference."""
    def ours(data):
        found = []
        for series, x in data.points(panel):
            if series == one and least_x <= float(x) <= most_x:
                found.append([a - b for a, b in zip(data.values(panel, one, x),
                                                    data.values(panel, other, x))])
        return max(found, key=lambda values: sorted(values)[len(values) // 2])
    return ours


def last_x(panel, one, other, change=1):
    """The ratio at the largest x."""
    def ours(data):
        x = max((x for s, x in data.points(panel) if s == one), key=float)
        return [change * a / b for a, b in zip(data.values(panel, one, x),
                                               data.values(panel, other, x))]
    return ours


def values(panel, series, x):
    return lambda data: data.values(panel, series, x)


def ratio_of_x(panel, series, one, other):
    """Of the values at two places of a series, in %."""
    return lambda data: [100 * a / b for a, b in zip(data.values(panel, series, one),
                                                     data.values(panel, series, other))]


def broken(series):
    """Records of all invariants, in each run"""
    return lambda data: [sum(run) for run in zip(
        *(found for _, found in data.series('broken', series)))]


def broken_runs(series):
    """Runs with at least one, in %"""
    def ours(data):
        runs = broken(series)(data)
        return [100 * sum(1 for records in runs if records) / len(runs)]
    return ours


def soon(panel, series, of, most_ms):
    """The lowest (min), or another one of the throughputs soon after the fault, in each run."""
    def ours(data):
        runs = {}
        for s, x in data.points(panel):
            if s == series and 0 <= float(x) <= most_ms:
                for run, value in enumerate(data.values(panel, s, x)):
                    runs.setdefault(run, []).append(value)
        return [of(found) for found in runs.values()]
    return ours


def correct(series):
    """CAS with the right result, in % of those in flight"""
    def ours(data):
        in_flight = total('in flight', series)(data)[0]
        bad = sum(total(panel, series)(data)[0] for panel in
                  ('wrong results', 'reported as failed', 'wrong words'))
        return [100 * (in_flight - bad) / in_flight]
    return ours


SYSTEMS = ['none', 'resend', 'resend_cache', 'rc_varuna', 'rc_varuna fallback']
RECOVERING = SYSTEMS[1:]
STEADY = ['resend', 'rc_varuna', 'rc_varuna fallback']
STEADY_CAS = ['resend', 'rc_varuna', 'rc_varuna proxy']
MODES = ['extended', 'proxy', 'native', 'resend', 'resend_cache']
STORE_SYSTEMS = ['none', 'resend', 'resend_cache', 'rc_varuna']
SWITCHES = ['cut', 'silent', 'two hosts']
WAYS = ['native', 'extended', 'proxy', 'proxy-busy']
REPEATING = RECOVERING + ['rc_varuna 8 DCI']
ONE = ', one completion'
SIXTEENTH_WHY = 'The baselines do not repeat the puts before the last completion either.'
SHARED_WHY = ('16 endpoints share 8 DC initiators until RC is rebuilt, and take turns after '
              '16 puts; the baseline repeats on connections that are kept ready.')
THROUGH_WHY = ('The scale: detection takes as long as the NIC retries, which is not '
               'scaled, and recovery takes round trips of 1 ms.')


REPEATED_WHY = 'Whole batches are repeated, and a put that was executed before does not count.'


def repeat_panels():
    return [Panel(name + setting, REPEATING, 'size', unit, kind='bar', single=True,
                  plotted=name != 'bytes repeated')
            for name, unit in (('recovery time', 'ms until all are complete'),
                               ('bytes sent', 'MB on the other link'),
                               ('bytes repeated', 'MB of puts repeated'))
            for setting in (ONE, '')]


def through_panels():
    panels = [Panel(name, SYSTEMS, 'ms since the fault', 'throughput (% of before)',
                    levels=ALL_LEVELS if name in ('cut', 'cut' + ONE) else
                    ('full',) if 'CAS' in name else NOT_MINIATURE)
              for name in ('cut', 'cut' + ONE, 'silent', 'flap', 'dead NIC',
                           'cut, CAS and reads')]
    for name, unit in (('detection', 'ms until detected'),
                       ('recovery', 'ms from then to the first completion'),
                       ('p50', 'ms, median of all operations'),
                       ('p99', 'ms, 99th percentile of all operations')):
        panels.append(Panel(name, RECOVERING, 'fault', unit, kind='bar', single=True))
    panels.append(Panel('failed endpoints', RECOVERING, 'fault', 'endpoints', kind='bar',
                        constant=RIGHT, plotted=False))
    return panels


FIGURES = [
    Figure(
        'share', 1, '3a', 'What of the operations in flight was executed',
        'Plain rc_mlx5, 16 endpoints; the port goes down at a random time, and the server\'s '
        'memory shows what was executed of the batches that were not complete.',
        [Panel('share', ['CAS, 8 B', 'write, 64 B', 'write, 4 KB', 'write, 64 KB'],
               'operations of a batch', 'executed (%)', log_x=True)],
        [Claim('largest share of a load and batch size', '%', 83.9, largest('share'),
               'The share depends on the time of the cut within a batch, and for small '
               'batches on the round trip: endpoints with equal loads fall into step here, '
               'so single cuts find all or none executed.')]),
    Figure(
        'repeat', 2, '3b, 11', 'Repeating everything against repeating what was lost',
        '16 endpoints with a batch of 64 puts each, of which the last one has a completion; the '
        'port goes down while the link transmits them, at the same random time for all '
        'systems. The fraction executed follows from the rate of the link and the time of the '
        'cut. "One completion" is the paper\'s setting: only the last request of a batch is '
        'signaled (UCX_RC_VARUNA_TX_CQ_MODERATION=64), so of a batch that was cut nothing is '
        'known to be executed, and baselines repeat all of it. Otherwise rc_varuna and its '
        'baselines signal each 16th put, their default.',
        repeat_panels(),
        [Claim('recovery time, 4 KB, one completion, relative to resend_cache', '%', -52.2,
               ratio('recovery time' + ONE, 'rc_varuna', 'resend_cache', '4 KB', change=True),
               'Recovered endpoints take turns on one DC initiator (DC_NUM_DCI=1), with a '
               'round trip between two of them.', levels=NOT_MINIATURE),
         Claim('the same with DC_NUM_DCI=8', '%', -52.2,
               ratio('recovery time' + ONE, 'rc_varuna 8 DCI', 'resend_cache', '4 KB',
                     change=True),
               'The fraction that was executed is that of a cut at any time of a batch, '
               'on average a half; a round trip for the fence comes on top.',
               levels=NOT_MINIATURE),
         Claim('recovery time, 64 KB, one completion, relative to resend_cache', '%', -64.5,
               ratio('recovery time' + ONE, 'rc_varuna', 'resend_cache', '64 KB',
                     change=True),
               'As above; the round trips matter less.', levels=NOT_MINIATURE),
         Claim('the same with a completion for each 16th put', '%', None,
               ratio('recovery time', 'rc_varuna', 'resend_cache', '64 KB', change=True),
               SIXTEENTH_WHY, paper_text='none', levels=NOT_MINIATURE),
         Claim('bytes sent, 64 KB, one completion, relative to resend_cache', '%', 25.4,
               ratio('bytes sent' + ONE, 'rc_varuna', 'resend_cache', '64 KB'),
               'Links fail at any time between 10 % and 90 % of a batch here; the paper does '
               'not say when.', levels=NOT_MINIATURE),
         Claim('the same with a completion for each 16th put', '%', None,
               ratio('bytes sent', 'rc_varuna', 'resend_cache', '64 KB'),
               SIXTEENTH_WHY, paper_text='none', levels=NOT_MINIATURE),
         Claim('repeating everything takes longer by (3b, 64 KB, one completion)', 'x', 2.8,
               lambda data: [a / b for a, b in
                             zip(data.values('recovery time' + ONE, 'resend', '64 KB'),
                                 data.values('recovery time' + ONE, 'rc_varuna', '64 KB'))],
               'As for the bytes.', levels=NOT_MINIATURE)]),
    Figure(
        'size', 3, '8', 'Latency and bandwidth without failures, by size',
        'One thread, synchronous puts and batches of 64 with one completion, over all '
        'systems in turn on a fabric without time: every time is relative to rc_mlx5 in '
        'the same round. Instructions are callgrind\'s.',
        [Panel('latency', STEADY, 'bytes', 'latency relative to rc_mlx5', log_x=True),
         Panel('bandwidth', STEADY, 'bytes', 'bandwidth relative to rc_mlx5', log_x=True),
         Panel('instructions', ['rc_varuna', 'rc_varuna fallback'], 'operation',
               'instructions relative to rc_mlx5', kind='bar', levels=('full',)),
         Panel('microseconds', ['none'] + STEADY, 'bytes', 'us, of the emulator too',
               log_x=True, log_y=True, plotted=False),
         Panel('MB per second', ['none'] + STEADY, 'bytes', 'MB/s, of the emulator too',
               log_x=True, log_y=True, plotted=False)],
        [Claim('additional latency up to 4 KB, at most', 'us', 1.0,
               difference('microseconds', 'rc_varuna', 'none', 0, 4096),
               'Most of it is the emulator, whose CPU executes the log entry as a second '
               'message; a NIC would do so in parallel.'),
         Claim('additional latency above 4 KB, at most', '%', 4.7,
               extreme('latency', 'rc_varuna', 4097, False,
                       lambda value: 100 * (value - 1)),
               'The same, relative to copies of larger messages.'),
         Claim('less bandwidth above 4 KB in batches, at most', '%', 2.5,
               extreme('bandwidth', 'rc_varuna', 4097, True,
                       lambda value: 100 * (1 - value)),
               'The same: a log entry for each put is a message of its own.')]),
    Figure(
        'threads', 3, '9', 'Synchronous operations of several threads',
        '1 to 16 threads, each with a worker and an endpoint, 4 KB writes and 8-byte CAS.',
        [Panel('write', STEADY, 'threads', 'rate relative to rc_mlx5', log_x=True),
         Panel('CAS', STEADY_CAS, 'threads', 'rate relative to rc_mlx5', log_x=True)],
        [Claim('rate of 4 KB writes with most threads', '%', 100.0,
               extreme('write', 'rc_varuna', 2, True, lambda value: 100 * value),
               'The paper calls the difference negligible; here the emulator\'s CPU time '
               'for the log entry counts.', paper_text='"negligible"'),
         Claim('rate of CAS with most threads', '%', None,
               extreme('CAS', 'rc_varuna', 2, True, lambda value: 100 * value),
               'The paper has a curve without numbers. A CAS in mode extended is four '
               'requests in one round trip here.', paper_text='"relatively higher overhead"')]),
    Figure(
        'batches', 3, '10', 'Batches of several threads',
        '1 to 16 threads with batches of 64: 4 KB writes, or 16 times one CAS and three '
        'reads of 512 bytes.',
        [Panel('write', STEADY, 'threads', 'rate relative to rc_mlx5', log_x=True),
         Panel('CAS and reads', STEADY_CAS, 'threads', 'rate relative to rc_mlx5',
               log_x=True)],
        [Claim('rate of batches of writes with most threads', '%', 100.0,
               extreme('write', 'rc_varuna', 2, True, lambda value: 100 * value),
               'The emulator needs the CPU for each message, so it cannot hide the log '
               'entry behind the link\'s rate.', paper_text='"nearly identical"'),
         Claim('rate of batches with CAS with most threads', '%', 100.0,
               extreme('CAS and reads', 'rc_varuna', 2, True, lambda value: 100 * value),
               'The same, and a CAS in mode extended is four requests.',
               paper_text='"nearly identical"')]),
    Figure(
        'memory', 4, 'section 5.2', 'Memory of many endpoints, and their switch',
        'Endpoints between two processes, connected and then idle: queues of all queue '
        'pairs and anonymous memory of both processes, with receive queues of 64. Then '
        'the link goes down with one put in flight on each endpoint, on a fabric without '
        'time.',
        [Panel('memory', ['none', 'resend', 'resend_cache', 'rc_varuna'], 'endpoints',
               'MB of both processes', log_x=True, log_y=True),
         Panel('queue pairs', ['none', 'resend', 'resend_cache', 'rc_varuna'], 'endpoints',
               'queue pairs', log_x=True, log_y=True),
         Panel('switch', ['resend', 'resend_cache', 'rc_varuna'], 'endpoints',
               'ms until all have switched', log_x=True, log_y=True),
         Panel('instructions', ['first endpoint', 'all endpoints'], 'endpoints',
               'instructions', kind='bar', log_y=True, levels=('full',),
               constant='the first endpoint pays nothing for the others'),
         Panel('log', ['completion logs of an endpoint'], 'logs', 'bytes', kind='bar',
               constant=CONSTANT, plotted=False)],
        [Claim('memory relative to resend_cache with most endpoints', '%', 50.0,
               last_x('memory', 'rc_varuna', 'resend_cache', 100),
               'Only queue pairs count in the paper; here, both processes\' other memory '
               'too.'),
         Claim('completion logs of an endpoint', 'B', 1024.0,
               values('log', 'completion logs of an endpoint', 'bytes'),
               'The paper\'s "about 1 KB" has the request log too; ours takes memory only '
               'while requests are in flight.'),
         Claim('time to switch the most endpoints, relative to one', 'x', None,
               lambda data: [a / b for a, b in zip(
                   data.values('switch', 'rc_varuna', max(
                       (x for s, x in data.points('switch') if s == 'rc_varuna'),
                       key=float)), data.values('switch', 'rc_varuna', '1'))],
               'The paper has no such figure; all endpoints share the two CPUs with the '
               'emulator.', paper_text='none')]),
    Figure(
        'through', 5, '12', 'Throughput through failures',
        '16 endpoints with batches of 64 puts of 4 KB, or of CAS and reads. After the '
        'fault the link or NIC is gone for a second, then returns. Each operation has a '
        'completion, which is counted. "One completion" is the paper\'s setting, with one for '
        'each batch: there the server counts the puts that are new in its memory. Atomics and '
        'reads always have completions, and UCX\'s rc_mlx5 (none) signals each put, whatever '
        'its options.',
        through_panels(),
        [Claim('throughput in the 500 ms after a cut, one completion, rc_varuna', '%', None,
               soon('cut' + ONE, 'rc_varuna', statistics.mean, 500),
               'Recovery takes round trips of 1 ms.',
               paper_text='"near baseline"'),
         Claim('the same, resend_cache', '%', None,
               soon('cut' + ONE, 'resend_cache', statistics.mean, 500), REPEATED_WHY,
               paper_text='"close to baseline"'),
         Claim('the same, resend', '%', None,
               soon('cut' + ONE, 'resend', statistics.mean, 500),
               'The same, and a connection is rebuilt within a few round trips of 1 ms here.',
               paper_text='"near zero"'),
         Claim('lowest throughput after a cut, rc_varuna', '%', None,
               soon('cut', 'rc_varuna', min, 200), THROUGH_WHY,
               paper_text='"near baseline"'),
         Claim('lowest throughput after a cut, resend', '%', None,
               soon('cut', 'resend', min, 200), 'A connection is rebuilt within a few round '
               'trips of 1 ms here, so it costs no more than the others.',
               paper_text='"near zero"'),
         Claim('first completion after a cut, from its detection, rc_varuna', 'ms', None,
               values('recovery', 'rc_varuna', 'cut'), THROUGH_WHY, paper_text='none'),
         Claim('median of all operations through a cut, relative to resend_cache', '%', None,
               ratio('p50', 'rc_varuna', 'resend_cache', 'cut'), SHARED_WHY,
               paper_text='none'),
         Claim('99th percentile of the same', '%', None,
               ratio('p99', 'rc_varuna', 'resend_cache', 'cut'), SHARED_WHY,
               paper_text='none'),
         Claim('detection of a silent link, rc_varuna', 'ms', None,
               values('detection', 'rc_varuna', 'silent'),
               'The NIC\'s retries (3 x 134 ms), or the heartbeat, find it.', paper_text='none',
               levels=NOT_MINIATURE)]),
    Figure(
        'cas', 6, 'section 5.3, correctness', 'Compare and swap through cuts',
        'Each CAS expects the value of the one before it on its word; 16 endpoints with '
        'batches of 64 on different words. The port goes down at a random time, again and '
        'again, until 10,000 (quick: 1,000) were in flight at cuts.',
        [Panel('in flight', MODES, 'mode', 'CAS in flight', kind='total', plotted=False,
               single=True),
         Panel('wrong results', MODES, 'mode', 'wrong results', kind='total', constant=RIGHT),
         Panel('reported as failed', MODES, 'mode', 'reported as failed', kind='total',
               constant=RIGHT),
         Panel('wrong words', MODES, 'mode', 'words with a wrong value', kind='total',
               constant=RIGHT, plotted=False)],
        [Claim('correct, mode extended (the paper\'s)', '%', 100.0, correct('extended'),
               'Nothing.'),
         Claim('correct, mode proxy (the default)', '%', 100.0, correct('proxy'),
               'The paper has no such mode.'),
         Claim('correct, mode native', '%', None, correct('native'),
               'A result that was lost with its link cannot be recovered: the endpoint '
               'reports an error, and no result is wrong.', paper_text='none'),
         Claim('correct, resend', '%', None, correct('resend'),
               'A repeated CAS finds its own value and reports a failure to swap.',
               paper_text='none'),
         Claim('correct, resend_cache', '%', None, correct('resend_cache'),
               'The same.', paper_text='none'),
         Claim('CAS in flight at cuts, mode extended', '', None,
               total('in flight', 'extended'), 'A count.', paper_text='none')]),
    Figure(
        'store', 7, '13, 14', 'A replicated store through cuts',
        'src/examples/store: three replicas, two clients with 8 terminals each, new-order '
        'and payment in the style of TPC-C over plain UCP, by one-sided operations. The '
        'link of one client is down for half a second, six times in a run; throughput and '
        'latency are this client\'s, through the first cut. Then all replicas are compared '
        'with what was committed. Without recovery (none) the client is dead, and its '
        'transactions stay half done.',
        [Panel('throughput', STORE_SYSTEMS, 'ms since the cut', 'throughput (% of before)'),
         Panel('rate', STORE_SYSTEMS, 'window', 'transactions per second', kind='bar'),
         Panel('p50', STORE_SYSTEMS, 'window', 'ms, median of a transaction', kind='bar',
               single=True),
         Panel('p99', STORE_SYSTEMS, 'window', 'ms, 99th percentile', kind='bar',
               single=True),
         Panel('broken', STORE_SYSTEMS[1:], 'invariant', 'wrong records after a run',
               kind='bar', constant=RIGHT),
         Panel('dead clients', STORE_SYSTEMS, 'client', 'dead clients', kind='bar',
               constant=RIGHT, plotted=False)],
        [Claim('throughput without a failure, relative to none', '%', -13.9,
               ratio('rate', 'rc_varuna', 'none', 'before', change=True),
               'In mode extended an atomic is four or five requests, and an addition to a '
               'counter takes two round trips, and more if another client changes it '
               'meanwhile. Motor has no counters, and joins the CAS and the value.'),
         Claim('median latency without a failure, relative to none', '%', 10.0,
               ratio('p50', 'rc_varuna', 'none', 'before', change=True), 'The same.'),
         Claim('throughput through a cut, relative to before, rc_varuna', '%', None,
               ratio_of_x('rate', 'rc_varuna', 'through a cut', 'before'),
               'The second from the cut on; the lock of a record takes a round trip of '
               '1 ms.', paper_text='none'),
         Claim('the same, resend', '%', None,
               ratio_of_x('rate', 'resend', 'through a cut', 'before'),
               'A rebuilt connection costs a few round trips of 1 ms; what it breaks is '
               'below.', paper_text='none'),
         Claim('p99 latency through a cut, relative to before, rc_varuna', '%', None,
               ratio_of_x('p99', 'rc_varuna', 'through a cut', 'before'),
               'Transactions that were in flight wait for the switch, and others for '
               'their locks.', paper_text='none'),
         Claim('wrong records after a run, rc_varuna', '', None,
               broken('rc_varuna'), 'Nothing.', paper_text='"no consistency errors"'),
         Claim('wrong records after a run, resend', '', None, broken('resend'),
               'Repeated atomics: an order id is fetched twice (a gap), a payment is added '
               'twice, and a lock is found taken by its own owner and stays.',
               paper_text='none'),
         Claim('wrong records after a run, resend_cache', '', None, broken('resend_cache'),
               'The same.', paper_text='none'),
         Claim('runs with a broken invariant, resend', '%', None, broken_runs('resend'),
               'As many as had an atomic or an unlock executed whose answer was lost.',
               paper_text='none'),
         Claim('runs with a broken invariant, resend_cache', '%', None,
               broken_runs('resend_cache'), 'The same.', paper_text='none'),
         Claim('dead clients, without recovery', '', None,
               values('dead clients', 'none', 'clients'),
               'UCX ends a program whose endpoint has failed.', paper_text='none')]),
    Figure(
        'atomics', 8, 'none', 'Atomics of each mode relative to native ones',
        'contrib/bench/atomics.sh speed, on a fabric without time.',
        [Panel('latency', WAYS, 'operation', 'latency relative to rc_mlx5', kind='bar',
               log_y=True),
         Panel('rate', WAYS, 'operation', 'rate with 16 in flight, relative to rc_mlx5',
               kind='bar', log_y=True),
         Panel('messages', WAYS, 'operation', 'messages of an operation', kind='bar',
               constant='it does not depend on the operation', plotted=False)],
        [Claim('latency of a CAS, mode extended', 'x', None,
               values('latency', 'extended', 'cswap'),
               'Four requests, in one round trip, instead of one.', paper_text='none'),
         Claim('latency of a CAS, mode proxy', 'x', None,
               values('latency', 'proxy', 'cswap'),
               'A request to the other process and its answer, which need its CPU.',
               paper_text='none')]),
    Figure(
        'scale', 9, 'none', 'Thousands of endpoints lose a switch',
        'varuna_scale: 10,000 endpoints on 1,000 hosts, in virtual time and without NICs, '
        'with the plugin\'s link tables, pacing, heartbeat and recovery decisions. All '
        'lose one of two networks: with events of their ports (cut), without (silent), and '
        'the cut with only two hosts, which have all endpoints. Runs differ by their seed.',
        [Panel('control messages', SWITCHES, 'ms since the cut',
               'messages of an endpoint in 10 ms', log_y=True),
         Panel('moved', SWITCHES, 'endpoint', 'ms until moved', kind='bar', log_y=True),
         Panel('rebuilt', SWITCHES, 'endpoint', 'ms until on RC again', kind='bar',
               log_y=True),
         Panel('fairness', SWITCHES, 'rebuild', 'index of fairness between hosts',
               kind='bar', constant='it is 1 if all hosts are equal'),
         Panel('messages of an endpoint', SWITCHES, 'messages', 'messages of an endpoint',
               kind='bar', plotted=False, constant='each endpoint asks and is answered')],
        [Claim('all endpoints have moved after a cut', 'ms', None,
               values('moved', 'cut', 'all'), 'Simulated.',
               paper_text='none'),
         Claim('all endpoints have moved from a silent switch', 'ms', None,
               values('moved', 'silent', 'all'),
               'The heartbeat finds it: HEARTBEAT_INTERVAL and _MISSES.', paper_text='none'),
         Claim('all have RC again after a cut', 'ms', None,
               values('rebuilt', 'cut', 'all'), 'The rebuild is paced.', paper_text='none'),
         Claim('the same with only two hosts', 'ms', None,
               values('rebuilt', 'two hosts', 'all'),
               'The pace is that of a host, so more endpoints of a host take longer.',
               paper_text='none'),
         Claim('most control messages of an endpoint in 10 ms after a cut', '', None,
               largest('control messages', 'cut'),
               'A fence, evidence, a connection and the peers\' heartbeats, at once.',
               paper_text='none'),
         Claim('fairness of the rebuild between hosts, cut', '', None,
               values('fairness', 'cut', 'index'),
               'Jain\'s index of the shares of their endpoints that hosts have rebuilt '
               'when half of all are: 1 is fair.', paper_text='none'),
         Claim('fairness of the rebuild between hosts, silent', '', None,
               values('fairness', 'silent', 'index'),
               'Hosts detect the silence at different times, and rebuild soon after.',
               paper_text='none')]),
]


def find(name):
    for figure in FIGURES:
        if figure.name == name:
            return figure
    return None
