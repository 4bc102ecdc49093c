#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The project's code with sanitizers, in their own directories below the build
# directory: the suites and a failover with address and undefined, the engine of the
# emulator with thread. (The thread sanitizer supports only one process, all of whose
# code must be built with it; the distribution's UCX is not.)
#
# The emulator is preloaded before the sanitizer's runtime, which must allow it, and
# leave page faults of doorbells to the emulator's handler. Leaks are not detected,
# because UCX's would be reported too.
#
# ASan's own signal stacks are off: at the end of a thread it would read a stack that it
# has already released (use_sigaltstack).
#
# By default a failover and the engine run. RC_VARUNA_LONG adds the suites, and
# RC_VARUNA_SANITIZERS=long the whole of them, a longer failover, and the scripts of the
# fault tests. The plugin under the thread sanitizer: test_threads.sh.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

build=$RCV_BUILD/sanitized
emu=$top/src/tools/mlx5emu
options=handle_segv=0:allow_user_segv_handler=1:detect_leaks=0:verify_asan_link_order=0
options+=:use_sigaltstack=0
if [ "${RC_VARUNA_SANITIZERS:-}" = long ]; then
    filter='*'
    failover=.
    limit=1500
else
    filter='*test_emu_args*:*test_emu_insn*:*test_emu_rule*:test_emu_rc*:test_emu_dc*'
    filter+=':test_emu_devx.*:test_emu_overrun*'
    failover='silent_after|cut_in_the_middle'
    limit=900 # The script runs at a lower priority
fi

# sanitized: builds everything with address,undefined
sanitized() {
    local ucx_src
    mkdir -p "$build"
    ucx_src=$(sed -n 's/^UCX_SRC = //p' "$RCV_BUILD/Makefile")
    (cd "$build"
     [ -x config.status ] ||
         CFLAGS="-g -O1" CXXFLAGS="-g -O0" "$top/configure" \
             --prefix="$build/_install" --with-ucx-src="$ucx_src" \
             --enable-sanitizer=address,undefined >configure.log 2>&1
     make -j"$(nproc)" >make.log 2>&1 && make install >install.log 2>&1) ||
        fail "the build failed, see $build: $(grep -h -m 3 rror "$build"/*.log)"
}

# clean LOG...: checks that no sanitizer has reported an error
clean() {
    ! grep -hE -A 12 'ERROR: AddressSanitizer|runtime error:|WARNING: ThreadSan' \
        "$@" | sed -n "1,30s/^/# /p" | grep . || fail "a sanitizer reports an error"
}

# suite NAME FILTER: builds a gtest program and runs it
suite() {
    sanitized
    (cd "$build/test/gtest" &&
     make -j"$(nproc)" "$1" verbs_agent verbs_args scale_agent >make.log 2>&1) ||
        fail "$1 does not build: $(grep -m 3 rror "$build/test/gtest/make.log")"
    UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=$options timeout $limit \
        "$build/test/gtest/$1" --gtest_filter="$2" >log 2>&1 ||
        fail "$1: $(grep -E 'FAILED|Error|error' log | head -n 10)"
    clean log
    grep -q 'PASSED' log || fail "$1 did not run"
    echo "# $1: $(sed -n 's/.*PASSED *\] *//p' log)"
}

# script NAME FILTER: runs tests of test_NAME.sh with the sanitizers' build
script() {
    local logs=$PWD/found
    sanitized
    make -j"$(nproc)" -C "$build/test/e2e" check TESTS= >make.log 2>&1 ||
        fail "the programs do not build: $(grep -m 3 rror make.log)"
    ASAN_OPTIONS=$options:log_path=$logs TAP_FILTER=$2 \
    UBSAN_OPTIONS=print_stacktrace=1:log_path=$logs RC_VARUNA_SWEEP=1 \
    RC_VARUNA_JOB_LIMIT=300 RCV_BUILD=$build RCV_PREFIX=$build/_install \
        timeout 1800 bash "$top"/test/e2e/*/"test_$1.sh" >log 2>&1 ||
        fail "$(grep -v '^ok' log | head -n 10) $(cat "$logs"* 2>/dev/null | head -n 20)"
    ! cat "$logs"* 2>/dev/null | sed -n "1,30s/^/# /p" | grep . ||
        fail "a sanitizer reports an error"
    echo "# $1: $(grep -c '^ok' log) tests"
}

test_address_and_undefined_failover() {
    script failover "$failover"
}

if [ -n "${RC_VARUNA_LONG:-}${RC_VARUNA_SANITIZERS:-}" ]; then
    test_address_and_undefined_plugin() {
        suite gtest_varuna '*'
    }

    test_address_and_undefined_emulator() {
        suite gtest_mlx5emu "$filter"
    }
fi

if [ "${RC_VARUNA_SANITIZERS:-}" = long ]; then
    for name in api atomics atomics_chaos atomics_rules atomics_sweep chaos \
                detectors hangs home hostile late many messages orphans passive peers resend restart \
                stories sweep ucp_atomics; do
        eval "test_address_and_undefined_$name() { script $name .; }"
    done
fi

test_threads_of_the_engine() {
    check gcc -g -O1 -w -fsanitize=thread -std=gnu11 -D_GNU_SOURCE -I"$emu" \
        "$top"/test/engine/engine.c "$top"/test/engine/engine_threads.c \
        "$emu"/{base,core,fault,proto,rules,trace,wire,wqe}/*.c -lpthread -o threads
    timeout 900 ./threads 5000 >log 2>&1 || fail "$(head -n 20 log)"
    clean log
    echo "# $(tail -n 1 log)"
}

run_tests
