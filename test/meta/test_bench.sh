#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Each script of contrib/bench in a short form: it ends, and tells all of its figures.
# What they are depends on the machine, but for those that are counted.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/ft_fabric.sh"

export RCV_BUILD RCV_PREFIX
bench=$top/contrib/bench

# table LINES COLUMNS: ./rows has so many lines, of numbers from that column on
table() {
    awk -v lines="$1" -v first="$2" '
        { for (i = first; i <= NF; ++i) if ($i !~ /^-?[0-9.]+$/) bad = $0 }
        NF < first { bad = $0 }
        END {
            if (bad != "") { print "no figures: " bad; exit 1 }
            if (NR != lines) { print NR " lines instead of " lines; exit 1 }
        }' rows >wrong || fail "$(cat wrong): $(cat out)"
}

# Under valgrind as well
test_run() {
    timeout 300 "$bench/run.sh" -s -t rc_varuna >out 2>err || fail "$(tail -n 5 err)"
    grep '^put 8 B' out | sed 's/^put 8 B *[a-z_0-9]*//' >rows
    [ "$(wc -w <rows)" -eq 7 ] || fail "figures are missing: $(cat out)"
    table 1 1
}

test_run_quick() {
    timeout 300 "$bench/run.sh" -s -q -t rc_mlx5 -t dc_mlx5 >out 2>err ||
        fail "$(tail -n 5 err)"
    grep -oE '(rc|dc)_mlx5 .*' out | sed 's/ - / 0 /g' >rows
    [ "$(wc -w <rows)" -eq 16 ] || fail "figures are missing: $(cat out)"
    table 2 2
}

test_atomics() {
    timeout 300 "$bench/atomics.sh" -n 20 -b 2 >out 2>err || fail "$(tail -n 5 err)"
    grep -E '^(native|extended|proxy) ' out >rows
    [ "$(wc -l <rows)" -ge 12 ] || fail "operations are missing: $(cat out)"
    table "$(wc -l <rows)" 3
    grep -q '^  errors: 0$' out || fail "no failures, or errors: $(cat out)"
}

# Others are run where what they measure is tested
test_all_scripts_are_run() {
    local script
    for script in "$bench"/*.sh; do
        grep -q "bench/${script##*/}" "$top"/test/*/test_*.sh "$top"/test/e2e/*/test_*.sh ||
            fail "no test runs $script"
    done
}

# cost ROLE: over rc_mlx5, which copies its requests to the doorbell register
cost() {
    UCX_RC_MLX5_MMIO_MODE=bf_post UCX_LOG_LEVEL=fatal UCX_HANDLE_ERRORS=none \
        timeout 120 "$emu" exec -n "$fabric" 0 -- valgrind -q --tool=none \
        "$RCV_BUILD/src/tools/bench/varuna_cost" "$1" socket rc_mlx5 mlx5_0:1 put \
        short 8 10
}

# valgrind shows no vector registers to who traps a doorbell. A program that stores one
# there must be told so, instead of waiting for what zeros have posted
test_vector_store_under_valgrind() {
    grep -qw avx /proc/cpuinfo || return 0 # There is none
    fabric_up --hosts 1 --links 1
    (cost server || :) >server.log 2>&1 &
    ! (cost client; exit $?) >client.log 2>&1 || fail "it has worked"
    wait
    grep -q 'vector register.*UCX_IB_MMIO_MODE=db' client.log ||
        fail "it is not told why: $(tail -n 3 client.log)"
    fabric_down --force
}

run_tests 2
