#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The detectors of a dead link: heartbeat, hung requests, an external detector. A UCP
# job with checked contents runs over rc_varuna. The NIC's own timers are too long to
# detect anything within the test. A test waits for log lines and for the program, never
# for a fixed time.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

program=$RCV_BUILD/src/tools/demo/varuna_demo

ucx_defaults
export UCX_TLS=rc_varuna UCX_LOG_LEVEL=info
# The NIC gives up after more than 20 s
nic_gives_up 4s 7
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s

# Without DC, RC is the first lane
connected="planned swap from .* to rc on ${nics}_0:1"
[ $nics = mlx5 ] || connected="opening -> backlog .rc .*on ${nics}_0:1"

# server HOST NAME [ENV...]: sets server_pid
server() {
    local host=$1 name=$2
    shift 2
    env UCX_LOG_LEVEL=debug "$@" timeout 600 "$emu" exec -n "$fabric" "$host" -- \
        stdbuf -oL "$run" "$program" server -p 0 -w "${workers:-1}" -P "$PWD/$name.port" \
        -g 500 >"$name.log" 2>&1 &
    server_pid=$!
    await 60 "$name.port" .
}

# client HOST NAME SERVER ARGS...: sets client_pid. Waits until all endpoints (lanes) of
# both sides are on RC on the first link. A cut before that may hit nothing, and UCP
# 1.13 aborts if an endpoint fails before it has sent its answer to a new endpoint
client() {
    local host=$1 name=$2 server=$3
    shift 3
    UCX_LOG_LEVEL=debug timeout 600 "$emu" exec -n "$fabric" "$host" -- stdbuf -oL \
        "$run" "$program" client 127.0.0.1 -p "$(cat "$server.port")" -w 1 -g 500 "$@" \
        >"$name.log" 2>&1 &
    client_pid=$!
    await 60 "$name.log" "$connected" "${lanes:-1}"
    await 60 "$server.log" "$connected" "${lanes:-1}"
}

# all_good: waits for the end of the client's load, which must have no error
all_good() {
    kill -INT "$(program_of "$client_pid")"
    wait $client_pid || fail "client: $(tail -n 3 client.log)"
    wait $server_pid || fail "server: $(tail -n 3 server.log)"
}

test_heartbeat_finds_a_silent_link() {
    export UCX_RC_VARUNA_HANG_TIMEOUT=10m
    fabric_up
    server 0 server
    client 1 client server -t 1000 -r 2000
    link 0:0 silent
    await 60 client.log 'switched .*reason="heartbeat lost"'
    all_good
    grep -q "heartbeat: peer .* is silent on ${nics}_0:1 .* unknown fault: our port, the peer" \
        client.log || fail "the fault was not logged"
}

# A stopped peer, including its control plane, is silent on all links. That is no reason
# to switch
test_stopped_peer_is_no_dead_link() {
    local program_pid
    fabric_up
    server 0 server
    program_pid=$(program_of "$server_pid")
    client 1 client server -t 1000 -r 1000
    # The heartbeat pings while requests are in flight: the endpoint is connected
    await 60 client.log ' [1-9][0-9]* op/s'
    kill -STOP "$program_pid"
    await 60 client.log 'peer .* is silent on all links'
    kill -CONT "$program_pid"
    await 60 client.log 'peer .* answers again'
    all_good
    ! grep -q 'rc_varuna: switched' client.log || fail "it switched"
}

test_requests_hang() {
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=1s
    fabric_up
    server 0 server
    client 1 client server -t 1000 -r 1000
    link 0:0 silent
    await 60 client.log 'switched .*reason="requests hang"'
    all_good
}

ctl() {
    "$RCV_PREFIX/bin/rc_varuna_ctl" -d "$PWD/ctl" "$@"
}

test_outside_detector() {
    local pid
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    fabric_up
    server 0 server UCX_RC_VARUNA_CTL_DIR=none
    client 1 client server -t 1000 -r 500
    pid=$(ctl --list)
    [ -n "$pid" ] || fail "the client has no socket"
    [ "$(stat -c %a ctl)" = 700 ] || fail "the directory's access is $(stat ctl)"

    check ctl "$pid" link "${nics}_0:1" down
    await 60 client.log "link ${nics}_0:1 is marked down from outside: traffic leaves it"
    until_status "link=${nics}_0:1 priority=0 state=down down_by=admin"
    check ctl --all link "${nics}_0:1" up
    await 60 client.log "planned .*to ${nics}_0:1|link ${nics}_0:1 is marked up"

    fails 1 "no such link" ctl "$pid" link "${nics}_7:1" down
    fails 1 "no such link" ctl "$pid" link "${nics}_7:1" fail
    fails 1 "expected" ctl "$pid" link "${nics}_0:1" sideways
    fails 1 "no process" ctl 999999999 status
    fails 2 "no process given" ctl status
    fails 2 "no valid command" ctl "$pid"

    until_status "link=${nics}_0:1 .*state=up"
    check ctl "$pid" failover force
    await 60 client.log "failover from ${nics}_0:1 is forced"
    until_status "link=${nics}_0:1 .*state=down down_by=forced"
    check ctl "$pid" failover revoke
    until_status "link=${nics}_0:1 .*state=up down_by=-"

    all_good
    [ -z "$(ls ctl)" ] || fail "a socket was left: $(ls ctl)"
}

