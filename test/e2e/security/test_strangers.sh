#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Strangers and guests of a running process, imitated with plain UCX
# (test/e2e/security/ft_stranger.c): addresses that UCX must not see, floods, forged
# answers.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

# server_up [NAME=VALUE...]: starts the server with these variables
server_up() {
    fabric_up
    load_server_start server 65536 "$@"
}

# say ARGUMENT...: runs a stranger on the other host, with the server's address
say() {
    load_server_call "$apps/ft_stranger" "$@" >say.log 2>&1 ||
        fail "$(tail -n 5 say.log server.log)"
}

# Any process can send them, and UCX aborts on some
test_addresses_that_are_none_are_refused() {
    server_up UCX_LOG_LEVEL=error
    say lies
    [ "$(grep -c '^ft: refused' say.log)" -eq 14 ] || fail "$(cat say.log)"
    [ "$(counter strangers_answered)" -eq 0 ] || fail "a stranger was answered"
    [ "$(counter strangers_ignored)" -ge 28 ] || fail "not all messages were ignored"
}

# Each stranger claims another port, which does not exist
test_a_flood_of_strangers_is_bounded() {
    local answered
    server_up
    say flood 3000
    answered=$(counter strangers_answered)
    echo "# $answered of 3000 were answered"
    [ $((answered + $(counter strangers_ignored))) -eq 3000 ] ||
        fail "$answered and $(counter strangers_ignored) are not 3000"
    [ "$answered" -le 1024 ] || fail "too many messages were answered"
    [ "$(counter stale)" -eq 3000 ] || fail "not all messages were for another process"
}

test_endpoints_of_guests_are_bounded() {
    server_up UCX_RC_VARUNA_MAX_TARGETS=20 UCX_LOG_LEVEL=error
    say guests 50
    check grep -q '^ft: opened 20 refused 30' say.log
    [ "$(counter open)" -eq 20 ] || fail "$(counter open) are open"
}

test_endpoints_of_one_peer_are_bounded() {
    server_up UCX_RC_VARUNA_MAX_TARGETS=50 UCX_LOG_LEVEL=error
    say vqps 12
    check grep -q '^ft: opened 5 refused 7' say.log
}

# A late request opens an endpoint that its requester has closed, and the answers are
# lost: the server repeats OPEN_REP, so that the requester closes the endpoint
test_an_unused_opening_is_reported_again() {
    server_up UCX_RC_VARUNA_ORPHAN_TIMEOUT=0
    say unused
    check grep -q '^ft: was reminded' say.log
    await_counter open 0
}

test_an_older_peer_is_told() {
    server_up
    say old
    check grep -q '^ft: answered in version' say.log
    check grep -q 'install the same rc_varuna' server.log
}

# The requester accepts answers only from peers with an open request
test_forged_answers_do_nothing() {
    local host
    fabric_up
    rm -f stdin
    mkfifo stdin
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$apps/ft_stranger" host <stdin \
        >host.log 2>&1 &
    host=$!
    exec 9>stdin
    await 60 host.log '^ft: address'
    sed -n 's/^ft: address *//p' host.log |
        UCX_LOG_LEVEL=debug timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" \
            "$apps/ft_load" steps >steps.log 2>&1 || :
    exec 9>&-
    wait $host || fail "the host ended with $?: $(tail -n 5 host.log)"
    check grep -q '^ft: asked again' host.log
    check grep -q '^ft: step 1 failed' steps.log
    [ "$(grep -c 'dropped REJECT .*no request is open' steps.log)" -eq 2 ] ||
        fail "not both forged answers were dropped: $(tail -n 5 steps.log)"
}

run_tests
