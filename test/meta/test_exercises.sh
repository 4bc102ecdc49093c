#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The exercises of CONTRIBUTING.md: each patch of test/exercises makes the change that a
# recipe describes, with its tests. It is applied, and what it changes compiles; with
# RC_VARUNA_LONG=1, which takes minutes of CPU, it is built, and its tests run (mutant.sh).

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

# added EXERCISE: prints the gtests that the patch adds
added() {
    sed -nE 's/^\+UCS_TEST_F\(([a-z0-9_]+), ([a-z0-9_]+)\).*/\1.\2/p' "$top/test/exercises/$1.patch"
}

# works EXERCISE [TEST...]: builds it, and runs the gtests that it adds, and these; or only
# compiles it
works() {
    local program tests
    if [ -z "${RC_VARUNA_LONG:-}" ]; then
        check "$top/test/e2e/lib/mutant.sh" -c "$1"
        return
    fi

    mapfile -t tests < <(added "$1" && printf '%s\n' "${@:2}" | sed '/^$/d')
    [ ${#tests[@]} -ge $(($# + 1)) ] || fail "the exercise $1 adds no test"
    program=$(check "$top/test/e2e/lib/mutant.sh" "$1")
    timeout 600 "$program" --gtest_filter="$(printf '%s:' "${tests[@]}")" >out 2>&1 ||
        fail "$1: $(grep -E -A 8 'Failure|FAILED' out | head -n 20)"
    check diff <(printf '%s\n' "${tests[@]}" | sort) \
        <(sed -nE 's/^\[ +OK \] ([^ ]+).*/\1/p' out | sort)
    echo "# ${#tests[@]} tests have passed"
}

test_operation() { works operation test_varuna_ring.rows_of_types; }

test_message() {
    works message test_varuna_parse.ctl_{good,cut,from,foreign,type,epoch}
}

test_quirk() {
    # The emulator that has it
    local -x RCV_MLX5EMU=$RCV_BUILD/mutants/quirk/_build/src/tools/mlx5emu/mlx5emu
    works quirk test_emu_quirk_text.table
}

# A recipe that names no exercise, or an exercise that no recipe names, is of no use
test_each_exercise_is_named() {
    local patch name
    for patch in "$top"/test/exercises/*.patch; do
        name=$(basename "$patch" .patch)
        grep -qF "test/exercises/$name.patch" "$top/CONTRIBUTING.md" ||
            fail "CONTRIBUTING.md does not name $name.patch"
        declare -F "test_$name" >/dev/null || fail "no test uses $name.patch"
    done
}

run_tests
