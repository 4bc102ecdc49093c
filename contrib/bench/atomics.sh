#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/bench/atomics.sh [-n ITERATIONS] [-r ROUNDS] [-b BATCHES] [-s SEED]
#                                 [speed | cost | failures]
#
# Measures atomics of 8 bytes in the modes native, extended and proxy, between two
# emulated hosts (docs/ATOMICS.md has its tables).
#
# speed, a Markdown table of each operation in each mode, relative to rc_mlx5's own atomics:
#   latency   with one operation in flight
#   rate      with 16 and with 64 in flight. Posted ones: this number, then a flush
#   messages  on the wire per operation, of both sides, with 16 in flight, by the NICs'
#             counters; without heartbeats, and without repetitions for a peer that waits
#             for a CPU
# In proxy-busy, mode proxy, the target computes; in all other cases it polls. Each round
# executes ITERATIONS (2000) of each operation in each mode in turn, which gives a ratio; the
# table has the minimum, the median and the maximum of ROUNDS (9). The rows of rc_mlx5 are in
# microseconds and thousands per second. Times include the emulator, so only ratios are
# meaningful, and these need two idle CPUs.
#
# cost, without failures, for each operation:
#   wire     requests on the wire per operation, in both directions, by the emulator's
#            trace
#   trips    round trips until the result, from the additional time if each request of
#            the client is delayed by 5 ms
# "alone" has a flush between two operations; otherwise each operation begins with what
# the last one has left.
#
# failures, the paper's experiment: BATCHES (100) of 16 compare and swaps each, posted
# at once. In each batch the link fails at a random packet, and the answers to a random
# number of earlier operations are lost, depending on SEED (1). It prints how many
# operations were executed but not answered at the failure; how many of these returned
# their result without a second execution; and errors: a wrong result, a wrong final
# value, a compare and swap that was executed twice or never.
#
# Without an argument, it runs all of them.

set -euo pipefail
prog=atomics
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

iterations=2000 rounds=9 batches=100 seed=1
[ "${1:-}" != --help ] || set -- -h
while getopts n:r:b:s:h opt; do
    case $opt in
    n) iterations=$OPTARG ;;
    r) rounds=$OPTARG ;;
    b) batches=$OPTARG ;;
    s) seed=$OPTARG ;;
    h) usage; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -le 1 ] || die "unexpected \"$2\" (-h shows the usage)"
what=${1:-all}
case $what in
speed | cost | failures | all) ;;
*) die "\"$what\" is not speed, cost or failures" ;;
esac
[[ $iterations =~ ^[1-9][0-9]*$ ]] || die "-n $iterations is not a number"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "-r $rounds is not a number"
[[ $batches =~ ^[1-9][0-9]*$ ]] || die "-b $batches is not a number"
[[ $seed =~ ^[0-9]+$ ]] || die "-s $seed is not a number"

if [ -z "${RCV_PREFIX:-}" ]; then
    ensure_built
    RCV_PREFIX=$prefix RCV_BUILD=$build_dir
fi
make -s -C "$RCV_BUILD/test/e2e" ft_atom_bench ft_atom_job >/dev/null
apps=$RCV_BUILD/test/e2e
make -s -C "$RCV_BUILD/src/tools/bench" varuna_atomics >/dev/null
timer=$RCV_BUILD/src/tools/bench/varuna_atomics
emu=$RCV_PREFIX/bin/mlx5emu
launcher=$RCV_PREFIX/bin/rc_varuna_run
fabric=atomics-$$
dir=$(mktemp -d)
trap '"$emu" down -n "$fabric" --force >/dev/null 2>&1 || :; rm -rf "$dir"' EXIT
cd "$dir"

operations=(fadd fand for fxor swap cswap add and or xor)

# Mode, and its argument for varuna_atomics
ways=(
    "rc_mlx5|rc_mlx5/mlx5_0:1"
    "native|rc_varuna/varuna_mlx5_0:1/native"
    "extended|rc_varuna/varuna_mlx5_0:1/extended"
    "proxy|rc_varuna/varuna_mlx5_0:1/proxy"
    "proxy-busy|rc_varuna/varuna_mlx5_0:1/proxy/computes"
)

# timed ARGUMENTS...: runs varuna_atomics; its output is in ./times
timed() {
    local server
    timeout 600 "$emu" exec -n "$fabric" 0 -- "$launcher" "$timer" server \
        "$dir/socket" "$@" >server.log 2>&1 &
    server=$!
    if ! timeout 600 "$emu" exec -n "$fabric" 1 -- "$launcher" "$timer" client \
         "$dir/socket" "$@" >times 2>client.log; then
        kill $server 2>/dev/null || :
        die "varuna_atomics $*: $(tail -n 5 client.log server.log)"
    fi
    wait $server || die "varuna_atomics $*: the server failed: $(tail -n 5 server.log)"
}

# sent: prints the number of work requests of all NICs
sent() {
    "$emu" status -n "$fabric" | awk '
        { gsub(/,/, ""); for (i = 1; i < NF; ++i) if ($i == "wqes") sum += $(i + 1) }
        END { print sum + 0 }'
}

# count_turns COUNT: reads the lines of "varuna_atomics paused", answers to descriptor 3,
# and prints what was sent for an operation in each turn of COUNT operations
count_turns() {
    local what way operation before=0 now
    while read -r what way operation _; do
        case $what in
        warm) ;;
        turn)
            now=$(sent)
            awk -v way="$way" -v operation="$operation" -v sent=$((now - before)) \
                -v count="$1" 'BEGIN { print "messages", way, operation, sent / count }'
            ;;
        *) continue ;;
        esac
        before=$(sent)
        echo >&3
    done
}

# count_messages PATHS...: adds the messages of all operations to ./speeds. Whole windows,
# whatever the number of iterations
count_messages() {
    local count=$(((iterations + 255) / 256 * 256))
    local -x UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_CTL_TIMEOUT=60s
    rm -f times
    mkfifo times go
    count_turns $count 3<>go <times >>speeds &
    timed 1 $count 16 paused "$@" "${operations[@]}" <go
    wait $!
    rm times go
}

speed() {
    local window way names=() paths=()
    unset "${!UCX_@}"
    "$emu" up -n "$fabric" --hosts 2 --links 2 --trace 0 >/dev/null
    for way in "${ways[@]}"; do
        names+=("${way%%|*}")
        paths+=("${way#*|}")
    done
    : >speeds
    for window in 1 16 64; do
        timed "$rounds" "$iterations" $window "${paths[@]}" "${operations[@]}"
        sed "s/^/$window /" times >>speeds
    done
    count_messages "${paths[@]}"
    awk -v names="${names[*]}" -v paths="${paths[*]}" -f "$top/contrib/bench/lib/speed.awk" \
        speeds
    "$emu" down -n "$fabric" --force >/dev/null
}

# bench WHAT MODE OPTIONS...: runs ft_atom_bench
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
    # Not counted, as above
    local -x UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_CTL_TIMEOUT=60s
    for mode in native extended proxy; do
        bench cost $mode -n "$iterations"
    done >costs
    awk '
        BEGIN { printf "%-10s %-14s %6s %6s\n", "mode", "operation", "wire", "trips" }
        { printf "%-10s %-14s %6.2f %6.1f\n", $1, $2, $4, $5 }' costs
}

# Failures are detected within milliseconds, as in the tests
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

for part in speed cost failures; do
    if [ "$what" = all ] || [ "$what" = $part ]; then
        $part
        [ "$what" != all ] || [ $part = failures ] || echo
    fi
done
