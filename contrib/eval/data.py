# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
"""Raw data of a figure: a CSV file with panel, series, x, run, value."""

import csv

COLUMNS = ('panel', 'series', 'x', 'run', 'value')


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


class Rows:
    """Writes the file while a figure is measured, so that it shows how far it got."""

    def __init__(self, path):
        self.file = open(path, 'w', newline='')
        self.writer = csv.writer(self.file, lineterminator='\n')
        self.writer.writerow(COLUMNS)

    def add(self, panel, series, x, run, value):
        self.writer.writerow((panel, series, x, run, '%.6g' % value))
        self.file.flush()

    def close(self):
        self.file.close()


class Data:
    """What such a file has."""

    def __init__(self, path):
        self.points_by_panel = {}
        with open(path, newline='') as file:
            for row in csv.DictReader(file):
                points = self.points_by_panel.setdefault(row['panel'], {})
                points.setdefault((row['series'], row['x']), []).append(float(row['value']))

    def points(self, panel):
        """(series, x) in the order in which they were measured"""
        return list(self.points_by_panel.get(panel, {}))

    def values(self, panel, series, x):
        """Those of all runs"""
        found = self.points_by_panel.get(panel, {}).get((series, x))
        if not found:
            raise KeyError('%s, %s, %s has no value' % (panel, series, x))
        return found

    def series(self, panel, name):
        """[(x, values)]"""
        return [(x, values) for (series, x), values in
                self.points_by_panel.get(panel, {}).items() if series == name]

    def faults(self, figure, level):
        """What is wrong with the series that the figure declares"""
        found = []
        for panel in figure.panels:
            if level not in panel.levels:
                continue
            declared = set(panel.series)
            for series, _ in self.points(panel.name):
                if series not in declared:
                    found.append('%s: %s, "%s" is not declared' %
                                 (figure.name, panel.name, series))
                    declared.add(series)
            for series in panel.series:
                values = [value for _, some in self.series(panel.name, series)
                          for value in some]
                where = '%s: %s, "%s"' % (figure.name, panel.name, series)
                if not values:
                    found.append(where + ' is missing')
                elif (len(set(values)) == 1 and not panel.constant and
                      not (panel.single and len(values) == 1)):
                    found.append('%s is constant: %g' % (where, values[0]))
        return found
