#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The counting of test results (contrib/test_count.sh) loses no failure.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"
. "$top/contrib/test_count.sh"

write_list() {
    cat >list <<EOF
[     INFO ] Using random seed of 7
a.
  one
  two
b/typed.  # TypeParam = int
  three/0  # GetParam() = 4
EOF
}

write_all_ok() {
    cat >log <<EOF
[ RUN      ] a.one
[       OK ] a.one (0 ms)
[ RUN      ] a.two
noise without a newline[       OK ] a.two (1 ms)
[ RUN      ] b/typed.three/0
[       OK ] b/typed.three/0 (1 ms)
EOF
}

# counts EXPECTED COMMAND...
counts() {
    local want=$1 got
    shift
    got=$("$@")
    [ "$got" = "$want" ] || fail "\"$got\" instead of \"$want\": $*"
}

test_gtest_all_pass() {
    write_list
    write_all_ok
    counts "3 0" count_gtest list log 0
}

test_gtest_failure() {
    write_list
    write_all_ok
    sed -i 's/.*OK ] a.two/[  FAILED  ] a.two/' log
    counts "2 1" count_gtest list log 1
    counts "a.two" failed_names log
}

test_gtest_crash_takes_the_rest_along() {
    write_list
    write_all_ok
    sed -i '3,$d' log
    counts "1 2" count_gtest list log 139
}

test_gtest_ends_early_with_success() {
    write_list
    write_all_ok
    sed -i '3,$d' log
    counts "1 2" count_gtest list log 0
}

test_gtest_bad_exit_after_success() {
    write_list
    write_all_ok
    counts "3 1" count_gtest list log 1
}

test_gtest_no_tests() {
    : >list
    : >log
    counts "0 1" count_gtest list log 0
}

test_gtest_skip_is_no_pass() {
    write_list
    write_all_ok
    sed -i 's/^noise/[     SKIP ] (why)\n/' log
    counts "2 1" count_gtest list log 0
}

test_gtest_googletest_skip_is_no_pass() {
    write_list
    write_all_ok
    sed -i 's/.*OK ] a.two/[  SKIPPED ] a.two/' log
    counts "2 1" count_gtest list log 0
}

test_gtest_skip_that_is_allowed() {
    write_list
    write_all_ok
    sed -i 's/^noise/[     SKIP ] (why)\n/' log
    echo "a.two (why)" >skips
    counts "2 0" count_gtest list log 0 skips
}

test_gtest_allowed_to_skip_is_not_allowed_to_fail() {
    write_list
    write_all_ok
    sed -i 's/.*OK ] a.two/[  FAILED  ] a.two/' log
    echo "a.two (why)" >skips
    counts "2 1" count_gtest list log 1 skips
}

test_gtest_allowed_to_skip_is_not_allowed_to_vanish() {
    write_list
    write_all_ok
    sed -i '/a.two/d' log
    echo "a.two (why)" >skips
    counts "2 1" count_gtest list log 0 skips
}

test_tap_all_pass() {
    printf '1..2\nok 1 - a\nok 2 - b\n' >log
    counts "2 0" count_tap log 0
}

test_tap_failure() {
    printf '1..2\nok 1 - a\nnot ok 2 - b\n' >log
    counts "1 1" count_tap log 1
    counts "not ok 2 - b" failed_names log
}

test_tap_reasons() {
    printf '# other\nok 1 - a\n# why\nnot ok 2 - b\n# other\nok 3 - c\n' >log
    counts "# why" reasons log
}

test_tap_ends_early() {
    printf '1..3\nok 1 - a\n' >log
    counts "1 2" count_tap log 0
}

test_tap_no_plan() {
    printf 'ok 1 - a\n' >log
    counts "1 1" count_tap log 0
}

test_tap_empty() {
    : >log
    counts "0 1" count_tap log 0
}

test_tap_skip_is_no_pass() {
    printf '1..2\nok 1 - a\nok 2 - b # SKIP no reason\n' >log
    counts "1 1" count_tap log 0
}

test_tap_bad_exit_after_success() {
    printf '1..1\nok 1 - a\n' >log
    counts "1 1" count_tap log 3
}

# script COUNT: writes a script whose tests end in all ways, COUNT in parallel
script() {
    cat >script.sh <<EOF
. "$top/test/e2e/lib/tap.sh"
fabric=f
silent() { fail "in a substitution"; }
test_1() { [ \$fabric = f-1 ] && [ "\$(ls -A)" = "" ]; }
test_2() { local n; n=\$(grep -c nothing /dev/null); }
test_3() { local n; n=\$(silent); }
test_4() { fail "by itself"; }
test_5() { false || true; ! false; }
run_tests $1
EOF
    ! TAP_FILTER= bash script.sh >out 2>&1 || fail "it exited with status 0: $(cat out)"
    counts "2 3" count_tap out 1
    counts 2 grep -c '^ok [15] - test_[15]$' out
    check grep -q '^# ended in line 5 of script.sh: n=.*grep -c' out
    check grep -q '^# in a substitution' out
    check grep -q '^# by itself' out
}

test_scripts_lose_no_failure() {
    script 1
}

test_scripts_lose_no_failure_side_by_side() {
    script 2
}

# each_is_a_suite TREE: checks that contrib/test.sh runs all scripts of TREE, and no
# others
each_is_a_suite() {
    local top=$1 build_dir=$RCV_BUILD
    eval "$(sed -n '/^all_suites() {/,/^}/p' "$top/contrib/test.sh")"
    all_suites | grep '/test_[^/]*\.sh$' | sort >suites
    find "$top/test" -name 'test_*.sh' | sort >scripts
    [ -s suites ] && diff scripts suites && [ -z "$(sed 's|.*/||' suites | sort | uniq -d)" ]
}

test_each_script_is_a_suite() {
    each_is_a_suite "$top" || fail "contrib/test.sh does not run these, or runs others"
}

# The test above detects a missing or additional script
test_a_script_in_a_wrong_folder_is_found() {
    local file
    mkdir -p tree/contrib tree/test/meta tree/test/e2e/peers/deeper
    cp "$top/contrib/test.sh" tree/contrib
    touch tree/test/meta/test_a.sh tree/test/e2e/peers/test_b.sh
    each_is_a_suite "$PWD/tree" || fail "these are"
    for file in e2e/peers/deeper/test_c.sh e2e/peers/test_a.sh; do
        touch "tree/test/$file"
        ! each_is_a_suite "$PWD/tree" || fail "$file was not detected"
        rm "tree/test/$file"
    done
}

run_tests
