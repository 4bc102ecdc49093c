# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Measures figures, plots them, and writes the report. Called by contrib/eval.sh."""

import argparse
import datetime
import importlib
import json
import os
import platform
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, HERE + '/figures']

import data as data_of  # noqa: E402
import fabric  # noqa: E402
import report  # noqa: E402
import table  # noqa: E402


def say(text):
    print('[eval] ' + text, file=sys.stderr, flush=True)


def output_of(*words):
    done = subprocess.run(words, capture_output=True, text=True, cwd=fabric.TOP)
    return done.stdout.strip() if done.returncode == 0 else ''


def machine():
    model = ''
    with open('/proc/cpuinfo') as file:
        for line in file:
            if line.startswith('model name'):
                model = line.split(':', 1)[1].strip()
                break
    return '%d CPUs, %s, Linux %s' % (os.cpu_count(), model, platform.release())


def commit():
    text = output_of('git', 'rev-parse', '--short=12', 'HEAD') or 'not in a checkout'
    return text + (' with changes' if output_of('git', 'status', '--porcelain',
                                                '--untracked-files=no') else '')


def describe(level, load):
    return {
        'commit': commit(), 'machine': machine(), 'level': level,
        'date': datetime.date.today().isoformat(),
        'ucx': output_of('dpkg-query', '-W', '-f', '${Version}', 'libucx0'),
        'load': '%.1f, %.1f' % (load, os.getloadavg()[0]),
    }


def write_meta(path, level, load):
    meta = describe(level, load)
    with open(path, 'w') as file:
        json.dump(meta, file, indent=1)
    return meta


def measure(figure, level, directory):
    start = time.monotonic()
    say('%s: %s' % (figure.name, figure.title))
    path = '%s/data/%s.csv' % (directory, figure.name)
    rows = data_of.Rows(path + '.part')
    # A figure has the same cuts whether others are measured or not
    try:
        importlib.import_module(figure.name).measure(level, random.Random(figure.name), rows)
    finally:
        rows.close()
    os.replace(path + '.part', path)
    say('%s: %.0f s' % (figure.name, time.monotonic() - start))


def write(directory, name, text):
    with open('%s/%s' % (directory, name), 'w') as file:
        file.write(text)


def write_report(directory, level, meta):
    """Of all figures that the directory has. Returns sections, and faults."""
    import plot

    sections, faults = [], []
    for figure in table.FIGURES:
        path = '%s/data/%s.csv' % (directory, figure.name)
        if not os.path.exists(path):
            continue
        found = data_of.Data(path)
        wrong = found.faults(figure, level)
        faults += wrong
        picture = '%s/plots/%s' % (directory, figure.name)
        if not plot.plot(figure, level, found, picture):
            faults.append('%s: nothing to plot' % figure.name)
        try:
            sections.append(report.Section(figure, level, found, picture))
        except (KeyError, ValueError) as error:
            faults.append('%s: no result: %s' % (figure.name, error))
    write(directory, 'report.md', '# rc_varuna: evaluation\n\n' +
          report.markdown(meta, sections, 'plots/'))
    write(directory, 'report.html', report.page(meta, sections))
    return sections, faults


def main():
    parser = argparse.ArgumentParser(prog='contrib/eval.sh')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--miniature', action='store_true')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--report', action='store_true')
    parser.add_argument('--document', action='store_true')
    parser.add_argument('--figure', action='append', default=[])
    parser.add_argument('directory')
    args = parser.parse_args()

    if args.list:
        for figure in table.FIGURES:
            print('%-10s %s' % (figure.name, figure.title))
        return 0
    for name in args.figure:
        if not table.find(name):
            say('there is no figure "%s" (--list shows them)' % name)
            return 2

    directory = os.path.abspath(args.directory)
    for name in ('data', 'plots'):
        os.makedirs('%s/%s' % (directory, name), exist_ok=True)
    meta_path = directory + '/data/meta.json'
    faults = []
    if args.report:
        if not os.path.exists(meta_path):
            say('%s has no data' % directory)
            return 2
        with open(meta_path) as file:
            meta = json.load(file)
        level = meta['level']
    else:
        level = 'miniature' if args.miniature else 'quick' if args.quick else 'full'
        load = os.getloadavg()[0]
        write_meta(meta_path, level, load)  # For --report, if we are interrupted
        for figure in table.FIGURES:
            if args.figure and figure.name not in args.figure:
                continue
            try:
                measure(figure, level, directory)
            except fabric.Failure as error:
                faults.append('%s: %s' % (figure.name, error))
                say(faults[-1])
        meta = write_meta(meta_path, level, load)

    sections, wrong = write_report(directory, level, meta)
    faults += wrong
    if args.document and not faults:
        import document
        document.write(fabric.TOP, meta, sections)
    for fault in faults:
        say('wrong: ' + fault)
    say('the report of %d figures is %s/report.html' % (len(sections), directory))
    return 1 if faults else 0


sys.exit(main())
