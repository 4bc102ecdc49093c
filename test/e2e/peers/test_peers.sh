#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Several peers of one client: if one dies, is stopped, computes, or loses its NIC, the
# others are not affected. Also a NIC of the client dies. Each message arrives once and
# in order, and each put completes once (test/e2e/peers/ft_peers.c).


. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

# given_up_by_witness: endpoints to dead processes fail only when there is a witness; no
# timeout expires before
given_up_by_witness() {
    export UCX_RC_VARUNA_GIVE_UP=10m UCX_RC_VARUNA_PEER_TIMEOUT=1s
}

test_one_of_two_peers_dies() {
    given_up_by_witness
    fabric_up --hosts 3
    servers 0 alive
    servers 1 dead
    client 2 2 alive dead
    kill -KILL "$(process dead)"
    await 60 client.log 'silent on all links: its process or host is dead or stop'
    await_more 0
    ! grep -q 'note endpoint .* failed' client.log ||
        fail "an endpoint failed without a witness"
    witness 1
    await 60 client.log "the peer's process is gone" 2
    await 60 client.log 'note endpoint .* failed' 2
    await_more 0 2
    end client
    no_switch
    [ "$(field client.log errors errors)" = 2 ] || fail "$(tail -n 1 client.log)"
    [ "$(field client.log 'peer 1 ' twice)" = 0 ] || fail "$(tail -n 3 client.log)"
    good 0
    good 2
}

test_one_of_two_peers_is_stopped_for_a_while() {
    fabric_up --hosts 3
    servers 0 alive
    servers 1 stopped
    client 2 2 alive stopped
    kill -STOP "$(process stopped)"
    await 60 client.log 'silent on all links: its process or host is dead or stop'
    await_more 0
    sleep 1
    kill -CONT "$(process stopped)"
    await 60 client.log 'peer .* answers again'
    await_more
    all_good
    no_switch
}

# Messages to six dead processes of one host occupy the four DCIs of the control plane
# until retries are exhausted. Fences of a living process, and the opening of an
# endpoint, must get through. The dead processes are given up long before GIVE_UP
test_dead_processes_beside_a_living_one() {
    local i client_pid dead=()
    given_up_by_witness
    fabric_up --hosts 3
    servers 2 alive
    servers 0 d1 d2 d3 d4 d5 d6
    # The client's log shows failed messages of the control plane
    export UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr
    client 1 1 alive d1 d2 d3 d4 d5 d6
    # All at once, so that none of them is a witness for another
    for i in 1 2 3 4 5 6; do
        dead+=("$(process "d$i")")
    done
    client_pid=$(process client)
    kill -STOP "$client_pid"
    kill -KILL "${dead[@]}"
    kill -CONT "$client_pid"
    await 60 client.log 'Transport retry count exceeded' 6
    link 1:0 down
    await 60 client.log 'rc_varuna: switched '
    ! grep -q 'note endpoint .* failed' client.log ||
        fail "the dead processes were given up before the fence"
    echo "# $(grep -o 'switched.*' client.log)"
    witness 0
    await 60 client.log "the peer's process is gone" 6
    await 60 client.log 'note endpoint .* failed' 6
    await_more 0
    end client
    good 0
    good 7
}

# are_in_doubt COUNT: messages to COUNT queue pairs of host 2 have failed
are_in_doubt() {
    [ "$(grep -oE 'DCI QP .*: SEND .*rqpn 0x[0-9a-f]+ rlid 3' client.log |
         grep -o 'rqpn.*' | sort -u | wc -l)" -ge "$1" ]
}

# Messages to dead processes never leave their DCIs. They may occupy two DCIs of each
# link, and no more, so that the fence of the living process gets through
test_messages_to_the_dead_hang() {
    local i
    export UCX_RC_VARUNA_PEER_TIMEOUT=10m UCX_RC_VARUNA_GIVE_UP=10m
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=50ms
    fabric_up --hosts 3
    servers 0 alive
    servers 2 d1 d2 d3 d4 d5 d6
    # The client's log shows failed messages of the control plane
    export UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr
    client 1 1 alive d1 d2 d3 d4 d5 d6
    for i in 1 2 3 4 5 6; do
        kill -KILL "$(process "d$i")"
    done
    # Each of them is in doubt on both links, because a message to it has failed there
    comes are_in_doubt 12 || fail "not all are in doubt"
    fault post host=1 type=dc op=send peer=2 \
        count=all hang
    # More messages are waiting. With the mutant, wait until they occupy all DCIs
    for ((i = 0; i < ${FT_DEAD_WAIT:-2} * 10; ++i)); do
        pause 0.1
        "$emu" fault list -n "$fabric" >faults.log
        [ "$(awk '/ hang$/ { print $3 }' faults.log)" -le 4 ] ||
            fail "messages to dead processes occupy all DCIs: $(tail -n 1 faults.log)"
    done
    await_faults
    link 1:0 down
    await 60 client.log 'rc_varuna: switched .*was=rc'
    await_more 0
    kill -KILL "$(process client)"
    fabric_down --force
}

