#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Fabrics whose packets take time, measured by Debian's own programs (ibverbs-utils,
# perftest), unmodified: latency, rate, links that two pairs share, and the use of the
# CPU meanwhile.
#
# Nothing comes early, so no time that a program measures may be shorter than the ideal one,
# and no rate higher. How much longer it is depends on the machine. That a packet is not due
# too late is seen in the order of the emulator's steps (ft_order.c), and a rate in
# the trace, in runs in which the emulator says that it was in time.

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
    $urgent timeout 300 "$emu" exec -n "$fabric" 1 -- "$@" -p "$tcp" \
        >"$name.server.log" 2>&1 &
    server=$!
    # It listens on TCP some time after its start: try until it answers
    for tries in {1..600}; do
        status=0
        $urgent timeout 300 "$emu" exec -n "$fabric" "$host" -- "$@" -p "$tcp" \
            localhost >"$name.log" 2>&1 || status=$?
        grep -qiE "couldn't connect|unable to connect" "$name.log" || break
        kill -0 "$server" 2>/dev/null || break
        pause 0.1
    done
    wait "$server" || fail "the server: $(tail -n 3 "$name.server.log")"
    [ $status -eq 0 ] || fail "the client: $(tail -n 3 "$name.log")"
}

# at_least VALUE IDEAL WHAT: fails if it is less. Programs measure by another clock, which may
# be adjusted meanwhile, by 0.05 %
at_least() {
    echo "# $3: $1, $2 at least"
    awk -v v="$1" -v i="$2" 'BEGIN { exit !(v >= i * 0.999) }' ||
        fail "$3: $1 is less than $2"
}

# at_most VALUE LIMIT WHAT
at_most() {
    echo "# $3: $1, $2 at most"
    awk -v v="$1" -v i="$2" 'BEGIN { exit !(v <= i) }' ||
        fail "$3: $1 is more than $2"
}

# is_due SIZE NANOSECONDS COUNT: a message of SIZE bytes is executed after at most
# this time, COUNT times. Nothing is too old to arrive, or is sent again
is_due() {
    local target
    gcc -O1 -Wall -Wextra -Werror -o ft_order "$top/test/e2e/emulator/ft_order.c" -libverbs
    rm -f order.* stdin
    mkfifo stdin
    timeout 600 "$emu" exec -n "$fabric" 1 -- ./ft_order target order <stdin \
        >target.log 2>&1 &
    target=$!
    exec 9>stdin
    timeout 600 "$emu" exec -n "$fabric" 0 -- ./ft_order sender order "$@" >sender.log 2>&1 ||
        fail "$(tail -n 3 sender.log target.log)"
    exec 9>&-
    wait $target || fail "$(tail -n 3 target.log)"
    # The last packet of each message, and the write that follows it
    "$emu" trace -n "$fabric" --json >order.json
    grep -E '"op": ?"write"' order.json | grep -vE '"partial": ?true' |
        grep -oE '"host": ?[01]' | grep -o '[01]$' | paste -sd '' >order.seen
    [ "$(cat order.seen)" = "$(printf '10%.0s' $(seq "$3"))" ] ||
        fail "a message of $1 bytes is not due after $2 ns: executed on hosts $(cat order.seen)"
}

