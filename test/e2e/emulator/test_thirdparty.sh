#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Debian's own programs for RDMA NICs (ibverbs-utils, perftest), unmodified, on emulated
# hosts: over the verbs, without UCX. Each must exit with status 0 and print a rate
# above 0, and the trace must contain its operations.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

next_port

# needs PROGRAM...: checks that these external programs are installed
needs() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null ||
            fail "$program is not installed (contrib/setup.sh does it)"
    done
}

# pair PROGRAM ARGUMENT...: runs a server on host 0 and its client on host 1
pair() {
    local server status=0 tries
    needs "$1"
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$@" >server.log 2>&1 &
    server=$!
    # They do not report when they listen on TCP, so try until one answers
    for tries in {1..600}; do
        status=0
        timeout 300 "$emu" exec -n "$fabric" 1 -- "$@" localhost \
            >client.log 2>&1 || status=$?
        grep -qiE "couldn't connect|unable to connect" \
            client.log || break
        kill -0 "$server" 2>/dev/null || break
        pause 0.1
    done
    wait "$server" || fail "$1: the server failed: $(tail -n 3 server.log)"
    [ $status -eq 0 ] || fail "$1: the client failed: $(tail -n 3 client.log)"
    if grep -iE "fail|error|unable|bad " client.log server.log; then
        fail "$1 complains"
    fi
}

# traced OP COUNT: checks that at least COUNT operations were executed
traced() {
    local count
    check "$emu" trace -n "$fabric" --json >trace.json
    count=$(grep -cE "\"op\": ?\"$1\"" trace.json || true)
    [ "$count" -ge "$2" ] || fail "$count of $2 operations $1 were executed"
}

# pingpong PROGRAM COUNT ARGUMENT...: runs it; both sides send COUNT messages
pingpong() {
    local program=$1 count=$2
    shift 2
    fabric_up --links 1 --trace 65536
    pair "$program" -p "$port" -n "$count" "$@"
    check grep -qE "^$count iters in .* usec/iter" client.log
    traced send $((2 * count))
}

# perftest PROGRAM OP COUNT ARGUMENT...: runs it; the client's last line of numbers must
# have the count, and a rate or a latency above 0
perftest() {
    local program=$1 op=$2 count=$3
    shift 3
    fabric_up --links 1 --trace 65536
    pair "$program" -p "$port" -n "$count" "$@"
    check awk -v count="$count" '
        $1 ~ /^[0-9]+$/ && $2 >= count { found = ($4 + 0 > 0) }
        END { exit !found }' client.log
    traced "$op" "$count"
}

test_ibv_devinfo() {
    needs ibv_devinfo
    fabric_up --links 1 --trace 65536
    check "$emu" exec -n "$fabric" 0 -- ibv_devinfo -v >info.log 2>&1
    check grep -qE 'hca_id:.*mlx5_0' info.log
    check grep -qE 'state:.*PORT_ACTIVE' info.log
    check grep -qE 'atomic_cap:.*ATOMIC_HCA' info.log
    link 0:0 down
    check "$emu" exec -n "$fabric" 0 -- ibv_devinfo >info.log 2>&1
    check grep -qE 'state:.*PORT_DOWN' info.log
}

test_ibv_rc_pingpong()          { pingpong ibv_rc_pingpong 500; }
test_ibv_rc_pingpong_events()   { pingpong ibv_rc_pingpong 200 -e; }
test_ibv_rc_pingpong_new_send() { pingpong ibv_rc_pingpong 500 -N -c; }
test_ibv_srq_pingpong()         { pingpong ibv_srq_pingpong 500; }
test_ibv_ud_pingpong()          { pingpong ibv_ud_pingpong 500; }

test_ib_write_bw()   { perftest ib_write_bw write 500; }
test_ib_write_lat()  { perftest ib_write_lat write 500; }
test_ib_read_bw()    { perftest ib_read_bw read 500; }
test_ib_send_bw()    { perftest ib_send_bw send 500; }
test_ib_atomic_bw()  { perftest ib_atomic_bw faa 500; }
test_ib_atomic_cas() { perftest ib_atomic_bw cas 500 -A CMP_AND_SWAP; }

# Without ibv_wr_start() and related functions, which the tests above use
test_ib_write_bw_post_send() {
    perftest ib_write_bw write 500 --use_old_post_send
}

test_ib_send_bw_ud()     { perftest ib_send_bw send 500 -c UD -s 2048; }
test_ib_send_bw_events() { perftest ib_send_bw send 500 -e; }
test_ib_write_bw_qps()   { perftest ib_write_bw write 2000 -q 4 -m 1024; }

run_tests