# A process that is stopped while its link fails is not dead
test_stopped_peer_whose_link_fails() {
    export UCX_RC_VARUNA_PEER_TIMEOUT=10m # Longer than the stop on any machine
    fabric_up
    servers 0 alive stopped
    client 1 1 alive stopped
    kill -STOP "$(process stopped)"
    await 60 client.log 'silent on all links: its process is dead or stop.* others of its host'
    link 1:0 down
    await 60 client.log 'rc_varuna: switched '
    sleep 1
    kill -CONT "$(process stopped)"
    await 60 client.log 'rc_varuna: switched ' 2
    await_more
    all_good
}

# Each fault is named correctly, and affects only the endpoints concerned: the client's
# port, a peer's port, a path to one peer, a process
test_faults_are_told_apart() {
    given_up_by_witness
    # The heartbeat detects silence, not the NIC
    export UCX_RC_MLX5_TIMEOUT=4s UCX_RC_MLX5_RETRY_COUNT=7
    export UCX_RC_VERBS_TIMEOUT=4s UCX_RC_VERBS_RETRY_COUNT=7
    fabric_up --hosts 3
    servers 0 one
    servers 1 two
    client 2 2 one two

    # The path to one peer, without a port event
    link 1:0 silent
    await 60 client.log "is silent on ${nics}_0:1 .*other peers answer on this link"
    await 60 client.log "rc_varuna: switched .*from=${nics}_0:1 " 2
    await_more
    [ "$(grep -c 'rc_varuna: switched' client.log)" -eq 2 ] ||
        fail "other endpoints switched: $(grep 'rc_varuna: switched' client.log)"
    ! grep -q "link ${nics}_0:1 is down" client.log ||
        fail "the client's link was marked down"

    # The port of the other peer, with a port event
    link 0:0 down
    # The peer's report may come before its silence counts
    await 60 client.log "(remote fault: the peer says that its port is down|reason=\"the peer's port is down\")"
    await 60 client.log "rc_varuna: switched .*from=${nics}_0:1 " 4
    await_more
    link 0:0 up
    link 1:0 up

    # The client's port, which concerns both
    link 2:1 down
    await 60 client.log "link ${nics}_1:1 is down: port event"
    await_more
    link 2:1 up

    # One of the processes
    kill -KILL "$(process two)"
    await 60 client.log 'silent on all links: its process or host is dead or stop'
    await_more 0
    witness 1

    # Its lanes fail on all links
    link 2:0 down
    await 60 client.log "link ${nics}_0:1 is down: port event"
    link 2:0 up
    await 60 client.log "link ${nics}_0:1 is up"

    # Unanswered pings are no errors; puts are the only other traffic
    ! grep 'DCI QP .*: SEND ' client.log || fail "errors of the control plane were logged"
    link 2:1 down
    await 60 client.log "the peer's process is gone" 2
    await 60 client.log 'note endpoint .* failed' 2
    await_more 0 2
    end client
    [ "$(field client.log 'peer 1 ' twice)" = 0 ] || fail "$(tail -n 3 client.log)"
    good 0
    good 2
}

# compute SECONDS: a peer computes until all its receive buffers are used, and for so long
# after that
compute() {
    export UCX_RC_MLX5_FC_ENABLE=n UCX_DC_MLX5_FC_ENABLE=n
    fabric_up
    servers 0 alive busy
    client 1 2 alive busy
    echo compute >&"${fd_of[busy]}"
    await 60 busy.log '^ft: computes'
    await_stuck 1
    await_more 0
    sleep "$1"
    echo go >&"${fd_of[busy]}"
    await 60 busy.log '^ft: awake'
    await_more
    all_good
    no_switch
    check awk -v gap="$(field client.log 'peer 1 ' gap_ms)" 'BEGIN { exit !(gap > 1000) }'
    fabric_down
}

test_peer_computes() {
    compute 1
}

# compute_for_timeouts TIMEOUT: when the peer goes on, messages that wait arrive within it
compute_for_timeouts() {
    compute $(($1 * 3))
}

test_peer_computes_and_there_is_no_heartbeat() {
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    unhurried compute_for_timeouts
}

