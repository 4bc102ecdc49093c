#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Control messages that arrive after the end of their endpoint. Links are not ordered
# with each other: an endpoint sends requests on link 0, gets no answer, repeats them on
# link 1, completes and is closed; then its first requests arrive. The server takes the
# request to open for a new endpoint's, but must not execute the old endpoint's other
# requests for it: the memory may be freed. A plugin with this mistake (mutant.sh) shows
# that the test detects it.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export UCX_LOG_LEVEL=debug
# A write on the third link triggers the delivery of the late packets
export UCX_RC_VARUNA_LINKS=mlx5_0:1,mlx5_1:1
export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=100ms
export UCX_RC_VARUNA_ATOMIC_MODE=proxy
export UCX_RC_VARUNA_RETURN_DELAY=inf # Send CLOSE on link 1 after leaving link 0
job=ft_atom_job

# lines ROLE PATTERN: prints the number of matching lines
lines() {
    grep -cE "$2" "$1.log" || true
}

# await_lines ROLE PATTERN COUNT
await_lines() {
    await 60 "$1.log" "$2" "$3"
}

# close_before_arrival: adds 1 to the server's word over an endpoint, closes the
# endpoint after it has left link 0, and then delivers its messages on link 0. $answer
# is the word that the server sees then
close_before_arrival() {
    local vqp
    fabric_up --links 3 --time-scale 0.02 # So that the NIC waits for late packets
    jobs_start
    await_lines server 'opened target' 1
    ask server "set 0"
    fault packet host=1 link=0 op=send count=all \
        delay=until:down=1:2
    ask client second
    ask client "run 8 0 fadd:0:1"
    faults_fired
    vqp=$(grep -o 'send OPEN_REQ vqp=[0-9]*' client.log | tail -n 1)
    vqp=${vqp#*=}
    [ "$(lines server "received OPEN_REQ vqp=$vqp .* on mlx5_0:1")" -eq 0 ] ||
        fail "the first request was not late"
    await_lines client "switched vqp=$vqp from=mlx5_0:1 .* to=mlx5_1:1" 1
    ask client close
    await_lines server "received CLOSE vqp=$vqp .* on mlx5_1:1" 1
    link 1:2 down
    await_lines server "received OPEN_REQ vqp=$vqp .* on mlx5_0:1" 1
    # The late target is closed again; the late atomic came after it
    await_lines client "send CLOSE vqp=$vqp " 2
    await_lines server "received CLOSE vqp=$vqp " 2
    ask client "idle 0.2"
    ask server get
}

test_late_requests_do_nothing() {
    close_before_arrival
    [ "$answer" = "ft: ok 1" ] || fail "the atomic was executed twice: $answer"
    [ "$(lines server 'opened target')" -eq 3 ] || fail "nothing was opened late"
    [ "$(lines server 'closed target')" -eq 2 ] || fail "a target is left"
    jobs_stop
    fabric_down
}

test_they_would_if_their_opening_was_ignored() {
    launcher=$("$top/test/e2e/lib/mutant.sh" any_opening)
    close_before_arrival
    [ "$answer" = "ft: ok 2" ] || fail "the mistake was not detected: $answer"
    jobs_stop
    fabric_down
}

run_tests
