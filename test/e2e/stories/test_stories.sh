#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sequences of failures that the sweep and the chaos run would hit only by accident. A
# client (test/e2e/lib/ft_job.c) checks values, completions, messages and the server's
# memory in each run.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export UCX_LOG_LEVEL=debug

# works_once PATTERN PLAN COUNT: one plan; whether COUNT lines of the client's log match
works_once() {
    ask client "run $((++runs)) $2 0"
    has_lines client.log "$1" "$3" || { ask client "idle 0.02" && false; }
}
runs=0

# busy_until PATTERN [PLAN [COUNT]]: the client works until COUNT lines (1) of its log match
busy_until() {
    comes works_once "$1" "${2:-put_short}" "${3:-1}" || fail "\"$1\" did not come"
}

# dozing [ENV...]: the server, with these variables, sleeps on its event descriptor
dozing() {
    local plan
    fabric_up
    jobs_start "$@"
    wait_for_rc
    ask server doze
    for plan in am_short am_bcopy am_zcopy put_zcopy mixed0 am_zcopy; do
        ask client "idle 0.02"
        ask client "run $((++runs)) $plan 0"
    done
    link 1:0 silent
    busy_until 'rc_varuna: switched' am_zcopy
    busy_until 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1' am_zcopy
}

# in_order FILE PATTERN...: checks that lines of the file match the patterns in this
# order
in_order() {
    local file=$1 from=1 found
    shift
    while [ $# -gt 0 ]; do
        found=$(tail -n +$from "$file" | grep -nE -e "$1" |
                sed -n '1s/:.*//p') || true
        [ -n "$found" ] || fail "there is no \"$1\" after line $from of $file"
        from=$((from + found))
        shift
    done
}

# A switch allocates no buffers for the queue pairs of the lane that it goes to. Those of the
# control plane, 8 at a time, depend on how many of its messages are under way
test_switch_allocates_nothing() {
    jobs_on_rc
    fault packet host=1 link=0 op=write nth=5 silent=1:0
    busy_until 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1'
    jobs_stop
    grep -q 'mpool rc_send_desc: allocated chunk' client.log || fail "no pool was seen"
    sed -n '/leaves rc epoch=/,/planned swap from dc on mlx5_1:1/p' client.log >switch.log
    ! grep 'allocated chunk' switch.log | grep -v 'rc_send_desc: .* with 8 elements' ||
        fail "memory is allocated in a switch"
}

# heartbeat_finds_it: the client works for more than a second, in which it goes on to ping the
# link that it has left. On a busy machine that may be too few pings, so the link is cut again
heartbeat_finds_it() {
    local i
    for ((i = 0; i < 60; ++i)); do
        ! works_once 'heartbeat: peer 0x.* is silent on mlx5_0:1' put_short 1 || return 0
    done
    link 1:0 up
    busy_until 'planned swap from .* to rc on mlx5_0:1' put_short $((++cuts))
    link 1:0 silent
    busy_until 'rc_varuna: switched .*from=mlx5_0:1' put_short $cuts
    return 1
}

# The log of a failover at level "debug", after "grep rc_varuna:"
test_log_tells_the_story() {
    local ep='rc_varuna: ep 0x[0-9a-f]+ vqp=0:'
    local cuts=1
    jobs_on_rc
    fault packet host=1 link=0 op=write nth=5 silent=1:0
    busy_until 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1'
    comes heartbeat_finds_it || fail "the heartbeat does not find it"
    faults_fired
    link 1:0 up
    busy_until 'planned swap from .* on mlx5_1:1 to rc on mlx5_0:1'
    jobs_stop
    in_order client.log \
        'interface 0x[0-9a-f]+, links in order of preference: mlx5_0:1 mlx5_1:1' \
        'send OPEN_REQ vqp=0 epoch=1 to peer 0x[0-9a-f]+ on mlx5_0:1' \
        'received OPEN_REP vqp=0 epoch=1 of 0x[0-9a-f]+ on mlx5_' \
        "$ep planned swap from dc on mlx5_0:1 to rc on mlx5_0:1" \
        "$ep leaves rc epoch=2 on mlx5_0:1: Endpoint timeout" \
        "$ep active -> drain" "$ep drain -> fence" \
        'send FENCE_REQ vqp=0 epoch=2 to peer 0x[0-9a-f]+ on mlx5_1:1' \
        'received FENCE_REP vqp=0 epoch=2' \
        "$ep verdict on epoch=2: .*the peer: log fenced, expected psn [0-9]+: " \
        "$ep fence -> repeat" "$ep repeat -> active \(dc epoch=[0-9]+ on mlx5_1:1" \
        'rc_varuna: switched vqp=0 from=mlx5_0:1 was=rc to=mlx5_1:1 lane=dc' \
        'send CONNECT_REQ vqp=0 epoch=[0-9]+ to peer 0x[0-9a-f]+ on mlx5_1:1' \
        'received CONNECT_REP vqp=0' \
        "$ep planned swap from dc on mlx5_1:1 to rc on mlx5_1:1" \
        "$ep planned swap from .* on mlx5_1:1 to rc on mlx5_0:1"
    in_order server.log 'opened target 1 for vqp=0 of peer 0x' \
        'target 1: connected epoch=2 on mlx5_0:1' \
        'received FENCE_REQ vqp=0 epoch=2 of 0x[0-9a-f]+ on mlx5_1:1' \
        'target 1: fenced epoch=2, expected psn [0-9]+' \
        'received CONNECT_REQ .* on mlx5_1:1' \
        'target 1: connected epoch=[0-9]+ on mlx5_1:1'
    ! grep -qE 'rc_varuna: (send|received) P[IO]NG' client.log server.log ||
        fail "pings are logged"
}

# Messages of all kinds, on all lanes, wake a server that waits for events
test_messages_wake_up() {
    dozing
}

# ... also without flow control, which changes how UCX arms its queues
test_messages_wake_up_without_flow_control() {
    export UCX_RC_MLX5_FC_ENABLE=n UCX_DC_MLX5_FC_ENABLE=n
    export UCX_RC_FC_ENABLE=n
    dozing
}

# An interface with a pending request is not flushed, even if nothing is outstanding
test_pending_is_not_flushed() {
    export UCX_RC_VARUNA_GIVE_UP=10m
    jobs_on_rc
    link 1:0 down
    link 1:1 down
    await_log client 'link mlx5_0:1 is down'
    await_log client 'link mlx5_1:1 is down'
    assign client "run $((++runs)) put_short 2"
    await 60 client.out 'note operation 0 is pending alone'
    link 1:1 up
    await_ok client
}

# await_log ROLE PATTERN
await_log() {
    await 60 "$1.log" "$2"
}

# all_work: the client runs each kind of operation
all_work() {
    local plan
    for plan in put_short put_bcopy put_zcopy get_bcopy am_short am_zcopy mixed0; do
        ask client "run $((++runs)) $plan 0"
    done
}

# without_links STATE LINK...: these links of the client fail at their first OPEN_REQ.
# UCP's address of 63 bytes names all links, so another one opens the endpoint
without_links() {
    local state=$1 link
    shift
    for link in "$@"; do
        fault packet host=1 "link=$link" op=send type=dc "$state=1:$link"
    done
    jobs_start
    all_work
    jobs_stop
    faults_fired
    grep -q 'received OPEN_REP' client.log || fail "no link has opened the endpoint"
    for link in "$@"; do
        ! grep -q "received OPEN_REP .* on mlx5_$link:" client.log ||
            fail "link $link is not dead"
    done
}

test_two_of_three_links_fail_before_an_endpoint_is_open() {
    fabric_up --links 3
    without_links silent 0 1
}

test_three_of_four_links_are_down_before_an_endpoint_is_open() {
    fabric_up --links 4
    without_links down 0 1 2
}

# No link at all, until one returns: requests wait meanwhile
test_an_endpoint_waits_for_its_first_link() {
    fabric_up --links 3
    link 1:0 silent
    link 1:1 silent
    link 1:2 silent
    jobs_start
    assign client "run $((++runs)) put_short 0"
    await_log client 'sen[dt] OPEN_REQ .* on mlx5_2:'
    link 1:2 up
    await_ok client
    all_work
}

# A path that has recovered is available for the next failure, even if no traffic
# returned to it. Otherwise it would be the last choice, after the third link.
test_path_returns_while_another_works() {
    export UCX_RC_VARUNA_RETURN_DELAY=inf
    jobs_on_rc --links 3
    link 1:0 silent
    busy_until 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1'
    link 1:0 up
    busy_until 'path to peer .* over mlx5_0:1 is good again'
    link 1:1 silent
    busy_until 'rc_varuna: switched .*from=mlx5_1:1 .*to=mlx5_0:1'
}

# Links, their order and the return delay from a file. The backup with the greater
# weight takes over, although it is listed later and has a higher number; then the other
# one; and finally the primary, when it has been up for the delay.
test_links_file() {
    printf '%s\n' 'primary mlx5_0:1' 'backup mlx5_1:1 weight=1' \
        'backup mlx5_2:1 weight=5 # faster' 'return 50ms' >links.conf
    export UCX_RC_VARUNA_LINKS=file:$PWD/links.conf
    jobs_on_rc --links 3
    link 1:0 down
    busy_until 'rc_varuna: switched .*from=mlx5_0:1 .*to=mlx5_2:1'
    busy_until 'planned swap from dc on mlx5_2:1 to rc on mlx5_2:1'
    link 1:2 down
    busy_until 'rc_varuna: switched .*from=mlx5_2:1 .*to=mlx5_1:1'
    link 1:0 up
    busy_until 'planned swap from .* on mlx5_1:1 to rc on mlx5_0:1'
}

# "return no" overrides the option
test_links_file_says_not_to_return() {
    printf '%s\n' 'backup all' 'primary mlx5_1:1' 'return no' >links.conf
    export UCX_RC_VARUNA_LINKS=file:$PWD/links.conf
    export UCX_RC_VARUNA_RETURN_DELAY=0
    jobs_on_rc
    link 1:1 down
    busy_until 'rc_varuna: switched .*from=mlx5_1:1 .*to=mlx5_0:1'
    busy_until 'planned swap from dc on mlx5_0:1 to rc on mlx5_0:1'
    link 1:1 up
    busy_until 'link mlx5_1:1 is up again'
    ask client "run $((++runs)) mixed0 0"
    ask client "idle 0.3"
    ask client "run $((++runs)) mixed0 0"
    jobs_stop
    # It may leave mlx5_0:1 if nothing answers in time, but not by a planned swap
    ! grep -q 'planned swap from .* on mlx5_0:1 to .* on mlx5_1:1' client.log ||
        fail "it returned"
}

# All links are down for longer than the give-up time. Each posted operation completes
# with an error exactly once; the next run detects late completions. The endpoint stays
# failed when the links return; a new one works.
test_links_return_after_giving_up() {
    export UCX_RC_VARUNA_GIVE_UP=10s # Everything else must be faster
    jobs_on_rc
    link 1:0 down
    link 1:1 down
    assign client "run $((++runs)) put_zcopy 0"
    await_answer client
    [[ $answer == "ft: fail"* ]] || fail "nothing failed: $answer"
    echo "# $answer"
    grep -q 'ERROR' <<<"$answer" && fail "$answer"
    link 1:0 up
    link 1:1 up
    ask client "idle 0.2"
    assign client "warm 1000"
    await_answer client
    [[ $answer == "ft: fail"* ]] || fail "a failed endpoint works: $answer"
    ask client open
    ask client "run $((++runs)) mixed1 0"
}

# The server's messages about its ports (PORTS, 64 bytes on the wire) are lost
no_word_of_ports() {
    fault packet host=0 op=send size=64 count=all drop
}

# responder_notices MODE: the responder sees that its port is down, moves its atomics to
# another NIC, and sees that the port is up again, before the requester's packets arrive
responder_notices() {
    export UCX_RC_VARUNA_ATOMIC_MODE=$1
    # The link is up again before the NIC gives up
    export UCX_RC_MLX5_TIMEOUT=2s UCX_RC_MLX5_RETRY_COUNT=7
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=60s
    jobs_on_rc
    no_word_of_ports
    fault post host=1 link=0 op=write type=rc nth=3 down=0:0
    assign client "run $((++runs)) mixed2 0"
    await_log server 'link mlx5_0:1 is down: port event'
    [ "$1" = proxy ] || await_log server 'nothing is executed on mlx5_0:1 any more'
    link 0:0 up
    await_ok client
    faults_fired
    ask client "run $((++runs)) mixed3 0"
}

# In the default mode no NIC of the responder executes atomics, so the responder keeps
# its connections, and the requester does not notice the failure
test_only_responder_notices() {
    responder_notices proxy
    ! grep -q 'rc_varuna: switched' client.log ||
        fail "$(grep 'rc_varuna: switched' client.log)"
}

# In mode extended they carry atomics, so the responder puts them into ERR
test_responder_leaves_connections_with_atomics() {
    responder_notices extended
    grep -q 'rc_varuna: switched .*from=mlx5_0:1' client.log ||
        fail "the requester still uses the abandoned NIC"
}

# The requester leaves at once and recovers, and uses the other link long before the
# responder knows: the responder gets no port event, and its queue pair no error.
test_requester_notices_first() {
    export UCX_RC_VARUNA_RETURN_DELAY=inf
    jobs_on_rc
    fault exec host=1 link=0 op=write type=rc nth=3 silent=0:0
    fault ack host=1 link=0 op=write type=rc nth=3 down=1:0
    ask client "run $((++runs)) mixed2 0"
    faults_fired
    busy_until 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1'
    await_log client 'link mlx5_0:1 is down: port event'
    grep -q 'link mlx5_0:1 is down' server.log && fail "the responder got a port event"
    link 0:0 down
    await_log server 'link mlx5_0:1 is down: port event'
    ask client "run $((++runs)) mixed3 0"
    jobs_stop
    [ "$(grep -c 'rc_varuna: switched' client.log)" -eq 1 ] ||
        fail "$(grep 'rc_varuna: switched' client.log)"
}

# time_of ROLE PATTERN: prints when the first such line was logged
time_of() {
    grep -m 1 -E "$2" "$1.log" | sed -n 's/^\[\([0-9.]*\)\].*/\1/p'
}

# The same, but the requester's NIC timers detect the failure. The requester computes until
# the responder has handled it
test_responder_notices_first() {
    export UCX_RC_MLX5_TIMEOUT=500ms UCX_RC_MLX5_RETRY_COUNT=3
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=60s
    jobs_on_rc
    no_word_of_ports
    fault exec host=1 link=0 op=write type=rc nth=3 down=0:0
    assign client "run $((++runs)) mixed2 4"
    await_log server 'link mlx5_0:1 is down: port event'
    await 60 client.out 'note computes'
    tell client go
    await_ok client
    faults_fired
    jobs_stop
    grep -q 'rc_varuna: switched .*from=mlx5_0:1 .*reason="Endpoint timeout"' \
        client.log || fail "nothing was switched for that"
    # This script may read the logs much later
    awk -v event="$(time_of server 'link mlx5_0:1 is down: port event')" \
        -v switched="$(time_of client 'rc_varuna: switched')" \
        'BEGIN { exit !(event > 0 && event < switched) }' || fail "the requester was first"
}

run_tests 2
