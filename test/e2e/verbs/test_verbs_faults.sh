#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Fault tests of other folders on NICs without direct verbs (mlx5emu up --quirk
# no-mlx5dv): a short part of each. test_verbs_faults_long.sh runs all of them, except for
# those in "left_out".

. "$(dirname "${BASH_SOURCE[0]}")/ft_verbs.sh"

test_failover() {
    on_verbs stories/test_failover '^test_(responder_down|message_is_lost|without_psn)'
}

test_sweep() {
    on_verbs sweep/test_sweep '^test_(fails_again_while_returning|all_links_fail)$'
}

test_chaos() {
    RC_VARUNA_CHAOS=10 on_verbs chaos/test_chaos '^test_chaos$'
}

test_detectors() {
    on_verbs stories/test_detectors '^test_(heartbeat_finds|requests_hang|outside)'
}

test_peers() {
    on_verbs peers/test_peers '^test_(local|remote)_nic_dies$'
}

test_atomics() {
    on_verbs atomics/test_atomics '^test_(proxy_link_fails|reread_result_is_lost)$'
}

test_atomics_order() {
    on_verbs atomics/test_atomics_order '^test_flush_covers_atomics'
}

# Each line names a test that exists, and has a reason
test_left_out() {
    local suite name reason
    grep -v '^#' "$top/test/e2e/verbs/left_out" >lines
    [ -s lines ] || fail "left_out is empty"
    while read -r suite name reason; do
        [ -n "$reason" ] || fail "$suite $name: no reason"
        grep -q "^$name()" "$top"/test/e2e/*/"$suite.sh" || fail "$suite has no $name"
    done <lines
}

run_tests 2