# As in two containers that share the directory of the sockets: one process has the pid of the
# other one there
test_processes_with_one_pid() {
    local pid ctl=$RCV_PREFIX/bin/rc_varuna_ctl
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    fabric_up
    server 0 server
    client 1 client server -t 1000 -r 500
    pid=$(program_of "$server_pid")
    mv ctl/"$(program_of "$client_pid")"-*.sock "ctl/$pid-container.sock"

    "$ctl" --list >list
    [ "$(wc -l <list)" = 2 ] || fail "$(cat list)"
    grep -qx "$pid-container" list || fail "$(cat list)"
    grep -qxE "$pid-[0-9a-f]{8}" list || fail "$(cat list)"
    check "$ctl" "$pid" status >status
    grep -q "^pid=$pid-container iface=0 link=${nics}_0:1 " status || fail "$(cat status)"
    grep -qE "^pid=$pid-[0-9a-f]{8} iface=0 link=${nics}_0:1 " status || fail "$(cat status)"
    check "$ctl" "$pid-container" link "${nics}_0:1" fail
    await 60 client.log "link ${nics}_0:1 is marked failed from outside"
    ! grep -q 'from outside' server.log || fail "the other process obeys as well"
    fails 1 "no process" "$ctl" "$pid-nobody" status
    fails 1 "have no sockets" env UCX_RC_VARUNA_CTL_DIR=none "$ctl" --all status

    # Each removes a socket only if it is its own
    all_good
    [ "$(ls ctl)" = "$pid-container.sock" ] || fail "left: $(ls ctl)"
    [ -z "$("$ctl" --list)" ] || fail "a dead process is listed"
    [ -z "$(ls ctl)" ] || fail "a dead process's socket is left: $(ls ctl)"
}

# status_of MODE: of a job whose workers have this mode of asynchronous progress
status_of() {
    local server client args=(-A "$1" -x rc_varuna -d "varuna_${nics}_0:1" -t put_lat -n 1000000000)
    fabric_up
    next_port
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" ucx_perftest -p $port "${args[@]}" \
        >server.log 2>&1 &
    server=$!
    await_listener $port $server
    : >client.log # That of a previous client is connected
    UCX_LOG_LEVEL=debug timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" ucx_perftest localhost \
        -p $port "${args[@]}" >client.log 2>&1 &
    client=$!
    await 60 client.log "$connected"
    check ctl --all status >status
    kill "$(program_of $client)" "$(program_of $server)"
    wait $client $server || true
    fabric_down
}

# Peers are listed if UCX's lock excludes the thread that answers
test_status_of_workers_without_a_thread() {
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    unset UCX_TLS
    status_of thread_spinlock
    grep -q ' peers\?=' status || fail "no peers: $(cat status)"
    status_of signal
    grep -q ' link=' status || fail "no links: $(cat status)"
    ! grep ' peers\?=' status || fail "peers are listed"
}

# Another thread closes a worker meanwhile: the answer is that the process is busy
test_busy_process_is_asked_again() {
    local server
    mkdir busy
    python3 - <<'EOF' &
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("busy/new")
s.listen()
os.rename("busy/new", "busy/7-0.sock")
s.accept() # Whether the process lives
for answer in 2 * [b"error: the process is busy; ask again\n"] + [b"ok\nthe links\n"]:
    connection, _ = s.accept()
    assert connection.recv(256) == b"status"
    connection.send(answer)
    connection.close()
EOF
    server=$!
    comes test -S busy/7-0.sock
    "$RCV_PREFIX/bin/rc_varuna_ctl" -d busy 7 status >status || fail "it gave up"
    grep -qx 'pid=7 the links' status || fail "$(cat status)"
    wait $server || fail "the process ended with $?"
}

test_link_is_marked_failed() {
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    fabric_up
    server 0 server UCX_RC_VARUNA_CTL_DIR=none
    client 1 client server -t 1000 -r 500
    check ctl --all link "${nics}_0:1" fail
    await 60 client.log "switched .*from=${nics}_0:1 .*to=${nics}_1:1 .*reason=\"marked failed\""
    until_status "link=${nics}_0:1 .*state=down down_by=admin"
    check ctl --all link "${nics}_0:1" up
    until_status "link=${nics}_0:1 .*state=up down_by=-"
    all_good
}

