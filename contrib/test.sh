#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/test.sh [-f GTEST_FILTER] [SUITE...]
#
# Builds everything and runs the test suites, all of them unless some are named
# (-l lists them). The last line is "N passed, N failed"; the exit status is 0
# only if something passed and nothing failed. What should have run and did not
# counts as failed: tests that a crash took along, skipped tests, disabled ones.
#
# Suites which test/long_suites names take minutes each and are run only if they
# are named, or if RC_VARUNA_LONG is set.
#
# A suite is a gtest program (test/gtest), UCX's own tests for one transport
# (test/gtest/ucx_suites), or a script that prints TAP (test/scripts). Their
# output is kept in test-logs/ of the build directory. RC_VARUNA_SUITE_TIMEOUT:
# seconds that one suite may take.

set -euo pipefail
prog=test
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$top/contrib/test_count.sh"

filter='*'
list=no
while getopts f:lh opt; do
    case $opt in
    f) filter=$OPTARG ;;
    l) list=yes ;;
    h) sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

limit=${RC_VARUNA_SUITE_TIMEOUT:-600}
logs=$build_dir/test-logs
started=$SECONDS

build() {
    ensure_built
    mkdir -p "$logs"
    say "make check (the test programs; some minutes when all is new)"
    quietly "$logs/make-check.log" \
        make -C "$build_dir" -j"$(nproc)" check TESTS= ||
        die "the tests do not build"
    say "UCX's own tests (some minutes when all is new)"
    quietly "$logs/make-ucx.log" \
        make -C "$build_dir/test/gtest" -j"$(nproc)" gtest_ucx gtest_ucp ||
        die "UCX's own tests do not build"
}

# all_suites: the path of one suite a line
all_suites() {
    local script

    for script in "$top"/test/scripts/test_*.sh; do
        [ ! -e "$script" ] || echo "$script"
    done
    make -s --no-print-directory -C "$build_dir/test/gtest" list-suites
    for script in "$top"/test/gtest/ucx_suites/uc[xp]_*; do
        case $script in
        *.skips | *.left_out | *.long | *.some) ;;
        *) echo "$script" ;;
        esac
    done
}

suite_name() {
    basename "$1" .sh
}

# run_suite PATH: runs it, and adds to total_passed and total_failed
run_suite() {
    local path=$1 name log status=0 start=$SECONDS passed failed skips
    name=$(suite_name "$path")
    log=$logs/$name.log
    rm -f "$log".*
    skips=${path%_flap}.skips # The same tests while a link flaps
    [ -e "$skips" ] || skips=/dev/null

    say "$name"
    case $path in
    *.sh)
        watch "$log" timeout -k 10 "$limit" bash "$path" || status=$?
        read -r passed failed < <(count_tap "$log" "$status")
        ;;
    *)
        timeout 60 "$path" --gtest_list_tests --gtest_filter="$filter" \
            >"$log.list" 2>/dev/null || true
        watch "$log" timeout -k 10 "$limit" "$path" \
            --gtest_filter="$filter" || status=$?
        read -r passed failed < <(count_gtest "$log.list" "$log" "$status" \
                                    "$skips")
        ;;
    esac

    if ((status == 124 || status == 137)); then
        say "  $name did not end within $limit s"
    elif ((status != 0)); then
        say "  $name ended with status $status"
    fi
    if ((failed > 0)); then
        failed_names "$log" | sed 's/^/    FAILED  /' >&2
        say "  its output is in $log; the end of it:"
        tail -n 25 "$log" | sed 's/^/    | /' >&2
    fi
    say "  $name: $passed passed, $failed failed, $((SECONDS - start)) s"
    if [ -s "$log.skipped" ]; then
        say "  $(wc -l <"$log.skipped") more skipped themselves, as $skips has it"
    fi
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
}

# watch LOG COMMAND...: runs it into LOG, telling the last line now and then
watch() {
    local log=$1 pid next=$((SECONDS + 15)) status=0 start=$SECONDS
    shift
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.1
        if ((SECONDS >= next)); then
            say "  ... $((SECONDS - start)) s: $(progress_line "$log")"
            next=$((SECONDS + 15))
        fi
    done
    wait "$pid" || status=$?
    return "$status"
}

# select_suites: of all suites, those that are named (all if none is)
select_suites() {
    local suites path wanted found

    mapfile -t suites < <(all_suites)
    if [ $# -eq 0 ]; then
        for path in "${suites[@]}"; do
            if [ -z "${RC_VARUNA_LONG:-}" ] &&
               grep -qx "$(suite_name "$path")" "$top/test/long_suites"; then
                say "$(suite_name "$path") is left out: RC_VARUNA_LONG=1 runs it"
            else
                echo "$path"
            fi
        done
        return
    fi
    for wanted in "$@"; do
        found=
        for path in "${suites[@]}"; do
            [ "$(suite_name "$path")" != "$wanted" ] || found=$path
        done
        [ -n "$found" ] || die "there is no suite \"$wanted\" (-l lists them)"
        echo "$found"
    done
}

build

# What the user has set for UCX is not for the tests
unset "${!UCX_@}"
export UCX_HANDLE_ERRORS=bt UCX_LOG_LEVEL=warn
export RCV_BUILD=$build_dir RCV_PREFIX=$prefix

selected=$(select_suites "$@")
if [ "$list" = yes ]; then
    for path in $selected; do
        suite_name "$path"
    done
    exit 0
fi

total_passed=0
total_failed=0
for path in $selected; do
    run_suite "$path"
done

say "the suites took $((SECONDS - started)) s, the build included"
echo "$total_passed passed, $total_failed failed"
((total_passed > 0 && total_failed == 0))
