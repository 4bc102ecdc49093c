#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/bench/run.sh [-c] [-f FILE] [-i | -t] [-n ITERATIONS] [-r REPEATS] [-s]
#                             [-k] [-o OPTION=VALUE]
#
# Measures the cost of rc_varuna relative to UCX's own rc_mlx5, on emulated NICs. Prints
#
#   1. instructions of an operation in both processes, by callgrind, and their ratio:
#      post, completion, the receiver's handler, and one flush for 32 operations; then those
#      of the requester and of the receiver alone, whose ratio is 0 if it does nothing. Both
#      transports make the same number of progress calls, and have the same inner
#      settings. The emulator and the benchmark itself are not counted.
#   2. the same with UCX's defaults;
#   3. doorbells, wire messages (work requests) and packets of an operation, counted by
#      the emulator; latency in microseconds and rate in thousand operations a second
#      by ucx_perftest. Both include the emulator's time, so only compare
#      transports of one run.
#
#   -c             check: the first table for four operations and for atomics, doorbells and
#                  messages of a put with each LOG, and messages of a compare and swap;
#                  fail if a figure exceeds the limit in contrib/bench/limits
#   -f FILE        with -c: write the figures to FILE; if it exists, measure nothing, and
#                  check the figures in it
#   -i             instructions only: tables 1 and 2
#   -t             the third table only, without callgrind
#   -n ITERATIONS  of each latency and rate test (20000)
#   -r REPEATS     best of REPEATS latency and rate tests (3), because a peer
#                  may have to wait for a CPU
#   -s             short: few operations, and one case in the third table, to
#                  check that everything works
#   -k             keep the logs and profiles
#   -o OPTION=VALUE  set an option of UCX; may be repeated. UCX_RC_VARUNA_SPARE_QPS=0
#                  makes the puts of rc_varuna stay on DC
#
# Doorbells are stores of 8 bytes. By default UCX copies a request to the NIC's register
# with the CPU's longest stores, which valgrind hides from the emulator.
#
# Counts are the same on a busy machine: operations begin when rc_varuna uses RC, and then
# time passes only with calls of progress. Latency and rate need two idle CPUs.

set -euo pipefail
prog=bench
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib/pair.sh"

iterations=20000
repeats=3
instructions=yes
times=yes
check=no
figures=
short=no
keep=no
options=()
[ "${1:-}" != --help ] || set -- -h
while getopts cf:in:o:r:tskh opt; do
    case $opt in
    c) check=yes times=no ;;
    f) figures=$OPTARG ;;
    i) times=no ;;
    t) instructions=no ;;
    n) iterations=$OPTARG ;;
    o) options+=("$OPTARG") ;;
    r) repeats=$OPTARG ;;
    s) short=yes ;;
    k) keep=yes ;;
    h) usage; exit 0 ;;
    *) exit 2 ;;
    esac
