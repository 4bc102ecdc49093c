#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Chaos with atomics: three clients run all kinds of atomics on the same words of one
# server, while links and packets fail at random (test/e2e/atomics/ft_atom_chaos.c). In
# the end some order explains each word's history, and the emulator's trace is one
# chain.
#
# RC_VARUNA_CHAOS=SECONDS: duration of each test (3; with RC_VARUNA_LONG 60).
# RC_VARUNA_CHAOS_SEED=N: the first seed (1; with RC_VARUNA_LONG a random one). Odd seeds
# use 4 bytes, even ones 8; tests in which NICs die begin with the next seed.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

seconds=${RC_VARUNA_CHAOS:-${RC_VARUNA_LONG:+60}}
seed=${RC_VARUNA_CHAOS_SEED:-${RC_VARUNA_LONG:+$RANDOM}}
seed=${seed:-1}
length=3 # of a seed

test_the_search_for_an_order() {
    "$apps/ft_atom_history_test" >out || fail "$(head -n 5 out)"
}

# chaos MODE OPTION...: runs the chaos test, with settings from the caller
chaos() {
    local status=0 seeds=$(((${seconds:-$length} + length - 1) / length))
    export UCX_RC_VARUNA_ATOMIC_MODE=$1
    shift
    echo "# seeds from $seed: RC_VARUNA_CHAOS_SEED=$seed repeats them"
    timeout 3600 "$apps/ft_atom_chaos" -s "$seed" -n "$seeds" -T "$length" \
        "$@" "$RCV_PREFIX" "$apps/ft_atom_job" >out 2>&1 || status=$?
    sed 's/^/# /' out | head -n 60 | cut -c 1-400
    if [ $status -ne 0 ]; then
        tail -n 30 ft_atom_chaos.log | cut -c 1-300 | sed 's/^/# log: /'
        fail "ft_atom_chaos ended with $status"
    fi
    # A seed that has tested nothing is repeated
    [ "$(grep -o '^chaos: seed [0-9]*' out | sort -u | wc -l)" -eq "$seeds" ] ||
        fail "seeds are missing"
}

test_extended() {
    chaos extended
    grep -q ' [1-9][0-9]* switches' out || fail "no vQP has switched"
}

test_proxy() {
    chaos proxy
}

# The server's links fail, too, and NICs of one link die, so its home NIC moves there
# and back while clients use its words
test_extended_home_moves() {
    seed=$((seed + 1))
    chaos extended -K
    grep -q ' [1-9][0-9]* moves' out || fail "the home NIC did not move"
}

# ... Mode proxy has no home NIC, so nothing moves
test_proxy_target_loses_nics() {
    seed=$((seed + 1))
    chaos proxy -K
    ! grep -q ' [1-9][0-9]* moves' out || fail "a home NIC moved"
    ! grep -q 'NICs of 0 hosts' out || fail "no NIC died"
}

run_tests
