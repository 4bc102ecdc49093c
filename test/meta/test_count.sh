#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The counting of test results (contrib/test_count.sh) and the second look at what failed
# (contrib/test_run.sh) lose no failure.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"
. "$top/contrib/test_count.sh"
. "$top/contrib/test_run.sh"

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

say() {
    echo "$*" >&2
}

# gtest_program [TEST...]: writes a program of four tests. These tests crash it, each one as
# often as the file of its name has lines
gtest_program() {
    local test
    cat >gtest_fake <<'EOF'
#!/bin/bash
args=$*
filter=${args##*--gtest_filter=}
[ "$filter" != '*' ] || filter=a.one:a.two:a.three:a.four
case "$*" in
*--gtest_list_tests*)
    echo a.
    tr : '\n' <<<"$filter" | sed 's/^a\./  /'
    exit
    ;;
esac
for test in $(tr : ' ' <<<"$filter"); do
    echo "[ RUN      ] $test"
    cat says 2>/dev/null
    if [ -s "$test" ]; then
        sed -i 1d "$test"
        kill -SEGV $$
    fi
    echo "[       OK ] $test (5 ms)"
done
EOF
    chmod +x gtest_fake
    for test in "$@"; do
        echo crash >>"$test"
    done
}

# tap_script [NAME...]: writes test_fake.sh with two tests. Each one fails as often as the
# file of its name has lines
tap_script() {
    local test
    cat >test_fake.sh <<EOF
. "$top/test/e2e/lib/tap.sh"
again=$PWD
fails() { [ ! -s "\$again/\$1" ] || { sed -i 1d "\$again/\$1"; cat "\$again/says"; fail "it is late"; }; }
test_a() { fails test_a; }
test_b() { fails test_b; }
run_tests
EOF
    echo "# nothing is wrong" >says
    for test in "$@"; do
        echo late >>"$test"
    done
}

# runs STATUS COUNTS SUITE...: runs the suites and finishes; the output is in ./out
runs() {
    local want=$1 counted=$2 suite status=0
    shift 2
    unset TAP_FILTER
    logs=$PWD/logs limit=60 filter='*'
    mkdir -p logs
    for suite in "$@"; do
        run_suite "$PWD/$suite" >>out 2>&1
    done
    (set +e; finish "${@/#/$PWD/}") >result 2>>out || status=$?
    [ "$(tail -n 1 result)" = "$counted" ] && [ $status -eq "$want" ] ||
        fail "$status, $(tail -n 1 result) instead of $counted: $(cat out)"
}

test_crash_does_not_hide_the_rest() {
    gtest_program a.two a.two a.four a.four
    runs 1 "2 passed, 2 failed" gtest_fake
    check grep -q 'a.two.* a new process runs the rest' out
}

test_crash_that_passes_alone_is_unsteady() {
    gtest_program a.two
    runs 0 "4 passed, 0 failed" gtest_fake
    check grep -q "^UNSTEADY gtest_fake: a.two .*/gtest_fake.log, .*/gtest_fake.second.log" out
    counts a.two gtest_expected logs/gtest_fake.second.log.list
}

test_script_that_passes_alone_is_unsteady() {
    tap_script test_b
    runs 0 "2 passed, 0 failed" test_fake.sh
    check grep -q '^UNSTEADY test_fake: test_b ' out
    check grep -q '^1\.\.1$' logs/test_fake.second.log
    check grep -q 'it is late' logs/test_fake.log
}

test_fails_twice() {
    tap_script test_a test_b test_b
    runs 1 "1 passed, 1 failed" test_fake.sh
    check grep -q '^UNSTEADY test_fake: test_a ' out
}

test_nothing_failed() {
    tap_script
    runs 0 "2 passed, 0 failed" test_fake.sh
    [ ! -e logs/test_fake.second.log ] || fail "it was run again"
}

# What no speed of the machine explains is not run again
test_no_second_look_at_what_is_certain() {
    tap_script test_a
    echo "FAILED: put 3 was executed 2 times" >says
    runs 1 "1 passed, 1 failed" test_fake.sh
    [ ! -e logs/test_fake.second.log ] || fail "it was run again"
    gtest_program a.one
    runs 1 "3 passed, 1 failed" gtest_fake
}

