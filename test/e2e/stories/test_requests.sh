#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The life of a request, where it can go wrong without any fault (ft_requests.c).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

# The server makes no progress and has no queue pair ready, so its client stays on DC
export UCX_RC_VARUNA_SPARE_QPS=0

# requests WHAT [RULE...]: runs it against a server, with a fault if one is given
requests() {
    fabric_up
    [ $# -eq 1 ] || fault "${@:2}"
    load_server_start idle 8192
    load_server_call "$run" "$apps/ft_requests" "$1" >client.log 2>&1 ||
        fail "$1 ended with $?: $(tail -n 5 client.log)"
    sed -n 's/^ft:/#/p' client.log
    load_server_stop
    [ $# -eq 1 ] || faults_fired
    fabric_down
}

# A completion that finishes requests one after the other must not use any of them for a
# flush that a callback posts in between
test_flush_in_a_callback() {
    requests nested
}

# UCX's VFS tree is read by a thread of its own. What was freed is overwritten, so nobody
# finds an endpoint there that seems to be one
test_endpoints_are_listed_by_another_thread() {
    export MALLOC_PERTURB_=165
    requests listed
}

# No log entry is written for a request that is complete, or in the name of one that has
# taken its place in memory
test_owed_log_entries() {
    export UCX_DC_MLX5_TX_QUEUE_LEN=1
    requests owed
}

# What was freed is overwritten (not in caches of threads): nobody may look at a released
# key
test_released_key() {
    export MALLOC_PERTURB_=165 GLIBC_TUNABLES=glibc.malloc.tcache_count=0
    nic_gives_up 10ms 2
    requests released packet host=1 link=0 nth=200 down
}

test_released_key_of_atomics() {
    export MALLOC_PERTURB_=165 GLIBC_TUNABLES=glibc.malloc.tcache_count=0
    requests released_atomics
}

test_released_key_of_atomics_extended() {
    export MALLOC_PERTURB_=165 GLIBC_TUNABLES=glibc.malloc.tcache_count=0
    export UCX_RC_VARUNA_ATOMIC_MODE=extended
    requests released_atomics
}

run_tests
