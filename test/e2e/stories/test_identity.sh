#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Which link of a host belongs to which of another: ports that are down when a program
# starts keep their places, and become links when they come up. A client on host 1 sends
# to a server on host 0; the NIC's own timers detect nothing, except in one test.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

nic_gives_up 4s 7
export UCX_LOG_LEVEL=debug
export UCX_RC_VARUNA_HOLD_MIN=2ms UCX_RC_VARUNA_HOLD_MAX=10ms
# Nothing else than the other link's failure moves the traffic
export UCX_RC_VARUNA_RETURN_DELAY=inf

# start_on LINK: starts both programs, and waits until traffic is on RC on this link
start_on() {
    servers 0 s0
    client 1 1 s0
    await 60 client.log "planned swap from dc on mlx5_$1:1 to rc on mlx5_$1:1"
}

# moves_to LINK: cuts the other link at host 0 and checks that traffic moves to this one,
# as late ports have become links
moves_to() {
    link 0:$((1 - $1)) down
    await 60 client.log "switched .*from=mlx5_$((1 - $1)):1 .*to=mlx5_$1:1"
    await_more
    await 60 client.log "planned swap from dc on mlx5_$1:1 to rc on mlx5_$1:1"
    await_more
}

all_is_well() {
    all_good
    ! grep -E ' (ERROR|WARN) ' client.log s0.log | grep -v 'only one link' ||
        fail "complaints"
}

# late HOST...: the first link is down at these hosts when the programs start
late() {
    local host
    fabric_up ${quirk:+--quirk "$quirk"}
    for host in "$@"; do
        link "$host:0" down
    done
    start_on 1
    no_switch
    for host in "$@"; do
        link "$host:0" up
    done
    for host in "$@"; do
        await 60 "$([ "$host" = 0 ] && echo s0.log || echo client.log)" \
            'link mlx5_0:1 is up again'
    done
    moves_to 0
    all_is_well
}

# A port that raises no events is looked at
test_late_ports_without_events() { UCX_RC_VARUNA_PORT_EVENTS=n late 0 1; }
# ... and the NIC gives up what it sends over the link that fails; nothing else detects that
# before HANG_TIMEOUT
test_late_ports_without_events_or_heartbeat() {
    nic_gives_up 100ms 3
    UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_PORT_EVENTS=n late 0 1
}

test_port_of_the_server_is_late() { late 0; }
test_port_of_the_client_is_late() { late 1; }
test_both_ports_are_late() { late 0 1; }
test_late_ports_of_ethernet() { quirk=roce late 0 1; }
test_late_ports_of_planes_with_the_same_prefix() { quirk=same-gid late 0 1; }

# complain_once PATTERN LOG...: there is one warning in each log
complain_once() {
    local log
    for log in "${@:2}"; do
        check test "$(grep -c ' WARN ' "$log")" -eq 1
        check grep -qE "WARN .*$1" "$log"
    done
}

# Host 1's cables are in the wrong switches. Traffic flows nevertheless
test_wrong_cabling_is_reported() {
    fabric_up --quirk 1=miswired
    servers 0 s0
    client 1 1 s0
    link 0:1 down
    await 60 client.log 'switched .*from=mlx5_0:1 .*to=mlx5_1:1'
    await_more
    all_good
    check grep -qE 'WARN .*wrong cabling\? mlx5_0:1 reaches mlx5_1:1 of peer .*, and not mlx5_0:1' \
        client.log
    check grep -qE 'WARN .*wrong cabling\? mlx5_1:1 reaches mlx5_0:1 of peer .*, and not mlx5_1:1' \
        client.log
}

# ... and the user knows
test_wrong_cabling_is_configured() {
    fabric_up --quirk 1=miswired
    servers 0 s0
    UCX_RC_VARUNA_LINKS=mlx5_1,mlx5_0 client 1 1 s0
    all_is_well
}

# Each side says it once for each link
test_path_mtus_differ() {
    fabric_up
    servers 0 s0
    UCX_IB_PATH_MTU=1024 client 1 1 s0
    await 60 client.log 'WARN .*paths from mlx5_[01]:1 have an MTU of 1024 bytes, and 4096 at mlx5_[01]:1' 2
    await 60 s0.log 'WARN .*paths from mlx5_[01]:1 have an MTU of 4096 bytes, and 1024 at mlx5_[01]:1' 2
    await_more
    all_good
    check test "$(cat client.log s0.log | grep -c ' WARN ')" -eq 4
}

# A port that is named and does not exist is one warning, and the others work
test_missing_link() {
    fabric_up
    export UCX_RC_VARUNA_LINKS=mlx5_7,mlx5_0,mlx5_1
    servers 0 s0
    client 1 1 s0
    link 0:0 down
    await 60 client.log 'switched .*from=mlx5_0:1 .*to=mlx5_1:1'
    await_more
    all_good
    complain_once "no port 'mlx5_7'" client.log s0.log
}

run_tests 2
