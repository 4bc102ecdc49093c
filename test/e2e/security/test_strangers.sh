#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Strangers and guests of a live process, played by a program that has nothing but UCX
# (test/e2e/security/ft_stranger.c): addresses that UCX must not see, floods, forged answers.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

run=$launcher

# await PATTERN FILE: up to 60 s
await() {
    local i
    for ((i = 0; i < 1200; ++i)); do
        ! grep -qs -e "$1" "$2" || return 0
        sleep 0.05
    done
    fail "\"$1\" is not in $2: $(tail -n 3 "$2")"
}

# server_up [OPTION=VALUE...]: of the environment
server_up() {
    fabric_up 2
    rm -f stdin
    mkfifo stdin
    env "$@" timeout 200 "$emu" exec -n "$fabric" 0 -- "$run" "$apps/ft_load" server \
        65536 <stdin >server.log 2>&1 &
    server=$!
    exec 9>stdin
    await '^ft: address' server.log
}

server_down() {
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 5 server.log)"
    fabric_down
}

# say PROGRAM [ARG...]: on the other host, with the server's address
say() {
    sed -n 's/^ft: address *//p' server.log |
        timeout 100 "$emu" exec -n "$fabric" 1 -- "$apps/$1" "${@:2}" >say.log 2>&1 ||
        fail "$(tail -n 5 say.log server.log)"
}

# count NAME: a counter of the server, now
count() {
    local shown
    shown=$(grep -c '^ft: shown' server.log || :)
    kill -USR1 "$(program_of $server)"
    while [ "$(grep -c '^ft: shown' server.log || :)" -eq "$shown" ]; do
        kill -0 $server || fail "the server has died: $(tail -n 9 server.log)"
        sleep 0.02
    done
    sed -n "s|^vfs: .*/target/$1 ||p" server.log | tail -n 1
}

# Whoever reaches the queue pair may send them: UCX aborts on some
test_addresses_that_are_none_are_refused() {
    server_up UCX_LOG_LEVEL=error
    say ft_stranger lies
    [ "$(grep -c '^ft: refused' say.log)" -eq 14 ] || fail "$(cat say.log)"
    [ "$(count strangers_answered)" -eq 0 ] || fail "somebody was answered"
    [ "$(count strangers_ignored)" -ge 28 ] || fail "not all were for others"
    server_down
}

# Each claims to be on a port of its own, where nobody is
test_a_flood_of_strangers_is_bounded() {
    local answered
    server_up
    say ft_stranger flood 3000
    answered=$(count strangers_answered)
    echo "# $answered of 3000 were answered"
    [ $((answered + $(count strangers_ignored))) -eq 3000 ] ||
        fail "$answered and $(count strangers_ignored) are not 3000"
    [ "$answered" -le 1024 ] || fail "too many were answered"
    [ "$(count stale)" -eq 3000 ] || fail "they were not for another process"
    server_down
}

test_endpoints_of_guests_are_bounded() {
    server_up UCX_RC_VARUNA_MAX_TARGETS=20 UCX_LOG_LEVEL=error
    say ft_stranger guests 50
    check grep -q '^ft: opened 20 refused 30' say.log
    [ "$(count open)" -eq 20 ] || fail "$(count open) are open"
    server_down
}

test_endpoints_of_one_peer_are_bounded() {
    server_up UCX_RC_VARUNA_MAX_PEER_TARGETS=5 UCX_LOG_LEVEL=error
    say ft_stranger vqps 12
    check grep -q '^ft: opened 5 refused 7' say.log
    server_down
}

test_an_older_peer_is_told() {
    server_up
    say ft_stranger old
    check grep -q '^ft: answered in version' say.log
    check grep -q 'install the same rc_varuna' server.log
    server_down
}

# The requester: it believes only whom it has asked
test_forged_answers_do_nothing() {
    local host
    fabric_up 2
    rm -f stdin
    mkfifo stdin
    timeout 100 "$emu" exec -n "$fabric" 0 -- "$apps/ft_stranger" host <stdin \
        >host.log 2>&1 &
    host=$!
    exec 9>stdin
    await '^ft: address' host.log
    sed -n 's/^ft: address *//p' host.log |
        UCX_LOG_LEVEL=debug timeout 100 "$emu" exec -n "$fabric" 1 -- "$run" \
            "$apps/ft_load" steps >steps.log 2>&1 || :
    exec 9>&-
    wait $host || fail "the host ended with $?: $(tail -n 5 host.log)"
    check grep -q '^ft: asked again' host.log
    check grep -q '^ft: step 1 failed' steps.log
    [ "$(grep -c 'dropped REJECT .*nobody here has asked' steps.log)" -eq 2 ] ||
        fail "2 answers were forged: $(tail -n 5 steps.log)"
    fabric_down
}

run_tests