# nic HOST [--silent]: the NIC of the primary link dies on this host
nic_dies() {
    fabric_up
    servers 0 one two
    # Only the client shows its lanes
    export UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr
    client 1 2 one two
    [ $nics = verbs ] || await 60 client.log 'planned swap from dc .* to rc' 4
    # Something is unfinished
    fault post host=1 link=0 type=rc op=write count=all hang
    await_faults
    check "$emu" nic -n "$fabric" "$1:0" kill ${2:-}
    await 60 client.log "rc_varuna: switched .*from=${nics}_0:1 " 4
    await_more
    all_good
}

# is_said_once TEXT: the client has warned
is_said_once() {
    [ "$(grep 'WARN ' client.log | grep -cF "$1")" -eq 1 ] || fail "$(grep -F "$1" client.log)"
}

test_local_nic_dies() {
    nic_dies 1
    check grep -q 'is gone or hangs: .*(the system says so)' client.log
    # For all interfaces of the process
    is_said_once "${nics}_0:1 is dead (the system says so): this process does not use it"
}

test_remote_nic_dies() {
    nic_dies 0
}

test_remote_nic_dies_in_silence() {
    nic_dies 0 --silent
}

# Its buffers never come back, and its commands fail: that counts as dead, long before
# DRAIN_TIMEOUT. The user is told
test_local_nic_dies_in_silence() {
    export UCX_RC_VARUNA_DRAIN_TIMEOUT=10m UCX_RC_VARUNA_GIVE_UP=10m
    nic_dies 1 --silent
    await 60 client.log "WARN .*${nics}_0:1 is dead"
    is_said_once "${nics}_0:1 is dead (its commands fail)"
}

# has_state LINK STATE: rc_varuna_ctl shows it for a link of the client
has_state() {
    "$RCV_PREFIX/bin/rc_varuna_ctl" -d ctl --all status >status &&
        grep -q "link=${nics}_$1:1 .*$2" status
}

# reset_nic LINK COUNT: this NIC of the client dies, and the traffic leaves it, if it is the first.
# The system resets it, for the COUNTth time. It is used again
reset_nic() {
    check "$emu" nic -n "$fabric" "1:$1" kill
    [ "$1" -ne 0 ] || comes has_lines client.log \
        "rc_varuna: switched .*from=${nics}_0:1 .*to=${nics}_1:1" $((2 * $2)) ||
        fail "the traffic did not leave it: $(tail -n 3 client.log)"
    await_more
    comes has_state "$1" ' nic=dead' || fail "$(cat status)"
    check "$emu" nic -n "$fabric" "1:$1" revive
    await 60 client.log "WARN .*${nics}_$1:1 works again" "$2"
    comes has_state "$1" 'state=up .* nic=working' || fail "$(cat status)"
    [ "$1" -ne 0 ] || comes swapped 0 "$2" || fail "$(grep -a rc_varuna client.log | tail -n 5)"
    await_more
}

# swapped LINK COUNT: both endpoints of the client have returned to this link so often
swapped() {
    has_lines client.log "planned swap from rc on ${nics}_$((1 - $1)):1 to rc on ${nics}_$1:1" $((2 * $2))
}

# Both NICs of the client are reset in turn, while the other one carries the traffic
test_local_nics_return() {
    fabric_up
    servers 0 one
    mkdir -m 700 ctl
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl UCX_RC_VARUNA_HEARTBEAT_INTERVAL=100ms
    export UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr
    client 1 2 one
    comes has_state 0 ' nic=working' || fail "$(cat status)"
    reset_nic 0 1
    is_said_once "${nics}_0:1 works again"
    reset_nic 1 1
    reset_nic 0 2
    reset_nic 1 2
    all_good
}

# delivered: prints how many messages ucx_perftest has counted in its last report
delivered() {
    awk '/^\[thread 0\]/ { n = $3 } END { print n + 0 }' client.log
}

# delivers_more: the count increases from now on
delivers_more() {
    local before
    before=$(delivered)
    has_delivered() { [ "$(delivered)" -gt "$before" ]; }
    comes has_delivered || fail "no message after $before: $(tail -n 3 client.log)"
}

