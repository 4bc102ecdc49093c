#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The home NIC of atomics (docs/ATOMICS.md, rule 12): two NICs of a host are not atomic
# with each other. Clients on different links use the same words, while one of them
# loses its link to the home NIC, and while the home NIC leaves, returns, and dies.
# test_mutations.sh runs the first test with deliberate mistakes.

. "$(dirname "${BASH_SOURCE[0]}")/ft_amo.sh"

# there_and_back MODE WIDTH: the home NIC moves away and back
there_and_back() {
    lose_home "$@"
    link 0:0 down
    moved mlx5_1 1
    progressed 100
    link 0:0 up
    link 1:0 up
    moved mlx5_0 1
    progressed 100
    check "$emu" nic -n "$fabric" 0:0 kill
    moved mlx5_1 2
    progressed 100
    judge_home "$1"
}

test_extended_64() {
    there_and_back extended 8
}

# Mode proxy: the home NIC does not move, and the target's CPU works in any state of its NICs
test_proxy_32() {
    start proxy 3
    clients 3 4 0 4 fadd add cas swap bits
    progressed 50
    link 1:0 silent
    progressed 100
    link 0:0 down
    progressed 100
    link 0:0 up
    link 1:0 up
    progressed 100
    check "$emu" nic -n "$fabric" 0:0 kill
    progressed 100
    ! grep -q 'atomics .* move from' server.out server.err || fail "a home NIC moved"
    judge_home proxy
}

# Clients connected to a NIC that is not the home any more must not use it
test_requesters_of_the_old_nic() {
    leave_home extended 8 100
    judge_home extended
}

run_tests 3
