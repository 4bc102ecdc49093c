#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/test.sh [-f GTEST_FILTER] [SUITE...]
#
# Builds everything and runs the named test suites, by default all (-l lists them). The
# last line is "N passed, N failed"; the exit status is 0 only if at least one test
# passed and none failed. Tests that did not run count as failed: after a crash,
# skipped, or disabled.
#
# Suites in test/long_suites take minutes each, and run only if they are named, or if
# RC_VARUNA_LONG is set. If no suite is named, the build of the test programs and the
# suites in test/beside_suites, which measure no times, run at the lowest priority, in
# parallel with the others.
#
# A suite is a gtest program (test/gtest), UCX's own tests for one transport
# (test/gtest/ucx_suites), or a script that prints TAP (test_*.sh in test/e2e, test/meta
# and others). Their output is kept in test-logs/ of the build directory.
# RC_VARUNA_SUITE_TIMEOUT: limit of one suite in seconds.

set -euo pipefail
prog=test
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$top/contrib/test_count.sh"

filter='*'
list=no
[ "${1:-}" != --help ] || set -- -h
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

tell_every=15 # Seconds between lines about a running suite
beside_pid=   # The background shell, once it was started

# make_quietly LOG TARGETS...: runs make in the build directory
make_quietly() {
    local log=$logs/$1
    shift
    quietly "$log" make -C "$build_dir" -j"$(nproc)" "$@" ||
        die "the tests do not build"
}

# build_scripts: builds what most scripts need
build_scripts() {
    say "make check in test/e2e"
    make_quietly make-apps.log -C test/e2e check TESTS=
}

build_rest() {
    say "make check (the test programs; some minutes the first time)"
    make_quietly make-check.log check TESTS=
    say "UCX's own tests (some minutes the first time)"
    make_quietly make-ucx.log -C test/gtest gtest_ucx gtest_ucp
}

# all_suites: prints the path of each suite
all_suites() {
    local script

    for script in "$top"/test/*/test_*.sh "$top"/test/e2e/*/test_*.sh; do
        echo "$script"
    done | awk -F / '{ print $NF, $0 }' | sort | cut -d ' ' -f 2-
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
    skips=${path%_flap} # The same tests while a link flaps, ...
    skips=${skips%_plain}.skips # ... or on devices with only verbs
    [ -e "$skips" ] || skips=$top/test/gtest/$name.skips
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
        reasons "$log" | sed 's/^/    FAILED  /' >&2
        say "  its output is in $log; the end of it:"
        tail -n 25 "$log" | sed 's/^/    | /' >&2
    fi
    say "  $name: $passed passed, $failed failed, $((SECONDS - start)) s"
    if [ -s "$log.skipped" ]; then
        say "  $(wc -l <"$log.skipped") more skipped themselves, as listed in $skips"
    fi
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
}

# watch LOG COMMAND...: runs it with its output in LOG, and sometimes prints the last
# line
watch() {
    local log=$1 pid next=$((SECONDS + tell_every)) status=0 start=$SECONDS
    shift
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.1
        if ((SECONDS >= next)); then
            say "  ... $((SECONDS - start)) s: $(progress_line "$log")"
            next=$((SECONDS + tell_every))
        fi
    done
    wait "$pid" || status=$?
    return "$status"
}

# select_suites: sets the suites that are named (all if none is)
select_suites() {
    local suites path wanted found

    mapfile -t suites < <(all_suites)
    if [ $# -eq 0 ]; then
        for path in "${suites[@]}"; do
            if [ -z "${RC_VARUNA_LONG:-}" ] &&
               grep -qx "$(suite_name "$path")" "$top/test/long_suites"; then
                say "$(suite_name "$path") is skipped: RC_VARUNA_LONG=1 runs it"
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

# is_beside PATH: whether the suite runs in the background
is_beside() {
    grep -qx "$(suite_name "$1")" "$top/test/beside_suites"
}

# needs_build PATH: whether the suite needs more than build_scripts builds, or builds
# something itself
needs_build() {
    case $1 in
    *.sh) grep -qE 'RCV_BUILD"?/test/gtest|make .*RCV_BUILD|mutant.sh' "$1" ;;
    esac
}

# beside PATH...: builds and runs suites in the background, in its own shell
beside() {
    local path

    prog="test, beside"
    tell_every=60
    limit=$((3 * limit))
    build_rest
    : >"$logs/beside.built"
    for path in "$@"; do
        run_suite "$path"
    done
    echo "$total_passed $total_failed" >"$logs/beside.count"
}

# tree PID: prints the process and its descendants
tree() {
    local child

    echo "$1"
    for child in $(pgrep -P "$1"); do
        tree "$child"
    done
}

# yield_beside yes|no: whether background processes use only idle time. Only root can
# undo this; for others they have a lower weight all the time.
yield_beside() {
    local pid

    for pid in $(tree "$beside_pid"); do
        if [ "$(id -u)" != 0 ]; then
            renice -n 5 -p "$pid"
        elif [ "$1" = yes ]; then
            renice -n 19 -p "$pid" && chrt -i -p 0 "$pid"
        else
            chrt -o -p 0 "$pid" && renice -n 0 -p "$pid"
        fi
    done >/dev/null 2>&1 || true # some have just ended
}

# await_beside FILE: waits until the background shell has written this file. It gets its
# normal share of the CPUs meanwhile.
await_beside() {
    local next=$((SECONDS + tell_every))

    [ ! -e "$logs/$1" ] || return 0
    yield_beside no
    while [ ! -e "$logs/$1" ]; do
        if ! kill -0 "$beside_pid" 2>/dev/null; then
            [ -e "$logs/$1" ] || die "the background shell has failed"
        elif ((SECONDS >= next)); then
            say "waiting for the background shell"
            yield_beside no # also processes that were started meanwhile
            next=$((SECONDS + tell_every))
        fi
        sleep 0.1
    done
    yield_beside yes
}

# end_beside: ends the background shell and all its processes
end_beside() {
    # shellcheck disable=SC2046 # numbers
    kill $(tree "$beside_pid") 2>/dev/null || true
}

# run_beside_each_other PATH...: runs all suites, some of them in the background
run_beside_each_other() {
    local path passed failed those=() others=()

    for path in "$@"; do
        if is_beside "$path"; then
            those+=("$path")
        else
            others+=("$path")
        fi
    done

    rm -f "$logs"/beside.*
    beside "${those[@]}" &
    beside_pid=$!
    trap end_beside EXIT
    yield_beside yes
    for path in "${others[@]}"; do
        ! needs_build "$path" || await_beside beside.built
        run_suite "$path"
    done

    await_beside beside.count
    wait "$beside_pid" 2>/dev/null || true # it may have been waited for already
    trap - EXIT
    read -r passed failed <"$logs/beside.count"
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
}

ensure_built
mkdir -p "$logs"
build_scripts
if [ $# -gt 0 ] || [ "$list" = yes ]; then
    build_rest
fi

# The user's settings of UCX must not affect the tests
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
if [ $# -gt 0 ]; then
    for path in $selected; do
        run_suite "$path"
    done
else
    # shellcheck disable=SC2086 # paths without spaces
    run_beside_each_other $selected
fi

say "the suites took $((SECONDS - started)) s, including the build"
echo "$total_passed passed, $total_failed failed"
((total_passed > 0 && total_failed == 0))
