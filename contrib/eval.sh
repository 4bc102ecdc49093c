#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/eval.sh [--quick] [--figure NAME]... [--list] [DIR]
#
# Repeats the figures of the paper's evaluation on emulated NICs, and writes raw data
# (CSV), plots (SVG, PNG) and a report (report.md, report.html) to DIR, by default eval/
# in the checkout. Builds everything first. Needs two idle CPUs and less than 50 minutes.
#
#   --quick          fewer runs and points: less than 7 minutes
#   --miniature      one run of a few points, which shows only that everything works
#   --figure NAME    only this figure; the report keeps the other figures that DIR has
#   --list           print the names of the figures
#   --report         measure nothing, write plots and report of what DIR has
#   --document       also write docs/EVALUATION.md and its plots from DIR
#   --ucx-failover PREFIX
#                    measure only UCX's own failover, with the UCX that is installed in
#                    PREFIX (1.22 or newer): DIR/ucx_failover.md; RC_VARUNA_UCX_COMMIT
#                    says which commit it is
#
# contrib/eval/table.py declares each figure: its series, and what the paper says. The
# exit status is 0 only if no series is missing or constant.

set -euo pipefail
prog=eval
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

options=()
dir=
failover=
measure=yes
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    --quick | --miniature | --document) options+=("$1") ;;
    --list | --report) options+=("$1") measure=no ;;
    --figure)
        [ $# -gt 1 ] || die "--figure needs a name (--list shows them)"
        options+=("$1" "$2")
        shift
        ;;
    --ucx-failover)
        [ $# -gt 1 ] || die "--ucx-failover needs the PREFIX of a UCX"
        grep -qs UCP_ERR_HANDLING_MODE_FAILOVER "$2/include/ucp/api/ucp_def.h" ||
            die "$2 has no UCX with UCP_ERR_HANDLING_MODE_FAILOVER"
        failover=$(readlink -f "$2")
        shift
        ;;
    -*) die "unknown option $1 (-h shows the usage)" ;;
    *)
        [ -z "$dir" ] || die "unexpected \"$1\""
        dir=$1
        ;;
    esac
    shift
done

# Debian's, which Debian's matplotlib belongs to
python=/usr/bin/python3
"$python" -c 'import matplotlib' 2>/dev/null ||
    "$top/contrib/setup.sh" --install python3-matplotlib >&2

if [ "$measure" = yes ]; then
    if [ -z "${RCV_PREFIX:-}" ]; then
        ensure_built
        RCV_PREFIX=$prefix RCV_BUILD=$build_dir
    fi
    export RCV_PREFIX RCV_BUILD
    unset "${!UCX_@}"
fi
if [ -n "$failover" ]; then
    exec "$python" -B "$top/contrib/eval/ucx_failover.py" "$failover" "${dir:-$top/eval}" \
        "${options[@]}"
fi
exec "$python" -B "$top/contrib/eval/main.py" "${options[@]}" "${dir:-$top/eval}"
