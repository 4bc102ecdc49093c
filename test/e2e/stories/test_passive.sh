#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A peer whose application sleeps in code of its own, and never calls progress:
# RC is connected to it nevertheless, and after a failure of the link the endpoint
# recovers, and gets RC on the other link. (varuna_cost's server blocks on a
# socket for as long as the client works.)

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"

emu=$RCV_PREFIX/bin/mlx5emu
run=$RCV_PREFIX/bin/rc_varuna_run
program=$RCV_BUILD/src/tools/bench/varuna_cost

unset "${!UCX_@}"
export UCX_LOG_LEVEL=debug
export UCX_RC_MLX5_TIMEOUT=10ms UCX_RC_MLX5_RETRY_COUNT=2
export UCX_DC_MLX5_TIMEOUT=10ms UCX_DC_MLX5_RETRY_COUNT=2

# job COUNT [RULE...]: so many puts, with a fault if one is given, which must fire.
# The client's log is in client.log.
job() {
    local count=$1 fabric=passive-$$ server status=0
    local args=(rc_varuna varuna_mlx5_0:1 put short 8 "$count")
    shift
    check "$emu" up -n "$fabric" --hosts 2 --links 2
    trap '"$emu" down -n "'"$fabric"'" --force >/dev/null 2>&1' EXIT
    [ $# -eq 0 ] || check "$emu" fault add -n "$fabric" "$@" >/dev/null

    timeout 60 "$emu" exec -n "$fabric" 0 -- "$run" "$program" server \
        "$PWD/socket" "${args[@]}" >server.log 2>&1 &
    server=$!
    timeout 60 "$emu" exec -n "$fabric" 1 -- "$run" "$program" client \
        "$PWD/socket" "${args[@]}" >client.log 2>&1 || status=$?
    wait "$server" || fail "the server failed: $(tail -n 3 server.log)"
    [ $status -eq 0 ] || fail "the client failed: $(tail -n 3 client.log)"
    [ $# -eq 0 ] || check "$emu" fault list -n "$fabric" --check >faults.log
    check "$emu" down -n "$fabric"
    trap - EXIT
}

test_rc_is_connected() {
    job 1000
    check grep -q 'planned swap from dc on mlx5_0:1 to rc on mlx5_0:1' client.log
}

test_recovery_and_rebuild() {
    # Half a second of work follows on the other link
    job 100000 packet host=1 link=0 nth=3000 down
    check grep -q 'rc_varuna: switched .*mlx5_0:1.*mlx5_1:1' client.log
    check grep -q 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1' client.log
}

run_tests
