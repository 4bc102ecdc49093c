#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The bus of datagrams of NICs without direct verbs, when messages need many datagrams: 64
# endpoints have 64 atomics each, in mode proxy, while the server is stopped. When it goes
# on, all are repeated, in the longest messages that there are. Each is executed once, with
# its own operand, and has its own result.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export RC_VARUNA_QUIRK=no-mlx5dv
# The stopped server is no failed link, be messages as slow as they may
export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=600s
export UCX_RC_VARUNA_GIVE_UP=600s UCX_RC_VARUNA_CTL_TIMEOUT=100ms
nic_gives_up 20s 7
job=ft_atom_job
count=64
rounds=20
waiting=again

# words ADDITIONS: prints what the words must be after so many of each endpoint
words() {
    seq -s ' ' "$1" "$1" $(($1 * count))
}

# num_waits: how often messages of the client have begun to wait for room in its send queue
num_waits() {
    grep -c 'control messages on verbs_0:1 wait for resources' client.log || true
}

has_waited_more() {
    [ "$(num_waits)" -gt "$waits" ]
}

# burst MTU FABRIC-OPTIONS [ENV...]: the burst with paths of this MTU; the variables are for
# the server. It is stopped until the client has sent many full datagrams, and has waited for
# room: "never", "once", or "again" after these
burst() {
    local mtu=$1 options=$2 pid waits
    shift 2
    export UCX_LOG_LEVEL=debug
    # shellcheck disable=SC2086
    fabric_up $options
    jobs_start "$@"
    ask client "gather $count"
    pid=$(program_of "$server_pid")
    kill -STOP "$pid"
    fault packet host=1 type=ud op=send size="$mtu" nth=200 count
    tell client "burst $rounds"
    await_faults
    case $waiting in
    never) waits=-1 ;;
    once) waits=0 ;;
    again) waits=$(num_waits) ;;
    esac
    comes has_waited_more || fail "no message waited for room"
    kill -CONT "$pid"
    await_answer client $(($(answers client) + 1))
    [ "$answer" = 'ft: ok' ] || fail "$answer"
    ask server "many $count"
    [ "$answer" = "ft: ok $(words $((1 + (rounds * 64))))" ] || fail "$answer"
    ! grep 'ibv_post_send.*failed' client.log || fail "a part of a message was posted"
    ! grep -E 'is not as it was sent' client.log server.log || fail "a message was mixed"
}

# The server's path is shorter than what the client's send queue was made for
test_path_of_the_peer_is_shorter() {
    burst 512 '' UCX_RC_VERBS_PATH_MTU=512
}

# ... and both have it: the queue was made for it
test_paths_are_short() {
    waiting=never
    UCX_RC_VERBS_PATH_MTU=512 burst 512 ''
}

test_smallest_mtu() {
    waiting=never
    burst 256 '--mtu 256'
}

# The NIC reads what it sends long after it was posted
test_slow_links() {
    waiting=once
    rounds=2
    burst 512 '--rate 10Mbps' UCX_RC_VERBS_PATH_MTU=512
}

run_tests 2
