#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A server that is killed and started again. Its queue pairs reuse the old numbers
# ("mlx5emu up --reuse-qpns"), so the client's packets to the old process arrive at the
# new one, which must refuse them and execute nothing. With other numbers nobody
# answers, and the give-up time ends the wait.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export UCX_LOG_LEVEL=debug

# errors: prints the number of calls of the client's error handler
errors() {
    grep -c '^ft: note endpoint .* failed' client.out || true
}

# has_errors COUNT
has_errors() {
    ask client "idle 0.02"
    [ "$(errors)" -ge "$1" ]
}

# await_error REASON COUNT: waits until the error handler was called COUNT + 1 times
await_error() {
    comes has_errors $(($2 + 1)) || fail "the error handler was not called"
    ask client "idle 0.05"
    [ "$(errors)" -eq $(($2 + 1)) ] ||
        fail "the error handler was called $(($(errors) - $2)) times"
    grep '^ft: note endpoint .* failed' client.out | tail -n 1 |
        grep -q "failed: $1" || fail "not $1: $(tail -n 1 client.out)"
}

# fails COMMAND REASON [FIRST]: the client's command fails, and its error handler is
# called with REASON, perhaps already during the command FIRST
fails() {
    local count
    count=$(errors)
    [ -z "${3:-}" ] || ask client "$3"
    assign client "$1"
    await_answer client
    [[ $answer == "ft: fail"*"$2"* ]] || fail "$1: $answer, not: $2"
    await_error "$2" "$count"
}

# accesses: prints the number of executed memory accesses
accesses() {
    "$emu" trace -n "$fabric" --json | grep -cE '"op": ?"(write|read|cas|faa)' ||
        true
}

# is_untouched: checks that nothing was executed since the start of the new server
is_untouched() {
    [ "$(accesses)" -eq "$before" ] ||
        fail "the new process has executed $(($(accesses) - before)) accesses"
}

# works_anew: checks that the client works with the new server after it got its address
works_anew() {
    local plan
    ask client "connect$server_address"
    ask client open
    for plan in put_short mixed0; do
        ask client "run $((++runs)) $plan 0"
    done
}
runs=100

# restart [OPTION...]: restarts the server on a fabric with these options. The new
# server numbers messages independently.
restart() {
    jobs_on_rc "$@"
    ask client "run 1 put_short 0"
    ask client "idle ${quiet:-0}"
    server_kill
    before=$(accesses)
    [ "$before" -gt 0 ] || fail "the trace is empty"
    server_start
}

refused() {
    grep -qE "refused $1 .*: Connection reset" server.log ||
        fail "the new server did not refuse $1"
}

test_a_restarted_peer_refuses_what_is_not_for_it() {
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 # Its ping would be the first message
    restart --reuse-qpns
    fails "run 2 put_zcopy 0" "Connection reset by remote peer"
    refused FENCE_REQ
    is_untouched

    # The client still has the old server's address, which must not open an endpoint
    fails "run 3 put_short 0" "Connection reset by remote peer" open
    refused OPEN_REQ
    is_untouched
    works_anew
}

# Nothing is in flight, and UCX's keepalive checks the endpoint: the heartbeat detects
# it
test_an_idle_endpoint_hears_that_its_peer_was_restarted() {
    quiet=1.5 # The heartbeat has stopped by then
    restart --reuse-qpns
    ask client "idle 0.5"
    [ "$(errors)" -eq 0 ] || fail "the failure was detected without a check"
    ask client check
    await_error "Connection reset by remote peer" 0
    refused PING
    is_untouched
    works_anew
}

test_a_restarted_peer_with_other_numbers() {
    export UCX_RC_VARUNA_GIVE_UP=5s
    restart
    fails "run 2 put_zcopy 0" "Endpoint timeout"
    fails "run 3 put_short 0" "Endpoint timeout" open
    ! grep -q 'refused' server.log || fail "a request has reached the new server"
    is_untouched
    works_anew
}

run_tests 2
