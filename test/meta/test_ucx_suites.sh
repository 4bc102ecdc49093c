#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The suites of UCX's own tests (test/gtest/ucx_suites): counts.uct and counts.ucp are
# correct, so no test gets lost unseen, and each test that is left out or may skip itself
# exists and has a reason.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/ft_fabric.sh"

suites=$top/test/gtest/ucx_suites
export RCV_BUILD RCV_PREFIX

# counts_are_true LEVEL
counts_are_true() {
    check "$suites/counts.sh" "$1" >counts
    diff counts "$suites/counts.$1" >difference ||
        fail "counts.$1 is not what counts.sh $1 prints:" \
             "$(head -n 4 difference | tr '\n' ' ')"
}

test_counts_of_uct() {
    counts_are_true uct
}

test_counts_of_ucp() {
    counts_are_true ucp
}

# all_tests PROGRAM: prints UCX's tests for all transports, with their names on a fabric
# with two links
all_tests() {
    local transport
    "$emu" exec -n "$fabric" 0 -- "$run" \
        "$RCV_BUILD/test/gtest/$1" \
        --gtest_list_tests 2>/dev/null |
        awk '/^[^ \t]+\.([ \t]|$)/ { class = $1 }
             /^  [^ \t]/ && class  { print class $1 }'
}

# gtest's patterns are also patterns of the shell
test_each_line_names_tests_and_a_reason() {
    local list pattern reason name found bad=0
    fabric_up --hosts 1
    all_tests gtest_ucx >uct.tests
    all_tests gtest_ucp >ucp.tests
    for list in "$suites"/*.left_out "$suites"/*.long "$suites"/*.skips \
                "$suites"/*.some; do
        name=uct.tests
        case ${list##*/} in
        ucp_*) name=ucp.tests ;;
        esac
        check_list "$list" $name
    done
    [ ! -s bad ] || fail "$(wc -l <bad) lines: $(head -n 5 bad | tr '\n' ';')"
}

# check_list LIST TESTS: writes its bad lines to ./bad
check_list() {
    awk -v list="${1##*/}" -v some="${1##*.}" '
        function pattern(glob) {
            gsub(/[.]/, "\\.", glob)
            gsub(/[*]/, ".*", glob)
            gsub(/[?]/, ".", glob)
            return "^" glob "$"
        }
        NR == FNR         { tests[++count] = $1; next }
        /^#/ || NF == 0   { next }
        {
            if (NF < 2 && some != "some") {
                print list ": no reason: " $1
            }
            sub(/^TRANSPORT\//, "rc_mlx5/", $1) # a list for several transports
            re = pattern($1)
            for (i = 1; i <= count && tests[i] !~ re; ++i) {
            }
            # Only in a UCX with statistics
            if (i > count && $1 !~ /^rc_varuna\/test_uct_stats[.]/) {
                print list ": no such test: " $1
            }
        }' "$2" "$1" >>bad
}

run_tests
