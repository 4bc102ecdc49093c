#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# What a server keeps for clients that die, and for clients that only seem to be dead.
# The server's counters are read from UCX's VFS tree.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

ucx_defaults
export UCX_LOG_LEVEL=info
nic_gives_up 10ms 2
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s
export UCX_RC_VARUNA_ORPHAN_TIMEOUT=1s

# start_client N: starts a client that posts one put for each line of the pipe steps.N
start_client() {
    mkfifo "steps.$1"
    UCX_LOG_LEVEL=${level:-info} \
        timeout 600 "$emu" exec -n "$fabric" 1 -- "$run" "$apps/ft_load" steps \
        <"steps.$1" >"client.$1.log" 2>&1 9>&- &
    client=$!
}

# Repeatedly, ten clients are killed while all of them are connected
test_50_killed_clients_leave_nothing() {
    local i round pids hold
    fabric_up
    load_server_start quitter 65536
    for round in {0..4}; do
        pids=()
        for i in {0..9}; do
            start_client "$round$i"
            pids+=($client)
            exec {hold}<>"steps.$round$i" # So that its input does not end
            load_server_address >&$hold
        done
        for i in {0..9}; do
            await 60 "client.$round$i.log" '^ft: step 1'
        done
        for i in {0..9}; do
            disown "${pids[i]}"
            kill -KILL "$(program_of "${pids[i]}")"
        done
    done
    await_counter given_up 50
    await_counter open 0
    echo "# $(counter orphans) are kept for a while"

    # The server exits without closing anything, with messages in flight
}

test_stopped_client_keeps_its_target() {
    fabric_up
    load_server_start server 65536
    start_client 0
    exec 8>steps.0
    load_server_address >&8
    await 60 client.0.log '^ft: step 1'
    kill -STOP "$(program_of $client)"
    sleep 3
    [ "$(counter open)" = 1 ] || fail "the client was given up"
    kill -CONT "$(program_of $client)"
    echo >&8
    await 60 client.0.log '^ft: step 2$'
    exec 8>&-
    wait $client || fail "the client failed: $(tail -n 3 client.0.log)"
    await_counter open 0
    [ "$(counter given_up)" = 0 ] || fail "the client was given up"
}

# The client posts nothing while it is cut off, so it does not know
test_cut_off_client_is_told() {
    local status=0 level=debug
    fabric_up
    load_server_start server 65536
    start_client 0
    exec 8>steps.0
    load_server_address >&8
    await 60 client.0.log '^ft: step 1'
    # RC is connected; without DC, it is the first lane
    await 60 client.0.log 'planned swap from .* to rc on|opening -> backlog .rc '
    link 1:0 silent
    link 1:1 silent
    await_counter given_up 1
    link 1:0 up
    link 1:1 up
    echo >&8
    await 60 client.0.log '^ft: step 2 failed'
    exec 8>&-
    wait $client || status=$?
    [ $status -eq 1 ] || fail "the client ended with $status"
    check grep -q 'peer refused vQP' client.0.log
}

run_tests 3
