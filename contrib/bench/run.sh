#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/bench/run.sh [-n ITERATIONS] [-r REPEATS] [-t TRANSPORT]...
#                             [-q] [-s] [-k]
#
# What rc_varuna costs, beside UCX's own rc_mlx5 and dc_mlx5, on emulated NICs:
# for 8-byte and 4 KB puts, gets and active messages
#
#   instr      instructions per operation in the client, post and completion,
#              by callgrind, in batches of 16; the emulator's own are told apart
#   doorbells  and wire messages (work requests), packets per operation, counted
#              by the emulator
#   latency    in microseconds and rate in thousand operations a second, by
#              ucx_perftest; the emulator's time is in both, so only the
#              differences between transports mean something
#
# Instructions and counts are those of src/tools/bench/varuna_cost, which never
# polls in vain, so they repeat on a busy machine. Latency and rate need two idle
# processors.
#
#   -n ITERATIONS  of each latency and rate test (20000)
#   -r REPEATS     best of so many latency and rate tests (3): waiting for a peer
#                  that has no processor costs time
#   -t TRANSPORT   rc_mlx5, dc_mlx5 or rc_varuna; may be repeated (all three)
#   -q             quick: no callgrind
#   -s             short: one case, and so few operations that its figures mean
#                  nothing; to see whether all works
#   -k             keep the logs
#
# Doorbells are stores of 8 bytes. By default UCX copies a request to the NIC's
# register with the CPU's longest stores, which valgrind does not show to who traps
# them, as the emulator does.
#
# A benchmark, not a test: its exit status tells only whether everything ran.

set -euo pipefail
prog=bench
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

iterations=20000
repeats=3
transports=()
quick=no
short=no
keep=no
[ "${1:-}" != --help ] || set -- -h
while getopts n:r:t:qskh opt; do
    case $opt in
    n) iterations=$OPTARG ;;
    r) repeats=$OPTARG ;;
    t) transports+=("$OPTARG") ;;
    q) quick=yes ;;
    s) short=yes ;;
    k) keep=yes ;;
    h) sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
