#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A client that has opened its vQPs but violates the protocol: its keys give access only
# to its own memory (docs/SECURITY.md).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

# access CHECK [QUIRK]: runs ft_keys; the client's output and then the server's are in ./out
access() {
    local address keys
    fabric_up --links 1
    [ -z "${2:-}" ] || "$emu" quirk -n "$fabric" add "$2"
    mkfifo stdin
    : >address
    UCX_LOG_FILE=stderr timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" \
        "$apps/ft_keys" server <stdin >address 2>server.log &
    exec 9>stdin
    await 60 address '^ft: address'
    address=$(sed -n 's/^ft: address//p' address)
    keys=$(sed -n 's/^ft: secret//p' address)
    UCX_LOG_FILE=stderr timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" \
        "$apps/ft_keys" client "$address" "$keys" "$1" >out 2>client.log ||
        fail "the client: $(tail -n 3 out client.log)"
    exec 9>&-
    wait $! || fail "the server: $(tail -n 3 server.log)"
    grep '^secret: ' address >>out || fail "the server has not printed its words"
    sed 's/^/# /' out
    [ -z "${2:-}" ] || "$emu" quirk -n "$fabric" list --check >/dev/null ||
        fail "the quirk has not acted"
}

# says LINE...: checks that the output consists of these lines
says() {
    printf '%s\n' "$@" "ft: end" "secret: intact" >expected
    grep -v '^ft: note' out | diff expected - >difference ||
        fail "not as expected: $(cat difference)"
}

# Only a vQP's own client can write its log rings
test_rings_of_others() {
    access rings
    says "own ring, own key: done" \
        "own ring, atomic: refused" \
        "other ring, own key, read: refused" \
        "other ring, own key: refused" \
        "other ring: intact" \
        "before own rings: refused" \
        "after own rings: refused"
}

# ... and not the client that had them before, though it knows their key
test_rings_of_the_next() {
    access reuse same-key
    says "own key: done" \
        "next key: done" \
        "last key: refused" \
        "ring: intact"
}

# A plugin whose rings keep their address shows that the test detects it
test_rings_that_keep_their_address() {
    run=$("$top/test/e2e/lib/mutant.sh" same_address)
    access reuse_place same-key
    grep -q '^last key: done' out || fail "the mistake was not detected"
}

# Mode extended: only its owner writes the value of a slot, and no client
# writes a mark; marks are for compare and swap
test_slots_of_others() {
    export UCX_RC_VARUNA_ATOMIC_MODE=extended
    access slots
    says "own slot: done" \
        "own slot, read by the key to write: refused" \
        "own slot, atomic: refused" \
        "other slot, key to read: refused" \
        "other slot, own key: refused" \
        "other slot, key of marks: refused" \
        "before own slots: refused" \
        "after own slots: refused" \
        "other slot: intact" \
        "other mark: refused" \
        "other mark, key of own slots: refused" \
        "other mark, own key, atomic: refused" \
        "other mark: intact" \
        "other mark, atomic: done"
}

test_slots_of_the_next() {
    export UCX_RC_VARUNA_ATOMIC_MODE=extended
    access slots_reuse same-key
    says "own key: done" \
        "next key: done" \
        "last key: refused" \
        "slot: intact"
}

# The target refuses and logs an atomic of its CPU at an address that the key's token
# does not cover, or with a token that was never given away, and continues
test_home_keeps_to_what_was_given() {
    access home
    says "atomic, given key: done" \
        "atomic, guessed key: refused" \
        "atomic, wrong token: refused"
    grep -q 'WARN.*is in no memory for which it has a key of atomics' server.log ||
        fail "no warning: $(tail -n 3 server.log)"
}

# The worker of mode extended must not access an address that a client forges in its
# slot
test_worker_keeps_to_what_was_given() {
    export UCX_RC_VARUNA_ATOMIC_MODE=extended
    access worker
    says "own mark: done" \
        "own slot: done" \
        "own mark: done" \
        "own slot: done" \
        "resolved by the worker: intact"
}

run_tests
