#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/proof.sh [idle | busy | single]...
#
# Runs contrib/test.sh in a clean clone of the last commit on this machine as it is
# (idle), beside four busy loops (busy), and on one processor (single); by default all
# three. The results must not differ. Prints a table with a row for each run. Runs of the
# same commit that have ended are not repeated, so an interrupted proof continues when it
# is started again.
#
# RC_VARUNA_PROOF: where clones, logs and the table are kept; default _proof in the
# checkout.

set -euo pipefail
prog=proof
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

only_help "$@"
[ $# -gt 0 ] || set -- idle busy single
for how in "$@"; do
    case $how in
    idle | busy | single) ;;
    *) die "\"$how\" is not idle, busy or single" ;;
    esac
done

dir=${RC_VARUNA_PROOF:-$top/_proof}
table=$dir/table.md
commit=$(git -C "$top" rev-parse --short HEAD)
mkdir -p "$dir"
[ -s "$table" ] ||
    printf '| commit | machine | minutes | result | unsteady |\n|---|---|---|---|---|\n' >"$table"

loops=()

# end_loops: ends the busy loops
end_loops() {
    [ ${#loops[@]} -eq 0 ] || kill "${loops[@]}" 2>/dev/null || true
    loops=()
}
trap end_loops EXIT

# start_loops COUNT: keeps processors busy
start_loops() {
    local i
    for ((i = 0; i < $1; ++i)); do
        (while :; do :; done) &
        loops+=($!)
    done
}

# run HOW: one run, and its row of the table
run() {
    local how=$1 clone=$dir/$commit-$1 start=$SECONDS limit=() log=$dir/$commit-$1.log
    local result unsteady

    say "$how, in $clone; its output is in $log"
    rm -rf "$clone"
    git clone -q "$top" "$clone"
    git -C "$clone" checkout -q "$commit"
    case $how in
    busy) start_loops 4 ;;
    single) limit=(taskset -c 0) ;;
    esac
    # The clone's own build, whatever this one uses
    env -u RC_VARUNA_BUILD "${limit[@]}" "$clone/contrib/test.sh" >"$log" 2>&1 </dev/null || true
    end_loops
    result=$(tail -n 1 "$log")
    unsteady=$(sed -nE 's/^\[test\] UNSTEADY ([^ ]*: [^ ]*).*/\1/p' "$log" | paste -sd ',')
    echo "| $commit | $how | $(((SECONDS - start) / 60)) | $result | $unsteady |" >>"$table"
    [[ "$result" != *' 0 failed' ]] || rm -rf "$clone"
}

for how in "$@"; do
    if grep -q "^| $commit | $how |" "$table"; then
        say "$how: done before"
    else
        run "$how"
    fi
done
cat "$table"
! grep -qv ' 0 failed |' < <(grep "^| $commit |" "$table")
