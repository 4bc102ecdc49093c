#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The emulator with 8 hosts of 4 links each, 64 processes at once, 4096 RC queue pairs
# in one process; and a process that waits for an event must not spin.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

agent=$RCV_BUILD/test/gtest/scale_agent

on() {
    local host=$1
    shift
    timeout 300 "$emu" exec -n "$fabric" "$host" -- "$agent" "$@"
}

test_64_processes() {
    local i tries pids=()
    fabric_up --hosts 8 --links 4
    mkfifo gate
    exec 9<>gate
    for i in {0..63}; do
        on $((i % 8)) devices >"out.$i" 2>&1 <gate 9>&- &
        pids+=($!)
    done
    for tries in {1..600}; do
        [ "$(cat out.* | grep -c '^4 devices')" -lt 64 ] || break
        pause 0.1
    done
    # All of them wait for the end of their input
    kill -0 "${pids[@]}" || fail "not all 64 are there: $(cat out.*)"
    exec 9>&-
    for i in {0..63}; do
        wait "${pids[i]}" || fail "process $i: $(cat "out.$i")"
        check grep -q '^4 devices' "out.$i"
    done
}

test_4096_queue_pairs() {
    fabric_up --hosts 1 --links 1
    check on 0 qps 4096 >out
    check grep -q '^4096 queue pairs' out
    sed 's/^/# /' out
    # The memory that docs/EMULATOR.md states, with a margin
    check awk '{ exit !($4 < 64) }' out
}

test_waiting_burns_nothing() {
    fabric_up --hosts 1 --links 1
    check on 0 wait 3 >out
    sed 's/^/# /' out
    check awk '{ exit !($1 < 0.1) }' out
}

run_tests