[ $OPTIND -gt $# ] || die "unexpected \"${!OPTIND}\" (-h shows the usage)"
[[ $iterations =~ ^[1-9][0-9]*$ ]] || die "-n $iterations is no number"
[[ $repeats =~ ^[1-9][0-9]*$ ]] || die "-r $repeats is no number"
[ ${#transports[@]} -gt 0 ] || transports=(rc_mlx5 dc_mlx5 rc_varuna)
for transport in "${transports[@]}"; do
    case $transport in
    rc_mlx5 | dc_mlx5 | rc_varuna) ;;
    *) die "-t $transport is neither rc_mlx5 nor dc_mlx5 nor rc_varuna" ;;
    esac
done
[ $quick = yes ] || [ -n "$(command -v valgrind)" ] ||
    die "valgrind is missing: install it (apt-get install valgrind), or give -q"

# Two runs of different lengths: their difference is the cost of the operations
# alone, without starting, warming up and ending.
few=1000
many=11000

# operation of varuna_cost, perftest's test for latency, for rate, size, layout
cases=(
    "put|put_lat|put_bw|8|short"
    "get|get|get|8|bcopy"
    "message|am_lat|am_bw|8|short"
    "put|put_lat|put_bw|4096|zcopy"
    "get|get|get|4096|zcopy"
    "message|am_lat|am_bw|4096|zcopy"
)

if [ $short = yes ]; then
    few=20 many=120 iterations=50 repeats=1
    cases=("${cases[0]}")
fi

unset "${!UCX_@}"
export UCX_RC_MLX5_MMIO_MODE=db UCX_DC_MLX5_MMIO_MODE=db
if [ -z "${RCV_PREFIX:-}" ]; then
    ensure_built
    RCV_PREFIX=$prefix RCV_BUILD=$build_dir
fi
emu=$RCV_PREFIX/bin/mlx5emu
launcher=$RCV_PREFIX/bin/rc_varuna_run
coster=$RCV_BUILD/src/tools/bench/varuna_cost
dir=$(mktemp -d)
fabric=bench-$$
server=
port=$((20000 + $$ % 20000))

cleanup() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    "$emu" down -n "$fabric" 2>/dev/null || true
    [ $keep = yes ] || rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# await_server LABEL: until it listens, to a port or on a socket; ucx_perftest's client
# doesn't wait for it
await_server() {
    local i address
    address=$(printf ':%04X [0-9A-F:]* 0A ' $port)
    for ((i = 0; i < 1200; ++i)); do
        if [ -S "$dir/socket" ] || grep -q "$address" /proc/net/tcp; then
            return 0
        fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.05
    done
    tail -n 20 "$dir/server.log" >&2
    die "$1: the server does not listen"
}

# pair TRANSPORT LABEL SERVER-COMMAND... -- CLIENT-COMMAND...: runs both, on host
# 0 and 1; the client's output is in $dir/log. What starts with "@" becomes the
# transport's launcher, if it has one.
pair() {
    local transport=$1 label=$2 status=0 word start=() first=() second=()
    shift 2
    [ "$transport" != rc_varuna ] || start=("$launcher")
    while [ "$1" != -- ]; do
        first+=("$1")
        shift
    done
    shift
    for word in "$@"; do
        if [ "$word" = @ ]; then second+=("${start[@]}"); else second+=("$word"); fi
    done

    rm -f "$dir/socket"
    timeout 600 "$emu" exec -n "$fabric" 0 -- "${start[@]}" "${first[@]}" \
        >"$dir/server.log" 2>&1 &
    server=$!
    await_server "$label over $transport"
    timeout 600 "$emu" exec -n "$fabric" 1 -- "${second[@]}" >"$dir/log" 2>&1 ||
        status=$?
    if [ $status -ne 0 ]; then
        keep=yes
        tail -n 20 "$dir/log" "$dir/server.log" >&2
        die "$label over $transport failed: status $status; logs are in $dir"
    fi
    wait "$server" || die "$label over $transport: the server failed"
    server=
}

# device TRANSPORT: of the first link
device() {
    [ "$1" != rc_varuna ] || printf varuna_
    echo mlx5_0:1
}

# perftest TRANSPORT TEST SIZE LAYOUT ITERATIONS
perftest() {
    # Another port each time: the last one may not be free yet
    port=$((port + 1))
    pair "$1" "$2" ucx_perftest -p $port -- @ ucx_perftest 127.0.0.1 -p $port \
        -f -v -d "$(device "$1")" -x "$1" -t "$2" -s "$3" -D "$4" -n "$5" -w 100
}

# cost TRANSPORT OPERATION SIZE LAYOUT COUNT [WRAPPER...]
cost() {
    local args=("$1" "$(device "$1")" "$2" "$4" "$3" "$5") transport=$1 label=$2
    shift 5
    pair "$transport" "$label" "$coster" server "$dir/socket" "${args[@]}" -- \
        @ "$@" "$coster" client "$dir/socket" "${args[@]}"
}

# The functions from here on leave what they found in "result": in a subshell
# they could not clean up.

# counters: DOORBELLS REQUESTS PACKETS of the client's first link until now
counters() {
    result=$("$emu" status -n "$fabric" | awk '
        /^link / { mine = ($2 == "1:0"); next }
        /^[^ ]/  { mine = 0 }
        mine     { gsub(/,/, ""); for (i = 1; i < NF; i += 2) n[$i] = $(i + 1) }
        END      { print n["doorbells"] + 0, n["wqes"] + 0, n["tx_packets"] + 0 }')
}

# best FORMAT LIST...: of several lists of numbers, the least of each column
best() {
    printf '%s\n' "${@:2}" | awk -v format="$1" '
        { for (i = 1; i <= NF; ++i)
              if (NR == 1 || $i < least[i]) least[i] = $i
          n = NF }
        END { for (i = 1; i <= n; ++i) printf format " ", least[i] }'
}

# instructions TRANSPORT OPERATION SIZE LAYOUT COUNT: REST EMULATOR, altogether
instructions() {
    rm -f "$dir"/callgrind.out.*
    cost "$@" valgrind --tool=callgrind --vex-iropt-level=0 \
        --vex-iropt-register-updates=allregs-at-mem-access \
        --callgrind-out-file="$dir/callgrind.out.%p"
    result=$(awk -f "$top/contrib/bench/callgrind_objects.awk" \
             "$dir"/callgrind.out.*)
}

# differences FROM TO DIVISOR FORMAT: of two lists of numbers
differences() {
    awk -v from="$1" -v to="$2" -v divisor="$3" -v format="$4" 'BEGIN {
        n = split(from, a)
        split(to, b)
        for (i = 1; i <= n; ++i)
            printf format " ", (b[i] - a[i]) / divisor
    }'
}

# counted TRANSPORT OPERATION SIZE LAYOUT: doorbells, requests, packets per operation
counted() {
    local first second third
    counters
    first=$result
    cost "$@" $few
    counters
    second=$result
    cost "$@" $many
    counters
    third=$result
    first=$(differences "$first" "$second" 1 %d)
    second=$(differences "$second" "$third" 1 %d)
    result=$(differences "$first" "$second" $((many - few)) %.2f)
}

# profiled TRANSPORT OPERATION SIZE LAYOUT: instructions per operation
profiled() {
    local first
    result="- -"
    [ $quick = no ] || return 0
    instructions "$@" $few
    first=$result
    instructions "$@" $many
    result=$(differences "$first" "$result" $((many - few)) %.0f)
}

# timed TRANSPORT LATENCY-TEST RATE-TEST SIZE LAYOUT: microseconds, thousand/s
# In perftest's CSV: iterations, percentile, average and overall latency,
# bandwidth twice, rate twice; the last of each pair is that of the whole run
timed() {
    local i latency latencies=() intervals=()
    for ((i = 0; i < repeats; ++i)); do
        perftest "$1" "$2" "$4" "$5" "$iterations"
        latencies+=("$(awk -F, '/^ *[0-9]/ { print $4 }' "$dir/log")")
        [ "$2" = "$3" ] || perftest "$1" "$3" "$4" "$5" "$iterations"
        # as milliseconds per thousand, of which the least is the best, too
        intervals+=("$(awk -F, '/^ *[0-9]/ { print 1e6 / $NF }' "$dir/log")")
    done
    [ -n "${latencies[0]}" ] && [ -n "${intervals[0]}" ] ||
        die "$2 or $3 over $1 has told no figures"
    latency=$(best %.2f "${latencies[@]}")
    result="$latency $(best %f "${intervals[@]}" |
                       awk '{ printf "%.1f", 1000 / $1 }')"
}

"$emu" up -n "$fabric" --hosts 2 --links 2 --trace 0

# Progress goes to stderr, the table to stdout as it grows
printf '%-14s %-10s %9s %9s %10s %9s %8s %9s %9s\n' \
    "" "" "instr" "instr" doorbells messages packets latency rate
printf '%-14s %-10s %9s %9s %10s %9s %8s %9s %9s\n' \
    operation transport "UCX" "emulator" /op /op /op us "k op/s"
for case in "${cases[@]}"; do
    IFS='|' read -r operation latency_test rate_test size layout <<<"$case"
    name="$operation $size B"
    for transport in "${transports[@]}"; do
        say "$operation of $size bytes ($layout) over $transport"
        profiled "$transport" "$operation" "$size" "$layout"
        row=$result
        counted "$transport" "$operation" "$size" "$layout"
        row+=" $result"
        timed "$transport" "$latency_test" "$rate_test" "$size" "$layout"
        row+=" $result"
        # shellcheck disable=SC2086
        printf '%-14s %-10s %9s %9s %10s %9s %8s %9s %9s\n' "$name" \
            "$transport" $row
        name=
    done
done
