#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Failures in a given order, which the sweep and the chaos run hit by accident if at
# all. A server and a client (test/apps/ft_job.c), which checks values, completions,
# messages and memory of each run.

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/ft_jobs.sh"

export UCX_LOG_LEVEL=debug

# link HOST:LINK STATE
link() {
    check "$emu" link -n "$fabric" "$@"
}

# fault RULE...
fault() {
    check "$emu" fault add -n "$fabric" "$@" >/dev/null
}

faults_fired() {
    check "$emu" fault list -n "$fabric" --check >faults.log
}

# busy_until PATTERN: the client works until its log says it
busy_until() {
    local i
    for ((i = 0; i < 300; ++i)); do
        ask client "run $((++runs)) ${2:-put_short} 0"
        ! grep -qE "$1" client.log || return 0
        ask client "idle 0.02"
    done
    fail "\"$1\" did not come"
}
runs=0

# A path that failed and has come back is good again for the next failure, though the
# traffic stays where it is. Otherwise it would be the last choice: the third link
# would be taken.
test_path_returns_while_another_works() {
    export UCX_RC_VARUNA_RETURN_PRIMARY=n
    fabric_up 3
    jobs_start
    wait_for_rc
    link 1:0 silent
    busy_until 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1'
    link 1:0 up
    busy_until 'path over mlx5_0:1 is good again'
    link 1:1 silent
    busy_until 'rc_varuna: switched .*from=mlx5_1:1 .*to=mlx5_0:1'
    jobs_stop
    fabric_down
}

run_tests
