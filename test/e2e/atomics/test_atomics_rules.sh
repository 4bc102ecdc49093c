#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Rules of docs/ATOMICS.md without a failure: where UIDs are visible, and slots that run
# out. Also the benchmark of atomics, which tests recovery.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

# bench WHAT MODE COUNT: runs the benchmark; its output is in ./out
bench() {
    timeout 300 "$apps/ft_atom_bench" -n "$3" "$1" "$2" "$RCV_PREFIX" \
        "$apps/ft_atom_job" >out 2>&1 || fail "$1 $2: $(tail -n 3 out)"
    sed 's/^/# /' out
}

# The NIC waits long enough, so nothing fails, but a confirm is late. The flush must
# wait for it, so the server's CPU finds no UID after the flush (rule 9)
test_flush_covers_confirm() {
    local status=0
    # ... and no other detector takes a process without a CPU for a failure
    export UCX_RC_MLX5_TIMEOUT=20s UCX_DC_MLX5_TIMEOUT=20s
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=200s
    export UCX_RC_VARUNA_ATOMIC_MODE=extended
    timeout 300 "$apps/ft_atom_sweep" -p lane -c 1 -w 8 -s cswap,fadd -f slow \
        "$RCV_PREFIX" "$apps/ft_atom_job" >out 2>&1 || status=$?
    sed 's/^/# /' out | tail -n 5 | cut -c 1-300
    [ $status -eq 0 ] || fail "ft_atom_sweep ended with $status"
    grep -q 'switches 0;' out || fail "something failed"
}

# The server waits for a value as OpenSHMEM's wait_until does: its CPU polls the word.
# No atomic may show it a UID
test_proxy_shows_no_uid() {
    export UCX_RC_MLX5_TIMEOUT=1s UCX_DC_MLX5_TIMEOUT=1s
    bench until proxy 1000
    grep -qx 'proxy until: UIDs 0' out || fail "the CPU saw UIDs"
}

# ... In mode extended it sees UIDs, so the test can fail; there rc_varuna_atomic_read()
# resolves each of them. Try again if the server had no CPU at the time: it sees one when
# the client loses its CPU between two steps of an atomic.
test_extended_shows_uids() {
    local try
    export UCX_RC_MLX5_TIMEOUT=1s UCX_DC_MLX5_TIMEOUT=1s
    for try in $(seq 30); do
        bench until extended 2000
        grep -qx 'extended until: UIDs 0' out || return 0
    done
    fail "the CPU saw no UID, $try times"
}

# Operations after a fence are executed after the atomics before it, even if these have
# several steps (rule 9)
test_fences_hold() {
    bench fenced extended 300
    bench fenced proxy 100
}

# 64 concurrent atomics with 16 slots: the others wait, and none fails
test_slots_run_out() {
    bench many extended 100
}

# 280 endpoints, and slots for 255 of them: the others are requests
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
    i=$(grep -c 'gets no slots: its atomics are requests' server.log || true)
    [ "$i" -ge 20 ] || fail "$i endpoints had no slots"
}

# A client dies between occupy and confirm: its last link fails when its compare and
# swap is executed, and then it is killed. No other client accesses the word, so the
# server's worker must find the UID and free the slots (rule 7)
test_client_dies_before_confirm() {
    local i
    job=ft_atom_job
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=extended
    export UCX_RC_VARUNA_ORPHAN_TIMEOUT=1s
    jobs_on_rc --trace 65536
    ask client warm
    ask server "set 5"
    link 1:1 silent
    fault exec host=1 link=0 op=cas type=rc \
        silent=1:0
    tell client "run 8 0 cswap:5:7"
    await_faults
    pkill -KILL -P "$client_pid" || fail "the client had ended before"
    ! wait "$client_pid" || fail "the client was not killed"
    for ((i = 0; i < 1800; ++i)); do
        ask server get
        [ "$answer" != "ft: ok 7" ] || break
        pause 0.05
    done
    [ "$answer" = "ft: ok 7" ] || fail "its UID stays: $answer"
    await 120 server.log 'slots from [0-9]* are free again'
    # The worker may have resolved the UID before anybody could see it in the word
    "$emu" trace -n "$fabric" --json >trace.json
    grep -E '"op": ?"cas"' trace.json | grep -E '"data": ?"0x0*5"' |
        grep -qE '"swap": ?"0x[89a-f][0-9a-f]{15}"' ||
        fail "no UID was in the word: $(grep -E '"op": ?"cas"' trace.json | tail -n 2)"
    exec 9>&- 8>&-
    wait "$server_pid" || fail "the server: $(tail -n 3 server.log)"
    fabric_down
    grep -q 'worker: resolved slot' server.log ||
        fail "the worker did not resolve the slot"
    grep -q 'slots from [0-9]* are free again' server.log ||
        fail "its slots are not freed"
}

# Batches of compare and swap, in each of which the link fails
test_batches_recover() {
    bench cas extended 10
    awk '{ exit !($5 > 0 && $7 == 160 && $9 > 0 && $11 == $9 && $15 == 0) }' \
        out || fail "not all results were recovered"
}

run_tests
