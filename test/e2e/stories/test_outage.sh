#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# What a user is told, at the default log level, of peers without a link and of endpoints that
# fail: which ports are up on either side, that none of them meet, and whose fault that is.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

export UCX_LOG_LEVEL=warn UCX_RC_VARUNA_GIVE_UP=5s

# status NAME: prints what rc_varuna_ctl says of this process
status() {
    "$RCV_PREFIX/bin/rc_varuna_ctl" "$(process "$1")" status
}

# shows NAME PATTERN [COUNT]: so many lines of that match (1)
shows() {
    [ "$(status "$1" | grep -cE -e "$2")" -eq "${3:-1}" ]
}

# warned NAME PATTERN: prints its lines about peers without a link, or endpoints that fail
warned() {
    grep -aE "WARN .*rc_varuna: ($2)" "$1.log"
}

# num_failed NAME PATTERN: prints how many endpoints fail, in lines that match
num_failed() {
    warned "$1" "[0-9]+ endpoints? to peer .*$2" |
        sed -E 's/.*rc_varuna: ([0-9]+) endpoint.*/\1/' | awk '{ sum += $1 } END { print sum + 0 }'
}

# have_failed NAME COUNT
have_failed() {
    [ "$(num_failed "$1" '')" -eq "$2" ]
}

# Both hosts have one port left, of which the other one is down. Three peers are one line
test_ports_do_not_meet() {
    local ways='up here: mlx5_1:1; up there, at the ends of: mlx5_0:1; at both ends: none;'
    ways+=' mlx5_0:1: local fault: our port is down;'
    ways+=' mlx5_1:1: remote fault: the peer says that its port is down'
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    fabric_up
    servers 1 s0 s1 s2
    client 0 2 s0 s1 s2
    shows client 'peers=3 no fault is known' || fail "$(status client)"
    link 1:1 down
    await_true shows client 'peer=0x[0-9a-f]* up here: mlx5_0:1, mlx5_1:1; .*mlx5_1:1: remote' 3
    link 0:0 down
    await 60 client.log 'rc_varuna: no link to peer'
    shows client "iface=0 peer=0x[0-9a-f]* $ways" 3 || fail "$(status client)"
    comes have_failed client 6 || fail "$(warned client .)"

    [ "$(warned client 'no link to' | wc -l)" -eq 1 ] || fail "$(warned client .)"
    [ -n "$(warned client "no link to peer 0x[0-9a-f]+ and 2 more for [0-9.]+ s: $ways")" ] ||
        fail "$(warned client .)"
    [ "$(num_failed client "after [0-9.]+ s without an answer: $ways")" -eq 6 ] &&
        [ "$(warned client '[0-9]+ endpoint' | wc -l)" -le 3 ] || fail "$(warned client .)"
    ! grep -E 'dead|stopped' client.log || fail "it says that a peer is dead"
    fabric_down --force # Ends the jobs
}

# The NIC gives up after minutes, and no hang is looked for: GIVE_UP alone ends it, and counts
# from the first operation without an answer
test_all_links_are_silent() {
    export UCX_RC_VARUNA_HANG_TIMEOUT=10m
    nic_gives_up 60s 7
    fabric_up
    servers 1 s0
    client 0 2 s0
    link 0:0 silent
    link 0:1 silent
    comes have_failed client 2 || fail "$(warned client .)"
    warned client 'no link to peer .* at both ends: mlx5_0:1, mlx5_1:1; the peer answers on no link' |
        grep -q . || fail "$(warned client .)"
    fabric_down --force # Ends the jobs
}

run_tests 2