done
[ $OPTIND -gt $# ] || die "unexpected \"${!OPTIND}\" (-h shows the usage)"
[[ $iterations =~ ^[1-9][0-9]*$ ]] || die "-n $iterations is not a number"
[[ $repeats =~ ^[1-9][0-9]*$ ]] || die "-r $repeats is not a number"
[ $instructions = no ] || [ -n "$(command -v valgrind)" ] ||
    die "valgrind is missing: install it (apt-get install valgrind), or use -t"

# For the first tables: name, operation of varuna_cost, layout, size
loads=(
    "put_short|put|short|8"
    "put_bcopy|put|bcopy|2048"
    "put_zcopy|put|zcopy|4096"
    "get_bcopy|get|bcopy|8"
    "get_zcopy|get|zcopy|4096"
    "am_short|message|short|8"
    "am_bcopy|message|bcopy|1024"
    "am_zcopy|message|zcopy|4096"
    "idle|idle|short|8"
)
# With LOG=fallback: the same, for puts
unlogged=("${loads[@]:0:3}")
# Atomics by the NIC, 8 bytes, for each mode of rc_varuna
atomics_native=(fadd cswap)
atomics_extended=(cswap)
operations=2048

# For the third table: operation of varuna_cost, perftest's test for latency, for rate,
# size, layout
cases=(
    "put|put_lat|put_bw|8|short"
    "get|get|get|8|bcopy"
    "message|am_lat|am_bw|8|short"
    "put|put_lat|put_bw|4096|zcopy"
    "get|get|get|4096|zcopy"
    "message|am_lat|am_bw|4096|zcopy"
)
transports=(rc_mlx5 dc_mlx5 rc_varuna)

# Instructions of an operation of rc_mlx5, of the requester and of the receiver, by its load
# without the number of operations
declare -A plain=()

# Two runs of different lengths: their difference is the cost of only the operations,
# without start, warm-up and end.
few=1000
many=11000

[ $check = no ] ||
    loads=("${loads[0]}" "${loads[2]}" "${loads[3]}" "${loads[5]}" "${loads[8]}")
[ $check = no ] || unlogged=("${unlogged[0]}" "${unlogged[2]}")
if [ $short = yes ] || [ $check = yes ]; then
    operations=512 few=20 many=340 iterations=50 repeats=1
    cases=("${cases[0]}")
fi

unset "${!UCX_@}"
export UCX_RC_MLX5_MMIO_MODE=db UCX_DC_MLX5_MMIO_MODE=db "${options[@]}"

# rc_varuna's settings of its lanes, so that the first table compares equal settings
alike=(UCX_IB_PCI_RELAXED_ORDERING=off)

pair_init
coster=$RCV_BUILD/src/tools/bench/varuna_cost

# device TRANSPORT: prints the device of the first link
device() {
    [ "$1" != rc_varuna ] || printf varuna_
    echo mlx5_0:1
}

# perftest TRANSPORT TEST SIZE LAYOUT ITERATIONS: runs ucx_perftest
perftest() {
    next_port
    pair "$1" "$2" @ ucx_perftest -p $port -- @ ucx_perftest 127.0.0.1 -p $port \
        -f -v -d "$(device "$1")" -x "$1" -t "$2" -s "$3" -D "$4" -n "$5" -w 100
}

# cost_args TRANSPORT LOAD...: sets $args to varuna_cost's
cost_args() {
    local lane=()
    [ "$1" != rc_varuna ] || [ "${UCX_RC_VARUNA_SPARE_QPS:-}" = 0 ] || lane=(rc)
    args=("$1" "$(device "$1")" "${lane[@]}" held "${@:2}")
}

# cost TRANSPORT LOAD...: runs varuna_cost
cost() {
    local args
    cost_args "$@"
    pair "$1" "$2" @ "$coster" server "$dir/socket" "${args[@]}" -- \
        @ "$coster" client "$dir/socket" "${args[@]}"
}

# profile TRANSPORT LOAD...: writes a profile of each load and process to
# $dir/TRANSPORT. Collects only in the measured functions, and so not in the signal
# handler in which the emulator works.
profile() {
    local args out=$dir/$1
    local tool=(valgrind --tool=callgrind --vex-iropt-level=0
        --vex-iropt-register-updates=allregs-at-mem-access
        "--toggle-collect=cost_measured_*" --dump-after=cost_phase_ended)
    cost_args "$@"
    rm -rf "$out"
    mkdir "$out"
    pair "$1" "callgrind" @ "${tool[@]}" "--callgrind-out-file=$out/server" \
        "$coster" server "$dir/socket" "${args[@]}" -- \
        @ "${tool[@]}" "--callgrind-out-file=$out/client" \
        "$coster" client "$dir/socket" "${args[@]}"
}

# The functions below set $result, because in a subshell they could not clean up.

# counters: sets the present DOORBELLS REQUESTS PACKETS of the client's first link
counters() {
    result=$("$emu" status -n "$fabric" | awk '
        /^link / { mine = ($2 == "1:0"); next }
        /^[^ ]/  { mine = 0 }
        mine     { gsub(/,/, ""); for (i = 1; i < NF; i += 2) n[$i] = $(i + 1) }
        END      { print n["doorbells"] + 0, n["wqes"] + 0, n["tx_packets"] + 0 }')
}

# best FORMAT LIST...: sets the minimum of each column of several lists of numbers
best() {
    printf '%s\n' "${@:2}" | awk -v format="$1" '
        { for (i = 1; i <= NF; ++i)
              if (NR == 1 || $i < least[i]) least[i] = $i
          n = NF }
        END { for (i = 1; i <= n; ++i) printf format " ", least[i] }'
}

# instructions_of TRANSPORT INDEX: sets those of an operation, of the requester and of the
# receiver
instructions_of() {
    local process sums=()
    for process in client server; do
        sums+=("$(awk -f "$top/contrib/bench/callgrind_objects.awk" "$dir/$1/$process.$2")")
    done
    result=$(awk -v a="${sums[0]}" -v b="${sums[1]}" -v n=$operations \
             'BEGIN { printf "%.1f %.1f", a / n, b / n }')
}

# measure_plain: sets $plain, once for all tables with the same settings of UCX
measure_plain() {
    local args=() load name operation layout size index=0
    [ ${#plain[@]} -eq 0 ] || return 0
    for load in "${loads[@]}"; do
        IFS='|' read -r name operation layout size <<<"$load"
        args+=("$operation:$layout:$size:$operations")
    done
    args+=("${atomics_native[@]/%/:short:8:$operations}")
    profile rc_mlx5 "${args[@]}"
    for load in "${args[@]}"; do
        index=$((index + 1))
        instructions_of rc_mlx5 $index
        plain[${load%:*}]=$result
    done
}

# row NAME LOAD INDEX FIGURE: prints a row of a table, and writes "FIGURE RATIO" to
# $dir/ratios
row() {
    instructions_of rc_varuna "$3"
    awk -v plain="${plain[$2]}" -v ours="$result" -v title="$1" -v figure="$4" \
        -v ratios="$dir/ratios" '
        function part(a, b) {
            printf " %9.0f %9.0f %5.2f", a, b, (a > 0) ? b / a : 0
        }
        BEGIN {
            split(plain, a)
            split(ours, b)
            printf "%-18s", title
            part(a[1] + a[2], b[1] + b[2])
            part(a[1], b[1])
            part(a[2], b[2])
            print ""
            printf "%s %.2f\n", figure, (b[1] + b[2]) / (a[1] + a[2]) >>ratios
        }'
}

# ratios: profiles all loads, and prints their table
ratios() {
    local args=() load name title operation layout size index=0
    measure_plain
    for load in "${loads[@]}"; do
        IFS='|' read -r name operation layout size <<<"$load"
        args+=("$operation:$layout:$size:$operations")
    done
    profile rc_varuna "${args[@]}"
    : >"$dir/ratios"
    printf '%-18s' instructions
    printf ' %9s %9s %5s' both rc_varuna ratio requester rc_varuna ratio receiver \
        rc_varuna ratio
    echo
    for load in "${loads[@]}"; do
        IFS='|' read -r name operation layout size <<<"$load"
        index=$((index + 1))
        title=$name
        [ "$name" = idle ] || title+=" $size B"
        row "$title" "$operation:$layout:$size" $index "$name"
    done
}

# unlogged_ratios: the same for puts with LOG=fallback
unlogged_ratios() {
    local -a all=("${loads[@]}")
    loads=("${unlogged[@]}")
    cp "$dir/ratios" "$dir/logged"
    echo "With UCX_RC_VARUNA_LOG=fallback:"
    export UCX_RC_VARUNA_LOG=fallback
    ratios
    unset UCX_RC_VARUNA_LOG
    sed -i 's/ /_fallback /' "$dir/ratios"
    cat "$dir/ratios" >>"$dir/logged"
    mv "$dir/logged" "$dir/ratios"
    loads=("${all[@]}")
}

# atomic_ratios: the same for atomics
atomic_ratios() {
    local mode name index
    for mode in native extended; do
        local -n names=atomics_$mode
        export UCX_RC_VARUNA_ATOMIC_MODE=$mode
        profile rc_varuna "${names[@]/%/:short:8:$operations}"
        unset UCX_RC_VARUNA_ATOMIC_MODE
        index=0
        for name in "${names[@]}"; do
            index=$((index + 1))
            row "$name $mode" "$name:short:8" $index "${name}_$mode"
        done
    done
}

# differences FROM TO DIVISOR FORMAT: sets those of two lists of numbers
differences() {
    awk -v from="$1" -v to="$2" -v divisor="$3" -v format="$4" 'BEGIN {
        n = split(from, a)
        split(to, b)
        for (i = 1; i <= n; ++i)
            printf format " ", (b[i] - a[i]) / divisor
    }'
}

# counted TRANSPORT OPERATION LAYOUT SIZE: sets doorbells, requests, packets per
# operation
counted() {
    local first second third
    # Control messages are not counted, so there are no heartbeats, and no repetitions for a
    # peer that waits for a CPU
    local -x UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_CTL_TIMEOUT=60s
    counters
    first=$result
    cost "$1" "$2:$3:$4:$few"
    counters
    second=$result
    cost "$1" "$2:$3:$4:$many"
    counters
    third=$result
    first=$(differences "$first" "$second" 1 %d)
    second=$(differences "$second" "$third" 1 %d)
    result=$(differences "$first" "$second" $((many - few)) %.2f)
}

# timed TRANSPORT LATENCY-TEST RATE-TEST SIZE LAYOUT: sets microseconds, thousand/s In
# perftest's CSV: iterations, percentile, average and overall latency, bandwidth twice,
# rate twice; the last of each pair is that of the whole run
timed() {
    local i latency latencies=() intervals=()
    for ((i = 0; i < repeats; ++i)); do
        perftest "$1" "$2" "$4" "$5" "$iterations"
        latencies+=("$(awk -F, '/^ *[0-9]/ { print $4 }' "$dir/log")")
        [ "$2" = "$3" ] || perftest "$1" "$3" "$4" "$5" "$iterations"
        # as milliseconds per thousand, so that the minimum is the best
        intervals+=("$(awk -F, '/^ *[0-9]/ { print 1e6 / $NF }' "$dir/log")")
    done
    [ -n "${latencies[0]}" ] && [ -n "${intervals[0]}" ] ||
        die "$2 or $3 over $1 printed no figures"
    latency=$(best %.2f "${latencies[@]}")
    result="$latency $(best %f "${intervals[@]}" |
                       awk '{ printf "%.1f", 1000 / $1 }')"
}

# third_table: prints it
third_table() {
    local case operation latency_test rate_test size layout name transport row
    printf '%-14s %-10s %10s %9s %8s %9s %9s\n' \
        "" "" doorbells messages packets latency rate
    printf '%-14s %-10s %10s %9s %8s %9s %9s\n' \
        operation transport /op /op /op us "k op/s"
    for case in "${cases[@]}"; do
        IFS='|' read -r operation latency_test rate_test size layout <<<"$case"
        name="$operation $size B"
        for transport in "${transports[@]}"; do
            say "$operation of $size bytes ($layout) over $transport"
            counted "$transport" "$operation" "$layout" "$size"
            row=$result
            timed "$transport" "$latency_test" "$rate_test" "$size" "$layout"
            row+=" $result"
            # shellcheck disable=SC2086
            printf '%-14s %-10s %10s %9s %8s %9s %9s\n' "$name" "$transport" $row
            name=
        done
    done
}

# check_counts: counts what has a limit, and adds it to the figures
check_counts() {
    local doorbells messages rest log suffix
    for log in all fallback; do
        suffix=${log/#all/}
        export UCX_RC_VARUNA_LOG=$log
        counted rc_varuna put short 8
        unset UCX_RC_VARUNA_LOG
        read -r doorbells messages rest <<<"$result"
        printf 'a put of 8 bytes, LOG=%s: %s doorbells, %s wire messages\n' \
            "$log" "$doorbells" "$messages"
        printf 'doorbells%s %s\nmessages%s %s\n' "${suffix:+_$suffix}" "$doorbells" \
            "${suffix:+_$suffix}" "$messages" >>"$dir/ratios"
    done
    export UCX_RC_VARUNA_ATOMIC_MODE=extended
    counted rc_varuna cswap short 8
    unset UCX_RC_VARUNA_ATOMIC_MODE
    read -r doorbells messages rest <<<"$result"
    printf 'a compare and swap of mode extended: %s wire messages\n' "$messages"
    printf 'messages_cswap %s\n' "$messages" >>"$dir/ratios"
}

# check_limits FIGURES: compares these, "NAME FIGURE", with the limits
check_limits() {
    awk '
        /^#/ || NF == 0 { next }
        FNR == NR { goal[$1] = $2; limit[$1] = $3; next }
        !($1 in goal) { print $1 ": it has no limit"; bad = 1; next }
        {
            highest = goal[$1] * 1.1
            if (limit[$1] > highest)
                highest = limit[$1]
            if ($2 > highest + 0.005) {
                printf "%s: %.2f exceeds %.2f\n", $1, $2, highest
                bad = 1
            }
            if (limit[$1] > goal[$1] * 1.1 && $2 < limit[$1] * 0.85) {
                printf "%s: %.2f is well below the limit of %.2f: lower it\n", \
                       $1, $2, limit[$1]
                bad = 1
            }
        }
        END { exit bad }' "$top/contrib/bench/limits" "$1"
}

if [ $check = yes ] && [ -n "$figures" ] && [ -e "$figures" ]; then
    check_limits "$figures"
    exit
fi

"$emu" up -n "$fabric" --hosts 2 --links 2 --trace 0

# Progress goes to stderr, the tables to stdout as they grow
if [ $instructions = yes ]; then
    say "instructions with the same inner settings"
    export "${alike[@]}"
    ratios
    unlogged_ratios
    atomic_ratios
    if [ $check = yes ]; then
        check_counts
        [ -z "$figures" ] || cp "$dir/ratios" "$figures"
        check_limits "$dir/ratios"
    fi
    unset "${alike[@]%%=*}"
    if [ $check = no ]; then
        plain=()
        say "instructions with UCX's defaults"
        echo
        echo "With UCX's defaults:"
        ratios
    fi
fi
[ $times = no ] || third_table
