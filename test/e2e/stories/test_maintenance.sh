#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# An operator retires a link and restores it, while both hosts put, get, send and add
# (ft_maintain.c). Traffic of both directions moves as planned: nothing is repeated.
#
# RC_VARUNA_LONG=1: 1,000 cycles instead of 30.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

ucx_defaults
export UCX_LOG_LEVEL=info UCX_RC_VARUNA_CTL_DIR=none
# A slow machine must not look like a silent link
export UCX_RC_VARUNA_HEARTBEAT_MISSES=50
nic_gives_up 4s 7
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s

eps=4
cycles=30
[ -z "${RC_VARUNA_LONG:-}" ] || cycles=1000

# process HOST NAME CYCLES: starts one of the two; its standard input is open as ${in[HOST]}
declare -A in pid_of
process() {
    local fd
    mkfifo "$2.in"
    : >"$2.log"
    (
        for fd in "${in[@]}"; do
            exec {fd}>&-
        done
        exec timeout 1000 "$emu" exec -n "$fabric" "$1" -- "$run" "$apps/ft_maintain" $eps \
            "$3" <"$2.in" >"$2.log" 2>&1
    ) &
    pid_of[$2]=$!
    exec {fd}>"$2.in"
    in[$2]=$fd
    await 60 "$2.log" '^ft: address'
}

# pair CYCLES: starts both, of which a marks its link
pair() {
    process 0 a "$1"
    process 1 b 0
    sed -n 's/^ft: address *//p' a.log >&"${in[b]}"
    sed -n 's/^ft: address *//p' b.log >&"${in[a]}"
}

# has_finished NAME: it has, or has ended
has_finished() {
    has_lines "$1.log" '^ft: finished' || ! kill -0 "${pid_of[$1]}" 2>/dev/null
}

pair_ends() {
    local name fd
    for name in a b; do
        safety=900 comes has_finished $name
        check has_lines $name.log '^ft: finished'
    done
    for name in a b; do
        fd=${in[$name]}
        exec {fd}>&-
    done
    for name in a b; do
        wait "${pid_of[$name]}" || fail "$name failed: $(tail -n 5 $name.log)"
    done
    sed -n 's/^ft: cycles/# cycles/p' a.log
}

# counter NAME COUNTER
counter() {
    sed -n "s/^ft: counter $2 //p" "$1.log"
}

# moved NAME TIMES: checks that each endpoint has moved this often, and what that has cost
moved() {
    local name=$1 moves reads messages rebuilds repeated what
    moves=$(counter $name moves)
    rebuilds=$(counter $name rebuilds)
    reads=$(counter $name rebuild_reads)
    # A request whose answer takes long is repeated. That costs two messages more
    repeated=$(grep -oE 'send CONNECT_REQ vqp=[0-9]+ epoch=[0-9]+ ' $name.log | sort |
               uniq -d -c | awk '{ sum += $1 - 1 } END { print sum + 0 }')
    messages=$(counter $name rebuild_messages)
    echo "# $name: $moves moves, $rebuilds connections, $reads reads, $messages messages," \
        "$repeated repeated requests, $(sed -n 's/^ft: operations //p' $name.log) operations"
    [ "$moves" -eq $(($2 * eps)) ] || fail "$name: $moves moves"
    [ "$reads" -eq "$rebuilds" ] || fail "$name: $reads reads for $rebuilds swaps"
    [ "$messages" -ge $((2 * rebuilds)) ] &&
        [ "$messages" -le $((4 * rebuilds + 2 * repeated)) ] ||
        fail "$name: $messages messages for $rebuilds swaps"
    for what in repeated lost ambiguous switches; do
        [ "$(counter $name $what)" -eq 0 ] ||
            fail "$name: $what $(counter $name $what): $(grep switched $name.log | head -n 3)"
    done
}

test_cycles_repeat_nothing() {
    export UCX_LOG_LEVEL=debug # Each request is logged
    fabric_up
    pair $cycles
    echo go >&"${in[a]}"
    pair_ends
    moved a $((2 * cycles))
    moved b $((2 * cycles))
}

ctl() {
    "$RCV_PREFIX/bin/rc_varuna_ctl" -d "$PWD/ctl" "$@"
}

# The link that traffic is leaving is cut: what is still there recovers. b never stops, so
# there are always operations under way
test_cut_while_traffic_leaves() {
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    nic_gives_up 10ms 2
    fabric_up
    pair 8
    await 60 a.log '^ft: loaded'
    # b asks for its first connection on the other link, so all its traffic is still here.
    # A ping is shorter
    fault post host=1 link=1 type=dc op=send size=100- down=0:0
    ctl "$(program_of "${pid_of[b]}")" link mlx5_0:1 down || fail "down"
    await 60 b.log 'link mlx5_0:1 is marked down from outside'
    await_faults
    link 0:0 up
    ctl "$(program_of "${pid_of[b]}")" link mlx5_0:1 up || fail "up"
    echo go >&"${in[a]}"
    pair_ends
    grep -q 'rc_varuna: switched' a.log b.log || fail "nothing was cut"
}

run_tests 2
