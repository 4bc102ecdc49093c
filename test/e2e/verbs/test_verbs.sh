#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# NICs without direct verbs: the lane set "verbs" of rc_verbs, without DC, and with control
# messages as datagrams. Links fail at exact packets (lib/ft_failover.sh).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_failover.sh"

export RC_VARUNA_QUIRK=no-mlx5dv
sweep=1
action=silent=1:0

# devices [NAME=VALUE...]: prints the devices of rc_varuna on host 0
devices() {
    env "$@" "$emu" exec -n "$fabric" 0 -- "$run" ucx_info -d 2>info.err |
        sed -n '/Transport: rc_varuna/,/Device:/s/.*Device: //p' | tr '\n' ' '
}

test_sets() {
    fabric_up
    [ "$(devices)" = "varuna_verbs_0:1 varuna_verbs_1:1 " ] || fail "$(devices)"
    [ "$(devices UCX_RC_VARUNA_LANES=verbs)" = "$(devices)" ] || fail "verbs"
    [ -z "$(devices UCX_RC_VARUNA_LANES=mlx5)" ] || fail "mlx5 without mlx5dv"
    UCX_RC_VARUNA_ATOMIC_MODE=extended "$emu" exec -n "$fabric" 0 -- "$run" ucx_info -d \
        >info 2>&1
    check grep -q "verbs_0:1 has no DC, which atomics of mode 'extended' need" info

    RC_VARUNA_QUIRK='' fabric_up
    [ "$(devices UCX_RC_VARUNA_LANES=verbs)" = "varuna_mlx5_0:1 varuna_mlx5_1:1 " ] ||
        fail "rc_verbs on mlx5"

    # Each device's interface has the links of its own set
    RC_VARUNA_QUIRK='0:1=no-mlx5dv' fabric_up
    [ "$(devices)" = "varuna_mlx5_0:1 varuna_verbs_1:1 " ] || fail "$(devices)"
}

# The transport that programs see: atomics of 64 bits alone are native
test_attributes() {
    fabric_up
    UCX_RC_VARUNA_ATOMIC_MODE=native "$emu" exec -n "$fabric" 0 -- "$run" ucx_info -d \
        -t rc_varuna >info
    check grep -q 'atomic_fadd: 64 bit' info
    check grep -q 'atomic_cswap: 64 bit' info
    check grep -q 'connection: to iface' info
    check grep -q 'error handling: peer failure' info
    ! grep -q '32 bit' info || fail "atomics of 32 bits"
    ! grep -q 'atomic_and' info || fail "atomics that verbs don't have"
}

test_silent_before_the_message_arrives() {
    each packet host=1 link=0 op=write
}

test_silent_after_execution() {
    sweep=2
    each ack link=0 op=write
}

test_responder_down_after_execution() {
    action=down=0:0
    each ack link=0 op=write
}

test_message_is_lost() {
    first=301
    each packet host=1 link=0 op=send
}

test_read_is_lost() {
    first=101
    each packet host=1 link=0 op=read
}

# The first writes of endpoints; those before them prove that a connection works
test_first_write() {
    first=5
    sweep=3
    each packet host=1 link=0 type=rc op=write
}

test_comparison() {
    export RC_VARUNA_QUIRK=no-mlx5dv,psn-lost
    while ((equal == 0 && first < 613)); do
        each ack link=0 op=write
        first=$((first + 1))
    done
    [ "$equal" -gt 0 ] || fail "no put was found to be executed"
}

# A device that tells the PSN with which the queue pair was connected
test_psn_is_stale() {
    export RC_VARUNA_QUIRK=no-mlx5dv,psn-stale
    each ack link=0 op=write
}

test_writes_are_late() {
    export RC_VARUNA_QUIRK=no-mlx5dv,late-write
    each ack link=0 op=write
}

# Writes that are not in memory until a message, a read or a reset of their own queue pair:
# the last message of each endpoint proves to the server that its puts are there, ...
test_writes_wait_for_a_message() {
    export RC_VARUNA_QUIRK=no-mlx5dv,late-write:60s:1
    each ack link=0 op=write
}

# ... also if it is lost with its link, and comes on another one. (It has 41 bytes.)
test_writes_wait_for_a_message_on_another_link() {
    export RC_VARUNA_QUIRK=no-mlx5dv,late-write:60s:1
    first=1
    each packet host=1 link=0 type=rc op=send size=41
}

# On Ethernet, with the MTU that is usual there: long control messages are cut
test_roce() {
    export RC_VARUNA_QUIRK=no-mlx5dv,roce
    fabric_options='--mtu 1024'
    each ack link=0 op=write
}

# The smallest MTU
test_fragments() {
    fabric_options='--mtu 256'
    each ack link=0 op=write
}

# Every fourth datagram is lost: requests are repeated
test_control_messages_are_lost() {
    second='packet type=ud prob=0.25 seed=1 count=all drop'
    each ack link=0 op=write
}

# Each datagram comes once more, some of them much later
test_control_messages_come_twice() {
    second='packet type=ud prob=0.5 seed=1 count=all dup=20ms'
    each ack link=0 op=write
}

# Datagrams of the opening and of the first connections come once more after the failure,
# when hundreds of writes have used the next lane: as late as after 30 s, they are of
# another time
test_control_messages_are_late() {
    second='packet type=ud prob=0.5 seed=1 count=40 dup=until:later'
    third='exec host=1 link=1 type=rc op=write nth=300 name=later count'
    each ack link=0 op=write
}

