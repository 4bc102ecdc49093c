#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Peers beside each other in one client: one dies, is stopped, computes, or loses its
# NIC, and the others do not notice; and a NIC of the client's own dies. Each message
# comes once and in order, each put completes once (test/e2e/peers/ft_peers.c).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

# given_up_by_witness: endpoints to dead processes fail when there is a witness, and for
# no other reason: no time-out competes with what is to happen before
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
    ! grep -q 'note endpoint .* failed' client.log || fail "nobody could know that"
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
    fabric_down
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
    fabric_down
}

# Six dead processes of one host want the four DCIs of the control plane for ever;
# fences of the living one beside them must get through, and an endpoint's opening; and
# the dead ones are given up long before GIVE_UP
test_dead_processes_beside_a_living_one() {
    local i client_pid dead=()
    given_up_by_witness
    fabric_up --hosts 3
    servers 2 alive
    servers 0 d1 d2 d3 d4 d5 d6
    # The client's tells of messages of the control plane that fail
    export UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr
    client 1 1 alive d1 d2 d3 d4 d5 d6
    # All at once for the client: none of them is another's witness
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
        fail "the dead were given up before the fence was needed"
    echo "# $(grep -o 'switched.*' client.log)"
    witness 0
    await 60 client.log "the peer's process is gone" 6
    await 60 client.log 'note endpoint .* failed' 6
    await_more 0
    end client
    good 0
    good 7
    fabric_down
}

# Messages to the dead never leave their DCIs: two on each link are lost for ever, and no
# more, so that the fence of the living one gets through
test_messages_to_the_dead_hang() {
    local i
    export UCX_RC_VARUNA_PEER_TIMEOUT=10m UCX_RC_VARUNA_GIVE_UP=10m
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=50ms
    fabric_up --hosts 3
    servers 0 alive
    servers 2 d1 d2 d3 d4 d5 d6
    # The client's tells of messages of the control plane that fail
    export UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr
    client 1 1 alive d1 d2 d3 d4 d5 d6
    for i in 1 2 3 4 5 6; do
        kill -KILL "$(process "d$i")"
    done
    # Each of them is in doubt on both links, as a message to it has failed there
    for ((i = 0; $(grep -oE 'DCI QP .*: SEND .*rqpn 0x[0-9a-f]+ rlid 3' client.log |
                   grep -o 'rqpn.*' | sort -u | wc -l) < 12; ++i)); do
        [ $i -lt 1200 ] || fail "not all are in doubt"
        sleep 0.05
    done
    fault post host=1 type=dc op=send peer=2 \
        count=all hang
    # Many more are wanted; a test with the mistake that takes them waits until they are
    for ((i = 0; i < ${FT_DEAD_WAIT:-2} * 10; ++i)); do
        sleep 0.1
        "$emu" fault list -n "$fabric" >faults.log
        [ "$(awk '/ hang$/ { print $3 }' faults.log)" -le 4 ] ||
            fail "the dead have taken all: $(tail -n 1 faults.log)"
    done
    faults_fired
    link 1:0 down
    await 60 client.log 'rc_varuna: switched .*was=rc'
    await_more 0
    kill -KILL "$(process client)"
    fabric_down --force
}

# A process that is stopped while its link fails is no dead one
test_stopped_peer_whose_link_fails() {
    export UCX_RC_VARUNA_PEER_TIMEOUT=10m # Longer than it is stopped for, on any machine
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
    fabric_down
}

