#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Processes that fork while UCX is open (test/e2e/api/ft_fork.c): the parent and its peers
# notice nothing, children can use UCX themselves, and no place to fork from is a deadlock.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

export UCX_TLS=rc_varuna UCX_LOG_FILE=stderr

# start NAME HOST WORDS...: starts ft_fork; its input is NAME.in, by descriptor $((NAME_fd))
start() {
    local name=$1 host=$2 fd
    shift 2
    mkfifo "$name.in"
    timeout 600 "$emu" exec -n "$fabric" "$host" -- "$run" "$apps/ft_fork" "$@" \
        <"$name.in" >"$name.out" 2>"$name.log" 7>&- 8>&- 9>&- &
    eval "${name}_pid=$!"
}

# both: a server and a client, which has added once
both() {
    fabric_up
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    start server 0 server "$PWD/address"
    exec 7>server.in
    await_true test -e address
    start client 1 client "$PWD/address"
    exec 8>client.in
    tell client add 1
}

# send NAME COMMAND...
send() {
    case $1 in
    server) echo "${*:2}" >&7 ;;
    client) echo "${*:2}" >&8 ;;
    other) echo "${*:2}" >&9 ;;
    esac
}

# tell NAME COMMAND...: sends the command, and waits for the answer
tell() {
    local count
    count=$(grep -c '^ft: ok' "$1.out") || true
    send "$@"
    await 60 "$1.out" '^ft: ok' $((count + 1))
}

# end: both end, and have complained of nothing
end() {
    exec 8>&-
    wait "$client_pid" || fail "the client: $(tail -n 3 client.out client.log)"
    exec 7>&-
    wait "$server_pid" || fail "the server: $(tail -n 3 server.out server.log)"
    ! grep -aE 'ERROR|async handler' server.log client.log >complaints ||
        fail "$(head -n 3 complaints)"
}

# child HOW: the server forks a child that uses UCX; then the server computes, so that its
# async thread has to execute the atomics
child() {
    local i
    both
    for i in {1..3}; do
        tell server "$1"
        tell server compute
        tell client add 20
    done
    [ "$(grep -c '^ft: child .* is open' server.out)" = 3 ] || fail "$(cat server.out)"
    end
}

test_child_ends_by_exit()  { child exit; }
test_child_ends_by__exit() { child _exit; }
test_grandchild()          { child grandchild; }

# The child has an async thread, a socket for rc_varuna_ctl, and words of its own
test_child_serves() {
    both
    tell server serve
    await_true test -e address.child
    tell server compute
    start other 1 client "$PWD/address.child"
    exec 9>other.in
    tell other add 50
    tell client add 50
    "$RCV_PREFIX/bin/rc_varuna_ctl" --list >list
    [ "$(wc -l <list)" = 4 ] || fail "who can be reached: $(cat list)"
    check "$RCV_PREFIX/bin/rc_varuna_ctl" --all status >status
    exec 9>&-
    wait "$other_pid" || fail "the other client: $(tail -n 3 other.out other.log)"
    tell client add 50
    end
}

# A link of the server fails while it forks, and it forks again while the link returns
test_fork_during_a_recovery() {
    both
    send client add 3000
    link 0:0 down
    tell server exit
    await 60 client.out '^ft: ok add 3000'
    send client add 2000
    link 0:0 up
    tell server grandchild
    await 60 client.out '^ft: ok add 2000'
    end
}

# Where else one may fork: in no place is it a deadlock
test_places_to_fork() {
    local place
    both
    for place in handler blocked storm; do
        tell server $place
        tell client add 20
    done
    tell server callback
    tell client message
    tell client add 20
    tell server compute
    tell client add 20
    end
    grep -qE '^ft: [1-9][0-9]* forks, end' server.out || fail "$(tail -n 1 server.out)"
}

run_tests 2
