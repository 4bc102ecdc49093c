#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The simulation of thousands of endpoints that lose a switch (src/tools/scale): all of
# them recover, in bounded time and with a bounded number of messages.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

scale=$RCV_BUILD/src/tools/scale/varuna_scale

# value NAME FIELD: prints a field of a line of ./out
value() {
    awk -v name="$1" -v field="$2" '$1 == name { print $field; exit }' out
}

# below NAME FIELD LIMIT
below() {
    awk -v value="$(value "$1" "$2")" -v limit="$3" \
        'BEGIN { exit !(value != "" && value + 0 < limit) }' ||
        fail "$1 is $(value "$1" "$2"), which is not below $3: $(cat out)"
}

messages() {
    awk -v name="$1" '$1 == "messages" && $2 == name { print $3 }' out
}

# Endpoints move within milliseconds, with one request each, and then get RC again
test_ports_go_down() {
    check "$scale" -o 3 >out
    [ "$(value endpoints 4) $(value moved 2) $(value rebuilt 2) $(value returned 2)" = \
      '10000 10000 10000 10000' ] || fail "not all endpoints recover: $(cat out)"
    below moved 6 20
    below rebuilt 6 200
    below returned 6 1000
    # Traffic returns when the hold-down is over
    ! (below returned 3 100) 2>/dev/null || fail "there is no hold-down: $(cat out)"
    [ "$(messages fence_req)" -lt 11000 ] || fail "requests are repeated: $(cat out)"
    [ "$(messages connect_req)" -lt 22000 ] || fail "connecting is repeated: $(cat out)"
}

# Without port events the heartbeat needs its five intervals
test_switch_is_silent() {
    check "$scale" -s >out
    [ "$(value moved 2)" = 10000 ] || fail "$(cat out)"
    below moved 6 750
    ! (below moved 3 450) 2>/dev/null || fail "nobody can know so early: $(cat out)"
}

# Only hosts that have an endpoint to or from the switch are concerned. Peers elsewhere
# learn of its ports over the other network
test_leaf_switch() {
    local affected
    check "$scale" -a 50 >out
    affected=$(value endpoints 4)
    [ "$affected" -gt 500 ] && [ "$affected" -lt 1500 ] &&
        [ "$(value moved 2)" = "$affected" ] || fail "$(cat out)"
    below moved 6 50
    [ "$(messages ports)" -gt 100 ] || fail "nobody was told: $(cat out)"
}

# One host has as many endpoints as others together: it connects at its own pace
test_one_server() {
    check "$scale" -n 2 -e 8000 >out
    [ "$(value rebuilt 2)" = 8000 ] || fail "$(cat out)"
    below moved 6 2000
    # 4,000 connections of a host, at most 1,000 a second
    ! (below rebuilt 6 3500) 2>/dev/null || fail "the pace was not kept: $(cat out)"
}

# The times of the model are in ticks of UCX's clock, whose measured frequency differs a
# little from run to run
test_the_same_seed_gives_the_same() {
    local one
    check "$scale" -n 100 -e 1000 -b >out
    one=$(value moved 4)
    grep -q '^bin ' out || fail "there are no bins"
    check "$scale" -n 100 -e 1000 >out
    awk -v a="$one" -v b="$(value moved 4)" 'BEGIN { exit !(a < 1.05 * b && b < 1.05 * a) }' ||
        fail "the median is $one, and then $(value moved 4)"
}

test_bad_input() {
    fails 2 'must be a number from 2' "$scale" -n 1
    fails 2 'must be a number' "$scale" -e x
    fails 2 'Usage' "$scale" extra
}

run_tests
