# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""docs/EVALUATION.md and its pictures, from a report."""

import os
import shutil

import report

MOST_BYTES = 100000  # Of a picture in the repository

PREFACE = '''# Evaluation

The figures of the paper, repeated on emulated NICs. The tables and plots below are those of one
run, which `contrib/eval.sh --document` writes; do not edit them. `contrib/eval.sh --help` shows
how to repeat all of it, or one figure.

A figure that is worse than the paper's is shown as it is. The paper's plots have few numbers: where
it has none, its words are quoted. Not measured yet: a transactional store (13, 14), scale, and
UCX's own failover.

'''


def write(top, meta, sections):
    pictures = top + '/docs/evaluation'
    os.makedirs(pictures, exist_ok=True)
    for section in sections:
        path = section.picture + '.svg'
        if os.path.getsize(path) > MOST_BYTES:
            raise SystemExit('%s has more than %d bytes' % (path, MOST_BYTES))
        shutil.copy(path, pictures)
    with open(top + '/docs/EVALUATION.md', 'w') as file:
        file.write(PREFACE + report.markdown(meta, sections, 'evaluation/'))
