#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/bench/recovery.sh [-e ENDPOINTS] [-b BATCH] [-r RUNS] [-n BATCHES]
#                                  [-s SEED] [-u UNACKED] [-v] [SIZE...]
#        contrib/bench/recovery.sh -t [-e ENDPOINTS] [-b BATCH] [-r RUNS] [-d TIME]
#                                  [-o NAME=VALUE]... [SIZE...]
#        contrib/bench/recovery.sh -l [-r RUNS] [LOAD...]
#
# Compares what recovery repeats with what was lost: puts of each SIZE (4096 65536), in
# batches of BATCH (64) on each of ENDPOINTS (16) between two emulated hosts. The
# requester's primary link becomes silent at a random packet of a random put of BATCHES
# (4). The same for rc_varuna and for the baselines resend and resend_cache.
#
# RUNS (3) points of failure for each SIZE depend only on SEED (1): number of the put,
# number of the packet, and how many of the puts before it, at most UNACKED (128), are
# executed but not acknowledged, because the acknowledgements are lost too. They are
# counts, independent of time. So all three modes have the same failures, and each run
# of this script prints the same table. It checks that the same puts are lost in all
# modes.
#
#   switches   endpoints that left the link
#   lost       puts that were posted but not executed when the link failed, by the
#              emulator's trace
#   repeated   puts posted again, by the plugin's counter
#   twice      extra executions of puts, by the trace
#
# The ideal is to repeat only lost puts. How much the baselines execute twice depends on
# UNACKED, which in a real network follows from the round trip and queues; varuna's 0
# does not. -v prints each run.
#
# -t prints how long the steps of a switch take instead, as a Markdown table with the goal
# of each: RUNS (20) failures of ENDPOINTS (1) with puts of each SIZE (4096). The peer
# polls. Times need an otherwise idle machine. -d delays what passes a link by this time
# (1ms), of which a round trip between the hosts takes four; then no acknowledgements are
# lost but those that are on their way. -o sets an option of UCX,
# or RC_VARUNA_BASELINE.
#
#   detect     how long the oldest operation had waited when the failure was noticed
#   drain      until the old lane was at rest
#   fence      until the peer had fenced its end and answered, and all was decided
#   repeat     until everything lost was posted again
#   all        from the first endpoint that notices the failure to the last one that has
#              repeated, once for each failure
#
# -l prints the same of ucx_perftest, whose link is cut, or becomes silent, after a thousand
# requests: for each LOAD, fault and lane set, RUNS (20) runs, the steps of the client's
# switch in microseconds, each minimum / median / maximum, and what assured the end of the
# old lane.

set -euo pipefail
prog=recovery
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

eps= batch=64 runs= batches=4 seed=1 unacked=128 verbose= times=no loads=no
options=() fabric_options=()
[ "${1:-}" != --help ] || set -- -h
while getopts u:e:b:r:n:s:d:o:tlvh opt; do
    case $opt in
    u) unacked=$OPTARG ;;
    e) eps=$OPTARG ;;
    b) batch=$OPTARG ;;
    r) runs=$OPTARG ;;
    n) batches=$OPTARG ;;
    s) seed=$OPTARG ;;
    d) fabric_options=(--latency "$OPTARG") unacked=0 ;;
    o) options+=("$OPTARG") ;;
    t) times=yes ;;
    l) loads=yes ;;
    v) verbose=yes ;;
    h) usage; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
# What -l measures: arguments of ucx_perftest, and the packets that the fault counts
declare -A load_of=(
    [put_8]='op=write -t ucp_put_bw -s 8'
    [put_64k]='op=write -t ucp_put_bw -s 65536'
    [get_4k]='op=read -t ucp_get -s 4096'
    [tag_8_pingpong]='op=send -t tag_lat -s 8'
    [tag_4k]='op=send -t tag_bw -s 4096'
    [tag_1m]='op=send -t tag_bw -s 1048576'
    [am_64]='op=send -t ucp_am_bw -s 64')

