#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The order of atomics and of what is posted beside them: what a flush covers, and what
# a fence holds (rule 9 of docs/ATOMICS.md).

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/ft_jobs.sh"

job=ft_atom_job

# begin MODE: a server and a client on RC
begin() {
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=$1
    fabric_up
    jobs_start
    wait_for_rc
}

# end [fired]: "fired" if all faults must have
end() {
    [ -z "${1:-}" ] ||
        "$emu" fault list -n "$fabric" --check >faults.log 2>&1 ||
        fail "a fault did not fire: $(cat faults.log)"
    jobs_stop
    fabric_down
}

# A callback of one of several atomics posts a flush, which covers the others. That of a
# flush posts another one, as others do: nobody has to wait for it
test_flush_in_callbacks() {
    local mode
    for mode in proxy extended; do
        begin $mode
        ask client "order 8 flushes"
        end
        rm -f ./*.in
    done
}

run_tests
