#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: counts.sh uct|ucp
#
# Prints the number of UCX's own tests in the suites for rc_varuna, for each class: run, run at
# full length (RCV_UCX_TEST_DIVISOR=1), allowed to skip themselves (with and without DEVX), and
# run while a link flaps, by default and with RC_VARUNA_LONG=1. test_ucx_suites.sh compares it
# with counts.uct and counts.ucp. RCV_BUILD and RCV_PREFIX are as for run.sh.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1:-} in
uct) suite=ucx_rc_varuna ;;
ucp) suite=ucp_rc_varuna ;;
*) sed -n '/^# usage/s/^# //p' "$0" >&2; exit 2 ;;
esac
unset RC_VARUNA_LONG RCV_UCX_TEST_DIVISOR RCV_FLAP

# tests COLUMN SUITE: prints "COLUMN CLASS NAME" for each test that it runs
tests() {
    "$here/$2" --gtest_list_tests --gtest_filter='*' 2>/dev/null |
        awk -v column="$1" '
            /^[^ \t]+\.([ \t]|$)/   { class = $1; sub(/\.$/, "", class) }
            /^  [^ \t]/ && class    { print column, class, $1 }'
}

{
    tests 1 $suite
    RCV_UCX_TEST_DIVISOR=1 tests 2 $suite
    sed '/^#/d; s/^\([^ .]*\)\.\([^ ]*\).*/3 \1 \2/' "$here/$suite.skips"
    tests 4 ${suite}_flap
    RC_VARUNA_LONG=1 tests 5 ${suite}_flap
} | awk '
    $1 == 1 { run[$2 " " $3] = 1 }
    $1 == 3 && !run[$2 " " $3] { next }
    {
        class = $2
        sub(/^rc_varuna\//, "", class)
        count[class, $1]++
        sum[$1]++
        classes[class] = 1
    }
    END {
        print "| tests | run | full length | may skip | flap | flap, long |"
        print "|---|---|---|---|---|---|"
        for (class in classes) {
            row = "| `" class "` |"
            for (i = 1; i <= 5; ++i) {
                row = row " " (count[class, i] + 0) " |"
            }
            print row | "LC_ALL=C sort"
        }
        close("LC_ALL=C sort")
        row = "| all |"
        for (i = 1; i <= 5; ++i) {
            row = row " " sum[i] + 0 " |"
        }
        print row
    }'
