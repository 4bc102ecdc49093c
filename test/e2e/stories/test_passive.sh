#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A peer whose application never calls progress. RC is connected to it nevertheless.
# After a failure of the link the endpoint recovers, and connects RC on the other link.
# (varuna_cost's server blocks on a socket while the client works.)

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

program=$RCV_BUILD/src/tools/bench/varuna_cost

ucx_defaults
export UCX_LOG_LEVEL=debug
nic_gives_up 10ms 2
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s

# job COUNT [RULE...]: posts COUNT puts, with a fault if one is given, which must fire.
# The client's log is in client.log.
job() {
    local count=$1 server status=0
    local args=(rc_varuna varuna_mlx5_0:1 "put:short:8:$count")
    shift
    fabric_up
    [ $# -eq 0 ] || fault "$@"

    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" "$program" server \
        "$PWD/socket" "${args[@]}" >server.log 2>&1 &
    server=$!
    timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" "$program" client \
        "$PWD/socket" "${args[@]}" >client.log 2>&1 || status=$?
    wait "$server" || fail "the server failed: $(tail -n 3 server.log)"
    [ $status -eq 0 ] || fail "the client failed: $(tail -n 3 client.log)"
    [ $# -eq 0 ] || faults_fired
}

test_puts_complete() {
    job 1000
}

test_recovery() {
    job 100000 packet host=1 link=0 nth=3000 down
    check grep -q 'rc_varuna: switched .*mlx5_0:1.*mlx5_1:1' client.log
}

# RC is connected, and once more on the other link after a failure. The
# server is that of ft_load.c, and the client makes progress until it is told to end.
test_rc_is_connected_and_rebuilt() {
    fabric_up
    load_server_start idle 8192 UCX_LOG_LEVEL=info
    mkfifo steps
    timeout 600 "$emu" exec -n "$fabric" 1 -- "$run" "$apps/ft_load" steps <steps \
        >client.log 2>&1 9>&- &
    client=$!
    exec 8>steps
    load_server_address >&8
    await 60 client.log '^ft: step 1$'
    await 60 client.log 'planned swap from dc on mlx5_0:1 to rc on mlx5_0:1'
    fault packet host=1 link=0 op=write type=rc down
    echo >&8
    await 60 client.log '^ft: step 2$'
    check grep -q 'rc_varuna: switched .*was=rc.*mlx5_1:1' client.log
    await 60 client.log 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1'
    exec 8>&-
    wait $client || fail "the client ended with $?: $(tail -n 3 client.log)"
    load_server_stop
    faults_fired
}

run_tests
