# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""docs/EVALUATION.md and its pictures, from a report."""

import os
import shutil

import plot
import report

MOST_BYTES = 100000  # Of a picture in the repository

# Pictures of the README: figure and panels
SHOWN = {'through': ['cut', 'silent'], 'cas': ['wrong results', 'reported as failed']}

PREFACE = '''# Evaluation

The figures of the paper, repeated on emulated NICs. The tables and plots below are those of one
run, which `contrib/eval.sh --document` writes; do not edit them. `contrib/eval.sh --help` shows
how to repeat all of it, or one figure.

A figure that is worse than the paper's is shown as it is. The paper's plots have few numbers: where
it has none, its words are quoted. The last section, about UCX's own
failover, has been measured apart from the others, by `contrib/eval.sh --ucx-failover PREFIX --document`.

'''


def failover(pictures):
    """What ucx_failover.py has measured, if it was run"""
    path = pictures + '/ucx_failover.md'
    if not os.path.exists(path):
        return ''
    with open(path) as file:
        return '\n' + file.read()


def write(top, meta, sections):
    pictures = top + '/docs/evaluation'
    os.makedirs(pictures, exist_ok=True)
    for section in sections:
        shutil.copy(section.picture + '.svg', pictures)
        if section.figure.name in SHOWN:
            name = pictures + '/readme_' + section.figure.name
            plot.plot(section.figure, meta['level'], section.data, name,
                      SHOWN[section.figure.name])
            os.remove(name + '.png')
    for name in os.listdir(pictures):
        if os.path.getsize(pictures + '/' + name) > MOST_BYTES:
            raise SystemExit('%s has more than %d bytes' % (name, MOST_BYTES))
    with open(top + '/docs/EVALUATION.md', 'w') as file:
        file.write(PREFACE + report.markdown(meta, sections, 'evaluation/') +
                   failover(pictures))
