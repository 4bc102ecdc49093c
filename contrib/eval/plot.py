# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Plots of a figure's panels, as SVG and PNG. A point is the median of its runs, a bar the
range from minimum to maximum."""

import os
import re

os.environ.setdefault('MPLCONFIGDIR', '/tmp/matplotlib-eval-%d' % os.getuid())

import matplotlib  # noqa: E402

matplotlib.use('Agg')
matplotlib.rcParams.update({
    'svg.hashsalt': 'eval', 'font.size': 8, 'axes.grid': True, 'grid.alpha': 0.3,
    'axes.grid.axis': 'y',
    'axes.spines.top': False, 'axes.spines.right': False, 'legend.frameon': False,
    'svg.fonttype': 'none', 'path.simplify_threshold': 0.5,
})

from matplotlib import pyplot  # noqa: E402

from data import median  # noqa: E402

# The same for a series in all figures
COLORS = {'none': '#999999', 'resend': '#d62728', 'resend_cache': '#ff7f0e',
          'rc_varuna': '#1f77b4', 'rc_varuna fallback': '#17becf',
          'rc_varuna proxy': '#2ca02c', 'rc_varuna 8 DCI': '#9467bd',
          'extended': '#1f77b4', 'proxy': '#2ca02c', 'proxy-busy': '#98df8a',
          'native': '#999999'}
MARKERS = 'osD^vP*'


def color(series, i):
    return COLORS.get(series, 'C%d' % i)


def errors(values):
    middle = median(values)
    return middle - min(values), max(values) - middle


def line(axes, panel, data):
    dense = any(len(data.series(panel.name, series)) > 20 for series in panel.series)
    for i, series in enumerate(panel.series):
        points = sorted((float(x), values) for x, values in data.series(panel.name, series))
        if not points:
            continue
        xs = [x for x, _ in points]
        middles = [median(values) for _, values in points]
        if dense:
            axes.plot(xs, middles, label=series, color=color(series, i), linewidth=1)
            continue
        axes.errorbar(xs, middles, yerr=list(zip(*(errors(v) for _, v in points))),
                      label=series, color=color(series, i), capsize=2, linewidth=1,
                      marker=MARKERS[i % len(MARKERS)], markersize=3)
    if panel.log_x:
        axes.set_xscale('log', base=2)
        axes.xaxis.set_major_formatter(lambda x, _: '%g' % x if x < 1024 else
                                       '%gK' % (x / 1024) if x < 2**20 else
                                       '%gM' % (x / 2**20))


def bar(axes, panel, data):
    names = []
    for _, x in data.points(panel.name):
        if x not in names:
            names.append(x)
    width = 0.8 / len(panel.series)
    for i, series in enumerate(panel.series):
        points = dict(data.series(panel.name, series))
        places = [k for k, name in enumerate(names) if name in points]
        values = [points[names[k]] for k in places]
        if values:
            axes.bar([k + (i - (len(panel.series) - 1) / 2) * width for k in places],
                     [median(v) for v in values], width, label=series,
                     color=color(series, i),
                     yerr=list(zip(*(errors(v) for v in values))),
                     error_kw={'elinewidth': 0.7})
    axes.set_xticks(range(len(names)), names, rotation=20 if len(names) > 4 else 0)


def total(axes, panel, data):
    for i, series in enumerate(panel.series):
        value = sum(v for _, values in data.series(panel.name, series) for v in values)
        axes.bar([i], [value], 0.6, color=color(series, i))
        axes.annotate('%g' % value, (i, value), ha='center', va='bottom')
    axes.set_xticks(range(len(panel.series)), panel.series, rotation=20)


def shorten(path):
    """A tenth of a point is exact enough, and each text need not list all fonts"""
    with open(path) as file:
        text = file.read()
    for pattern, short in ((r'(?<=[0-9]\.[0-9])[0-9]+', ''), (r'\n +', '\n'),
                           (r' *\nL ', 'L'),
                           (r' transform="rotate\(-0 [^"]*"', ''),
                           (r'; stroke-linecap: (square|butt)', ''),
                           (r'(?<=[#"][pm][0-9a-f]{4})[0-9a-f]{6}', ''),
                           (r'<g id="(line2d|text|xtick|ytick|patch)_[0-9]+">', '<g>'),
                           (r"font: ([0-9.]+px) [^;\"]*", r'font: \1 sans-serif')):
        text = re.sub(pattern, short, text)
    with open(path, 'w') as file:
        file.write(text)


DRAW = {'line': line, 'bar': bar, 'total': total}


def plot(figure, level, data, path, only=None):
    """Write path.svg and path.png, by default of all panels. Returns their number."""
    panels = [panel for panel in figure.panels
              if panel.plotted and level in panel.levels and data.points(panel.name) and
              (only is None or panel.name in only)]
    columns = min(2, len(panels))
    rows = (len(panels) + columns - 1) // columns
    canvas, grid = pyplot.subplots(rows, columns, figsize=(4.2 * columns, 2.6 * rows + 0.3),
                                   squeeze=False)
    spots = [spot for row in grid for spot in row]
    for panel, axes in zip(panels, spots):
        DRAW[panel.kind](axes, panel, data)
        axes.set_title(panel.name)
        axes.set_xlabel(panel.x)
        axes.set_ylabel(panel.y)
        if panel.log_y:
            axes.set_yscale('log')
        else:
            axes.set_ylim(bottom=0)
    for axes in spots[len(panels):]:
        axes.set_visible(False)
    handles = {}
    for axes in spots[:len(panels)]:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    if handles:
        canvas.legend(handles.values(), handles.keys(), loc='lower center',
                      ncol=min(5, len(handles)))
    canvas.tight_layout(rect=(0, 0.3 / (2.6 * rows + 0.3) if handles else 0, 1, 1))
    # Without a date, equal data make equal files
    canvas.savefig(path + '.svg', metadata={'Date': None, 'Creator': None})
    shorten(path + '.svg')
    canvas.savefig(path + '.png', dpi=130)
    pyplot.close(canvas)
    return len(panels)
