#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Mistakes in the life cycle of requests that need no fault (ft_requests.c).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

# The server makes no progress and has no queue pair ready, so its client stays on DC
export UCX_RC_VARUNA_SPARE_QPS=0

# requests WHAT [RULE...]: runs ft_requests WHAT, with a fault if one is given
requests() {
    fabric_up
    [ $# -eq 1 ] || fault "${@:2}"
    load_server_start idle 8192
    load_server_call "$run" "$apps/ft_requests" "$1" >client.log 2>&1 ||
        fail "$1 ended with $?: $(tail -n 5 client.log)"
    sed -n 's/^ft:/#/p' client.log
    load_server_stop
    [ $# -eq 1 ] || faults_fired
}

# While a completion retires several requests, a flush that a callback posts must not
# reuse any of them
test_flush_in_a_callback() {
    requests nested
}

# A separate thread reads UCX's VFS tree. Freed memory is overwritten, so an access to a
# destroyed endpoint fails
test_endpoints_are_listed_by_another_thread() {
    export MALLOC_PERTURB_=165
    requests listed
}

# A part of a put without bytes has no memory handle
test_empty_parts() {
    nic_gives_up 10ms 2
    requests empty packet host=1 link=0 op=write nth=21 silent=1:0
}

# No log entry is written for a completed request, or for another one that has taken its
# place in memory
test_owed_log_entries() {
    export UCX_DC_MLX5_TX_QUEUE_LEN=1
    requests owed
}

# Freed memory is overwritten (except in thread caches): a released key must not be read
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