# What is certain is so at the beginning of a long output, too, and of a suite whose output
# nobody looks at: who writes the output is not ended by a closed pipe
test_long_output_of_what_is_certain() {
    { echo "FAILED: put 3 was executed 2 times"; seq 100000; } | is_certain test_fake ||
        fail "it is not certain"
    seq 100000 | is_certain test_models || fail "the suite is not certain"
}

# With pipefail, a command fails whose reader has ended: grep -q does so at the first match, and
# head after its lines, so what is found may count as not found
test_no_verdict_behind_a_reader_that_ends() {
    local scripts
    mapfile -t scripts < <(cd "$top" && find contrib test -name '*.sh')
    ! (cd "$top" && grep -nE '[^|]\|[[:space:]]*(grep -[a-zA-Z]*q|head .*\| *grep)' \
        "${scripts[@]}") >found || fail "$(head -n 5 found)"
}

# A script that ends early has tests without a result
test_script_that_ends_early() {
    cat >test_fake.sh <<EOF
echo 1..2
echo ok 1 - a
[ -e ended ] || { touch ended; exit 1; }
echo ok 2 - b
EOF
    runs 0 "2 passed, 0 failed" test_fake.sh
    check grep -q '^UNSTEADY test_fake: (it did not end)' out
}

test_many_unsteady_tests_fail() {
    local i
    for i in 1 2 3 4 5 6; do
        printf 'echo 1..1; [ -e %s ] && echo ok 1 - a || echo not ok 1 - a; touch %s\n' \
            $i $i >test_$i.sh
    done
    runs 0 "5 passed, 0 failed" test_{1,2,3,4,5}.sh
    rm [1-6]
    runs 1 "0 passed, 6 failed" test_{1,2,3,4,5,6}.sh
}

test_times() {
    tap_script
    gtest_program
    runs 0 "6 passed, 0 failed" test_fake.sh gtest_fake
    print_times >times
    check grep -qE '^[0-9]+ s test_fake \([0-9]+ s of processors\)$' times
    check grep -qE '^0\.0 s a.one \(gtest_fake\)$' times
    check grep -qE '^[0-9.]+ s test_a \(test_fake\)$' times
}

