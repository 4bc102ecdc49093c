#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# What a server holds for clients which die without a word, and for those that only
# seem to be dead. The server's counters are read from UCX's VFS tree.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"

emu=$RCV_PREFIX/bin/mlx5emu
run=$RCV_PREFIX/bin/rc_varuna_run
load=$RCV_BUILD/test/e2e/ft_load
fabric=orphans-$$

unset "${!UCX_@}"
export UCX_LOG_LEVEL=info
export UCX_RC_MLX5_TIMEOUT=10ms UCX_RC_MLX5_RETRY_COUNT=2
export UCX_DC_MLX5_TIMEOUT=10ms UCX_DC_MLX5_RETRY_COUNT=2
export UCX_RC_VARUNA_ORPHAN_TIMEOUT=1s

fabric_up() {
    check "$emu" up -n "$fabric" --hosts 2 --links 2
    trap '"$emu" down -n "$fabric" --force >/dev/null 2>&1' EXIT
}

fabric_down() {
    check "$emu" down -n "$fabric"
    trap - EXIT
}

# await PATTERN FILE: up to 60 s
await() {
    local i
    for ((i = 0; i < 1200; ++i)); do
        ! grep -qs -e "$1" "$2" || return 0
        sleep 0.05
    done
    fail "\"$1\" is not in $2: $(tail -n 3 "$2")"
}

# program_of PID: the program that mlx5emu became, or runs
program_of() {
    pgrep -P "$1" | while read -r child; do
        program_of "$child"
    done | grep . || echo "$1"
}

# start_server MODE: ends when descriptor 9 is closed
start_server() {
    mkfifo stdin
    timeout 200 "$emu" exec -n "$fabric" 0 -- "$run" "$load" "$1" 65536 \
        <stdin >server.log 2>&1 &
    server=$!
    exec 9>stdin
    await '^ft: address' server.log
    sed -n 's/^ft: address *//p' server.log >address
    server_program=$(program_of $server)
}

# counter NAME: as it is now
counter() {
    local shown
    shown=$(grep -c '^ft: shown' server.log || :)
    kill -USR1 "$server_program"
    while [ "$(grep -c '^ft: shown' server.log)" -eq "$shown" ]; do
        kill -0 $server || fail "the server has died: $(tail -n 9 server.log)"
        sleep 0.02
    done
    sed -n "s|^vfs: .*/target/$1 ||p" server.log | tail -n 1
}

# until_counter NAME VALUE
until_counter() {
    local i
    for ((i = 0; i < 600; ++i)); do
        [ "$(counter "$1")" != "$2" ] || return 0
        sleep 0.1
    done
    fail "$1 is $(counter "$1") and not $2: $(tail -n 5 server.log)"
}

# start_client N: steps.N is a pipe, each line of which is one put
start_client() {
    mkfifo "steps.$1"
    timeout 200 "$emu" exec -n "$fabric" 1 -- "$run" "$load" steps \
        <"steps.$1" >"client.$1.log" 2>&1 9>&- &
    client=$!
}

# Ten are there at a time; each is killed while the others are
test_50_killed_clients_leave_nothing() {
    local i round pids hold
    fabric_up
    start_server quitter
    for round in {0..4}; do
        pids=()
        for i in {0..9}; do
            start_client "$round$i"
            pids+=($client)
            exec {hold}<>"steps.$round$i" # No end of its input
            cat address >&$hold
        done
        for i in {0..9}; do
            await '^ft: step 1' "client.$round$i.log"
        done
        for i in {0..9}; do
            disown "${pids[i]}"
            kill -KILL "$(program_of "${pids[i]}")"
        done
    done
    until_counter given_up 50
    until_counter open 0
    echo "# $(counter orphans) are kept for a while"

    # The program ends with all open, and messages under way
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 5 server.log)"
    fabric_down
}

test_stopped_client_keeps_its_target() {
    fabric_up
    start_server server
    start_client 0
    exec 8>steps.0
    cat address >&8
    await '^ft: step 1' client.0.log
    kill -STOP "$(program_of $client)"
    sleep 3
    [ "$(counter open)" = 1 ] || fail "it was given up"
    kill -CONT "$(program_of $client)"
    echo >&8
    await '^ft: step 2$' client.0.log
    exec 8>&-
    wait $client || fail "the client failed: $(tail -n 3 client.0.log)"
    until_counter open 0
    [ "$(counter given_up)" = 0 ] || fail "it was given up"
    exec 9>&-
    wait $server || fail "the server ended with $?"
    fabric_down
}

# It does nothing while it is cut off, so that it cannot know
test_cut_off_client_is_told() {
    local status=0
    fabric_up
    start_server server
    start_client 0
    exec 8>steps.0
    cat address >&8
    await '^ft: step 1' client.0.log
    sleep 1 # RC is connected
    check "$emu" link -n "$fabric" 1:0 silent
    check "$emu" link -n "$fabric" 1:1 silent
    until_counter given_up 1
    check "$emu" link -n "$fabric" 1:0 up
    check "$emu" link -n "$fabric" 1:1 up
    echo >&8
    await '^ft: step 2 failed' client.0.log
    exec 8>&-
    wait $client || status=$?
    [ $status -eq 1 ] || fail "the client ended with $status"
    check grep -q 'peer refused vQP' client.0.log
    exec 9>&-
    wait $server || fail "the server ended with $?"
    fabric_down
}

run_tests 3
