#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/bench/ucp.sh [-n ITERATIONS] [-r ROUNDS] [-s] [-k] [OPERATION...]
#
# Compares UCP over rc_varuna with UCP over UCX's rc_x, on emulated NICs, by ucx_perftest:
# each OPERATION (put, get, tag, am) with 8 bytes, its latency, and its rate with 1, 16, and
# 64 operations in flight, for both values of UCX_RC_VARUNA_LOG.
#
# Prints a Markdown table of ratios of the time per operation: 1.10 means that rc_varuna
# takes 10 % longer. Each ratio is of two runs one after the other; ROUNDS (9) such pairs
# give the minimum, the median, and the maximum. In every other pair rc_varuna is the first.
# The columns of rc_x are its medians, in microseconds, with the emulator's time.
#
#   -n ITERATIONS  of each test (20000)
#   -r ROUNDS      pairs of runs for each ratio (9)
#   -s             short: few iterations, one round, latency and one rate of each
#                  operation, to check that everything works
#   -k             keep the logs
#
# It needs two idle CPUs: the emulated NICs work in the processes that use them.

set -euo pipefail
prog=ucp
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib/pair.sh"

iterations=20000
rounds=9
windows=(1 16 64)
keep=no
[ "${1:-}" != --help ] || set -- -h
while getopts n:r:skh opt; do
    case $opt in
    n) iterations=$OPTARG ;;
    r) rounds=$OPTARG ;;
    s) iterations=200 rounds=1 windows=(16) ;;
    k) keep=yes ;;
    h) usage; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[[ $iterations =~ ^[1-9][0-9]*$ ]] || die "-n $iterations is not a number"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "-r $rounds is not a number"
[ -n "$(command -v ucx_perftest)" ] ||
    die "ucx_perftest is missing: install it (apt-get install ucx-utils)"

# perftest's tests for latency and rate
declare -A latency=([put]=ucp_put_lat [get]=ucp_get [tag]=tag_lat [am]=ucp_am_lat)
declare -A rate=([put]=ucp_put_bw [get]=ucp_get [tag]=tag_bw [am]=ucp_am_bw)
[ $# -gt 0 ] || set -- put get tag am
for operation in "$@"; do
    [ -n "${latency[$operation]:-}" ] ||
        die "\"$operation\" is not put, get, tag or am (-h shows the usage)"
done

unset "${!UCX_@}"
pair_init

# timed TRANSPORT TEST WINDOW COLUMN: sets the microseconds of an operation. In perftest's
# CSV: iterations, percentile, average and overall latency, bandwidth twice, rate twice
timed() {
    local transport=$1 test=$2 window=$3 column=$4 device=mlx5_0:1
    [ "$transport" = rc_x ] || device=varuna_mlx5_0:1
    next_port
    export UCX_TLS=$transport UCX_NET_DEVICES=$device
    pair "$transport" "$test" @ ucx_perftest -p $port -- @ ucx_perftest 127.0.0.1 \
        -p $port -f -v -t "$test" -s 8 -n "$iterations" -w $((iterations / 2 + 100)) \
        -O "$window"
    result=$(awk -F, -v column="$column" '/^ *[0-9]/ {
                 print (column == "rate") ? 1e6 / $NF : $4 }' "$dir/log")
    [[ $result =~ ^[0-9.]+$ ]] || die "$test over $transport printed no figures"
}

# pairs LOG TEST WINDOW COLUMN: appends ROUNDS lines "RC_X RC_VARUNA" to $dir/pairs
pairs() {
    local i plain
    export UCX_RC_VARUNA_LOG=$1
    for ((i = 0; i < rounds; ++i)); do
        if ((i % 2 == 0)); then
            timed rc_x "${@:2}"
            plain=$result
            timed rc_varuna "${@:2}"
            echo "$plain $result"
        else
            timed rc_varuna "${@:2}"
            plain=$result
            timed rc_x "${@:2}"
            echo "$result $plain"
        fi
    done >"$dir/pairs"
}

# spread: prints the minimum, the median, and the maximum of its input
spread() {
    sort -n | awk '
        { value[NR] = $1 }
        END { printf "%.2f / %.2f / %.2f", value[1], value[int((NR + 1) / 2)], value[NR] }'
}

# row NAME TEST WINDOW COLUMN: prints a row of the table
row() {
    local log text=""
    for log in all fallback; do
        say "$1, window $3, LOG=$log"
        pairs $log "${@:2}"
        [ -n "$text" ] ||
            text=" $(awk '{ print $1 }' "$dir/pairs" | spread | cut -d ' ' -f 3) |"
        text+=" $(awk '{ print $2 / $1 }' "$dir/pairs" | spread) |"
    done
    echo "| $1 | $3 |$text"
}

"$emu" up -n "$fabric" --hosts 2 --links 2 --trace 0
echo "| UCP, 8 bytes | in flight | rc_x, us | LOG=all: min / median / max |" \
    "LOG=fallback: min / median / max |"
echo "|---|---|---|---|---|"
for operation in "$@"; do
    row "$operation, latency" "${latency[$operation]}" 1 latency
    for window in "${windows[@]}"; do
        row "$operation, rate" "${rate[$operation]}" "$window" rate
    done
done
