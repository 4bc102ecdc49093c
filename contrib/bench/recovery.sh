#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/bench/recovery.sh [-e ENDPOINTS] [-b BATCH] [-r RUNS] [-t SECONDS]
#                                  [-s SEED] [-d DELAY] [SIZE...]
#
# What recovery repeats, against what was lost: puts of each SIZE (4096 65536) in
# batches on all endpoints between two emulated hosts; the requester's primary link
# falls silent at a random time. The same loads for rc_varuna and for the baselines
# resend and resend_cache. "repeated" is what the plugin counted; "twice" is how many
# puts the emulator's trace has more than once; what was repeated and had not been
# executed before was "lost". "switches" are endpoints which left the link. Prints a
# table.
#
# Points of failure: RUNS of them for each load, at times from the start which SEED
# gives; they are the same for all three ways. Acknowledgements take DELAY (10ms).
# What is executed and not yet acknowledged when the link dies is what blind
# repetition does twice, so the proportion of "twice" to "lost" follows from DELAY: in
# a real network it is the round trip and what waits in queues. 10 ms is long, so that
# the emulator, which executes a put when it is posted, has some of each batch under
# way; compare several (-d) before you conclude anything from the proportion. That
# varuna has 0 in "twice" does not depend on it.

set -euo pipefail
prog=recovery
. "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

eps=16 batch=64 runs=3 seconds=2 seed=1 rtt=10ms
while getopts d:e:b:r:t:s:h opt; do
    case $opt in
    d) rtt=$OPTARG ;;
    e) eps=$OPTARG ;;
    b) batch=$OPTARG ;;
    r) runs=$OPTARG ;;
    t) seconds=$OPTARG ;;
    s) seed=$OPTARG ;;
    h) sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- 4096 65536

if [ -z "${RCV_PREFIX:-}" ]; then
    ensure_built
    RCV_PREFIX=$prefix RCV_BUILD=$build_dir
fi
make -s -C "$RCV_BUILD/test/apps" ft_load >/dev/null
emu=$RCV_PREFIX/bin/mlx5emu
run=$RCV_PREFIX/bin/rc_varuna_run
load=$RCV_BUILD/test/apps/ft_load
fabric=recovery-$$
dir=$(mktemp -d)
trap '"$emu" down -n "$fabric" --force >/dev/null 2>&1 || :; rm -rf "$dir"' EXIT

unset "${!UCX_@}"
export UCX_LOG_LEVEL=info
export UCX_RC_MLX5_TIMEOUT=60ms UCX_RC_MLX5_RETRY_COUNT=1
export UCX_DC_MLX5_TIMEOUT=60ms UCX_DC_MLX5_RETRY_COUNT=1

# wait_for PATTERN FILE
wait_for() {
    local i
    for ((i = 0; i < 600; ++i)); do
        ! grep -qs -e "$1" "$2" || return 0
        sleep 0.05
    done
    die "\"$1\" is not in $2: $(tail -n 3 "$2")"
}

# switch_sum KEY: of the client's log lines
switch_sum() {
    sed -nE "s/.*switched .* $1=([0-9]+).*/\\1/p" "$dir/client.log" |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# executions SIZE: of the trace: distinct puts, and executions beyond the first of
# each. A put is told by the word that it begins with. One that comes in parts is
# executed with its last one; the first one is told by standing at a multiple of SIZE
executions() {
    awk -v size="$1" '
        function field(name) {
            if (!match($0, "\"" name "\": ?\"?[0-9a-fx]+")) {
                return ""
            }
            text = substr($0, RSTART, RLENGTH)
            sub(/.*[ :"]/, "", text)
            return text
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
            }
        }
        END { print puts + 0, twice + 0 }'
}

# job MODE SIZE DELAY: one failure; adds to repeated, twice, puts
job() {
    local mode=$1 size=$2 delay=$3 server once again
    rm -f "$dir"/stdin "$dir"/*.log
    "$emu" up -n "$fabric" --hosts 2 --links 2 --trace 2000000 >/dev/null
    # Acknowledgements take time on a real network, in which puts are executed
    # and not yet complete; those under way when the link dies are lost
    "$emu" fault add -n "$fabric" ack link=0 op=write count=all delay="$rtt" \
        >/dev/null
    export UCX_RC_VARUNA_RECOVERY=$mode
    mkfifo "$dir/stdin"
    "$emu" exec -n "$fabric" 0 -- "$run" "$load" server \
        $((eps * batch * size)) <"$dir/stdin" >"$dir/server.log" 2>&1 &
    server=$!
    exec 9>"$dir/stdin"
    wait_for '^ft: address' "$dir/server.log"
    sed -n 's/^ft: address *//p' "$dir/server.log" |
        "$emu" exec -n "$fabric" 1 -- "$run" "$load" client "$eps" "$size" \
            "$batch" "$seconds" >"$dir/client.log" 2>&1 &
    wait_for '^ft: started' "$dir/client.log"
    sleep "$delay"
    "$emu" link -n "$fabric" 1:0 silent
    wait $! || die "the client failed: $(tail -n 3 "$dir/client.log")"
    exec 9>&-
    wait $server || die "the server failed"
    read -r once again < <("$emu" trace -n "$fabric" --json 0 |
                           executions "$size")
    [ "$once" -eq "$(sed -n 's/^ft: puts \([0-9]*\).*/\1/p' \
                         "$dir/client.log")" ] ||
        die "$mode, $size: the trace has $once puts: $(tail -n 1 \
            "$dir/client.log")"
    "$emu" down -n "$fabric" --force
    puts=$((puts + once))
    twice=$((twice + again))
    repeated=$((repeated + $(switch_sum repeated)))
    once=$(grep -c 'rc_varuna: switched' "$dir/client.log" || :)
    [ "$once" -gt 0 ] || die "$mode, $size: no endpoint noticed the failure"
    switches=$((switches + once))
}

echo "$eps endpoints, batches of $batch, $runs failures each, seed $seed"
printf '%-8s %-13s %8s %10s %10s %10s %10s %14s %14s\n' size recovery switches \
    puts repeated lost twice 'repeated bytes' 'lost bytes'
for size in "$@"; do
    for mode in varuna resend resend_cache; do
        puts=0 repeated=0 twice=0 switches=0
        for ((i = 1; i <= runs; ++i)); do
            # The same times for all
            delay=$(awk -v seed=$((seed * 1000 + i)) -v seconds="$seconds" '
                BEGIN { srand(seed)
                        printf "%.3f", (0.4 + 0.4 * rand()) * seconds }')
            job "$mode" "$size" "$delay"
        done
        lost=$((repeated - twice))
        printf '%-8s %-13s %8d %10d %10d %10d %10d %14d %14d\n' "$size" "$mode" \
            "$switches" "$puts" "$repeated" "$lost" "$twice" $((repeated * size)) \
            $((lost * size))
    done
done
