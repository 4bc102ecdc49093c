#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Each script of contrib/bench in a short form: it must finish, and print all figures.
# Times depend on the machine, so the tests check only counts.

needs=extended # of most
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/ft_fabric.sh"

export RCV_BUILD RCV_PREFIX
bench=$top/contrib/bench

# table LINES COLUMN: checks that ./rows has LINES lines, with numbers from COLUMN on
table() {
    awk -v lines="$1" -v first="$2" '
        { for (i = first; i <= NF; ++i) if ($i !~ /^-?[0-9.]+$/) bad = $0 }
        NF < first { bad = $0 }
        END {
            if (bad != "") { print "no figures: " bad; exit 1 }
            if (NR != lines) { print NR " lines instead of " lines; exit 1 }
        }' rows >wrong || fail "$(cat wrong): $(cat out)"
}

# All tables, with too few repetitions for useful figures
test_run() {
    timeout 600 "$bench/run.sh" -s >out 2>err || fail "$(tail -n 5 err)"
    grep -E '^(put|get|am)_[a-z]* [0-9]+ B |^idle ' out |
        sed 's/^[a-z_]* *\([0-9]* B\)*//' >rows
    table 21 3
    grep -oE '(rc|dc)_(mlx5|varuna) +[0-9]+\.[0-9 .]*$' out >rows
    table 3 6
}

# No operation costs more than its limit, and each limit has its figure
test_limits() {
    timeout 600 "$bench/run.sh" -c -f figures >out 2>err ||
        fail "$(tail -n 5 err): $(cat out)"
    sed 's/^/# /' out
    limits | cut -d ' ' -f 1 | sort >names
    cut -d ' ' -f 1 figures | sort | diff names - >wrong || fail "figures: $(cat wrong)"
}

# limits: prints "NAME LIMIT" of each
limits() {
    awk '!/^#/ && NF { print $1, $3 }' "$bench/limits"
}

# The check detects costs above the limit, costs far below it, and those without a limit
test_limits_are_checked() {
    limits >figures
    "$bench/run.sh" -c -f figures >out 2>err || fail "the limits: $(cat out err)"
    sed 's/^idle .*/idle 1.66/; s/^messages_f.*/messages_fallback 1.11/' figures >high
    fails 1 '^idle: 1.66 exceeds 0.99' "$bench/run.sh" -c -f high
    fails 1 '^messages_fallback: 1.11 exceeds 1.10' "$bench/run.sh" -c -f high
    sed 's/^cswap_extended .*/cswap_extended 2.71/' figures >low
    fails 1 '^cswap_extended: 2.71 is well below' "$bench/run.sh" -c -f low
    sed '$s/.*/&\nflight 1.00/' figures >more
    fails 1 '^flight: it has no limit' "$bench/run.sh" -c -f more
}

# On DC, too, a put and its log entry share a doorbell: all but the first one of a batch,
# which has no DCI yet. DC has no PSN, so LOG=fallback writes the entry as well
test_doorbells_of_dc() {
    local log
    for log in all fallback; do
        timeout 600 "$bench/run.sh" -t -s -o UCX_RC_VARUNA_SPARE_QPS=0 \
            -o UCX_RC_VARUNA_LOG=$log >out 2>err || fail "$(tail -n 5 err)"
        grep -E '^ *rc_varuna ' out >rows
        table 1 2
        # A flush posts a NOP if the last put was not the one with the completion
        awk '{ exit !($2 >= 1 && $2 < 1.1 && $3 >= 2 && $3 < 2.05) }' rows ||
            fail "LOG=$log: $(cat out)"
    done
}

# A compare and swap of mode extended takes one round trip and four requests. One of
# mode proxy takes a quarter of a message if 16 are in flight: the first one is sent at
# once, the others are one message when it is answered
test_atomics() {
    local i trips
    timeout 600 "$bench/atomics.sh" -n 20 -r 1 -b 2 >out 2>err || fail "$(tail -n 5 err)"
    sed -nE 's/^[|] (rc_mlx5|native|extended|proxy|proxy-busy) [|] ([a-z]*) [|]/\1 \2/p' out |
        sed 's/[|/]//g' >rows
    awk '{ ++rows[$1 " " NF] }
         END { exit !(rows["rc_mlx5 12"] == 10 && rows["native 12"] == 10 &&
                      rows["extended 12"] == 10 && rows["proxy 12"] == 10 &&
                      rows["proxy-busy 12"] == 10) }' rows ||
        fail "operations are missing: $(cat out)"
    awk '{ for (i = 3; i <= NF; ++i) if ($i !~ /^[0-9]+[.][0-9]+$/) exit 1 }' rows ||
        fail "no numbers: $(cat rows)"
    grep -E '^(native|extended|proxy) ' out >costs
    [ "$(grep -c '^extended ' costs)" -eq 6 ] || fail "operations are missing: $(cat out)"
    awk '($1 == "proxy" && $12 > 0.25) { print; bad = 1 } END { exit bad }' rows >wrong ||
        fail "too many messages: $(cat wrong)"
    awk '($1 == "extended" && $2 == "cswap" && $3 > 4.3) { print; bad = 1 }
         END { exit bad }' costs >wrong || fail "too many messages: $(cat wrong)"
    # Round trips are measured: a second one takes its time on any machine, but one may seem
    # to be two where processes wait for a CPU. Then it counts that it was one once
    for ((i = 0; i < 20; ++i)); do
        trips=$(awk '$1 == "extended" && $2 == "cswap" { print ($4 > 1.5) }' costs)
        [ "$trips" != 0 ] || break
        timeout 600 "$bench/atomics.sh" -n 20 cost >costs 2>err || fail "$(tail -n 5 err)"
    done
    [ "$trips" = 0 ] || fail "more than one round trip: $(cat costs)"
    grep -q '^  errors: 0$' out || fail "no failures, or errors: $(cat out)"
}

# UCP over rc_varuna and over rc_x
test_ucp() {
    timeout 600 "$bench/ucp.sh" -s get >out 2>err || fail "$(tail -n 5 err)"
    sed 's/^/# /' out
    sed -nE 's/^[|] get, [a-z]* [|]//; s/[|/]//gp' out | tail -n +3 >rows
    table 2 1
    awk 'NF != 8 { exit 1 }' rows || fail "columns are missing"
    ! "$bench/ucp.sh" -s swim >out 2>err || fail "any operation is taken"
    grep -q '"swim" is not put, get, tag or am' err || fail "$(cat err)"
}

# A switch of the link costs the same with thousands of endpoints until they post
test_switch() {
    timeout 600 "$bench/switch.sh" >out 2>err || fail "$(cat out err)"
    sed 's/^/# /' out
    tail -n +2 out >rows
    table 2 2
}

# Other tests run the other scripts
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
        "$RCV_BUILD/src/tools/bench/varuna_cost" "$1" socket rc_mlx5 mlx5_0:1 \
        put:short:8:10
}

# Under valgrind the emulator cannot read vector registers at a doorbell. A program that
# stores one must end with a message, instead of waiting for an operation of zeros
test_vector_store_under_valgrind() {
    grep -qw avx /proc/cpuinfo || { echo "# skipped: this CPU has no AVX"; return; }
    fabric_up --hosts 1 --links 1
    (cost server || :) >server.log 2>&1 &
    ! (cost client; exit $?) >client.log 2>&1 || fail "the client did not fail"
    wait
    grep -q 'vector register.*UCX_IB_MMIO_MODE=db' client.log ||
        fail "no reason was printed: $(tail -n 3 client.log)"
    fabric_down --force
}

run_tests 2
