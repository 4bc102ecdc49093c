#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Who finds out that a link is dead, and what for: heartbeat, hung requests, an
# outside detector. A UCP job with checked contents runs over rc_varuna; the NIC's own
# timers are so long that they would not find anything within the test. A test
# waits for log lines and for the program, never for a time.

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

emu=$RCV_PREFIX/bin/mlx5emu
run=$RCV_PREFIX/bin/rc_varuna_run
program=$RCV_BUILD/src/tools/demo/varuna_demo
fabric=detect-$$

unset "${!UCX_@}"
export UCX_TLS=rc_varuna UCX_LOG_LEVEL=info
# The NIC gives up after more than 20 s
export UCX_RC_MLX5_TIMEOUT=4s UCX_RC_MLX5_RETRY_COUNT=7
export UCX_DC_MLX5_TIMEOUT=4s UCX_DC_MLX5_RETRY_COUNT=7

fabric_up() {
    check "$emu" up -n "$fabric" "$@"
    trap '"$emu" down -n "$fabric" --force >/dev/null 2>&1' EXIT
}

fabric_down() {
    check "$emu" down -n "$fabric"
    trap - EXIT
}

link() {
    check "$emu" link -n "$fabric" "$@"
}

# await SECONDS FILE PATTERN: until the file says it
await() {
    local i
    for ((i = 0; i < $1 * 20; ++i)); do
        ! grep -qE "$3" "$2" 2>/dev/null || return 0
        sleep 0.05
    done
    fail "\"$3\" did not come in $1 s: $(tail -n 5 "$2")"
}

# server HOST NAME [ENV...]: sets server_pid
server() {
    local host=$1 name=$2
    shift 2
    env "$@" timeout 120 "$emu" exec -n "$fabric" "$host" -- \
        stdbuf -oL "$run" "$program" server -p 0 -w 1 -P "$PWD/$name.port" \
        -g 60 >"$name.log" 2>&1 &
    server_pid=$!
    await 20 "$name.port" .
}

# client HOST NAME SERVER ARGS...: sets client_pid
client() {
    local host=$1 name=$2 server=$3
    shift 3
    timeout 120 "$emu" exec -n "$fabric" "$host" -- stdbuf -oL "$run" \
        "$program" client 127.0.0.1 -p "$(cat "$server.port")" -w 1 -g 60 "$@" \
        >"$name.log" 2>&1 &
    client_pid=$!
    await 20 "$name.log" "of load"
}

test_heartbeat_finds_a_silent_link() {
    fabric_up --hosts 2 --links 2
    server 0 server
    client 1 client server -t 4 -r 2000
    link 0:0 silent
    await 20 client.log 'switched .*reason="heartbeat lost"'
    wait $client_pid || fail "client: $(tail -n 3 client.log)"
    wait $server_pid || fail "server: $(tail -n 3 server.log)"
    grep -q 'heartbeat: peer .* is silent on mlx5_0:1 .* link or remote port' \
        client.log || fail "the fault was not told"
    fabric_down
}

run_tests
