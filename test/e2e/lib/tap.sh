# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Sourced by all scripts test_*.sh, which define functions test_... and call "run_tests"
# last. Each function is one test. It runs in a subshell with "set -e", in its own
# directory ($PWD), which is removed afterwards. TAP_FILTER selects tests by name.
# contrib/test.sh sets RCV_BUILD (build directory) and RCV_PREFIX (where it was
# installed).

set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
: "${RCV_BUILD:=$top/_build}"
: "${RCV_PREFIX:=$top/_install}"

. "$top/contrib/next_port.sh"
. "$top/contrib/pause.sh"

# fail WORDS...: prints the reason and ends the test. In a command substitution it ends
# only the substitution, and prints to stderr because the output is captured
fail() {
    if [ "$BASH_SUBSHELL" -gt "${test_level:-0}" ]; then
        echo "# $*" >&2
    else
        echo "# $*"
    fi
    exit 1
}

# check COMMAND...: fails unless the command succeeds
check() {
    "$@" || fail "failed: $*"
}

# fails STATUS PATTERN COMMAND...: the command must exit with STATUS, and its output
# match PATTERN
fails() {
    local want=$1 pattern=$2 out status=0
    shift 2
    out=$("$@" 2>&1 </dev/null) || status=$?
    [ "$status" -eq "$want" ] ||
        fail "status $status instead of $want: $*: $out"
    grep -qE -e "$pattern" <<<"$out" ||
        fail "\"$pattern\" is not in the output of $*: $out"
}

# Seconds after which a test that waits for an event fails. It only ends a hang: what a
# test waits for comes much earlier, on a slow machine too
safety=${RC_VARUNA_SAFETY:-180}

# comes COMMAND...: repeats the command until it succeeds; fails after $safety seconds. The
# last try comes after the time, in which this shell may have had no CPU
comes() {
    # The command may set variables of its callers, which these must not hide
    local comes_end=$((SECONDS + safety)) comes_tries=0 comes_over=
    while :; do
        ! "$@" || return 0
        [ -z "$comes_over" ] || return 1
        pause 0.0$((comes_tries++ < 20 ? 2 : 6))
        [ $SECONDS -lt $comes_end ] || comes_over=yes
    done
}

# await_true COMMAND...: waits until the command succeeds
await_true() {
    comes "$@" || fail "not true after $safety s: $*"
}

# listens PORT PID: the process listens on this TCP port, or has ended
listens() {
    grep -q "$(printf ':%04X [0-9A-F:]* 0A ' "$1")" /proc/net/tcp || ! kill -0 "$2" 2>/dev/null
}

# await_listener PORT PID: waits until the process listens on this TCP port
await_listener() {
    comes listens "$@" && kill -0 "$2" 2>/dev/null ||
        fail "no process listens on port $1: $(tail -n 3 server.log)"
}

# ended_at LINE COMMAND: prints the command at which "set -e" has ended the test
ended_at() {
    [[ $- != *e* ]] || echo "# ended in line $1 of ${BASH_SOURCE[1]##*/}: ${2%%$'\n'*}" >&2
}

# run_test NUMBER NAME: runs a test in its own directory and, if the script has a
# fabric, with its own fabric. Don't call it in a condition, which would turn "set -e"
# off.
run_test() {
    local dir status start=${EPOCHREALTIME/.}
    dir=$(mktemp -d)
    (
        cd "$dir"
        test_level=$BASH_SUBSHELL
        fabric=${fabric:+$fabric-$1}
        set -eE
        trap 'ended_at "$LINENO" "$BASH_COMMAND"' ERR
        "$2"
        ! declare -F end_test >/dev/null || end_test
    )
    status=$?
    awk -v us=$((${EPOCHREALTIME/.} - start)) 'BEGIN { printf "# %.1f s\n", us / 1e6 }'
    if [ $status -eq 0 ]; then
        echo "ok $1 - $2"
    else
        echo "not ok $1 - $2"
    fi
    rm -rf "$dir"
    return $status
}

# has_extended: whether the modes extended and reread of atomics are built
has_extended() {
    ! grep -qs '^S."HAVE_EXTENDED".="0"' "$RCV_BUILD/config.status"
}

# built_tests: prints those of the tests that this build has all for: without these modes, not
# those whose functions name one of them, nor any of a script that sets needs=extended
built_tests() {
    local name
    has_extended && cat || while read -r name; do
        if grep -qE '\b(extended|reread)\b' < <(declare -f "$name"; echo "${needs:-}"); then
            echo "# $name is left out: it needs mode extended or reread, which is not built" >&2
        else
            echo "$name"
        fi
    done
}

# run_tests [COUNT]: runs all tests, COUNT (1) in parallel. Use 2 or more if the tests
# are independent and wait most of the time.
run_tests() {
    local tests name number=0 failed=0 running=0 outputs

    mapfile -t tests < <(declare -F | awk '$3 ~ /^test_/ {print $3}' |
                         grep -E -e "${TAP_FILTER:-.}" | built_tests)
    echo "1..${#tests[@]}"
    outputs=$(mktemp -d)
    for name in "${tests[@]}"; do
        number=$((number + 1))
        if [ "${1:-1}" -eq 1 ]; then
            run_test $number "$name"
            [ $? -eq 0 ] || failed=1
            continue
        fi
        if [ $running -eq "$1" ]; then
            wait -n || failed=1
            running=$((running - 1))
        fi
        (
            run_test $number "$name" >"$outputs/$number" 2>&1
            status=$?
            # Print the output of a test in one piece
            flock "$outputs" cat "$outputs/$number"
            exit $status
        ) &
        running=$((running + 1))
    done
    for ((; running > 0; --running)); do
        wait -n || failed=1
    done
    rm -rf "$outputs"
    exit $failed
}