# Each fault is called by its name, and concerns those only whom it concerns: our own
# port, a peer's port, a path to one peer, a process
test_faults_are_told_apart() {
    given_up_by_witness
    # Who is silent is found by the heartbeat, not by the NIC
    export UCX_RC_MLX5_TIMEOUT=4s UCX_RC_MLX5_RETRY_COUNT=7
    fabric_up --hosts 3
    servers 0 one
    servers 1 two
    client 2 2 one two

    # The path to one peer, whose port does not know it
    link 1:0 silent
    await 60 client.log 'is silent on mlx5_0:1 .*other peers answer on this link'
    await 60 client.log 'rc_varuna: switched .*from=mlx5_0:1 ' 2
    await_more
    [ "$(grep -c 'rc_varuna: switched' client.log)" -eq 2 ] ||
        fail "others were switched: $(grep 'rc_varuna: switched' client.log)"
    ! grep -q 'link mlx5_0:1 is down' client.log || fail "our link was condemned"

    # The far port of the other one, which knows it
    link 0:0 down
    await 60 client.log 'is silent on mlx5_0:1 .*remote fault: the peer says that its port is down'
    await 60 client.log 'rc_varuna: switched .*from=mlx5_0:1 ' 4
    await_more
    link 0:0 up
    link 1:0 up

    # Our port, for both
    link 2:1 down
    await 60 client.log 'link mlx5_1:1 is down: port event'
    await_more
    link 2:1 up

    # One of the processes
    kill -KILL "$(process two)"
    await 60 client.log 'silent on all links: its process or host is dead or stop'
    await_more 0
    witness 1

    # Its lanes, whichever link they are on, fail with that
    link 2:0 down
    await 60 client.log 'link mlx5_0:1 is down: port event'
    link 2:0 up
    await 60 client.log 'link mlx5_0:1 is up'

    # Pings that were not answered are no errors; puts are the only traffic
    ! grep 'DCI QP .*: SEND ' client.log || fail "the control plane complains"
    link 2:1 down
    await 60 client.log "the peer's process is gone" 2
    await 60 client.log 'note endpoint .* failed' 2
    await_more 0 2
    end client
    [ "$(field client.log 'peer 1 ' twice)" = 0 ] || fail "$(tail -n 3 client.log)"
    good 0
    good 2
    fabric_down
}

# compute: a peer computes until all of its receives are used up, and for some time more
compute() {
    export UCX_RC_MLX5_FC_ENABLE=n UCX_DC_MLX5_FC_ENABLE=n
    fabric_up
    servers 0 alive busy
    client 1 2 alive busy
    echo compute >&"${fd_of[busy]}"
    await 60 busy.log '^ft: computes'
    await_stuck 1
    await_more 0
    sleep 1 # Some timeouts
    no_receives
    echo go >&"${fd_of[busy]}"
    await 60 busy.log '^ft: awake'
    await_more
    all_good
    no_switch
    check awk -v gap="$(field client.log 'peer 1 ' gap_ms)" 'BEGIN { exit !(gap > 1000) }'
    fabric_down
}

test_peer_computes() {
    compute
}

test_peer_computes_and_there_is_no_heartbeat() {
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=500ms
    compute
}

# nic HOST [--silent]: the NIC of the primary link dies there
nic_dies() {
    fabric_up
    servers 0 one two
    client 1 2 one two
    sleep 1 # RC is in use, most likely; both lanes are right
    check "$emu" nic -n "$fabric" "$1:0" kill ${2:-}
    await 60 client.log 'rc_varuna: switched .*from=mlx5_0:1 ' 4
    await_more
    all_good
    fabric_down
}

test_local_nic_dies() {
    nic_dies 1
    check grep -q 'is gone or hangs: .*(the system says so)' client.log
}

test_remote_nic_dies() {
    nic_dies 0
}

test_remote_nic_dies_in_silence() {
    nic_dies 0 --silent
}

test_local_nic_dies_in_silence() {
    export UCX_RC_VARUNA_DRAIN_TIMEOUT=500ms
    nic_dies 1 --silent
    check grep -q 'is gone or hangs: the RC lane .*(drain timeout)' client.log
}

# On DC nobody can stop what the silent NIC may still do: that is told, and nothing
# is repeated
test_local_nic_dies_in_silence_on_dc() {
    export UCX_RC_VARUNA_DRAIN_TIMEOUT=500ms
    run=$(check "$top/test/e2e/lib/mutant.sh" slow_rebuild)
    fabric_up
    servers 0 warm one
    # The pace lets a burst of 16 through at first
    client 1 20 warm
    check "$emu" nic -n "$fabric" 1:0 kill --silent
    await 60 client.log 'nothing proves that its queue pair has'
    await 60 client.log 'note endpoint .* failed'
    end client
    [ "$(field client.log 'peer 0 ' twice)" = 0 ] || fail "$(tail -n 3 client.log)"
    [ "$(field client.log 'peer 0 ' failed)" -gt 0 ] || fail "$(tail -n 3 client.log)"
    fabric_down --force
}

# From DC to RC as planned, under a load of puts: all of them are taken, none has to be
# tried again. How long the wire was idle is told only: on a busy machine that is the
# time for which the processes did not run.
test_swap_refuses_nothing() {
    # Only the client: an address is a line of output, between which nothing may stand
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
        fail "some were refused: $(grep '^ft: peer 0' client.log)"
    fabric_down
}

run_tests 3
