#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Mode proxy: the target's memory changes while its CPU executes atomics there
# (test/e2e/atomics/ft_atom_memory.c). Each atomic is executed and returns its result,
# or is refused and not executed. Nothing else fails, and no process waits forever.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

app=$apps/ft_atom_memory

# story NAME ROUNDS [PATTERN]: runs it; the server's log must match PATTERN
story() {
    local server status=0
    export UCX_LOG_LEVEL=warn
    fabric_up
    rm -f shared server.out client.out
    truncate -s 64K shared
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" "$app" server "$PWD/shared" \
        "$1" "$2" >server.out 2>&1 &
    server=$!
    timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" "$app" client "$PWD/shared" \
        >client.out 2>&1 || status=$?
    wait $server || fail "$1: the server: $(tail -n 5 server.out; tail -n 2 client.out)"
    [ $status -eq 0 ] || fail "$1: the client: $(tail -n 5 client.out)"
    grep -q "^ft: ok $2 rounds" server.out || fail "$1: $(tail -n 3 server.out)"
    grep -qE "${3:-ft: ok}" server.out || fail "$1: no \"$3\": $(tail -n 3 server.out)"
}

test_deregistered() {
    story dereg 100
}

test_deregistered_in_blocked_context() {
    story blocked 100
}

# ... inside munmap(), by an event handler, as in registration caches
test_deregistered_by_memory_hook() {
    story hook 100 '100 hooks'
}

# One warning for all atomics of an interval
test_faults() {
    local name
    for name in unmapped readonly none truncated; do
        story $name 5 'is not mapped, or cannot be written'
    done
}

# Nothing is executed while the application has blocked the async context and makes no
# progress; then everything continues
test_context_blocked_for_long() {
    story asleep 2
}

run_tests 2
