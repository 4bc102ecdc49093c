#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A client is lost while UCP connects it: the server's UCP has made an endpoint, and its
# answer waits for that endpoint to open. UCP 1.13 aborts the process if the transport gives
# that answer back (test/e2e/peers/ft_wireup.c).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

export UCX_TLS=rc_varuna UCX_LOG_LEVEL=debug UCX_LOG_FILE=stderr
export UCX_RC_VARUNA_GIVE_UP=5s UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0

# start NAME HOST WORDS...: starts ft_wireup; its input is NAME.in
start() {
    local name=$1 host=$2
    shift 2
    mkfifo "$name.in"
    timeout 600 "$emu" exec -n "$fabric" "$host" -- "$run" "$apps/ft_wireup" "$@" \
        <"$name.in" >"$name.out" 2>"$name.log" 7>&- 8>&- &
    eval "${name}_pid=$!"
}

# lose_client MODE: a client connects to a server. The server's UCP makes an endpoint, which
# cannot reach the client: what the server sends after its first answer is lost. Then the
# client is killed
lose_client() {
    fabric_up
    start server 0 server "$PWD/address" "$1"
    exec 7>server.in
    await_true test -e address
    fault packet host=0 peer=1 op=send nth=2 count=all drop
    start client 1 client "$PWD/address"
    exec 8>client.in
    await 60 server.log 'send OPEN_REQ'
    await_faults
    ! grep -q 'received OPEN_REP' server.log || fail "the server's endpoint is open"
    kill_client
}

kill_client() {
    disown "$client_pid"
    kill -KILL "$(program_of "$client_pid")"
    exec 8>&-
    rm client.in
}

# end_server: the server goes on, and ends when it is told to
end_server() {
    exec 7>&-
    wait "$server_pid" || fail "the server ended with $?: $(grep -av DEBUG server.log | tail -n 5)"
    grep -qx 'ft: ok' server.out || fail "$(tail -n 3 server.out)"
    fabric_down --force # The killed client
}

# gives_up MODE: the server's endpoint fails, and the server serves the next client
gives_up() {
    lose_client "$1"
    await 60 server.log 'vqp=[0-9]*: opening -> failed'
    check "$emu" fault clear -n "$fabric"
    start client 1 client "$PWD/address"
    exec 8>client.in
    await 60 client.out '^ft: open'
    echo >&8
    await 60 client.out '^ft: answered'
    kill_client
    end_server
}

test_server_gives_up_a_lost_client()              { gives_up poll; }
test_server_that_sleeps_gives_up_a_lost_client()  { gives_up sleep; }

# The server ends while its endpoint is not open
closes() {
    lose_client "$1"
    end_server
}

test_server_ends_before_it_gives_up()             { closes poll; }
test_server_that_sleeps_ends_before_it_gives_up() { closes sleep; }

run_tests 2
