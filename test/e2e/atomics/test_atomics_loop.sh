#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Loops that read a word, compute, and compare and swap until that succeeds
# (test/e2e/atomics/ft_amo.c): three clients, on words of 4 and 8 bytes, in all modes. The
# successes of all clients must form one chain from 0 to what is left in the word. So no
# success may be taken for a failure, and no read may return a UID. Without faults, and
# while links of clients and of the server fail in turn.
#
# And words of 8 bytes, of whose halves others make words of 4 bytes.


. "$(dirname "${BASH_SOURCE[0]}")/ft_amo.sh"

# contended: waits until attempts have failed, as the clients meet each other
contended() {
    local i
    for ((i = 0; i < 1800; ++i)); do
        [ "$(cat client.*.out | awk '$1 == "loop" && NF == 4 && $4 "" != $2 ""' |
             wc -l)" -lt 10 ] || return 0
        pause 0.1
    done
    fail "no attempt failed"
}

# loops MODE: both widths, without faults
loops() {
    local width
    for width in 8 4; do
        start "$1" 3
        clients 3 $width 0 1 loop
        progressed 300
        contended
        release
        finish
        judge loop
    done
}

# cut_links N: N links fail, one after the other, and come back; the first ones of clients
# with a port event, others silently. Meanwhile each client continues
cut_links() {
    local i how link
    for ((i = 0; i < $1; ++i)); do
        link=$(((i + 1) % 4)):$((i / 4 % 2))
        how=down
        ((i % 2)) || how=silent
        link $link $how
        progressed 20
        link $link up
        progressed 20
    done
}

# loops_while_links_fail MODE
loops_while_links_fail() {
    local width
    for width in 8 4; do
        start "$1" 3
        clients 3 $width 0 1 loop fadd add
        progressed 20
        cut_links 6
        release
        finish
        judge loop fadd add
        cat client.*.out client.*.err server.* >all
        [ "$1" = proxy ] || grep -q 'rc_varuna: switched' all ||
            fail "no lane was switched"
    done
}

test_loops_native() {
    loops native
}

test_loops_reread() {
    loops reread
}

test_loops_proxy() {
    loops proxy
}

test_loops_extended() {
    loops extended
}

test_loops_proxy_while_links_fail() {
    loops_while_links_fail proxy
}

test_loops_extended_while_links_fail() {
    loops_while_links_fail extended
}

# halves MODE: two clients add to a word of 8 bytes, and two to its upper half as a word of
# 4 bytes
halves() {
    local count=500
    start "$1" 4
    clients 2 8 $count 4 half
    client_start 3 4 $count 4 half
    client_start 4 4 $count 4 half
    finish
    cat client.*.out >all
    [ "$(word 7)" = "$(awk -v n=$count 'BEGIN { printf "%.0f", 2 * n * 2 ^ 32 + 2 * n }')" ] ||
        fail "$1: the word is $(word 7)"
    awk '$1 == "half" { print $2, ($2 == 8) ? $3 % 2 ^ 32 : $3 }' all | sort -u >results
    [ "$(wc -l <results)" -eq $((4 * count)) ] || fail "$1: results are duplicate"
}

test_halves_of_words() {
    local mode
    for mode in native reread proxy extended; do
        halves $mode
    done
}

run_tests
