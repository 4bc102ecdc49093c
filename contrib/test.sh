#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/test.sh [-f GTEST_FILTER] [SUITE...]
#        contrib/test.sh -l | --times [COUNT]
#
# Builds everything and runs the named test suites, by default all but long ones. -l
# lists all. --times prints the ten slowest suites and tests of the last runs.
#
# The last line is "N passed, N failed"; the exit status is 0 only if at least one test
# passed and none failed. Tests that did not run count as failed: skipped, or disabled.
# What failed runs once more at the end, alone. A test that passes then is unsteady: it
# counts as passed, and is named before the last line. More than five unsteady tests, and
# failures that no speed of the machine explains (test/certain), count as failed.
#
# Suites in test/left_out_suites need what few hosts have, and run only if they are named.
# Suites in test/long_suites take minutes each, and run only if they are named, or if
# RC_VARUNA_LONG is set. If no suite is named, the suites in test/beside_suites, which need
# a processor most of the time, run at a lower priority, in parallel with the others, of
# which three run at a time: they wait a part of the time. Those in test/early_suites wait
# most of it, for long, and begin first.
#
# A suite is a gtest program (test/gtest), UCX's own tests for one transport
# (test/gtest/ucx_suites), or a script that prints TAP (test_*.sh in test/e2e, test/meta
# and others). Their output is kept in test-logs/ of the build directory.
# RC_VARUNA_SUITE_TIMEOUT: seconds after which a suite that hangs is ended.

set -euo pipefail
prog=test
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$top/contrib/test_count.sh"
. "$top/contrib/test_run.sh"

filter='*'
list=no
case ${1:-} in
--help) set -- -h ;;
--times)
    logs=$build_dir/test-logs
    print_times "${2:-}"
    exit
    ;;
esac
while getopts f:lh opt; do
    case $opt in
    f) filter=$OPTARG ;;
    l) list=yes ;;
    h) sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

limit=${RC_VARUNA_SUITE_TIMEOUT:-3600}
logs=$build_dir/test-logs
started=$SECONDS

helpers=(second third) # Shells that run what the first one has not taken
beside_pid=            # The background shells, once they were started
helper_pids=()

# make_quietly LOG TARGETS...: runs make in the build directory
make_quietly() {
    local log=$logs/$1
    shift
    quietly "$log" make -C "$build_dir" -j"$(nproc)" "$@" ||
        die "the tests do not build"
}

# build_tests PATH...: builds the programs of the tests; UCX's own ones only if a suite
# runs them
build_tests() {
    say "make check (the test programs; some minutes the first time)"
    make_quietly make-check.log check TESTS=
    case $* in
    */ucx_suites/*) ;;
    *) return 0 ;;
    esac
    say "UCX's own tests (a minute the first time)"
    make_quietly make-ucx.log -C test/gtest gtest_ucx gtest_ucp
}

# all_suites: prints the path of each suite
all_suites() {
    local script

    for script in "$top"/test/*/test_*.sh "$top"/test/e2e/*/test_*.sh; do
        echo "$script"
    done | awk -F / '{ print $NF, $0 }' | sort | cut -d ' ' -f 2-
    # Other programs of that directory are started by tests
    sed -n 's/^\(gtest_[a-z0-9]*\)_SOURCES.*/\1/p' "$top/test/gtest/Makefile.am" |
        sed "s|^|$build_dir/test/gtest/|"
    for script in "$top"/test/gtest/ucx_suites/uc[xp]_*; do
        case $script in
        *.skips | *.left_out | *.long | *.some) ;;
        *) echo "$script" ;;
        esac
    done
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
            elif grep -qsI '^needs=extended' "$path" &&
                 grep -qs '^S."HAVE_EXTENDED".="0"' "$build_dir/config.status"; then
                say "$(suite_name "$path") is left out: it needs mode extended, which is not built"
            elif found=$(grep "^$(suite_name "$path") " "$top/test/left_out_suites"); then
                say "$(suite_name "$path") is not run: it ${found#* }"
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

# take_turns PATH...: runs those suites that no other shell has taken
take_turns() {
    local path

    for path in "$@"; do
        if mkdir "$logs/taken/$(suite_name "$path")" 2>/dev/null; then
            run_suite "$path"
        fi
    done
}