# The lane that takes over is connected while the evidence is under way: answers to fences,
# the largest messages of the bus, are lost until there is a connection
test_one_round_trip() {
    local watcher
    export UCX_LOG_LEVEL=debug
    second='packet host=0 type=ud op=send size=500- count=all drop'
    : >server.log
    (
        await "$limit" server.log 'connected epoch=[2-9][0-9]* on verbs_1:1'
        await_faults
        check "$emu" fault clear -n "$fabric"
    ) &
    watcher=$!
    each ack link=0 op=write
    wait $watcher || fail "no lane was connected before the answer to the fence"
}

# With a connection in reserve, a link fails while nothing can be connected. (A CONNECT_REQ
# has 127 bytes.)
test_standby() {
    local server client connect='packet host=1 type=ud op=send size=127 count=all'
    export UCX_RC_VARUNA_STANDBY=y UCX_LOG_LEVEL=debug
    fabric_up
    fault "$connect count"
    timeout $((limit * 10)) "$emu" exec -n "$fabric" 0 -- stdbuf -oL "$run" "$program" server \
        -p 0 -P "$PWD/port" -g 60 >server.log 2>&1 &
    server=$!
    await 60 port .
    timeout $((limit * 10)) "$emu" exec -n "$fabric" 1 -- stdbuf -oL "$run" "$program" client \
        127.0.0.1 -p "$(cat port)" -w 1 -g 60 -t 500 -r 500 >client.log 2>&1 &
    client=$!
    await 60 server.log 'connected epoch=[2-9][0-9]* on verbs_1:1'
    faults_fired
    fault "$connect drop"
    link 1:0 silent
    await 60 client.log 'switched .*from=verbs_0:1 .*to=verbs_1:1'
    check "$emu" fault clear -n "$fabric"
    kill -INT "$(program_of $client)"
    wait $client || fail "client: $(tail -n 3 client.log)"
    wait $server || fail "server: $(tail -n 3 server.log)"
}

# judge_no_route ARGUMENT...: the judge of a job in which there was no route
judge_no_route() {
    check "$emu" quirk -n "$fabric" list >quirks
    grep -q 'quirk .*no-route.*acted [1-9]' quirks || fail "there was a route: $(cat quirks)"
    "$RCV_BUILD/src/tools/demo/demo_trace_check" "$@"
}

# A port that is down refuses what it is to send, as soft-RoCE does: not an error of the
# program's
test_no_route() {
    judge=judge_no_route
    action=down=1:0
    export RC_VARUNA_QUIRK=no-mlx5dv,no-route
    each packet host=1 link=0 type=rc op=write
}

# ... and the datagrams of the bus: its queue pair works again when the port does, so that
# traffic returns
test_no_route_for_the_bus() {
    local server client
    export RC_VARUNA_QUIRK=no-mlx5dv,no-route
    fabric_up
    timeout $((limit * 10)) "$emu" exec -n "$fabric" 0 -- stdbuf -oL "$run" "$program" server \
        -p 0 -P "$PWD/port" -g 60 >server.log 2>&1 &
    server=$!
    await 60 port .
    UCX_LOG_LEVEL=debug timeout $((limit * 10)) "$emu" exec -n "$fabric" 1 -- stdbuf -oL "$run" \
        "$program" client 127.0.0.1 -p "$(cat port)" -w 1 -g 60 -t 500 -r 500 >client.log 2>&1 &
    client=$!
    await 60 client.log 'puts +[1-9]'
    link 1:0 down
    await 60 client.log 'switched .*from=verbs_0:1 .*to=verbs_1:1'
    await 60 client.log 'a control message was not sent: local QP operation error'
    link 1:0 up
    await 60 client.log 'planned swap from .* to rc on verbs_0:1'
    check grep -q 'of a control interface was started again' client.log
    kill -INT "$(program_of $client)"
    wait $client || fail "client: $(tail -n 3 client.log)"
    wait $server || fail "server: $(tail -n 3 server.log)"
}

# Hosts with two NICs of each kind use each with its own lanes
test_both_kinds() {
    local quirk
    export RC_VARUNA_QUIRK=''
    links=4
    sweep=1
    fabric_options=
    for quirk in 0:2 0:3 1:2 1:3; do
        fabric_options+=" --quirk $quirk=no-mlx5dv"
    done
    UCX_NET_DEVICES=varuna_mlx5_0:1 each ack host=1 link=0 op=write
    check grep -q 'switched .*from=mlx5_0:1 .*to=mlx5_1:1' client.log
    action=silent=1:2
    UCX_NET_DEVICES=varuna_verbs_2:1 each ack host=1 link=2 op=write
    check grep -q 'switched .*from=verbs_2:1 .*to=verbs_3:1' client.log
}

judge_nothing() {
    cat >/dev/null
}

# After a fence, rc_verbs writes by mlx5's key for atomics, at other addresses, which the
# judge of the trace does not know
test_mlx5_with_verbs_lanes() {
    judge=judge_nothing
    export RC_VARUNA_QUIRK='' UCX_RC_VARUNA_LANES=verbs
    each ack link=0 op=write
}

run_tests 2
