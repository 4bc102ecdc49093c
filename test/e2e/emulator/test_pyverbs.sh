#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# rdma-core's own tests of the verbs in Python (pyverbs), on a host of an emulated
# fabric. Debian's package contains the tests; it is installed if it is missing. All
# tests except those in pyverbs.left_out run, and none may skip itself.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

left_out=$top/test/e2e/emulator/pyverbs.left_out
package=python3-pyverbs
seed=${RCV_PYVERBS_SEED:-1}
docs=usr/share/doc/rdma-core/tests

# get_tests: copies them to ./tests, from the package if dpkg was configured to leave
# documents out.
get_tests() {
    local from=/$docs

    check "$top/contrib/setup.sh" --install $package >/dev/null
    if [ ! -d "$from" ]; then
        (mkdir download && cd download && apt-get download -q $package &&
         dpkg-deb -x ./*.deb .) >download.log 2>&1 ||
            fail "the tests of $package: $(tail -n 3 download.log)"
        from=download/$docs
    fi
    cp -r "$from" tests
    find tests -name '*.gz' -exec gunzip -f {} +
    cat >run.py <<'END'
import random, runpy, sys

random.seed(int(sys.argv.pop(1)))
sys.path.insert(0, 'tests')
runpy.run_path('tests/run_tests.py', run_name='__main__')
END
}

# pyverbs ARGUMENT...: runs their own runner, with a seed for their random choices. The
# module is built for Debian's Python
pyverbs() {
    timeout 600 "$emu" exec -n "$fabric" 0 -- \
        /usr/bin/python3 run.py "$seed" --dev mlx5_0 "$@"
}

# list_tests: prints all tests as MODULE.CLASS.TEST
list_tests() {
    pyverbs --list-tests 2>&1 | sed -n 's/^tests\.\(test_[a-z0-9_]*\.[A-Za-z0-9_.]*\)$/\1/p' |
        sort -u
}

# applicable: prints the tests of stdin that match no pattern; writes unused patterns to
# ./unused
applicable() {
    local patterns pattern name used=()

    mapfile -t patterns < <(sed -n 's/^\([^# ][^ ]*\) .*/\1/p' "$left_out")
    while read -r name; do
        for pattern in "${patterns[@]}"; do
            # shellcheck disable=SC2053
            if [[ $name == $pattern ]]; then
                used+=("$pattern")
                continue 2
            fi
        done
        echo "$name"
    done
    comm -23 <(printf '%s\n' "${patterns[@]}" | sort) \
        <(printf '%s\n' "${used[@]}" | sort -u) >unused
}

# passed LOG: prints the tests that passed. A name, and perhaps a description, precede
# "ok"; output of the program may be between them
passed() {
    awk 'match($0, /^test_[A-Za-z0-9_]* \(tests\.[A-Za-z0-9_.]*/) {
             name = substr($0, RSTART, RLENGTH)
             sub(/.*\(tests\./, "", name)
         }
         / \.\.\. ok$/ || /^ok$/ { print name; name = "" }' "$1" | sort
}

test_pyverbs() {
    local module

    get_tests
    fabric_up --hosts 1 --links 1
    list_tests >all
    check test "$(wc -l <all)" -gt 250
    applicable <all >expected
    [ ! -s unused ] || fail "$left_out: no test is $(tr '\n' ' ' <unused)"
    check test "$(wc -l <expected)" -gt 75

    # Each module runs in its own process, so that a crash does not affect others
    for module in $(sed 's/\..*//' expected | sort -u); do
        # shellcheck disable=SC2046
        pyverbs -v $(grep "^$module\." expected) >"$module.log" 2>&1 || true
        passed "$module.log" >>passed
    done
    for module in $(sort passed | comm -23 expected - | sed 's/\..*//' | sort -u); do
        sed 's/^/# /' "$module.log"
    done
    diff expected <(sort passed) ||
        fail "tests that should have passed did not (RCV_PYVERBS_SEED=$seed)"
    check "$emu" trace -n "$fabric" --check >trace.log
    echo "# $(wc -l <expected) of $(wc -l <all) tests apply, and passed"
}

run_tests
