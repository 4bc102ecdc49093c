# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Runs one suite, and looks a second time at what failed. Sourced by contrib/test.sh,
# after common.sh and test_count.sh, and by the test of these functions. They use
#   $logs    where outputs are kept
#   $limit   seconds after which a suite is ended: only a hang takes so long
#   $filter  which tests of gtest programs are run
#
# A suite leaves its output in NAME.log, the numbers of passed and failed tests in
# NAME.log.count, and the seconds that it took, and those of processors, in NAME.log.time. A second look leaves them in
# NAME.second.log, and the names of tests that passed then in NAME.log.unsteady.

tell_every=15 # Seconds between lines about a running suite
max_unsteady=5

suite_name() {
    basename "$1" .sh
}

# watch LOG COMMAND...: runs it, appends its output to LOG, and sometimes prints the
# last line
watch() {
    local log=$1 pid next=$((SECONDS + tell_every)) status=0 start=$SECONDS traps
    shift
    "$@" >>"$log" 2>&1 </dev/null &
    pid=$!
    traps=$(trap -p INT TERM)
    trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM # It ignores SIGINT itself
    while kill -0 "$pid" 2>/dev/null; do
        pause 0.1
        if ((SECONDS >= next)); then
            say "  ... $((SECONDS - start)) s: $(progress_line "$log")"
            next=$((SECONDS + tell_every))
        fi
    done
    wait "$pid" || status=$?
    trap - INT TERM
    eval "$traps"
    return "$status"
}

# skips_of PATH: prints the file with the tests of this suite that may skip themselves
skips_of() {
    local path=$1 skips
    skips=${path%_flap} # The same tests while a link flaps, ...
    skips=${skips%_plain}.skips # ... or on devices with only verbs
    [ -e "$skips" ] || skips=$top/test/gtest/$(suite_name "$path").skips
    [ -e "$skips" ] || skips=/dev/null
    echo "$skips"
}

# run_gtest PATH LOG FILTER: runs the tests. After a crash, the remaining ones run in a
# new process. Sets $passed, $failed and $status
run_gtest() {
    local path=$1 log=$2 tests=$3 rest

    status=0
    timeout 60 "$path" --gtest_list_tests --gtest_filter="$tests" \
        >"$log.list" 2>/dev/null || true
    watch "$log" timeout -k 10 "$limit" "$path" --gtest_filter="$tests" || status=$?
    while rest=$(gtest_rest "$log.list" "$log") && [ -n "$rest" ] && [ "$rest" != "$tests" ]; do
        say "  ended with status $status: $(progress_line "$log"); a new process runs the rest"
        tests=$rest
        watch "$log" timeout -k 10 "$limit" "$path" --gtest_filter="$tests" || status=$?
    done
    read -r passed failed < <(count_gtest "$log.list" "$log" "$status" "$(skips_of "$path")")
}

# run_script PATH LOG [PATTERN]: runs the tests of a script. Sets $passed, $failed and
# $status
run_script() {
    status=0
    TAP_FILTER=${3:-${TAP_FILTER:-}} watch "$2" timeout -k 10 "$limit" bash "$1" || status=$?
    read -r passed failed < <(count_tap "$2" "$status")
}

# cpu_time: sets $cpu to the seconds of processors that ended children have used
cpu_time() {
    local file=$logs/times.$BASHPID
    times >"$file"
    cpu=$(sed -n '2s/[ms]/ /gp' "$file" | awk '{ printf "%d", 60 * ($1 + $3) + $2 + $4 }')
    rm -f "$file"
}

# run_logged PATH LOG [FILTER]: runs a suite, or the tests that match, and keeps the
# results
run_logged() {
    local path=$1 log=$2 start=$SECONDS
    local passed failed status cpu before

    rm -f "$log" "$log".*
    cpu_time
    before=$cpu
    case $path in
    *.sh) run_script "$path" "$log" "${3:-}" ;;
    *) run_gtest "$path" "$log" "${3:-$filter}" ;;
    esac

    if ((status == 124 || status == 137)); then
        say "  $(suite_name "$path") did not end within $limit s"
    elif ((status != 0)); then
        say "  $(suite_name "$path") ended with status $status"
    fi
    if ((failed > 0)); then
        failed_names "$log" | sed 's/^/    FAILED  /' >&2
        reasons "$log" | sed 's/^/    FAILED  /' >&2
        say "  its output is in $log; the end of it:"
        tail -n 25 "$log" | sed 's/^/    | /' >&2
    fi
    echo "$passed $failed" >"$log.count"
    cpu_time
    echo $((SECONDS - start)) $((cpu - before)) >"$log.time"
    say "  $(suite_name "$path"): $passed passed, $failed failed, $((SECONDS - start)) s"
    if [ -s "$log.skipped" ]; then
        say "  $(wc -l <"$log.skipped") more skipped themselves, as listed in $(skips_of "$path")"
    fi
}

