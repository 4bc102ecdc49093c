#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Rules of docs/ATOMICS.md which hold without any failure: who sees a UID, slots that
# run out; and the benchmark of atomics, which is a test of recovery, too.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

# bench WHAT MODE COUNT: into ./out
bench() {
    timeout 300 "$apps/ft_atom_bench" -n "$3" "$1" "$2" "$RCV_PREFIX" \
        "$apps/ft_atom_job" >out 2>&1 || fail "$1 $2: $(tail -n 3 out)"
    sed 's/^/# /' out
}

# No failure, as the NIC waits long enough, but a confirm which is late: a flush waits
# for it, and so the server's CPU finds no UID behind the flush (rule 9)
test_flush_covers_confirm() {
    local status=0
    export UCX_RC_MLX5_TIMEOUT=1s UCX_DC_MLX5_TIMEOUT=1s
    export UCX_RC_VARUNA_ATOMIC_MODE=extended
    timeout 100 "$apps/ft_atom_sweep" -p lane -c 1 -w 8 -s cswap,fadd -f slow \
        "$RCV_PREFIX" "$apps/ft_atom_job" >out 2>&1 || status=$?
    sed 's/^/# /' out | tail -n 5 | cut -c 1-300
    [ $status -eq 0 ] || fail "ft_atom_sweep ended with $status"
    grep -q 'switches 0;' out || fail "something failed"
}

# The server waits for a value as OpenSHMEM's wait_until does: its CPU polls the word,
# and nobody's atomics may show it a UID
test_proxy_shows_no_uid() {
    export UCX_RC_MLX5_TIMEOUT=1s UCX_DC_MLX5_TIMEOUT=1s
    bench until proxy 1000
    grep -qx 'proxy until: UIDs 0' out || fail "the CPU saw UIDs"
}

# ... which it does in the other mode, so it would have; there rc_varuna_atomic_read()
# makes a value of each. The server may have had no processor just then.
test_extended_shows_uids() {
    local try
    export UCX_RC_MLX5_TIMEOUT=1s UCX_DC_MLX5_TIMEOUT=1s
    for try in $(seq 10); do
        bench until extended 2000
        grep -qx 'extended until: UIDs 0' out || return 0
    done
    fail "the CPU saw no UID, $try times"
}

# What stands behind a fence is executed behind the atomics in front of it, of how many
# steps they may be (rule 9)
test_fences_hold() {
    bench fenced extended 300
    bench fenced proxy 100
}

# 64 atomics at once, and 16 slots: the others wait, and none fails
test_slots_run_out() {
    bench many extended 100
}

# 280 endpoints, and slots for 255 of them: the others work by proxy
test_endpoints_without_slots() {
    local i
    job=ft_atom_job
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=extended
    fabric_up
    jobs_start
    ask client "crowd 280 3"
    ask server get
    [ "$answer" = "ft: ok $(printf %x $((280 * 3)))" ] || fail "$answer"
    jobs_stop
    fabric_down
    i=$(grep -c 'gets no slots: its atomics go by proxy' server.log || true)
    [ "$i" -ge 20 ] || fail "$i endpoints had no slots"
}

# A client ends between occupy and confirm: its last link does when its compare and swap
# is executed, and then it is killed. Nobody else touches the word, so the server's
# worker has to find its UID there, and gives its slots back (rule 7)
test_client_dies_before_confirm() {
    local i
    job=ft_atom_job
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=extended
    export UCX_RC_VARUNA_ORPHAN_TIMEOUT=1s
    fabric_up
    jobs_start
    wait_for_rc
    ask client warm
    ask server "set 5"
    link 1:1 silent
    fault exec host=1 link=0 op=cas type=rc \
        silent=1:0
    tell client "run 8 0 cswap:5:7"
    for ((i = 0; i < 600; ++i)); do
        ask server get
        [ "$answer" = "ft: ok 5" ] || break
        sleep 0.05
    done
    [[ $answer =~ ^ft:\ ok\ [89a-f][0-9a-f]{15}$ ]] ||
        fail "no UID in the word: $answer"
    pkill -KILL -P "$client_pid" || fail "the client was gone before"
    ! wait "$client_pid" || fail "the client ended by itself"
    faults_fired
    for ((i = 0; i < 600; ++i)); do
        ask server get
        [ "$answer" != "ft: ok 7" ] || break
        sleep 0.05
    done
    [ "$answer" = "ft: ok 7" ] || fail "its UID stays: $answer"
    for ((i = 0; i < 600; ++i)); do
        ! grep -q 'slots from [0-9]* are free again' server.log || break
        sleep 0.05
    done
    exec 9>&- 8>&-
    wait "$server_pid" || fail "the server: $(tail -n 3 server.log)"
    fabric_down
    grep -q 'worker: resolved slot' server.log || fail "not by the worker"
    grep -q 'slots from [0-9]* are free again' server.log ||
        fail "its slots stay taken"
}

# Batches of compare and swap, in each of which the link fails
test_batches_recover() {
    bench cas extended 10
    awk '{ exit !($5 > 0 && $7 == 160 && $9 > 0 && $11 == $9 && $15 == 0) }' \
        out || fail "not all are recovered"
}

run_tests