# messages_of FILE FUNCTION: prints the messages with which it calls the function, with 7 for
# each value
messages_of() {
    tr '\n' ' ' <"$1" | sed "s/\\\\\"/'/g" |
        { grep -oE "\b$2\(([^\";]|\"[^\"]*\")*;" || true; } |
        sed -E '/^[^"]*[{]/d; /"/!d
                s/" *PRI[a-zA-Z0-9]+ *"/7/g; s/" *PRI[a-zA-Z0-9]+/7"/g; s/" *"//g
                s/^[^"]*"([^"]*)".*/\1/; s/%[-.0-9]*[lz]*[a-z]?/7/g; s/\\n$//'
}

# script_messages TREE: prints what its scripts say of operations and data
script_messages() {
    { grep -rhoE --include='*.sh' '\bfail "[^"]*"' "$1/test/e2e" || true; } |
        sed -nE 's/^fail "(.*)"$/\1/; /\b(lost|twice|duplicate|again|overwritten|executed|wrong)\b/p'
}

# judged TREE: prints the messages of its judges that are neither certain nor listed in
# test/judges as uncertain
judged() {
    local top=$1 file function words message
    {
        while read -r _ file function words; do
            messages_of "$top/$file" "$function" >said
            [ -s said ] || echo "no message of $function in $file"
            sed "s|^|$words |; s|^ ||" said
        done < <(grep '^judge ' "$top/test/judges")
        script_messages "$top"
    } | sort -u >messages
    { grep -vE -f <(sed -n 's/^uncertain //p' "$top/test/judges") messages || true; } |
        while read -r message; do
            is_certain test_sweep <<<"# $message" || echo "$message"
        done
}

# All that judges say of an operation or of data is certain
test_judges_are_certain() {
    local message
    judged "$top" >unknown
    [ ! -s unknown ] || fail "neither in test/certain nor uncertain in test/judges: $(cat unknown)"
    (($(wc -l <messages) >= 200)) || fail "$(wc -l <messages) messages"
    is_certain test_demo <<<"FAILED: the numbers above do not agree" || fail "a second look"
    for message in "the client does not answer" "endpoint 1: 5 messages were sent, 4 received" \
        "an operation ended with Endpoint timeout, and completed 1 times"; do
        ! is_certain test_sweep <<<"# $message" || fail "no second look at: $message"
    done
}

# The test above finds what a judge says newly, and a judge that has another name
test_an_unknown_message_of_a_judge_is_found() {
    local file=tree/test/e2e/lib/ft_judge.c
    mkdir -p tree/test/e2e/lib
    cp "$top/test/certain" tree/test
    grep -E '^judge [^ ]*/ft_judge.c|^uncertain' "$top/test/judges" >tree/test/judges
    cp "$top/${file#tree/}" $file
    [ -z "$(judged "$PWD/tree")" ] || fail "found without a mistake: $(cat messages)"
    echo 'f() { ft_judge_error(v, "put %u \"%s\" came to" " %" PRIu64 ": %.20s", i); }' >>$file
    echo '[ "$a" = 1 ] || fail "data of $a was lost"' >tree/test/e2e/test_a.sh
    judged "$PWD/tree" >unknown
    diff unknown - <<'END' || fail "these are found"
data of $a was lost
put 7 '7' came to 7: 7
END
    sed -i 's/ft_judge_error/ft_error/' $file
    judged "$PWD/tree" >unknown
    check grep -qx "no message of ft_judge_error in test/e2e/lib/ft_judge.c" unknown
}

# proves STATUS HOW...: runs proof.sh in ./tree, whose tests print what ./result has
proves() {
    local want=$1 status=0
    shift
    RC_VARUNA_PROOF=$PWD/proof tree/contrib/proof.sh "$@" >table 2>steps || status=$?
    [ $status -eq "$want" ] || fail "status $status: $(cat table steps)"
}

test_proof_runs_each_machine_once() {
    mkdir -p tree/contrib
    cp "$top"/contrib/{proof,common,pause}.sh tree/contrib
    cat >tree/contrib/test.sh <<EOF
#!/bin/bash
echo "\$(nproc) \$(pgrep -c -P \$PPID)" >>$PWD/runs
cat $PWD/result
EOF
    chmod +x tree/contrib/test.sh
    git -C tree init -q
    git -C tree add .
    git -C tree -c user.name=n -c user.email=e commit -qm one
    printf '[test] UNSTEADY test_a: test_b failed, and\n7 passed, 0 failed\n' >result
    proves 0 busy
    check grep -qE '^[|] [0-9a-f]+ [|] busy [|] 0 [|] 7 passed, 0 failed [|] test_a: test_b [|]$' table
    proves 0 busy single
    check test "$(wc -l <runs)" -eq 2
    read -r _ loops <runs
    ((loops >= 5)) || fail "$loops children beside the test"
    [[ $(tail -n 1 runs) == '1 '* ]] || fail "more than one processor"
    [ -z "$(ls proof | grep -v 'log$\|table')" ] || fail "clones are left"
    echo '6 passed, 1 failed' >result
    proves 1 idle
    proves 1 idle
    check test "$(wc -l <runs)" -eq 3
    proves 2 --loud
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

test_suites_are_listed_from_the_tree() {
    RC_VARUNA_BUILD=$PWD/none check "$top/contrib/test.sh" -l >names
    [ ! -e none ] || fail "it has built something"
    check grep -qx gtest_varuna names
    check grep -qx ucx_rc_varuna names
    check grep -qx test_count names
    ! grep -q scale_agent names || fail "other programs are listed"
}

test_each_script_is_a_suite() {
    each_is_a_suite "$top" || fail "contrib/test.sh does not run these, or runs others"
}

# The test above detects a missing or additional script
test_a_script_in_a_wrong_folder_is_found() {
    local file
    mkdir -p tree/contrib tree/test/{meta,gtest} tree/test/e2e/peers/deeper
    cp "$top/test/gtest/Makefile.am" tree/test/gtest
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
