#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/bench/atomics.sh [-n ITERATIONS] [-b BATCHES] [-s SEED]
#                                 [cost | failures]
#
# Atomics of 8 bytes in the modes native, extended and proxy, between two emulated
# hosts (docs/ATOMICS.md has a table of it).
#
# cost, without failures, for each operation:
#   us       median of ITERATIONS (2000), one after the other; of a posted one, until a
#            flush behind it is complete. The emulator's time is in it, so only the
#            ratio to native means something, and that needs idle processors
#   ratio    to native
#   wire     requests on the wire for each, in both directions, as the emulator's
#            trace has it
#   trips    round trips until the result: how much longer it takes, if each request of
#            the client takes 5 ms longer
# "alone" is with a flush between two; without, the next one begins with what the one
# before has left.
#
# failures, the paper's experiment: BATCHES (100) of 16 compare and swaps each, posted at
# once. In each batch the link ends at a random one of their packets, and the answers
# to a random number of those before it are lost as well, by SEED (1). Told are how many
# had been executed at the failure without an answer; how many of these gave their
# result without being executed again; and errors: a wrong result, a word that does not
# hold what it should, a compare and swap executed twice, or never.
#
# Without an argument, both.

set -euo pipefail
prog=atomics
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

iterations=2000 batches=100 seed=1
[ "${1:-}" != --help ] || set -- -h
while getopts n:b:s:h opt; do
    case $opt in
    n) iterations=$OPTARG ;;
    b) batches=$OPTARG ;;
    s) seed=$OPTARG ;;
    h) sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -le 1 ] || die "unexpected \"$2\" (-h shows the usage)"
what=${1:-both}
case $what in
cost | failures | both) ;;
*) die "\"$what\" is neither cost nor failures" ;;
esac
[[ $iterations =~ ^[1-9][0-9]*$ ]] || die "-n $iterations is no number"
[[ $batches =~ ^[1-9][0-9]*$ ]] || die "-b $batches is no number"
[[ $seed =~ ^[0-9]+$ ]] || die "-s $seed is no number"

if [ -z "${RCV_PREFIX:-}" ]; then
    ensure_built
    RCV_PREFIX=$prefix RCV_BUILD=$build_dir
fi
make -s -C "$RCV_BUILD/test/e2e" ft_atom_bench ft_atom_job >/dev/null
apps=$RCV_BUILD/test/e2e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# bench WHAT MODE OPTIONS...
bench() {
    local kind=$1 mode=$2
    shift 2
    timeout 900 "$apps/ft_atom_bench" "$@" "$kind" "$mode" "$RCV_PREFIX" \
        "$apps/ft_atom_job" || {
        tail -n 20 ft_atom_bench.log >&2
        die "$kind $mode failed"
    }
}

cost() {
    local mode
    unset "${!UCX_@}"
    for mode in native extended proxy; do
        bench cost $mode -n "$iterations"
    done >costs
    awk '
        BEGIN { printf "%-9s %-14s %8s %6s %6s %6s\n", "mode", "operation",
                       "us", "ratio", "wire", "trips" }
        $1 == "native" { native[$2] = $3 }
        { printf "%-9s %-14s %8.1f %6.2f %6.2f %6.1f\n", $1, $2, $3,
                 $3 / native[$2], $4, $5 }' costs
}

# Failures are found within milliseconds, as in the tests
failures() {
    local mode
    unset "${!UCX_@}"
    export UCX_RC_MLX5_TIMEOUT=1ms UCX_RC_MLX5_RETRY_COUNT=2
    export UCX_RC_VARUNA_PACKET_LIFETIME=100ms
    export UCX_RC_VARUNA_HOLD_MIN=2ms UCX_RC_VARUNA_HOLD_MAX=10ms
    for mode in extended; do
        bench cas $mode -n "$batches" -s "$seed"
    done | awk '{
        printf "%s: %d batches, %d failed, %d compare and swaps\n", $1, $3, $5, $7
        printf "  executed at the failure, unanswered: %d (%.1f %%)\n", $9,
               100 * $9 / $7
        printf "  of these recovered with their result: %d (%.1f %%)\n", $11,
               $9 ? 100 * $11 / $9 : 100
        printf "  errors: %d\n", $15 }'
}

[ "$what" = failures ] || cost
[ "$what" = cost ] || failures