# The mark of a process that only receives: its peers recover, too, although their own link
# to it answers, and they return when it is removed
test_peer_marks_its_link_failed() {
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    fabric_up
    server 0 server
    client 1 client server -t 1000 -r 500
    check ctl "$(program_of "$server_pid")" link "${nics}_0:1" fail
    await 60 client.log "switched .*from=${nics}_0:1 .*to=${nics}_1:1 .*reason=\"the peer's port is down\""
    await 60 client.log 'peer .* has retired its ends of links 0x1'
    check ctl "$(program_of "$server_pid")" link "${nics}_0:1" up
    await 60 client.log 'peer .* has retired its ends of links 0x0'
    all_good
}

# status_is PATTERN
status_is() {
    ctl --all status >status
    grep -qE "$1" status
}

# until_status PATTERN
until_status() {
    comes status_is "$1" || fail "status is not $1: $(cat status)"
}

# All links fail, and one returns before the give-up time: no request fails. Meanwhile
# the client sleeps in epoll, and must not spin
test_all_links_gone_one_returns() {
    local program_pid used
    export UCX_RC_VARUNA_GIVE_UP=10m
    fabric_up
    server 0 server
    client 1 client server -t 1000 -r 500 -W
    program_pid=$(program_of "$client_pid")
    link 1:0 down
    link 1:1 down
    await 60 client.log "link ${nics}_1:1 is down"
    # It does what it can, and then it sleeps
    safety=20 comes sleeps "$program_pid" || fail "it spins: $used ticks"
    # 300 ticks of 10 ms would be a whole core
    echo "# $used of 300 ticks of CPU time without a link"
    link 1:1 up
    await 60 client.log "switched .*to=${nics}_1:1"
    all_good
}

# sleeps PID: sets $used to the CPU time of 3 s, which is less than a quarter of a core
sleeps() {
    local before
    before=$(cpu_ticks "$1")
    sleep 3
    used=$(($(cpu_ticks "$1") - before))
    [ $used -lt 75 ]
}

# A link that has failed a few times is held down, here for an hour. If it is the last
# link to the peer, it is used at once
test_last_link_is_not_held_down() {
    export UCX_RC_VARUNA_HOLD_MIN=3600s UCX_RC_VARUNA_HOLD_MAX=3600s UCX_RC_VARUNA_GIVE_UP=10m
    fabric_up --hosts 2 --links 2
    server 0 server
    client 1 client server -t 1000 -r 500
    link 1:0 down
    link 1:1 down
    await 60 client.log "link ${nics}_1:1 is down"
    link 1:1 up
    await 60 client.log "link ${nics}_1:1 is up again, and can be used in 3600"
    await 60 client.log "switched .*to=${nics}_1:1"
    all_good
}

# No link returns: the endpoint fails, and each completion is called exactly once
test_all_links_gone_for_good() {
    export UCX_RC_VARUNA_GIVE_UP=5s
    fabric_up
    server 0 server
    client 1 client server -t 1000 -r 500
    link 1:0 down
    link 1:1 down
    await 60 client.log '^ *FAILED: .*Endpoint timeout'
    ! wait $client_pid || fail "the client noticed nothing"
    grep -qE 'completions +([0-9]+) of \1, [1-9][0-9]* with an error, 0 twice' \
        client.log ||
        fail "completions: $(grep completions client.log)"
    fabric_down --force # It also ends the server, if it is still running
}

# A link that fails repeatedly is held down, here for longer than the test takes. Without
# damping, traffic would move back at each return
test_flapping_is_damped() {
    local i switches
    export UCX_RC_VARUNA_HOLD_MIN=1000s UCX_RC_VARUNA_HOLD_MAX=1000s
    fabric_up
    server 0 server
    client 1 client server -t 1000 -r 500
    for ((i = 1; i <= 12; ++i)); do
        link 1:0 down
        await 60 client.log "link ${nics}_0:1 is down: port event" $i
        link 1:0 up
        await 60 client.log "link ${nics}_0:1 is up again" $i
        sleep 0.1 # Traffic would return now
    done
    all_good
    switches=$(grep -c "switched .*from=${nics}_0:1" client.log || true)
    echo "# 12 failures, $switches switches"
    [ "$switches" -eq 1 ] ||
        fail "$switches switches: $(grep -c 'is up again' client.log) times up"
}

# cpu_ticks PID: user and system time, in hundredths of a second
cpu_ticks() {
    awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

run_tests 3
