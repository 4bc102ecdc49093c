#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The control plane of a live process, spoken to by a program that has nothing but UCX
# (test/apps/ft_ctl.c).

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/ft_jobs.sh"

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

test_plain_ucx_is_answered() {
    local server mismatched
    fabric_up 2
    mkfifo stdin
    timeout 100 "$emu" exec -n "$fabric" 0 -- "$run" "$apps/ft_load" server 65536 \
        <stdin >server.log 2>&1 &
    server=$!
    exec 9>stdin
    await '^ft: address' server.log
    sed -n 's/^ft: address *//p' server.log |
        timeout 100 "$emu" exec -n "$fabric" 1 -- "$apps/ft_greet" >greet.log 2>&1 ||
        fail "$(tail -n 5 greet.log server.log)"
    check grep -q '^ft: greeted on 2 links' greet.log
    # What was forged on both links did nothing, as they were greeted, and was counted
    kill -USR1 "$(program_of $server)"
    await '^ft: shown' server.log
    mismatched=$(sed -n 's|^vfs: .*/target/mismatched ||p' server.log)
    [ "$mismatched" -ge 14 ] || fail "of 14 forged messages $mismatched were counted"
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 5 server.log)"
    fabric_down
}

run_tests
