#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Fabrics whose packets take time, measured by Debian's own programs (ibverbs-utils,
# perftest), unmodified: latency, rate, links that two pairs share, and the use of the
# CPU meanwhile.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

next_port

# Programs that sleep between packets get a CPU at once when one arrives. Not those that
# poll, which would block other programs.
hurry=
! chrt -r 1 true 2>/dev/null || hurry="chrt -r 1"

# pair NAME HOST PORT PROGRAM ARGUMENT...: a server on host 1, its client on HOST, whose
# output is in NAME.log
pair() {
    local name=$1 host=$2 tcp=$3 urgent= server tries status=0
    shift 3
    command -v "$1" >/dev/null || fail "$1 is not installed"
    [[ " $* " != *" -e "* ]] || urgent=$hurry
    $urgent timeout 60 "$emu" exec -n "$fabric" 1 -- "$@" -p "$tcp" \
        >"$name.server.log" 2>&1 &
    server=$!
    # It listens on TCP some time after its start: try until it answers
    for tries in {1..100}; do
        status=0
        $urgent timeout 60 "$emu" exec -n "$fabric" "$host" -- "$@" -p "$tcp" \
            localhost >"$name.log" 2>&1 || status=$?
        grep -qiE "couldn't connect|unable to connect" "$name.log" || break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    wait "$server" || fail "the server: $(tail -n 3 "$name.server.log")"
    [ $status -eq 0 ] || fail "the client: $(tail -n 3 "$name.log")"
}

# is_near VALUE IDEAL PERCENT WHAT
is_near() {
    echo "# $4: $1, ideally $2"
    awk -v v="$1" -v i="$2" -v p="$3" \
        'BEGIN { exit !(v >= i * (1 - p / 100) && v <= i * (1 + p / 100)) }' ||
        fail "$4: $1, not $2 within $3 %"
}

# median: of the numbers in standard input
median() {
    sort -g | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

# round_trip LINK_LATENCY: median of microseconds in 5 runs of a ping-pong
round_trip() {
    local i
    fabric_up --links 1 --latency "$1"
    for i in 1 2 3 4 5; do
        pair pingpong 0 $((port + i)) ibv_rc_pingpong -e -s 64 -n 50
        sed -n 's/.*seconds = \([0-9.]*\) usec.*/\1/p' pingpong.log
    done | median >round_trip.us
    fabric_down
}

# mbps NAME: what perftest says it had, of payload (it counts in units of 2^20 bytes)
mbps() {
    awk '$1 == 65536 { print $4 * 8 * 1.048576 }' "$1.log"
}

# cpu_ms PID: CPU time that a process has used
cpu_ms() {
    awk -v hz="$(getconf CLK_TCK)" \
        '{ sub(/.*\) /, ""); print ($12 + $13) * 1000 / hz }' "/proc/$1/stat"
}

# keeper: its process
keeper() {
    local dir
    for dir in /proc/[0-9]*; do
        if [ "$(cat "$dir/comm" 2>/dev/null)" = mlx5emu-keeper ] &&
            grep -qsF "/mlx5emu.$fabric" "$dir/maps"; then
            echo "${dir#/proc/}"
        fi
    done
}

# One way takes two links, and a round trip four
test_latency_1ms() {
    round_trip 500us
    is_near "$(cat round_trip.us)" 2000 10 "round trip, in us"
}

test_latency_20ms() {
    round_trip 10ms
    is_near "$(cat round_trip.us)" 40000 10 "round trip, in us"
}

# 400 Mbps with headers are 396 of payload
test_rate() {
    local program
    fabric_up --links 1 --rate 400Mbps
    for program in ib_write_bw ib_read_bw ib_send_bw; do
        pair "$program" 0 $((++port)) "$program" -s 65536 -n 800
        is_near "$(mbps "$program")" 396 5 "$program, Mbps"
    done
    fabric_down
}

# Hosts 0 and 2 send to host 1
test_two_share_a_link() {
    local other
    fabric_up --hosts 3 --links 1 --rate 400Mbps
    pair other 2 $((port + 1)) ib_write_bw -s 65536 -n 600 &
    other=$!
    pair one 0 $((port + 2)) ib_write_bw -s 65536 -n 600
    wait $other || fail "the other pair has failed"
    is_near "$(awk -v a="$(mbps one)" -v b="$(mbps other)" 'BEGIN { print a + b }')" \
        396 25 "sum of two that ran mostly at once, Mbps"
    # The first one starts alone, but none gets much more than a half
    check awk -v a="$(mbps one)" -v b="$(mbps other)" \
        'BEGIN { exit !(a < 280 && b < 280) }'
    [ "$(fabric_sum retransmitted_packets)" -eq 0 ] || fail "packets were lost"
    fabric_down
}

# Neither the programs nor the keeper spin: a ping-pong of 2 s
test_cpu_sleeps() {
    local pid before after
    fabric_up --links 1 --latency 5ms
    pid=$(keeper)
    [ -n "$pid" ] || fail "there is no keeper"
    # Its first packets take pages and descriptors
    pair pingpong 0 $((port + 1)) ibv_rc_pingpong -e -s 64 -n 5
    before=$(cpu_ms "$pid")
    TIMEFORMAT='%U %S'
    { time pair pingpong 0 "$port" ibv_rc_pingpong -e -s 64 -n 100; } 2>time.log
    after=$(cpu_ms "$pid")
    awk '{ print "# programs: " ($1 + $2) * 1000 " ms" }' time.log
    echo "# keeper: $((${after%.*} - ${before%.*})) ms"
    check awk '{ exit !($1 + $2 < 1) }' time.log
    # One that spins uses all of the 2000 ms. One that sleeps needs some time for each
    # packet, and more on a busy machine, whose caches are cold then
    [ $((${after%.*} - ${before%.*})) -lt 700 ] || fail "the keeper spins"
    fabric_down
}

# Nothing of it is left
test_no_time_without() {
    local i
    fabric_up --links 1
    [ -z "$(keeper)" ] || fail "there is a keeper"
    check "$emu" link -n "$fabric" 0:0 rate 1Gbps
    [ -n "$(keeper)" ] || fail "there is no keeper"
    fabric_down
    # It ends by itself when the fabric is gone
    for ((i = 0; i < 200; ++i)); do
        [ -n "$(keeper)" ] || return 0
        sleep 0.05
    done
    fail "there is still a keeper"
}

test_wrong_values() {
    local words
    fabric_up --links 1
    for words in "rate 5" "rate 0Mbps" "latency 5" "latency 11s" "queue 0" "speed 1"; do
        ! "$emu" link -n "$fabric" 0:0 $words >/dev/null 2>wrong.log ||
            fail "link 0:0 $words is taken"
        check grep -q "mlx5emu link" wrong.log
    done
    ! "$emu" up -n "$fabric-2" --rate fast 2>wrong.log || fail "a rate is fast"
    check grep -q "such as 400Mbps" wrong.log
    fabric_down
}

run_tests
