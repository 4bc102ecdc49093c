#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# UCX and other programs on Ethernet ports (quirk roce), with GIDs that move, and with
# planes that have the same GID prefix or crossed cables. gtest_mlx5emu tests verbs on
# such ports.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

# fabric_down_checked: fails unless each quirk of the fabric has acted
fabric_down_checked() {
    check "$emu" quirk -n "$fabric" list --check >quirks
    fabric_down
}

# run_perftest ENVIRONMENT0 ENVIRONMENT1 ARGUMENT...: runs ucx_perftest on both hosts.
# UCX's logs are client.log and server.log.
run_perftest() {
    local port server status=0 client_env=$1 server_env=$2
    local settings="UCX_LOG_LEVEL=debug UCX_RC_TIMEOUT=20ms UCX_RC_RETRY_COUNT=3"
    settings+=" UCX_UD_TIMEOUT=${ud_timeout:-100s}"
    shift 2
    next_port

    # shellcheck disable=SC2086 # words without spaces
    timeout 300 "$emu" exec -n "$fabric" 1 -- env $settings $server_env \
        ucx_perftest -p $port "$@" -n 100 >server.log 2>&1 &
    server=$!
    await_listener $port $server
    # shellcheck disable=SC2086
    timeout 300 "$emu" exec -n "$fabric" 0 -- env $settings $client_env \
        ucx_perftest -p $port "$@" -n 100 localhost >client.log 2>&1 || status=$?
    [ $status -eq 0 ] || kill $server 2>/dev/null || true
    wait $server || status=$?
    return $status
}

# perftest TRANSPORT: runs it over the first device of both hosts
perftest() {
    local test=put_bw

    [ "$1" != ud_mlx5 ] || test=am_bw
    run_perftest "" "" -x "$1" -d mlx5_0:1 -t $test
}

# perftest_over DEVICE0 DEVICE1: runs it over rc_mlx5 between these devices. Uses a test
# of UCP, because in tests of UCT both sides use the client's device.
perftest_over() {
    run_perftest "UCX_NET_DEVICES=$1:1 UCX_TLS=rc_x" \
        "UCX_NET_DEVICES=$2:1 UCX_TLS=rc_x" -t ucp_put_bw
}

# fails_over DEVICE0 DEVICE1 PATTERN: the same must fail, and UCX's log match PATTERN
fails_over() {
    if ud_timeout=2s perftest_over "$1" "$2"; then
        fail "a packet crossed from one plane to another"
    fi
    grep -qE "$3" client.log server.log ||
        fail "another reason: $(tail -n 3 client.log)"
}

# selects INDEX LOG: checks that UCX has selected this GID, and no other
selects() {
    grep -oE 'using gid_index [0-9]+' "$2" | sort -u >selected
    [ "$(cat selected)" = "using gid_index $1" ] ||
        fail "UCX is $(cat selected), not $1"
}

# link_layer NAME LOG: checks the link layer of the ports that UCX has opened
link_layer() {
    grep -q "mlx5_0:1/$1" "$2" || fail "UCX has opened no port of kind $1"
}

# Index 3 is RoCE v2 with the IPv4 address, according to the sysfs files that UCX reads
test_ucx_selects_roce_v2() {
    local transport

    fabric_up --quirk roce
    for transport in rc_mlx5 dc_mlx5 ud_mlx5; do
        check perftest $transport
        selects 3 client.log
        selects 3 server.log
        link_layer RoCE client.log
    done
    fabric_down_checked
}

test_ucx_on_infiniband() {
    fabric_up
    check perftest rc_mlx5
    ! grep -q 'using gid_index' client.log || fail "UCX selects a GID on InfiniBand"
    link_layer IB client.log
    check "$emu" quirk -n "$fabric" list >quirks
    ! grep -q acted quirks || fail "a quirk has acted"
}

# With another index, UCX uses another RoCE version
test_ucx_with_index() {
    fabric_up --quirk roce
    UCX_IB_GID_INDEX=0 check perftest rc_mlx5
    ! grep -q 'using gid_index' client.log || fail "UCX selects a GID"
    grep -q 'dgid=fe80::202:c9ff:fe00:100 sgid_index=0' client.log ||
        fail "$(grep -o 'dgid.*' client.log)"
    fabric_down_checked
}

test_ucx_follows_gid_that_has_moved() {
    fabric_up --quirk roce --quirk 0:0=gid-moves
    check perftest rc_mlx5
    selects 3 client.log
    link 0:0 down
    link 0:0 up
    check perftest rc_mlx5
    selects 7 client.log
    selects 3 server.log
    fabric_down_checked
}

test_ucx_after_lid_has_moved() {
    fabric_up --quirk 0:0=gid-moves
    link 0:0 down
    link 0:0 up
    check perftest rc_mlx5
    fabric_down_checked
}

# UCX takes planes with the same prefix for one plane, and fails after a timeout
test_ucx_takes_planes_for_one() {
    fabric_up --quirk same-gid
    check perftest_over mlx5_0 mlx5_0
    fails_over mlx5_0 mlx5_1 'UD endpoint .* unhandled timeout error'
    fabric_down_checked
}

# Without the quirk, prefixes differ
test_ucx_tells_planes_apart() {
    fabric_up
    check perftest_over mlx5_0 mlx5_0
    fails_over mlx5_0 mlx5_1 'ERROR.*[Uu]nreachable'
}

test_ucx_on_miswired_host() {
    fabric_up --quirk 1=miswired
    check perftest_over mlx5_0 mlx5_1
    fails_over mlx5_0 mlx5_0 'ERROR.*[Uu]nreachable'
    fabric_down_checked
}

# Programs of ibverbs-utils, which take the index of a GID as an option
test_ibv_programs() {
    fabric_up --quirk roce
    check "$emu" exec -n "$fabric" 1 -- ibv_devinfo -v -d mlx5_1 >info
    grep -q 'link_layer:.*Ethernet' info || fail "$(grep link_layer info)"
    grep -q 'port_lid:[^0-9]*0$' info || fail "$(grep port_lid info)"
    grep -qE 'GID\[ *3\]:.*::ffff:10.1.0.2, RoCE v2' info || fail "$(grep GID info)"
    grep -qE 'GID\[ *4\]:.*fd00:0000:0000:0001:.*:0002, RoCE v1' info ||
        fail "$(grep GID info)"
    fabric_down_checked
}

run_tests 2
