# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Reads the output of test suites. Sourced by contrib/test.sh, and by the test
# of these functions. Each count_ function prints "PASSED FAILED".
#
# A test that was expected to run and has no "OK" counts as failed. A suite without
# tests counts as one failure, and so does a suite that exits with an error after all
# its tests passed.

# gtest_expected LIST: prints the tests in the output of --gtest_list_tests
gtest_expected() {
    awk '/^[^ \t].*\.([ \t]|$)/ { suite = $1; next }
         /^  [^ \t]/ && suite   { print suite $1 }' "$1" | sort -u
}

# gtest_passed LOG: prints the tests that passed and were not skipped
gtest_passed() {
    awk '{ sub(/\r$/, "") }
         match($0, /\[ RUN      \] /)  { skipped = 0 }
         match($0, /\[ +SKIP/)         { skipped = 1 }
         match($0, /\[       OK \] /) && !skipped {
             name = substr($0, RSTART + RLENGTH)
             sub(/[ ,].*/, "", name)
             print name
         }' "$1" | sort -u
}

# gtest_skipped LOG: prints the tests that skipped themselves
gtest_skipped() {
    awk '{ sub(/\r$/, "") }
         match($0, /\[ RUN      \] /) {
             name = substr($0, RSTART + RLENGTH)
             sub(/[ ,].*/, "", name)
         }
         match($0, /\[ +SKIP/) { print name }' "$1" | sort -u
}

# gtest_rest LIST LOG: prints a filter for the tests that were not started, or nothing
gtest_rest() {
    awk '{ sub(/\r$/, "") }
         match($0, /\[ RUN      \] /) {
             name = substr($0, RSTART + RLENGTH)
             sub(/[ ,].*/, "", name)
             print name
         }' "$2" | sort -u | comm -23 <(gtest_expected "$1") - | paste -sd :
}

# count_gtest LIST LOG STATUS [SKIPS] SKIPS: file with the names of tests that may skip
# themselves. If one does, it counts neither as passed nor as failed. All other skips
# are failures.
count_gtest() {
    local list=$1 log=$2 status=$3 skips=${4:-/dev/null} expected passed

    gtest_expected "$list" >"$log.expected"
    gtest_passed "$log" >"$log.passed"
    sed 's/#.*//; s/ .*//' "$skips" | sort -u >"$log.allowed"
    gtest_skipped "$log" | comm -12 - "$log.allowed" >"$log.skipped"
    comm -23 "$log.expected" "$log.skipped" >"$log.rest"
    mv "$log.rest" "$log.expected"
    expected=$(wc -l <"$log.expected")
    passed=$(comm -12 "$log.expected" "$log.passed" | wc -l)
    finish_count "$passed" "$((expected - passed))" "$status"
}

# count_tap LOG STATUS
count_tap() {
    local log=$1 status=$2 plan passed seen failed

    plan=$(sed -n 's/^1\.\.\([0-9]\{1,\}\)$/\1/p' "$log" | sed -n 1p)
    seen=$(grep -a -cE '^(not )?ok( |$)' "$log" || true)
    passed=$(grep -a -E '^ok( |$)' "$log" | grep -a -vciE '# *(skip|todo)' || true)
    failed=$((seen - passed))
    if [ -z "$plan" ]; then
        # No plan: the suite ended before it was written
        failed=$((failed + 1))
    elif ((plan > seen)); then
        failed=$((failed + plan - seen))
    fi
    finish_count "$passed" "$failed" "$status"
}

finish_count() {
    local passed=$1 failed=$2 status=$3

    if ((failed == 0 && (passed == 0 || status != 0))); then
        failed=1
    fi
    echo "$passed $failed"
}

# failed_names LOG: prints the failures of the suite last counted
failed_names() {
    local log=$1

    if [ -e "$log.expected" ]; then
        comm -23 "$log.expected" "$log.passed"
    else
        grep -a -E '^not ok|^ok.*# *(skip|todo)' "$log" || true
    fi
}

# reasons LOG: prints what failed tests of a script printed last
reasons() {
    awk '/^# [0-9.]+ s$/ { next }
         /^ok / { n = 0; next }
         /^not ok / { for (i = (n > 6 ? n - 6 : 0); i < n; ++i) print line[i]; n = 0; next }
         { line[n++] = substr($0, 1, 400) }' "$1"
}

# failed_tests LOG: prints the names of the failed tests of the suite last counted, as far
# as its output has them
failed_tests() {
    failed_names "$1" | sed -E 's/^(not )?ok [0-9]+ - //; s/ *#.*//'
}

# output_of LOG TEST: prints what this test printed
output_of() {
    awk -v test="$2" '
        { sub(/\r$/, "") }
        match($0, /\[ RUN      \] /) {
            name = substr($0, RSTART + RLENGTH)
            sub(/[ ,].*/, "", name)
            gtest = 1
            n = 0
        }
        { line[n++] = $0 }
        gtest && name == test { print; next }
        /^(not )?ok [0-9]+ - / {
            name = $0
            sub(/^(not )?ok [0-9]+ - /, "", name)
            if (name == test)
                for (i = 0; i < n; ++i)
                    print line[i]
            n = 0
        }' "$1"
}

# is_certain SUITE: whether the output of a failed test (stdin) shows something that no
# speed of the machine explains, as test/certain lists it
is_certain() {
    local pattern output
    output=$(cat) # All of it, or who writes it fails, and with it a pipeline
    ! grep -qxF "suite $1" "$top/test/certain" || return 0
    # Its plugins have a mistake, which the tests have to show
    [ "$1" != test_mutations ] || return 1
    pattern=$(sed '/^#/d; /^suite /d; /^$/d' "$top/test/certain" | paste -sd '|')
    grep -aqE -e "$pattern" <<<"$output"
}

# times_of LOG: prints "SECONDS s TEST" for each test
times_of() {
    sed -nE 's/^\[ +(OK|FAILED) +\] ([^ ,]+).* \(([0-9]+) ms\)\r?$/\3 \2/p' "$1" |
        awk '{ printf "%.1f s %s\n", $1 / 1000, $2 }'
    awk '/^# [0-9.]+ s$/       { time = $2 }
         /^(not )?ok [0-9]+ -/ { sub(/^(not )?ok [0-9]+ - /, ""); print time " s " $0 }' "$1"
}

# progress_line LOG: prints the current test
progress_line() {
    local line

    line=$(grep -a -E '\[ RUN      \]|^(not )?ok ' "$1" | tail -n 1 || true)
    [ -n "$line" ] || line=$(tail -n 1 "$1")
    echo "$line" | tr -d '\r' | cut -c 1-100
}
