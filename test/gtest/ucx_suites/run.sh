#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: run.sh uct|ucp TRANSPORT [GTEST_ARGUMENT]...
#
# Runs UCX's own UCT tests (gtest_ucx) or UCP tests (gtest_ucp) for one
# transport, on a host of an emulated fabric. TRANSPORT is what the names of the
# tests begin with. Called by the suites beside it, which contrib/test.sh calls
# as if they were gtest programs; it sets RCV_BUILD and RCV_PREFIX.
#
# Tests which TRANSPORT.left_out (ucp_TRANSPORT.left_out) lists are not run: a
# pattern of gtest's a line, and the reason.
#
# Variants which TRANSPORT.long lists are not run either unless
# RCV_UCX_TEST_DIVISOR is 1: more of the same with other parameters.
#
# RCV_UCX_FABRIC: more options of "mlx5emu up", such as --no-devx.
#
# RCV_UCX_TEST_DIVISOR: what UCX's tests divide their repetitions by, and
# multiply their timeouts by. 10 unless set; 1 is UCX's own full length.

set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
: "${RCV_BUILD:=$top/_build}"
: "${RCV_PREFIX:=$top/_install}"

level=$1
transport=$2
shift 2
case $level in
uct) program=gtest_ucx left_out=$transport.left_out ;;
ucp) program=gtest_ucp left_out=ucp_$transport.left_out ;;
esac
export RCV_UCX_TEST_DIVISOR=${RCV_UCX_TEST_DIVISOR:-10}

lists=("$(dirname "${BASH_SOURCE[0]}")/$left_out")
[ "$RCV_UCX_TEST_DIVISOR" = 1 ] || lists+=("${lists[0]%.left_out}.long")

# leave_out FILTER: the same without what is left out
leave_out() {
    local filter=$1 pattern _

    while read -r pattern _; do
        case $pattern in
        '' | '#'*) continue ;;
        esac
        case $filter in
        *-*) filter+=":$pattern" ;;
        *) filter+="-$pattern" ;;
        esac
    done < <(cat "${lists[@]}" 2>/dev/null)
    echo "$filter"
}

args=()
for arg in "$@"; do
    case $arg in
    # No filter means all of this transport, not all transports
    '--gtest_filter=*') arg=--gtest_filter=$(leave_out "$transport/*") ;;
    --gtest_filter=*) arg=--gtest_filter=$(leave_out "${arg#*=}") ;;
    esac
    args+=("$arg")
done

emu=$RCV_BUILD/src/tools/mlx5emu/mlx5emu
fabric=$level.$transport.$$
launcher=()
links=1
if [ "$transport" = rc_varuna ]; then
    launcher=("$RCV_PREFIX/bin/rc_varuna_run")
    links=2
fi

"$emu" up -n "$fabric" --hosts 1 --links "$links" \
    ${RCV_UCX_FABRIC:-} >&2
trap '"$emu" down -n "$fabric" >&2' EXIT
"$emu" exec -n "$fabric" 0 -- "${launcher[@]}" \
    "$RCV_BUILD/test/gtest/$program" "${args[@]}"
