#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The sweep of atomics (test/e2e/atomics/ft_atom_sweep.c): each operation, with faults
# at all events of one client, alone and contending. By default it runs a part that
# contains each operation, each fault and each path (RC, messages, proxy);
# RC_VARUNA_FULL_SWEEP=1 runs all of it.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

# sweep MODE OPTIONS...: runs ft_atom_sweep
sweep() {
    local status=0
    export UCX_RC_VARUNA_ATOMIC_MODE=$1
    shift
    timeout 3600 "$apps/ft_atom_sweep" "$@" "$RCV_PREFIX" "$apps/ft_atom_job" \
        >out 2>&1 || status=$?
    sed 's/^/# /' out | tail -n 20 | cut -c 1-400
    if [ $status -ne 0 ]; then
        tail -n 30 ft_atom_sweep.log | cut -c 1-300 | sed 's/^/# log: /'
        fail "ft_atom_sweep ended with $status"
    fi
}

# some MODE OPTIONS...: runs this part of the sweep, or all of it
some() {
    local mode=$1 phase=$2
    shift 2
    [ -z "${RC_VARUNA_FULL_SWEEP:-}" ] || set --
    sweep "$mode" -p "$phase" "$@"
}

# On RC: bodies, occupies, confirms
test_extended() {
    some extended lane -w 8 -c 3 -s cswap,cswap_fail,fadd -f silent,exec_down
    [ -n "${RC_VARUNA_FULL_SWEEP:-}" ] || {
        sweep extended -p lane -w 4 -c 1 -t 3 -f ack_silent
        sweep extended -p lane -w 8 -c 1 -s cswap -t 2
    }
}

# On DC, atomics use messages. RC is not connected while the server computes, unless it has a
# spare queue pair
test_extended_from_dc() {
    export UCX_RC_VARUNA_SPARE_QPS=0
    some extended msg -w 8 -c 3 -t 2 -s cswap_aba,fand,swap -f silent,mute,late
}

test_proxy() {
    some proxy msg -w 4 -c 3 -t 3 -f silent,ack_silent
}

run_tests 2