# The same on Ethernet, with endpoints in both directions: the server reads what the client
# offers, by keys of the client's memory
test_local_nics_return_on_ethernet() {
    local i deaths=(0 0) load=(-t tag_bw -s 65536 -n 1000000000)
    fabric_up --quirk "$(with_quirks roce)"
    next_port
    export UCX_TLS=rc_varuna
    timeout 600 "$emu" exec -n "$fabric" 0 -- "$run" ucx_perftest -p "$port" "${load[@]}" \
        >server.log 2>&1 &
    await_listener "$port" $!
    timeout 600 "$emu" exec -n "$fabric" 1 -- "$run" ucx_perftest -p "$port" localhost \
        "${load[@]}" >client.log 2>&1 &
    delivers_more
    for i in 0 1 0 1; do
        check "$emu" nic -n "$fabric" "1:$i" kill
        await 60 client.log "WARN .*${nics}_$i:1 is dead" $((++deaths[i]))
        delivers_more
        check "$emu" nic -n "$fabric" "1:$i" revive
        await 60 client.log "WARN .*${nics}_$i:1 works again" "${deaths[i]}"
        delivers_more
    done
    jobs_kill
    fabric_down --force
}

# The address of a peer has to be asked for, and nobody answers: the cables of its host are out.
# Meanwhile all that has an address goes on, as messages do, in the same thread and control plane
goes_on_while_an_address_is_asked_for() {
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=100ms UCX_RC_VARUNA_GIVE_UP=10m
    fabric_up --hosts 3 --quirk "$(with_quirks roce:600s)"
    servers 0 known
    servers 1 slow
    client 2 2 known
    link 1:0 down
    link 1:1 down
    names+=(slow)
    echo "open slow.addr" >&"${fd_of[client]}"
    await 60 client.log '^ft: now 1 '
    await_more 0
    await_more 0
    [ "$(completed 1)" = 0 ] || fail "an answer came from nowhere: $(completed 1)"
    link 1:0 up
    link 1:1 up
    await_more
    all_good
    fabric_down
}

test_goes_on_while_an_address_is_asked_for() {
    goes_on_while_an_address_is_asked_for
}

# The same by the bus of NICs without DC
test_goes_on_while_an_address_is_asked_for_with_verbs() {
    export UCX_RC_VARUNA_LANES=verbs
    goes_on_while_an_address_is_asked_for
}

# A NIC of the server is reset. The client's keys are from before, for its memory as for its
# logs. It asks for what they lack, and uses the NIC again, also if the other one dies. With
# complete keys it posts as before the reset
test_remote_nics_return() {
    fabric_up
    servers 0 one
    export UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr UCX_RC_VARUNA_HEARTBEAT_INTERVAL=100ms
    client 1 2 one
    comes posts_fast || fail "${counted[*]}"
    check "$emu" nic -n "$fabric" 0:0 kill
    await 60 client.log "rc_varuna: switched .*from=${nics}_0:1 .*to=${nics}_1:1" 2
    check "$emu" nic -n "$fabric" 0:0 revive
    await 60 one.log "WARN .*${nics}_0:1 works again"
    comes swapped 0 1 || fail "$(grep -a rc_varuna client.log | tail -n 5)"
    await_more
    comes posts_fast || fail "slow posts since the reset: ${counted[*]}"
    check "$emu" nic -n "$fabric" 0:1 kill
    await 60 one.log "WARN .*${nics}_1:1 is dead"
    await_more
    check "$emu" nic -n "$fabric" 0:1 revive
    await 60 one.log "WARN .*${nics}_1:1 works again"
    check "$emu" nic -n "$fabric" 0:0 kill
    await 60 client.log "rc_varuna: switched .*from=${nics}_0:1 .*to=${nics}_1:1" 4
    await_more
    all_good
}

test_local_nic_dies_in_silence_on_dc() {
    export UCX_RC_VARUNA_DRAIN_TIMEOUT=10m UCX_RC_VARUNA_GIVE_UP=10m
    run=$(check "$top/test/e2e/lib/mutant.sh" slow_rebuild)
    fabric_up
    servers 0 warm one
    # The pace allows a first burst of 16
    client 1 20 warm
    check "$emu" nic -n "$fabric" 1:0 kill --silent
    await 60 client.log 'rc_varuna: switched .*from=mlx5_0:1 .*was=dc'
    await_more
    all_good
    fabric_down --force
}

# A planned swap from DC to RC under a load of puts: each put is accepted at once. The
# longest time without a completion is only printed, because on a busy machine it
# includes the time for which the processes did not run.
test_swap_refuses_nothing() {
    # Only for the client: log lines must not interrupt the address that a server prints
    fabric_up
    servers 0 one
    names=(one)
    export UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr
    start client 1 writer 1 one.addr
    await 60 client.log 'planned swap from dc .* to rc'
    await_more
    all_good
    no_switch
    echo "# $(grep -o 'planned swap .*' client.log)"
    [ "$(field client.log 'peer 0 ' refused)" = 0 ] ||
        fail "puts were refused: $(grep '^ft: peer 0' client.log)"
}

run_tests 3
