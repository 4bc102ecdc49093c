# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""The report: Markdown, and one HTML page that contains its pictures."""

import base64
import html

import fabric
from data import median

HEADER = ('result', 'paper', 'ours: median (minimum to maximum)', 'runs', 'ours / paper',
          'what differs, and why')


def number(value):
    return '%.0f' % value if abs(value) >= 1000 else '%.3g' % value


def with_unit(text, unit):
    return (text + ' ' + unit).strip()


def claim_row(claim, data):
    values = claim.ours(data)
    middle = median(values)
    ours = with_unit(number(middle), claim.unit)
    if len(values) > 1:
        ours += ' (%s to %s)' % (number(min(values)), number(max(values)))
    paper = with_unit(number(claim.paper), claim.unit) if claim.paper is not None else ''
    if claim.paper_text:
        paper = claim.paper_text
    ratio = '%.2f' % (middle / claim.paper) if claim.paper else '-'
    return (claim.text, paper, ours, str(len(values)), ratio, claim.why)


def about(meta):
    return [('commit', meta['commit']), ('date', meta['date']),
            ('machine', meta['machine']),
            ('UCX', meta['ucx']), ('level', meta['level']),
            ('load average at the start and end', meta['load']),
            ('scale of figures about failures', 'the paper\'s 25 Gb/s divided by %g: %s; a '
             'write completes after 1 ms, which is %g us of the paper\'s time'
             % (fabric.SCALE, fabric.RATE, 1000 / fabric.SCALE))]


INTRODUCTION = (
    'Everything runs on mlx5emu, between two emulated hosts with two links. Figures about '
    'failures (share, repeat, through, cas) have links with a rate and a latency, at the '
    'scale below, because the emulator is accurate from 1 ms up. Figures about cost (size, '
    'threads, batches, atomics) have no time: they are ratios within one run, which '
    'include the emulator\'s own CPU time for each message, and callgrind\'s instructions, '
    'which do not. So they say nothing about microseconds on real NICs. A value is the '
    'median of several runs; the range is the machine\'s noise.')

SYSTEMS = (
    '"none" is plain rc_mlx5. "resend" and "resend_cache" are rc_varuna\'s baselines, which '
    'repeat everything: after a new RC connection, or on one that exists. They write no log. '
    '"rc_varuna" writes a log entry for each '
    'put (LOG=all), "rc_varuna fallback" none on RC. CAS is in mode extended, the paper\'s, '
    'unless "proxy", our default, is named; baselines have native ones.')


MOST_LOAD = 1  # Before the run


def disturbed(meta):
    """A warning, if something else used the CPUs"""
    load = float(meta['load'].split(',')[0])
    return ('This run was disturbed: the load average of the machine was %.1f before it. '
            'Repeat it on an idle machine before you believe a figure.' % load
            if load > MOST_LOAD else '')


class Section:
    """A figure with its data and pictures."""

    def __init__(self, figure, level, data, picture):
        self.figure = figure
        self.data = data
        self.picture = picture  # Path without .svg or .png
        self.rows = [claim_row(claim, data) for claim in figure.claims
                     if level in claim.levels]

    def heading(self):
        return '%s: %s (paper: %s)' % (self.figure.name, self.figure.title,
                                       self.figure.paper)


def markdown(meta, sections, pictures):
    """pictures: what precedes the name of a picture"""
    out = ['## How', '', INTRODUCTION, '', SYSTEMS, '', '| | |', '|---|---|']
    out += ['| %s | %s |' % row for row in about(meta)]
    if disturbed(meta):
        out += ['', '**%s**' % disturbed(meta)]
    for section in sections:
        out += ['', '## ' + section.heading(), '', section.figure.ran, '',
                '![%s](%s%s.svg)' % (section.figure.title, pictures, section.figure.name),
                '', '| ' + ' | '.join(HEADER) + ' |', '|---' * len(HEADER) + '|']
        out += ['| ' + ' | '.join(row) + ' |' for row in section.rows]
    return '\n'.join(out) + '\n'


STYLE = ('body{font:15px/1.5 sans-serif;max-width:64em;margin:2em auto;padding:0 1em}'
         'table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;'
         'padding:.3em .6em;text-align:left;vertical-align:top}img{max-width:100%}')


def table(rows, header=None):
    out = ['<table>']
    if header:
        out.append('<tr>%s</tr>' % ''.join('<th>%s</th>' % html.escape(c) for c in header))
    for row in rows:
        out.append('<tr>%s</tr>' % ''.join('<td>%s</td>' % html.escape(c) for c in row))
    return out + ['</table>']


def page(meta, sections):
    """The whole HTML page"""
    out = ['<!DOCTYPE html>', '<html lang="en"><head><meta charset="utf-8">',
           '<title>rc_varuna: evaluation</title><style>%s</style></head><body>' % STYLE,
           '<h1>rc_varuna: evaluation</h1>', '<p>%s</p>' % html.escape(INTRODUCTION),
           '<p>%s</p>' % html.escape(SYSTEMS)]
    out += table(about(meta))
    if disturbed(meta):
        out.append('<p><b>%s</b></p>' % html.escape(disturbed(meta)))
    for section in sections:
        with open(section.picture + '.png', 'rb') as file:
            data = base64.b64encode(file.read()).decode()
        out += ['<h2 id="%s">%s</h2>' % (section.figure.name,
                                         html.escape(section.heading())),
                '<p>%s</p>' % html.escape(section.figure.ran),
                '<img alt="%s" src="data:image/png;base64,%s">' %
                (html.escape(section.figure.title), data)]
        out += table(section.rows, HEADER)
    return '\n'.join(out + ['</body></html>']) + '\n'
