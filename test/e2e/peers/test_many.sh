#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Many endpoints share a DC initiator (DCI), and most of them wait for their turn. To
# wait is not a failure; to hang is one; and an endpoint to a dead peer does not affect
# the others. Also the cost when the link of many endpoints fails: of RC_VARUNA_MANY, 64
# by default, 4096 in the long run. The tests compare counts, not times.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

many=${RC_VARUNA_MANY:-64}
# UCX gives a free DCI to the first endpoint that posts, and this load does not use the
# pending queue, so the slowest endpoint may wait for a long time
column=9

# Connect RC for the 16 endpoints of the first burst; all others stay on DC. Both sides
# run this mutant
stay_on_dc() {
    run=$(check "$top/test/e2e/lib/mutant.sh" slow_rebuild)
}

# queue_for_a_dci TIMEOUT: each operation takes a twentieth of it, and 84 endpoints share the
# DCI, so some of them wait for several times the timeout while others complete
queue_for_a_dci() {
    nic_gives_up $(($1 * 100))ms 3
    fabric_up
    servers 0 one
    names=(one)
    start client 1 writer 100 one.addr
    await_more
    fault ack host=1 link=0 type=dc op=write \
        count=all delay=$(($1 * 50))ms
    sleep $(($1 * 6)) # Several timeouts
    faults_fired
    check "$emu" fault clear -n "$fabric"
    all_good
    no_switch
    ! grep 'request hangs' client.log || fail "a request hung"
    check awk -v gap="$(field client.log 'peer 0 ' gap_ms)" -v min=$(($1 * 2000)) \
        'BEGIN { exit !(gap > min) }'
    fabric_down
}

test_queue_for_a_dci_is_no_hang() {
    stay_on_dc
    export UCX_RC_VARUNA_DC_NUM_DCI=1
    unhurried queue_for_a_dci
}

# The endpoint that has the DCI hangs forever. It is detected, and the others get
# another DCI
test_dci_hangs() {
    stay_on_dc
    export UCX_RC_VARUNA_DC_NUM_DCI=1
    # Nothing else makes an endpoint switch
    export UCX_RC_VARUNA_HANG_TIMEOUT=1s UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    fabric_up
    servers 0 one
    client 1 40 one
    fault post host=1 link=0 type=dc op=write nth=20 \
        size=8 hang
    await 60 client.log 'request hangs for'
    await 60 client.log 'rc_varuna: switched .*reason="requests hang"' 40
    faults_fired
    await_more
    all_good
}

# load_on_own_dcis: starts 24 endpoints to the server "one" and 24 to the server "other".
# 16 of them are on RC. There are as many DCIs as endpoints, so none waits for another
load_on_own_dcis() {
    stay_on_dc
    export UCX_RC_VARUNA_DC_NUM_DCI=48
    # Nothing else makes an endpoint switch
    export UCX_RC_VARUNA_HANG_TIMEOUT=inf UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    export UCX_RC_VARUNA_RETURN_DELAY=inf
    column=5 # The slowest endpoint
    fabric_up --hosts 3
    servers 0 one
    servers 1 other
    client 2 24 one other
}

# dci_to HOST: prints the number of a DCI that has written to this host over link 0. The
# load overwrites entries of the trace
dci_to() {
    "$emu" trace -n "$fabric" --json "$1" >trace.json 2>trace.log || true
    grep '"link":0,' trace.json | grep '"op":"write"' | grep '"type":"dci"' |
        sed -n 's/.*"src_qpn":\([0-9]*\),.*/\1/p' | tail -n 1
}

# An endpoint whose DCI hangs forever keeps no other endpoint waiting, and none switches.
# The link ends the hang
test_hung_dci_stops_its_endpoint_only() {
    load_on_own_dcis
    fault post host=2 link=0 type=dc peer=0 op=write nth=20 hang
    await_faults
    await_more 1
    await_more 1
    no_switch
    link 2:0 down
    await_more
    all_good
}

# The NIC exhausts its retries on one DCI: the path to that peer is down, so all endpoints
# to it leave. Those to the other peer stay on their DCIs
test_failed_dci_takes_no_other_peer() {
    local dci
    load_on_own_dcis
    dci=$(dci_to 0)
    [ -n "$dci" ] || fail "no DCI writes to host 0"
    fault packet host=2 link=0 type=dc qp="$dci" peer=0 op=write count=all drop
    await 60 client.log 'rc_varuna: switched .*reason="Endpoint timeout"'
    await 60 client.log 'rc_varuna: switched .*from=mlx5_0:1 ' 24
    faults_fired
    await_more
    all_good
    [ "$(grep -c 'rc_varuna: switched' client.log)" = 24 ] ||
        fail "$(grep -c 'rc_varuna: switched' client.log) switches"
}

# stop_peer TIMEOUT: a stopped peer answers on no link, so its unfinished messages are no
# failure of the link. When it goes on, messages that wait arrive within the timeout
stop_peer() {
    fabric_up
    servers 0 one
    client 1 2 one
    kill -STOP "$(process one)"
    await_stuck 0
    sleep $(($1 * 3)) # Several timeouts
    kill -CONT "$(process one)"
    await_more
    all_good
    no_switch
    check awk -v gap="$(field client.log 'peer 0 ' gap_ms)" -v min=$(($1 * 1000)) \
        'BEGIN { exit !(gap > min) }'
    fabric_down
}

