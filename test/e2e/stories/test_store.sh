#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The replicated store of src/examples/store, which knows nothing about failures, goes on
# through cuts over rc_varuna, and all its invariants are true at the end.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

store=$RCV_BUILD/src/examples/store/varuna_store
invariants=(money stock ids logs replicas locks values)

# on HOST TRANSPORT ROLE INDEX: starts a process of the store
on() {
    local launcher=()
    [ "$2" != rc_varuna ] || launcher=("$run")
    UCX_TLS=$2 exec timeout 900 "$emu" exec -n "$fabric" "$1" -- "${launcher[@]}" \
        "$store" "$3" "$PWD/files" "$4" >"$3.$4.log" 2>&1
}

# commits: how many transactions the first client has committed
commits() {
    "$store" history files | grep -c '^commit 0 ' || true
}

# is_or_never COMMAND...: the command succeeds, or a client does not run any more
is_or_never() {
    local pid
    ! "$@" || return 0
    for pid in "${clients[@]}"; do
        kill -0 "$pid" 2>/dev/null || return 0
    done
    return 1
}

# await WHAT COMMAND...: until the command succeeds, while the clients run
await() {
    comes is_or_never "${@:2}" || fail "no $1: $(tail -n 3 client.0.log)"
    "${@:2}"
}

are_ready() { [ -e files/ready.0 ] && [ -e files/ready.1 ]; }
has_commits() { [ "$(commits)" -ge "$1" ]; }
has_switched() { [ "$(grep -c 'rc_varuna: switched' client.0.log)" -ge "$1" ]; }

# store_up TRANSPORT: three replicas, and two clients at work, on a host each
store_up() {
    local i
    fabric_up --hosts 5
    mkdir files
    replicas=() clients=()
    for i in 0 1 2; do
        on "$i" "$1" replica "$i" &
        replicas+=($!)
    done
    for i in 0 1; do
        on $((3 + i)) "$1" client "$i" &
        clients+=($!)
    done
    await "connected clients" are_ready || fail "$(tail -n 3 client.?.log)"
    touch files/go
    await transaction has_commits 20 || fail "$(tail -n 3 client.0.log)"
}

store_down() {
    touch files/end
    wait "${replicas[@]}"
}

# survive: cuts the first client's link, and checks that everything is right
survive() {
    local before invariant
    store_up rc_varuna
    link 3:0 down
    await switch has_switched 1 || fail "$(tail -n 3 client.0.log)"
    before=$(commits)
    await "transactions after the cut" has_commits $((before + 50)) ||
        fail "$(tail -n 3 client.0.log)"
    touch files/stop
    check wait "${clients[0]}"
    check wait "${clients[1]}"
    store_down
    "$store" check files >checked || fail "$(grep -v ' 0$' checked)"
    for invariant in "${invariants[@]}"; do
        check grep -qx "broken $invariant 0" checked
    done
}

test_store_survives_a_cut() {
    survive
    sed 's/^/# /' checked

    # Each invariant is found broken if it is
    local name invariant offset
    "$store" layout >layout
    for name in money:money balance:money stock:stock next:ids order:ids log:logs lock:locks; do
        invariant=${name#*:} name=${name%:*}
        offset=$(sed -n "s/^$name //p" layout)
        cp files/memory.1 right
        printf '\x5a' | dd of=files/memory.1 bs=1 seek="$offset" conv=notrunc status=none
        fails 3 "^broken $invariant 1\$" "$store" check files
        [ "$name" = lock ] || fails 3 '^broken replicas 1$' "$store" check files
        mv right files/memory.1
    done
    check "$store" check files >/dev/null
}

# With atomics of the NIC, and a log entry for each operation
test_store_survives_with_extended_atomics() {
    export UCX_RC_VARUNA_ATOMIC_MODE=extended UCX_RC_VARUNA_LOG=all
    survive
}

test_store_dies_without_rc_varuna() {
    local status=0
    store_up rc_x
    link 3:0 down
    wait "${clients[0]}" || status=$?
    [ $status -ne 0 ] && [ $status -ne 124 ] || fail "the client ended with $status"
    check grep -q 'Endpoint timeout\|FATAL\|fatal' client.0.log
    touch files/stop
    check wait "${clients[1]}"
    store_down
}

run_tests
