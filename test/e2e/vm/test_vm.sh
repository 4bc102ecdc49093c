#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Virtual machines whose kernel emulates RoCE devices (rdma_rxe): UCX's own verbs
# transports work over lossy networks, devices follow their cables, and
# rc_varuna_check's results are true there. All tests share two machines.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"

vm=$top/contrib/vm/vm.sh
RC_VARUNA_VM_DIR=$(mktemp -d)/vm
export RC_VARUNA_VM_DIR

# await_state HOST DEVICE STATE: waits until the kernel reports this of a device
await_state() {
    check timeout 300 "$vm" exec "$1" bash -c \
        "until [ -n \"\$(rdma link show $2/1 | grep 'state $3 ')\" ]; do sleep 0.1; done"
}

# server HOST PORT COMMAND...: runs the command in the background, until it listens
server() {
    local host=$1 hex
    hex=$(printf ':%04X [0-9A-F:]* 0A ' "$2")
    timeout 620 "$vm" exec "${settings[@]}" "$host" timeout 600 "${@:3}" >server.log 2>&1 &
    server=$!
    check timeout 300 "$vm" exec "$host" bash -c \
        "until grep -q '$hex' /proc/net/tcp /proc/net/tcp6; do sleep 0.1; done"
}

test_devices_follow_cables() {
    [ "$("$vm" exec h0 ibv_devices | grep -c rxe)" = 2 ] || fail "h0 has not two devices"
    check "$vm" cable h0 1 out
    await_state h0 rxe1 DOWN
    await_state h1 rxe1 ACTIVE
    check "$vm" cable h0 1 in
    await_state h0 rxe1 ACTIVE
}

# lossy TRANSPORT OPERATION: a run of ucx_perftest
lossy() {
    settings=(--env UCX_TLS=$1 --env UCX_NET_DEVICES=rxe0:1 --env UCX_IB_GID_INDEX=0)
    server h0 13337 ucx_perftest
    check timeout 620 "$vm" exec "${settings[@]}" h1 timeout 600 ucx_perftest \
        10.76.0.1 -t "$2" -n 50 -w 0 >client.log
    check wait $server
    grep -q '^Final: *50 ' client.log || fail "$2: $(cat client.log)"
}

# was_packet_lost: whether h0 has dropped one
was_packet_lost() {
    "$vm" exec h0 tc -s qdisc show dev eth0 >lost
    grep -qE 'dropped [1-9]' lost
}

# Packets are lost, and the kernel sends them again. A run takes ten seconds, so the other
# operations are run only with RC_VARUNA_LONG
test_ucx_loses_packets() {
    local i
    check "$vm" exec h0 tc qdisc add dev eth0 root netem loss 3%
    for ((i = 0; i < 10; ++i)); do
        lossy rc_v,ud_v ucp_put_lat
        ! was_packet_lost || break
    done
    was_packet_lost || fail "no packet was lost: $(cat lost)"
    if [ -n "${RC_VARUNA_LONG:-}" ]; then
        lossy rc_v,ud_v ucp_fadd
        lossy ud_v tag_lat
    fi
    check "$vm" exec h0 tc qdisc del dev eth0 root
}

# A cable is pulled when the check asks for it: the kernel's queue pairs have PSNs that
# agree with memory, also after ERR, and complete what is flushed in order. All checks take
# more than a minute of both machines, so without RC_VARUNA_LONG only these are run
test_self_check() {
    local dir=$RC_VARUNA_VM_DIR links=rxe0:1,rxe1:1 status=0 program step action
    local options=(--quick) untested= patterns=('port +ok .*RoCE' 'flush +ok' 'links +ok' \
        'planes +ok' 'psn +ok .*after ERR, ibv_query_qp' 'cut-psn +ok' 'port-event +ok' \
        'addresses +ok' 'mlx5 +warning .* rc_verbs')
    if [ -n "${RC_VARUNA_LONG:-}" ]; then
        patterns+=('order +ok' 'fence-err +ok' 'fence-reset +ok' 'psn-memory +ok' \
            'last-wqe +warning')
        untested='dead-commands dead-writes ' # No NIC was killed
    else
        options+=(--only port,flush,links,psn,cut-psn)
    fi
    program=$RCV_PREFIX/bin/rc_varuna_check
    settings=()
    server h0 18520 "$program" "${options[@]}" -d $links server

    timeout 620 "$vm" exec h1 timeout 600 "$program" "${options[@]}" -d $links \
        --cut "touch $dir/out; while [ -e $dir/out ]; do sleep 0.1; done" \
        --restore "touch $dir/in; while [ -e $dir/in ]; do sleep 0.1; done" \
        10.76.0.1 >out 2>err &
    client=$!
    action=
    while kill -0 $client 2>/dev/null; do
        for step in out in; do
            [ -e "$dir/$step" ] || continue
            check "$vm" cable h1 1 $step
            action=$action$step
            rm "$dir/$step"
        done
        sleep 0.1
    done
    wait $client || status=$?
    wait $server || fail "the server failed: $(cat server.log)"
    [ "$action" = outin ] || fail "the cable was moved \"$action\": $(cat out err)"

    [ $status -eq 3 ] || fail "status $status: $(cat out err)"
    [ "$(awk '$2 == "untested" { print $1 }' out | sort -u | tr '\n' ' ')" = \
        "$untested" ] || fail "$(cat out)"
    for pattern in "${patterns[@]}"; do
        grep -qE "^$pattern" out || fail "no \"$pattern\": $(cat out)"
    done
}

test_bad_input() {
    fails 2 '^usage' "$vm"
    fails 2 '^usage' "$vm" exec h0
    fails 1 'no machine h7' "$vm" exec h7 true
    fails 1 'no machine: machines are h0' "$vm" exec ../h0 true
    fails 1 '"in" or "out", not "up"' "$vm" cable h0 0 up
    fails 1 'from 0 to 3' "$vm" cable h0 x in
    fails 1 'up already' "$vm" up
    fails 1 'from 1 to 8' "$vm" up --hosts 0
    fails 1 'no machines in' "$vm" status "$PWD/none"
    fails 1 'cannot be downloaded' env RC_VARUNA_VM_KERNEL=linux-image-none \
        RC_VARUNA_DEPS="$PWD/deps" "$top/contrib/vm/image.sh"
    # Status, output and arguments of a command
    fails 7 '^a  b c$' "$vm" exec h1 bash -c 'echo "$@" >&2; exit 7' - 'a  b' c
    fails 1 '^h1$' "$vm" exec --env X=h1 h1 bash -c 'echo $X; exit 1'
    "$vm" status >status
    [ "$(grep -cE '^h[01]: up$|state ACTIVE' status)" = 6 ] || fail "$(cat status)"
}

cleanup() {
    "$vm" down
    rm -rf "$(dirname "$RC_VARUNA_VM_DIR")"
}

trap cleanup EXIT
if ! "$vm" up 2>"$(dirname "$RC_VARUNA_VM_DIR")/log"; then
    cat "$(dirname "$RC_VARUNA_VM_DIR")/log"
    echo "1..1"
    echo "not ok 1 - machines"
    exit 1
fi
run_tests