if [ $loads = yes ]; then
    : "${runs:=20}" "${eps:=1}"
    [ $# -gt 0 ] || set -- put_8 put_64k get_4k tag_8_pingpong tag_4k tag_1m am_64
    for load in "$@"; do
        [ -n "${load_of[$load]-}" ] || die "no load $load, but ${!load_of[*]}"
    done
elif [ $times = yes ]; then
    : "${eps:=1}" "${runs:=20}"
    [ $# -gt 0 ] || set -- 4096
else
    : "${eps:=16}" "${runs:=3}"
    [ $# -gt 0 ] || set -- 4096 65536
fi
[ $loads = yes ] && sizes=() || sizes=("$@")
for number in "$eps" "$batch" "$runs" "$batches" "${sizes[@]}"; do
    [[ $number =~ ^[1-9][0-9]*$ ]] || die "\"$number\" is not a number"
done
[[ $seed =~ ^[0-9]+$ ]] || die "-s $seed is not a number"

if [ -z "${RCV_PREFIX:-}" ]; then
    ensure_built
    RCV_PREFIX=$prefix RCV_BUILD=$build_dir
fi
make -s -C "$RCV_BUILD/test/e2e" ft_load >/dev/null
emu=$RCV_PREFIX/bin/mlx5emu
# The plugin with baselines, which is rc_varuna if none is selected
run=("$RCV_PREFIX/bin/rc_varuna_run" -l
     "$RCV_BUILD/src/uct/ib/varuna/.libs/libuct_varuna_baselines.so")
load=$RCV_BUILD/test/e2e/ft_load
fabric=recovery-$$
dir=$(mktemp -d)
trap '"$emu" down -n "$fabric" --force >/dev/null 2>&1 || :; rm -rf "$dir"' EXIT

unset "${!UCX_@}"
export UCX_LOG_LEVEL=info
[ $times = no ] || UCX_LOG_LEVEL=debug
# All puts are posted before the failure is detected
export UCX_RC_MLX5_TIMEOUT=1s UCX_RC_MLX5_RETRY_COUNT=1
export UCX_DC_MLX5_TIMEOUT=1s UCX_DC_MLX5_RETRY_COUNT=1
export UCX_RC_VARUNA_PACKET_LIFETIME=100ms
export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=60s
export UCX_RC_VARUNA_RETURN_DELAY=inf
for option in "${options[@]}"; do
    [[ $option =~ ^(UCX_[A-Z0-9_]+|RC_VARUNA_BASELINE)= ]] || die "-o $option is not an option of UCX"
    export "${option?}"
done

# wait_for PATTERN FILE: waits until the file matches
wait_for() {
    local i
    for ((i = 0; i < 600; ++i)); do
        ! grep -qs -e "$1" "$2" || return 0
        sleep 0.05
    done
    die "\"$1\" is not in $2: $(tail -n 3 "$2")"
}

# switch_sum KEY: prints the sum of KEY in the client's log lines
switch_sum() {
    sed -nE "s/.*switched .* $1=([0-9]+).*/\\1/p" "$dir/client.log" |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# executions SIZE LAST: prints the number of distinct puts in the trace, their extra
# executions, and how many of the first LAST puts were executed over link 0. The first
# word identifies a put. A put in parts is executed with its last part; the first part
# is at a multiple of SIZE
executions() {
    awk -v size="$1" -v until="$2" '
        function field(name) {
            if (!match($0, "\"" name "\": ?\"?[0-9a-fx]+")) {
                return ""
            }
            text = substr($0, RSTART, RLENGTH)
            sub(/.*[ :"]/, "", text)
            return text
        }
        # Numbers are too small for awk to lose digits of them
        function number(hex,   n, i) {
            sub(/^0x/, "", hex)
            for (i = 1; i <= length(hex); ++i) {
                n = (n * 16) + index("0123456789abcdef", substr(hex, i, 1)) - 1
            }
            return n
        }
        !/"op": ?"write"/ || /"duplicate": ?(true|1)/ { next }
        {
            lane  = field("qpn") " " field("src_qpn")
            parts = /"partial": ?(true|1)/
            last  = /"last": ?(true|1)/
            if (parts && !last && !(lane in word)) {
                word[lane] = field("data")
                next
            } else if (parts && !last) {
                next
            } else if (last) {
                put = word[lane]
                delete word[lane]
            } else if (field("length") == size) {
                put = field("data")
            } else {
                next
            }
            if (seen[put]++) {
                ++twice
            } else {
                ++puts
                first += (field("link") == 0) && (number(put) <= until)
            }
        }
        END { print puts + 0, twice + 0, first + 0 }'
}

# point SIZE NUMBER: prints the put, its packet, and the unacknowledged puts before it
point() {
    awk -v seed=$((seed * 1000003 + $1 + $2 * 7919)) -v puts=$((eps * batch)) \
        -v batches="$batches" -v packets=$((($1 + 4095) / 4096)) \
        -v unacked="$unacked" 'BEGIN {
            srand(seed)
            in_batch = 1 + int(rand() * puts)
            most     = (in_batch - 1 < unacked) ? in_batch - 1 : unacked
            print int(rand() * batches) * puts + in_batch, \
                  1 + int(rand() * packets), int(rand() * (most + 1))
        }'
}

fault() {
    "$emu" fault add -n "$fabric" "$@" >/dev/null
}

# job MODE SIZE PUT PACKET UNACKED: runs one failure, and adds to the sums
job() {
    local mode=$1 size=$2 put=$3 packet=$4 without_ack=$5 server client
    local packets=$((($2 + 4095) / 4096)) posted executed again first again_sum moved
    rm -f "$dir"/*.in "$dir"/*.log
    "$emu" up -n "$fabric" --hosts 2 --links 2 --trace 2000000 \
        "${fabric_options[@]}" >/dev/null
    unset RC_VARUNA_BASELINE
    [ "$mode" = varuna ] || export RC_VARUNA_BASELINE=$mode
    mkfifo "$dir/server.in" "$dir/client.in"
    "$emu" exec -n "$fabric" 0 -- "${run[@]}" "$load" server \
        $((eps * batch * size)) <"$dir/server.in" >"$dir/server.log" 2>&1 &
    server=$!
    exec 9>"$dir/server.in"
    wait_for '^ft: address' "$dir/server.log"
    "$emu" exec -n "$fabric" 1 -- "${run[@]}" "$load" batches "$eps" "$size" \
        "$batch" "$batches" <"$dir/client.in" >"$dir/client.log" 2>&1 9>&- &
    client=$!
    exec 8>"$dir/client.in"
    sed -n 's/^ft: address *//p' "$dir/server.log" >&8
    wait_for '^ft: connected' "$dir/client.log"
    fault packet host=1 link=0 type=rc op=write size="$size" try=first \
        nth=$(((put - 1) * packets + packet)) silent=1:0
    if ((without_ack > 0)); then
        fault ack host=1 link=0 type=rc op=write size="$size" \
            nth=$((put - without_ack)) count=all drop
        # The log entries, which baselines do not write
        [ "$mode" != varuna ] || fault ack host=1 link=0 type=rc op=write size=8 \
            nth=$((put - without_ack)) count=all drop
    fi
    echo go >&8
    wait $client || die "the client failed: $(tail -n 3 "$dir/client.log")"
    exec 8>&- 9>&-
    wait $server || die "the server failed"
    "$emu" fault list -n "$fabric" --check >"$dir/faults.log" ||
        die "no failure: $(cat "$dir/faults.log")"

    # All puts of the failed batch were posted
    posted=$(((put + eps * batch - 1) / (eps * batch) * eps * batch))
    read -r executed again first < <("$emu" trace -n "$fabric" --json 0 |
                                     executions "$size" "$posted")
    [ "$executed" -eq $((eps * batch * batches)) ] ||
        die "$mode, $size: the trace has $executed puts of" \
            "$((eps * batch * batches))"
    "$emu" down -n "$fabric" --force
    again_sum=$(switch_sum repeated)
    moved=$(grep -c 'rc_varuna: switched' "$dir/client.log" || :)
    [ "$moved" -gt 0 ] || die "$mode, $size: no endpoint detected the failure"
    puts=$((puts + executed)) twice=$((twice + again))
    repeated=$((repeated + again_sum)) switches=$((switches + moved))
    lost=$((lost + posted - first))
    [ -z "$verbose" ] ||
        echo "# $size $mode: at put $put, packet $packet, $without_ack not" \
            "acknowledged: switches $moved lost $((posted - first))" \
            "repeated $again_sum twice $again"
}

# step_times: prints "STEP MICROSECONDS" for the steps in the client's log. UCX's lines
# begin with their time
step_times() {
    awk -F'[][]' '/rc_varuna: ep .* leaves / && !first { first = $2 }
                  /rc_varuna: ep .*: repeat -> active/ { last = $2 }
                  END { if (last) printf "all %.0f\n", (last - first) * 1e6 }' \
        "$dir/client.log"
    sed -nE -e 's/.*rc_varuna: ep .* leaves .*has waited for ([0-9.]+) s.*/detect \1/p' \
        -e 's/.*: (drain|fence|repeat) -> .* after ([0-9]+) us.*/\1 \2/p' \
        "$dir/client.log" | awk '{ print $1, ($1 == "detect") ? $2 * 1e6 : $2 }'
}

# steps SIZE: prints the rows of the steps of a switch
steps() {
    local i step goal
    : >"$dir/steps"
    for ((i = 1; i <= runs; ++i)); do
        # shellcheck disable=SC2046 # three words
        job varuna "$1" $(point "$1" "$i")
        step_times >>"$dir/steps"
    done
    for step in detect drain fence repeat all; do
        goal="< 1000"
        [[ $step != detect && $step != all ]] || goal=-
        awk -v step=$step '$1 == step { print $2 }' "$dir/steps" | sort -n |
            awk -v size="$1" -v step=$step -v goal="$goal" '
                { us[NR] = $1; slow += ($1 >= 1000) }
                END {
                    if (NR == 0) exit 1
                    printf "| %d | %s | %s | %d | %.0f | %.0f | %.0f | %s |\n", size,
                        step, goal, NR, us[1], us[int((NR + 1) / 2)], us[NR],
                        (goal == "-") ? "-" : slow + 0
                }' || die "the log shows no time of the step $step"
    done
}

# cut_load LOAD FAULT QUIRK: one run of ucx_perftest; its client's switch goes to $dir/switches
cut_load() {
    local op args count=1500 port=$((20000 + (RANDOM % 20000))) server
    read -r op args <<<"${load_of[$1]}"
    [ "$1" != put_64k ] || count=500
    "$emu" up -n "$fabric" --hosts 2 --links 2 ${3:+--quirk "$3"} >/dev/null
    fault packet host=1 link=0 type=rc "$op" nth=1000 "$2=1:0"
    # shellcheck disable=SC2086 # words
    timeout 300 "$emu" exec -n "$fabric" 0 -- "${run[@]}" ucx_perftest -p $port \
        >"$dir/server.log" 2>&1 &
    server=$!
    until "$emu" status -n "$fabric" >/dev/null && [ -n "$(ss -Hlnt "sport = :$port")" ]; do
        kill -0 $server || die "$1: the server ended: $(tail -n 3 "$dir/server.log")"
        sleep 0.05
    done
    # shellcheck disable=SC2086
    timeout 300 "$emu" exec -n "$fabric" 1 -- "${run[@]}" ucx_perftest 127.0.0.1 -p $port \
        $args -n $count >"$dir/client.log" 2>&1 ||
        die "$1: the client ended with $?: $(tail -n 3 "$dir/client.log")"
    wait $server || die "$1: the server failed: $(tail -n 3 "$dir/server.log")"
    "$emu" fault list -n "$fabric" --check >"$dir/faults.log" ||
        die "$1: no failure: $(cat "$dir/faults.log")"
    "$emu" down -n "$fabric" --force
    # A request may be read by the peer, whose endpoint switches then
    grep -ah 'switched .* was=rc ' "$dir/client.log" "$dir/server.log" | head -n 1 >>"$dir/switches"
}

# load_row LOAD FAULT SET: prints the row of $dir/switches
load_row() {
    local step row="| $1 | $2 | $3 | $(sed -nE 's/.* fence=([^ ]+) .*/\1/p' "$dir/switches" |
        sort | uniq -c | awk '{ printf "%s%s %d", (NR > 1) ? ", " : "", $2, $1 }') |"
    for step in detect drain fence repeat; do
        row+=$(sed -nE "s/.* ${step}_us=([0-9]+).*/\1/p" "$dir/switches" | sort -n |
            awk '{ us[NR] = $1 }
                 END { printf " %d / %d / %d |", us[1], us[int((NR + 1) / 2)], us[NR] }')
    done
    echo "$row"
}

if [ $loads = yes ]; then
    # As on a fabric whose fault is found at once: the retries of the NIC are not the subject
    export UCX_RC_MLX5_TIMEOUT=1ms UCX_RC_MLX5_RETRY_COUNT=2 UCX_RC_VERBS_TIMEOUT=1ms
    export UCX_RC_VERBS_RETRY_COUNT=2 UCX_TLS=rc_varuna UCX_LOG_LEVEL=info
    unset UCX_RC_VARUNA_PACKET_LIFETIME UCX_RC_VARUNA_HEARTBEAT_INTERVAL
    echo "| load | fault | lanes | fences | detect | drain | fence | repeat |"
    echo "|---|---|---|---|---|---|---|---|"
    for load in "$@"; do
        for what in down silent; do
            for set in mlx5 verbs; do
                : >"$dir/switches"
                quirk=
                [ $set = mlx5 ] || quirk=no-mlx5dv
                for ((i = 0; i < runs; ++i)); do
                    cut_load "$load" $what $quirk
                done
                load_row "$load" $what $set
            done
        done
    done
    exit
fi

if [ $times = yes ]; then
    puts=0 repeated=0 twice=0 switches=0 lost=0
    echo "| size | step | goal, us | switches | min | median | max | at 1 ms or above |"
    echo "|---|---|---|---|---|---|---|---|"
    for size in "$@"; do
        steps "$size"
    done
    exit
fi

echo "$eps endpoints, $batches batches of $batch, $runs failures each, seed $seed," \
    "at most $unacked puts executed and not acknowledged"
printf '%-7s %-13s %8s %7s %7s %9s %7s %12s %14s %12s\n' size recovery switches \
    puts lost repeated twice 'lost bytes' 'repeated bytes' 'twice bytes'
for size in "$@"; do
    lost_before=
    for mode in varuna resend resend_cache; do
        puts=0 repeated=0 twice=0 switches=0 lost=0
        for ((i = 1; i <= runs; ++i)); do
            # shellcheck disable=SC2046 # three words
            job "$mode" "$size" $(point "$size" "$i")
        done
        printf '%-7s %-13s %8d %7d %7d %9d %7d %12d %14d %12d\n' "$size" "$mode" \
            "$switches" "$puts" "$lost" "$repeated" "$twice" $((lost * size)) \
            $((repeated * size)) $((twice * size))
        [ "${lost_before:=$lost}" -eq "$lost" ] ||
            die "$size: $lost puts were lost with $mode, $lost_before before it"
        lost_before=$lost
    done
done