test_stopped_peer_with_messages_is_no_hang() {
    export UCX_RC_MLX5_FC_ENABLE=n UCX_DC_MLX5_FC_ENABLE=n
    unhurried stop_peer
}

# The endpoints to the dead peer use the DCI one after the other, until retries are
# exhausted. Those to the living peer wait, and stay on their lanes
test_dead_peer_on_a_shared_dci() {
    stay_on_dc
    export UCX_RC_VARUNA_DC_NUM_DCI=1
    export UCX_RC_VARUNA_GIVE_UP=8s
    fabric_up --hosts 3
    servers 0 alive
    servers 1 dead
    client 2 20 alive dead
    kill -KILL "$(process dead)"
    await 60 client.log 'note endpoint .* failed' 20
    await_more 0
    end client
    no_switch
    [ "$(field client.log errors errors)" = 20 ] || fail "$(tail -n 1 client.log)"
    [ "$(field client.log 'peer 1 ' twice)" = 0 ] || fail "$(tail -n 3 client.log)"
    good 0
}

# counts: prints the matches of each rule, one per line
counts() {
    "$emu" fault list -n "$fabric" --json >rules.json
    grep -oE '"matched": *[0-9]+' rules.json | grep -oE '[0-9]+$'
}

# rounds NUMBER: waits until each of the many has completed NUMBER more puts
rounds() {
    local before

    before=$(field client.log rounds rounds)
    safety=600 comes are_rounds $((${before:-0} + $1)) ||
        fail "no $1 rounds after $before: $(tail -n 3 client.log)"
}

# are_rounds NUMBER: each of the many has completed so many puts
are_rounds() {
    local now

    now=$(field client.log rounds rounds)
    [ "${now:-0}" -ge "$1" ]
}

# on_rc RULE: waits until no endpoint posts on DC any more, which RULE counts
on_rc() {
    local now

    comes is_all_on_rc "$1" || fail "endpoints stay on DC: $now writes"
}

# is_all_on_rc RULE: in two rounds no endpoint posts on DC
is_all_on_rc() {
    local before

    before=$(counts | sed -n "$1p")
    rounds 2
    now=$(counts | sed -n "$1p")
    [ "$now" -eq "$before" ]
}

# switch_of COUNT: the remote port of COUNT endpoints becomes silent, while an endpoint
# to another peer continues. Sets $result to the cost of each endpoint, and $gap to the
# longest gap of the other endpoint, in turns.
switch_of() {
    local before after i

    # No repetitions, no pings and no questions of the hang check, so that messages can be
    # counted
    export UCX_RC_VARUNA_CTL_TIMEOUT=300s UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    export UCX_RC_VARUNA_HANG_TIMEOUT=inf
    export UCX_RC_VARUNA_RETURN_DELAY=inf
    names=()
    fabric_up --hosts 3
    servers 0 many
    servers 1 other
    for rule in 'post host=2 link=1 type=dc op=send' \
                'post host=0 link=1 type=dc op=send' \
                'post host=2 link=1 type=dc op=read' \
                'post host=2 type=dc op=write'; do
        fault "$rule" count=all count
    done
    start client 2 "$1" many.addr other.addr
    await 120 client.log '^ft: rounds [1-9]'
    on_rc 4

    mapfile -t before < <(counts)
    echo mark >&"${fd_of[client]}"
    await 60 client.log '^ft: marked'
    link 0:0 silent
    await 300 client.log 'rc_varuna: switched .*from=mlx5_0:1 ' "$1"
    on_rc 4
    mapfile -t after < <(counts)
    end client
    end many
    end other
    grep -E '^ft: (many|gap)' client.log | tail -n 2 | sed 's/^/# /'
    grep -qE '^ft: many [0-9]+ failed 0 stuck 0 other [0-9]+ failed 0 stuck 0' \
        client.log || fail "not all puts are complete"
    check grep -q '^ft: errors 0' client.log
    [ "$(grep -c 'rc_varuna: switched' client.log)" -eq "$1" ] ||
        fail "$(grep -c 'rc_varuna: switched' client.log) switches"
    gap=$(awk '/^ft: gap/ { n = $3 } END { print n }' client.log)
    result=
    for i in 0 1 2; do
        result+="$(((after[i] - before[i]) * 100 / $1)) "
    done
    echo "# $1 endpoints: requests, answers, reads for each: $result (hundredths)"
    echo "# writes on DC: $((after[3] - before[3]))"
    fd_of=()
}

# A switch takes FENCE and CONNECT, each with its answer, and the read that drains the
# DC lane, independent of the number of endpoints. The other endpoint continues
# meanwhile.
test_switch_costs_the_same_for_each() {
    local result gap
    switch_of 1
    [ "$result" = "200 200 100 " ] || fail "one endpoint: $result"
    rm -f ./*.in ./*.log
    switch_of "$many"
    [ "$result" = "200 200 100 " ] || fail "$many endpoints: $result"
    # Errors of the others precede it in the completion queue
    [ "$gap" -le $((256 + many / 2)) ] || fail "the other endpoint waited for $gap turns"
}

run_tests 2
