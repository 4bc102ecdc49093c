# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Runs test scripts on emulated NICs without direct verbs. Sourced by test_verbs_faults.sh
# and test_verbs_faults_long.sh.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"

# left_in SCRIPT: prints a pattern for its tests, except for those in left_out
left_in() {
    local suite=${1##*/}
    sed -n 's/^ *\(test_[a-z0-9_]*\)() {.*/\1/p' "$top/test/e2e/$1.sh" |
        grep -vxFf <(awk -v suite="$suite" '$1 == suite { print $2 }' \
                     "$top/test/e2e/verbs/left_out") |
        paste -sd'|' | sed 's/.*/^(&)$/'
}

# on_verbs SCRIPT [FILTER]: runs its tests, by default all that are left in. Their output
# is in comments
on_verbs() {
    local status=0
    RC_VARUNA_QUIRK=no-mlx5dv TAP_FILTER=${2:-$(left_in "$1")} \
        bash "$top/test/e2e/$1.sh" >on_verbs.out 2>&1 || status=$?
    sed 's/^/# /' on_verbs.out
    [ $status -eq 0 ] || fail "$1 ended with $status"
    check grep -q '^ok 1 ' on_verbs.out
}