# median: of the numbers in standard input
median() {
    sort -g | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

# slow_up LATENCY: a fabric in which links have 1000 times this latency, and timers are 1000 times
# as long: the programs' queue pairs don't give up when the keeper gets no CPU for a second
slow_up() {
    fabric_up --links 1 --time-scale 0.001 --latency "$1" --subnet-timeout 31 --trace 65536
}

# latency MICROSECONDS COUNT: of a link, seen by ping-pongs of COUNT messages. One way takes two
# links, and a round trip four. One way takes at most 10 % longer than that
latency() {
    slow_up "${1}ns"
    is_due 64 $(($1 * 2200)) 10
    pair pingpong 0 $((port + 1)) ibv_rc_pingpong -e -s 64 -n "$2"
    at_least "$(sed -n 's/.*seconds = \([0-9.]*\) usec.*/\1/p' pingpong.log)" \
        $(($1 * 4)) "round trip, in us"
}

# mbps NAME: what perftest says it had, of payload (it counts in units of 2^20 bytes)
mbps() {
    awk '$1 == 65536 { print $4 * 8 * 1.048576 }' "$1.log"
}

# cpu_ms PID: CPU time that a process has used
cpu_ms() {
    awk -v hz="$(getconf CLK_TCK)" \
        '{ sub(/.*\) /, ""); printf "%d", ($12 + $13) * 1000 / hz }' "/proc/$1/stat"
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

test_latency_1ms() {
    latency 500 100
}

test_latency_20ms() {
    latency 10000 50
}

# 60000 bytes of payload, in 15 packets with headers, wait in the port's queue when the doorbell
# returns. At 20 Mbps they take 24.252 ms
test_time_of_a_message() {
    fabric_up --links 1 --rate 20Mbps --subnet-timeout 31 --trace 65536
    is_due 60000 $((24252000 * 105 / 100)) 5
}

# executed OP: prints host and time, in us, of each of its messages in the trace
executed() {
    "$emu" trace -n "$fabric" --json | grep -E "\"op\": ?\"$1\"" |
        grep -vE '"partial": ?true' |
        sed -E 's/.*"time_ns": ?([0-9]+).*"src_host": ?([0-9]+).*/\2 \1/' |
        awk '{ printf "%d %.3f\n", $1, $2 / 1000 }'
}

# late: by how many us packets were late at most
late() {
    "$emu" status -n "$fabric" |
        sed -n 's/.*packets were late by \([0-9.]*\) ms.*/\1/p' | awk '{ print $1 * 1000 }'
}

# in_time AHEAD WHAT: judges the times in ./times, of messages of 65536 bytes at 400 Mbps,
# which are 397 of payload: each takes 1319 us, but for AHEAD of them, which wait for their
# answers. None is early; the last one may be in time when the first one was late. Fails if
# they are slower, unless the emulator was late by so much that a port's queue, of 5 ms, may have
# run dry: its status is 1 then. SENDERS (1) take turns
in_time() {
    local pace late senders=${3:-1}
    late=$(late)
    at_least "$(awk -v late="$late" 'NR == 1 { first = $2 }
                                     END { printf "%.0f", $2 - first + late }' times)" \
        "$(awk -v ahead="$1" 'END { print (NR - 1 - ahead) * 1319 }' times)" "$2, us"
    pace=$(awk -v n="$senders" 'NR > n { printf "%.3f\n", ($2 - at[NR - n]) / n } { at[NR] = $2 }' \
               times | median)
    if awk -v pace="$pace" -v late="$late" \
        'BEGIN { exit !(pace > 1385 && late > 2000) }'; then
        echo "# $2: $pace us for a message, but the emulator was late by $late us"
        return 1
    fi
    at_most "$pace" 1385 "$2, us for a message"
}

# rate PROGRAM OP [AHEAD]: all messages are posted at once. The program measures
# by the frequency that it takes the CPU to have
rate() {
    local tries
    for tries in 1 2 3 4 5; do
        fabric_up --links 1 --rate 400Mbps --subnet-timeout 31 --trace 65536
        pair "$1" 0 $((++port)) "$1" -s 65536 -n 800 -t 800 -u 25
        at_most "$(mbps "$1")" 415 "$1, Mbps"
        executed "$2" >times
        [ "$(wc -l <times)" -eq 800 ] || fail "$1: $(wc -l <times) messages were executed"
        if in_time "${3:-0}" "$1"; then
            return 0
        fi
    done
    echo "# the machine is too slow to tell the rate of $1"
}

test_rate_of_writes() { rate ib_write_bw write; }
test_rate_of_reads() { rate ib_read_bw read 16; }
test_rate_of_sends() { rate ib_send_bw send; }

# Hosts 0 and 2 send to host 1, slowly until both have begun. Each gets a half then
test_two_share_a_link() {
    local other one tries
    fabric_up --hosts 3 --links 1 --rate 4Mbps --subnet-timeout 31 --trace 65536
    pair other 2 $((port + 1)) ib_write_bw -s 65536 -n 600 -t 600 -u 25 &
    other=$!
    pair one 0 $((port + 2)) ib_write_bw -s 65536 -n 600 -t 600 -u 25 &
    one=$!
    for ((tries = 0; tries < 600; ++tries)); do
        [ "$(executed write | cut -d' ' -f1 | sort -u | wc -l)" -lt 2 ] || break
        pause 0.1
    done
    link 0:0 rate 400Mbps
    link 2:0 rate 400Mbps
    link 1:0 rate 400Mbps
    wait $one || fail "one pair has failed"
    wait $other || fail "the other pair has failed"
    executed write >all
    # While both send: from the first one of the second one to the end of the first one
    awk '{ host[NR] = $1; ++count[$1] }
         END {
             for (i = 1; i <= NR && !(seen[0] && seen[2]); ++i) seen[host[i]] = 1
             for (; i <= NR && done[0] < 600 && done[2] < 600; ++i) {
                 if (i > 1) { print host[i] }
                 for (j = from + 1; j <= i; ++j) ++done[host[j]]
                 from = i
             }
         }' all | sort | uniq -c >shares
    sed 's/^/# messages and host: /' shares
    check awk '{ n[$2] = $1 } END { exit !(n[0] + n[2] > 600 && n[0] < n[2] * 1.1 &&
                                           n[2] < n[0] * 1.1) }' shares
    # At most what the link carries
    tail -n 600 all >times
    in_time 0 "both" 2 || echo "# the machine is too slow to tell the rate of both"
    [ "$(fabric_sum retransmitted_packets)" -eq 0 ] || fail "packets were lost"
}

# await_executed COUNT: waits until so many messages of a ping-pong were executed
await_executed() {
    local tries
    for ((tries = 0; tries < 1200; ++tries)); do
        [ "$(executed send | wc -l)" -lt "$1" ] || return 0
        pause 0.05
    done
    fail "$1 messages were not executed"
}

# Neither the programs nor the keeper spin: while they handle three messages, which takes two
# seconds at least, each of them uses the CPU for a small part of that. The first message takes
# pages and descriptors
test_cpu_sleeps() {
    local pid pids ping before=()
    slow_up 500us
    pair pingpong 0 $((port + 1)) ibv_rc_pingpong -e -s 64 -n 300 >/dev/null 2>&1 &
    ping=$!
    await_executed 1
    pids="$(keeper) $(program_of $ping)"
    [ "$(wc -w <<<"$pids")" -eq 3 ] || fail "the keeper and two programs are $pids"
    for pid in $pids; do
        before[pid]=$(cpu_ms "$pid")
    done
    await_executed $(($(executed send | wc -l) + 3))
    for pid in $pids; do
        echo "# $(cat "/proc/$pid/comm"): $(($(cpu_ms "$pid") - before[pid])) ms"
        [ $(($(cpu_ms "$pid") - before[pid])) -lt 700 ] || fail "it spins"
    done
    # shellcheck disable=SC2046 # words
    kill $(program_of $ping)
    ! wait $ping || fail "the ping-pong has ended by itself"
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
    for ((i = 0; i < 1200; ++i)); do
        [ -n "$(keeper)" ] || return 0
        pause 0.05
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
}

run_tests
