# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For the scripts test_*.sh of this directory, which source it, define functions
# test_... and call "run_tests" last. Each function is one test; it runs in a
# subshell with "set -e" in a directory of its own ($PWD), which is removed.
# TAP_FILTER selects tests by name. contrib/test.sh sets RCV_BUILD (build directory) and RCV_PREFIX (where it was
# installed).

set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${RCV_BUILD:=$top/_build}"
: "${RCV_PREFIX:=$top/_install}"

# fail WORDS...: ends the test
fail() {
    echo "# $*"
    exit 1
}

# check COMMAND...: it must succeed
check() {
    "$@" || fail "failed: $*"
}

# fails STATUS PATTERN COMMAND...: it must end with STATUS, and say PATTERN
fails() {
    local want=$1 pattern=$2 out status=0
    shift 2
    out=$("$@" 2>&1 </dev/null) || status=$?
    [ "$status" -eq "$want" ] ||
        fail "status $status instead of $want: $*: $out"
    grep -qE -e "$pattern" <<<"$out" ||
        fail "\"$pattern\" is not in the output of $*: $out"
}

# await_listener PORT PID: until somebody listens to it on TCP, while the process lives
await_listener() {
    local i address
    address=$(printf ':%04X [0-9A-F:]* 0A ' "$1")
    for ((i = 0; i < 3000; ++i)); do
        ! grep -q "$address" /proc/net/tcp || return 0
        kill -0 "$2" 2>/dev/null || break
        sleep 0.02
    done
    fail "nobody listens to port $1: $(tail -n 3 server.log)"
}

run_tests() {
    local tests name number=0 dir

    mapfile -t tests < <(declare -F | awk '$3 ~ /^test_/ {print $3}' |
                         grep -E -e "${TAP_FILTER:-.}")
    echo "1..${#tests[@]}"
    for name in "${tests[@]}"; do
        number=$((number + 1))
        dir=$(mktemp -d)
        # Not part of a condition: that would turn "set -e" off in the test
        (cd "$dir"; set -e; "$name")
        if [ $? -eq 0 ]; then
            echo "ok $number - $name"
        else
            echo "not ok $number - $name"
            failed=1
        fi
        rm -rf "$dir"
    done
    exit "${failed:-0}"
}
