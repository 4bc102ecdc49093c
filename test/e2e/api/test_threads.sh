#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Several threads share a UCP worker (test/e2e/api/ft_threads.c), or call rc_varuna.h as
# an external detector (ft_api.c), while links fail and return. The plugin and both
# programs are built with the thread sanitizer, below the build directory; it must
# report nothing.
#
# UCX itself is built without it, but uses the C library's locks, which the sanitizer
# sees. Known exceptions:
#   - doorbells, which UCX's functions write with memmove: queue pairs of two threads may
#     share one, because it is one store of 8 bytes;
#   - a thread asks whether it has a recursive lock already without the lock: only what it has
#     written itself matters;
#   - a device is closed after UCX's handler of its events has ended, which UCX
#     detects by an atomic counter;
#   - doorbells are faults that the emulator handles in a synchronous signal handler:
#     report_signal_unsafe=0;
#   - UCM's hooks are called at the end of a thread, after the sanitizer's own clean-up:
#     UCX_MEM_EVENTS=n.
#
# RC_VARUNA_THREADS=SECONDS: duration (3), at least. The script runs in idle time only,
# so it gives up late.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

export UCX_MEM_EVENTS=n
seconds=${RC_VARUNA_THREADS:-3}
build=$RCV_BUILD/threads
until=  # An event that the client must have seen
flap=   # A link that flaps: arguments of "mlx5emu link"

# built: builds plugin and programs with the thread sanitizer, once for all tests
built() {
    local ucx_src
    mkdir -p "$build"
    ucx_src=$(sed -n 's/^UCX_SRC = //p' "$RCV_BUILD/Makefile")
    (cd "$build"
     [ -x config.status ] ||
         CFLAGS="-g -O0" CXXFLAGS="-g -O0" "$top/configure" \
             --prefix="$build/_install" --with-ucx-src="$ucx_src" \
             --enable-sanitizer=thread >configure.log 2>&1
     make -j"$(nproc)" -C src/uct/ib/varuna >make.log 2>&1 &&
         make -j"$(nproc)" -C test/e2e ft_api ft_threads >make.log 2>&1) ||
        fail "the build failed, see $build: $(grep -h -m 3 rror "$build"/*.log)"
    printf '%s\n' race_top:memmove race_top:ucs_recursive_spin_is_owner \
        race:ibv_close_device >suppressions
}

# client SERVER ARGS...: runs "SERVER" on host 0, and a client with the sanitizer on
# host 1. Its input ends when $until is in its output
client() {
    local server ended=0 server_ended=0 program=$build/test/e2e/$1
    # shellcheck disable=SC2206 # words
    local server_args=($2)
    shift 2
    built
    fabric_up
    # shellcheck disable=SC2086 # words
    [ -z "$flap" ] || link $flap
    mkfifo stdin
    export TSAN_OPTIONS="exitcode=66 suppressions=$PWD/suppressions history_size=4"
    TSAN_OPTIONS+=" second_deadlock_stack=1 report_signal_unsafe=0"
    TSAN_OPTIONS+=" log_path=$PWD/found"
    "$emu" exec -n "$fabric" 0 -- timeout 900 "$run" "${plugin[@]}" \
        "${server_args[@]}" <stdin >server.log 2>&1 &
    server=$!
    exec 9>stdin
    await 300 server.log '^ft: address'
    : >out # It must exist before it is read
    { sed -n 's/^ft: address *//p' server.log
      [ -z "$until" ] || await 300 out "$until"; } |
        "$emu" exec -n "$fabric" 1 -- timeout 900 "$run" \
            -l "$build/src/uct/ib/varuna/.libs/libuct_varuna.so.0" \
            "$program" "$@" >>out 2>&1 || ended=$?
    exec 9>&-
    wait $server || server_ended=$?
    ! cat found* 2>/dev/null | sed -n "1,${FT_TSAN_LINES:-60}s/^/# /p" | grep . ||
        fail "the sanitizer reports errors"
    [ $ended -eq 0 ] || fail "the client ended with $ended: $(tail -n 5 out)"
    [ $server_ended -eq 0 ] ||
        fail "the server ended with $server_ended: $(tail -n 3 server.log)"
    grep -h '^ft:' out server.log | grep -v address | tail -n 3 | sed 's/^/# /'
}

# No operation is lost or executed twice, and none hangs
test_threads_share_a_worker() {
    local operations counter until='rc_varuna: switched'
    export UCX_TLS=rc_varuna
    flap="1:1 flap 600ms,0.8"
    plugin=(-l "$build/src/uct/ib/varuna/.libs/libuct_varuna.so.0")
    client ft_threads "$build/test/e2e/ft_threads server server.address" client "$seconds" \
        mlx5_0:1
    read -r operations counter < <(
        sed -n 's/^ft: operations \([0-9]*\), counter \([0-9]*\)/\1 \2/p' out)
    [ "${operations:-0}" -gt 0 ] || fail "no operation completed"
    grep -q 'rc_varuna: switched' out || fail "nothing was switched"
    [ "$operations" -eq "$counter" ] || fail "$operations adds made $counter"
    grep -qx "ft: messages $operations, wrong 0" server.log ||
        fail "$operations messages: $(tail -n 1 server.log)"
}

test_detectors_call_from_threads() {
    plugin=()
    client ft_api "$apps/ft_load server 65536" threads mlx5_0:1
    grep -q 'ft: puts [1-9][0-9]*, errors 0' out || fail "$(tail -n 1 out)"
    grep -q 'rc_varuna: switched' out || fail "nothing was switched"
}

test_detectors_mark_before_open() {
    plugin=()
    client ft_api "$apps/ft_load server 65536" mark mlx5_0:1
}

run_tests