# run_suite PATH: runs it
run_suite() {
    local name
    name=$(suite_name "$1")
    say "$name"
    rm -f "$logs/$name".second.log*
    # In a shell of its own, whose children are this suite's only: those of this shell
    # include another shell that has ended meanwhile
    (run_logged "$1" "$logs/$name.log")
}

# look_again PATH: runs the failed tests of a suite once more, unless they are certain.
# Tests that pass now are unsteady: they count as passed, and their names are kept
look_again() {
    local path=$1 name log second passed failed tests test certain uncertain count ran

    name=$(suite_name "$path")
    log=$logs/$name.log
    second=$logs/$name.second.log
    read -r passed failed <"$log.count"
    ((failed > 0)) || return 0

    tests=$(failed_tests "$log")
    count=$(grep -c . <<<"$tests" || true)
    if ((count != failed)); then
        # It ended before all its tests, or after them with an error
        if is_certain "$name" <"$log"; then
            return 0
        fi
        say "$name, a second look at all its tests"
        run_logged "$path" "$second"
        read -r passed failed <"$second.count"
        echo "$passed $failed" >"$log.count"
        ((failed > 0)) || echo "(it did not end)" >"$log.unsteady"
        return 0
    fi

    certain=$(while read -r test; do
                  ! output_of "$log" "$test" | is_certain "$name" || echo "$test"
              done <<<"$tests")
    uncertain=$(grep -vxF -e "$certain" <<<"$tests" || true)
    [ -n "$certain" ] || uncertain=$tests
    [ -n "$uncertain" ] || return 0
    say "$name, a second look at $(grep -c . <<<"$uncertain") tests"
    run_logged "$path" "$second" "$(filter_of "$path" "$uncertain")"
    failed_tests "$second" | sort >"$second.again"
    sort <<<"$uncertain" | comm -23 - "$second.again" >"$log.unsteady"
    count=$(wc -l <"$log.unsteady")
    # Nothing counts as passed if fewer tests ran than should have
    read -r ran _ <"$second.count"
    ((ran == count)) || { : >"$log.unsteady"; return 0; }
    echo "$((passed + count)) $((failed - count))" >"$log.count"
}

# filter_of PATH TESTS: prints the filter for these tests
filter_of() {
    case $1 in
    *.sh) echo "^($(paste -sd '|' <<<"$2"))\$" ;;
    *) paste -sd : <<<"$2" ;;
    esac
}

# finish PATH...: looks again at the suites that failed, prints the unsteady tests, the
# totals and the closing line; fails if a test failed
finish() {
    local path name test total_passed=0 total_failed=0 unsteady=0 passed failed

    for path in "$@"; do
        look_again "$path"
    done
    for path in "$@"; do
        name=$(suite_name "$path")
        read -r passed failed <"$logs/$name.log.count"
        total_passed=$((total_passed + passed))
        total_failed=$((total_failed + failed))
        [ -s "$logs/$name.log.unsteady" ] || continue
        unsteady=$((unsteady + $(wc -l <"$logs/$name.log.unsteady")))
        while read -r test; do
            say "UNSTEADY $name: $test failed, and passed alone. Logs: $logs/$name.log," \
                "$logs/$name.second.log"
        done <"$logs/$name.log.unsteady"
    done
    if ((unsteady > 0)); then
        say "$unsteady tests are unsteady: find the event that they miss (CONTRIBUTING.md)"
    fi
    if ((unsteady > max_unsteady)); then
        say "these are more than $max_unsteady, and count as failed"
        total_passed=$((total_passed - unsteady))
        total_failed=$((total_failed + unsteady))
    fi
    echo "$total_passed passed, $total_failed failed"
    ((total_passed > 0 && total_failed == 0))
}

# print_times [COUNT]: prints the slowest suites and tests of the last runs, ten of each
print_times() {
    local log wall cpu

    echo "suites:"
    for log in "$logs"/*.log.time; do
        [ -e "$log" ] || continue
        read -r wall cpu <"$log"
        echo "$wall s $(basename "$log" .log.time) ($cpu s of processors)"
    done | sort -rn | sed -n "1,${1:-10}p"
    echo "tests:"
    for log in "$logs"/*.log; do
        [ ! -e "$log.count" ] || times_of "$log" | sed "s|\$| ($(basename "$log" .log))|"
    done | sort -rn | sed -n "1,${1:-10}p"
}