# beside PATH...: runs suites in the background, in its own shell
beside() {
    prog="test, beside"
    tell_every=60
    take_turns "$@"
    : >"$logs/beside.ended"
}

# tree PID: prints the process and its descendants
tree() {
    local child

    echo "$1"
    for child in $(pgrep -P "$1"); do
        tree "$child"
    done
}

# weigh_beside NICENESS: what the background shell and its processes weigh against the
# others. Enough to end beside any load: without a share, they would miss their limits.
# Only root can undo it.
weigh_beside() {
    local pid

    for pid in $(tree "$beside_pid"); do
        renice -n "$1" -p "$pid"
    done >/dev/null 2>&1 || true # some have just ended
}

# await_beside: waits for the suites in the background, which get their normal share of the
# CPUs now
await_beside() {
    local next=$SECONDS

    while kill -0 "$beside_pid" 2>/dev/null; do
        if ((SECONDS >= next)); then
            say "waiting for the background shell"
            weigh_beside 0 # also processes that were started meanwhile
            next=$((SECONDS + tell_every))
        fi
        pause 0.1
    done
    wait "$beside_pid" 2>/dev/null || true # it may have been waited for already
    [ -e "$logs/beside.ended" ] || die "the background shell has failed"
}

# end_shells: ends the background shells and all their processes
end_shells() {
    local pid

    for pid in "$beside_pid" "${helper_pids[@]}"; do
        # shellcheck disable=SC2046 # numbers
        kill $(tree "$pid") 2>/dev/null || true
    done
}

# helper NAME PATH...: the same as beside, with the normal priority
helper() {
    local name=$1

    shift
    prog="test, $name"
    take_turns "$@"
    : >"$logs/$name.ended"
}

# await_help: waits for the shells of $helpers
await_help() {
    local name

    wait "${helper_pids[@]}" 2>/dev/null || true
    for name in "${helpers[@]}"; do
        [ -e "$logs/$name.ended" ] || die "the $name shell has failed"
    done
}

# named_in LIST PATH...: prints the paths of those suites that the list names, in its order
named_in() {
    local list=$top/test/$1 name path

    shift
    while read -r name; do
        for path in "$@"; do
            [ "$(suite_name "$path")" != "$name" ] || echo "$path"
        done
    done <"$list"
}

# run_beside_each_other PATH...: runs all suites, some of them in the background, and helps
# with these when the others have ended
run_beside_each_other() {
    local name path those others

    mapfile -t those < <(named_in beside_suites "$@") # The longest ones first
    mapfile -t others < <(named_in early_suites "$@")
    for path in "$@"; do
        [[ " ${those[*]} ${others[*]} " == *" $path "* ]] || others+=("$path")
    done

    rm -rf "$logs"/*.ended "$logs/taken"
    mkdir "$logs/taken"
    trap end_shells EXIT
    beside "${those[@]}" &
    beside_pid=$!
    weigh_beside 5
    for name in "${helpers[@]}"; do
        helper "$name" "${others[@]}" "${those[@]}" &
        helper_pids+=($!)
    done
    take_turns "${others[@]}"
    weigh_beside 0
    take_turns "${those[@]}"

    await_beside
    await_help
    trap - EXIT
}

if [ "$list" = yes ]; then
    all_suites | while read -r path; do
        suite_name "$path"
    done
    exit 0
fi

export RC_VARUNA_DEVEL=yes
ensure_built
mkdir -p "$logs"
selected=$(select_suites "$@")
# shellcheck disable=SC2086 # paths without spaces
build_tests $selected

# The user's settings of UCX must not affect the tests
unset "${!UCX_@}"
export UCX_HANDLE_ERRORS=bt UCX_LOG_LEVEL=warn
export RCV_BUILD=$build_dir RCV_PREFIX=$prefix

if [ $# -gt 0 ]; then
    for path in $selected; do
        run_suite "$path"
    done
else
    # shellcheck disable=SC2086 # paths without spaces
    run_beside_each_other $selected
fi

say "the suites took $((SECONDS - started)) s, including the build"
# shellcheck disable=SC2086
finish $selected
