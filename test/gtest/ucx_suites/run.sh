#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: run.sh uct|ucp TRANSPORT [GTEST_ARGUMENT]...
#
# Runs UCX's own UCT tests (gtest_ucx) or UCP tests (gtest_ucp) for one transport, on a
# host of an emulated fabric. TRANSPORT is the prefix of the tests' names. Called by the
# suites in this folder, which contrib/test.sh runs like gtest programs; it sets
# RCV_BUILD and RCV_PREFIX.
#
# Tests in TRANSPORT.left_out (ucp_TRANSPORT.left_out) are not run: each line has a
# pattern of gtest, and the reason. RCV_UCX_LEFT_OUT names another list, or none.
#
# Tests in TRANSPORT.long, variants of others with more parameters, run only if
# RCV_UCX_TEST_DIVISOR is 1.
#
# RCV_UCX_FABRIC: more options of "mlx5emu up", such as --no-devx.
#
# RCV_UCX_TEST_DIVISOR: UCX's tests divide their repetitions by it, and multiply their
# timeouts by it. The default is 10; 1 is UCX's full length.
#
# RCV_FLAP=DOWN,UP: while the tests run, the first link goes down at about each DOWN-th work
# request on it, and up at about each UP-th on the other link (at random, from a fixed
# seed). So it flaps as often as the tests send, at any speed of the machine. In the end it must have lost packets, and rc_varuna must have switched
# lanes; the numbers are printed. Tests in FLAP.left_out (ucx_TRANSPORT_flap.left_out,
# ucp_TRANSPORT_flap.left_out) are not run then. Unless RC_VARUNA_LONG is set or the
# divisor is 1, only tests in FLAP.some are run.
#
# RCV_UCX_SOME: such a list for other suites.

set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
: "${RCV_BUILD:=$top/_build}"
: "${RCV_PREFIX:=$top/_install}"

. "$top/test/packet_lifetime.sh"
level=$1
transport=$2
shift 2
case $level in
uct) program=gtest_ucx left_out=$transport.left_out ;;
ucp) program=gtest_ucp left_out=ucp_$transport.left_out ;;
esac
export RCV_UCX_TEST_DIVISOR=${RCV_UCX_TEST_DIVISOR:-10}
# UCX's 4095 receive buffers of each queue take a third of the time of a short test
[ "$RCV_UCX_TEST_DIVISOR" = 1 ] || export UCX_IB_RX_QUEUE_LEN=${UCX_IB_RX_QUEUE_LEN:-1024}

# Some tests let peers die, and no test may log a warning: the level of UCX's own transports
export UCX_RC_VARUNA_FAILURE=${UCX_RC_VARUNA_FAILURE:-diag}

here=$(dirname "${BASH_SOURCE[0]}")
lists=("$here/${RCV_UCX_LEFT_OUT:-$left_out}")
[ "$RCV_UCX_TEST_DIVISOR" = 1 ] || lists+=("${lists[0]%.left_out}.long")

# all: the filter for all tests of this transport to run
all="$transport/*"
[ "$level.$transport" != uct.rc_varuna ] || all+=":varuna/*" # Memory domain
if [ -n "${RCV_FLAP:-}" ]; then
    flap_name=ucx_${transport}_flap
    [ "$level" = uct ] || flap_name=ucp_${transport}_flap
    lists+=("$here/$flap_name.left_out")
    RCV_UCX_SOME=$flap_name.some
fi
if [ -n "${RCV_UCX_SOME:-}" ] && [ -z "${RC_VARUNA_LONG:-}" ] &&
   [ "$RCV_UCX_TEST_DIVISOR" != 1 ]; then
    all=$(sed "/^#/d; s/ .*//; s|^TRANSPORT/|$transport/|" "$here/$RCV_UCX_SOME" |
          paste -sd:)
fi

# leave_out FILTER: prints it without the tests that are left out
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
    '--gtest_filter=*') arg=--gtest_filter=$(leave_out "$all") ;;
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

run() {
    "$emu" exec -n "$fabric" 0 -- "${launcher[@]}" \
        "$RCV_BUILD/test/gtest/$program" "${args[@]}"
}

# flap_rule LINK N STATE: at about each N-th work request on this link of the host, the first
# link changes
flap_rule() {
    "$emu" fault add -n "$fabric" post link="$1" \
        prob="$(awk -v n="$2" 'BEGIN { printf "%.6f", 1 / n }')" seed=1 count=all \
        "$3=0:0" >/dev/null
}

# run_flapping: runs them while the first link flaps
run_flapping() {
    local status=0 log lost switched changes

    log=$(mktemp -t "$flap_name.XXXXXX")
    flap_rule 0 "${RCV_FLAP%,*}" down
    flap_rule 1 "${RCV_FLAP#*,}" up
    # The log has its own file, because threads write it, and would cut the lines with
    # the results
    UCX_LOG_LEVEL=info UCX_LOG_FILE=$log run || status=$?
    lost=$("$emu" status -n "$fabric" --json |
           awk '/"dropped_by_link"/ && !seen++ { print $2 + 0 }')
    switched=$(grep -a -c 'rc_varuna: switched ' "$log" || true)
    changes=$("$emu" status -n "$fabric" --json |
              awk '/"changes"/ && !seen++ { print $2 + 0 }')
    echo "flapping $RCV_FLAP: $changes changes, $lost packets lost, $switched switches," \
         "lost or unfinished requests recovered:" \
         "$(sum_of executed "$log") executed, $(sum_of repeated "$log") repeated"
    if ((lost == 0 || switched == 0)); then
        echo "the link did not flap during the tests"
        return 1
    fi
    if ((status == 0)); then
        rm -f "$log"
    else
        echo "UCX's log: $log"
    fi
    return "$status"
}

# sum_of FIELD LOG: prints the sum over all switches
sum_of() {
    grep -a 'rc_varuna: switched ' "$2" | sed -n "s/.* $1=\([0-9]*\).*/\1/p" |
        awk '{ sum += $1 } END { print sum + 0 }'
}

"$emu" up -n "$fabric" --hosts 1 --links "$links" \
    ${RCV_UCX_FABRIC:-} >&2
trap '"$emu" down -n "$fabric" >&2' EXIT
case ${RCV_FLAP:+flap}$* in
flap*--gtest_list_tests*) run ;;
flap*) run_flapping ;;
*) run ;;
esac
