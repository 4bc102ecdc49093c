#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The interface for external detectors, rc_varuna.h: an application calls it while it
# puts (test/e2e/api/ft_api.c), from several threads, and before interfaces are opened.
# test_detectors.sh tests rc_varuna_ctl, which does the same for other processes.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

up_options=()

# api ARGS...: runs ft_api with a server; its output is in ./out
api() {
    fabric_up "${up_options[@]}"
    load_server_start server 65536
    load_server_call "$run" "$apps/ft_api" "$@" >out 2>&1 || fail "ft_api: $(tail -n 5 out)"
    load_server_stop
    grep '^ft:' out | tail -n 3 | sed 's/^/# /'
}

test_installed_header_is_complete() {
    local header=$RCV_PREFIX/include/rc_varuna.h
    [ -f "$header" ] || fail "$header is missing"
    echo '#include <rc_varuna.h>' >user.c
    echo 'int main(void) { return rc_varuna_failover(RC_VARUNA_FAILOVER_FORCE); }' \
        >>user.c
    cp user.c user.cc
    check "${CC:-cc}" -std=c99 -pedantic -Wall -Wextra -Werror \
        -I"$RCV_PREFIX/include" -c user.c
    check "${CXX:-c++}" -Wall -Wextra -Werror -I"$RCV_PREFIX/include" -c user.cc
}

test_wrong_arguments() {
    check "$run" "$apps/ft_api" wrong
}

# A mark also applies to interfaces that are opened later. Bandwidth and latency are
# those of the link in use: the faster link 1 while link 0 is marked down
test_mark_before_open() {
    local down up
    up_options=(--speeds qdr,edr)
    api mark mlx5_0:1
    { read -r down; read -r up; } < <(sed -n 's/^ft: speed //p' out)
    case $down/$up in
    # UCX's 40 ns and the plugin's overhead; and the log entry of a put
    "12"???" 600 70 log 55/3"???" 1300 70 log 55") ;;
    *) fail "the speed with link 1 is $down, with link 0 $up" ;;
    esac
}

# Several threads may call it concurrently
test_threads() {
    api threads mlx5_0:1
    grep -q 'ft: puts [1-9][0-9]*, errors 0' out || fail "$(tail -n 1 out)"
    grep -q 'rc_varuna: switched' out || fail "nothing was switched"
}

# A user invalidates an endpoint
test_invalidated_endpoint() {
    api invalidate -
    grep -q 'ft: errors 1' out || fail "$(tail -n 1 out)"
}

run_tests
