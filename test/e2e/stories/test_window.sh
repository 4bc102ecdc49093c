#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The NIC of the peer dies while puts to overlapping places are in flight, after some of
# them were executed. With UCX_RC_VARUNA_LOG=fallback neither a log nor a PSN tells which,
# so the contents of the targets decide on all of them as one prefix (docs/RECOVERY.md). A
# reader that polls the memory never sees an older value after a newer one (ft_window.c).
#
# RC_VARUNA_LONG=1: after each number of executed puts, also without an event.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

ucx_defaults
export UCX_LOG_LEVEL=info UCX_RC_VARUNA_LOG=fallback UCX_RC_VARUNA_RETURN_DELAY=inf
# The dead NIC is an event, or the heartbeat finds it: the client's NIC does not give up
# before all puts are posted, whenever the client has a CPU
nic_gives_up 60s 7
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s

# window EXECUTED ACTION PUT...: the server's NIC dies after so many puts
window() {
    local server executed=$1 action=$2
    shift 2
    fabric_up
    # Nothing is acknowledged, so all of the puts are in the window
    [ "$executed" -le 1 ] ||
        fault ack link=0 host=1 type=rc op=write size=264 count=all drop
    if [ "$executed" -eq 0 ]; then
        fault packet link=0 host=1 type=rc op=write size=264 nth=1 "$action=0:0"
    else
        fault exec link=0 host=1 type=rc op=write size=264 nth="$executed" "$action=0:0"
    fi

    rm -f stdin
    mkfifo stdin
    : >server.log # That of a previous server has an address as well
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" "$apps/ft_window" server "$@" \
        <stdin >server.log 2>&1 &
    server=$!
    exec 9>stdin
    await 60 server.log '^ft: address'
    sed -n 's/^ft: address *//p' server.log |
        timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" "$apps/ft_window" client "$@" \
            >client.log 2>&1 || fail "the client: $(tail -n 3 client.log)"
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 3 server.log)"
    faults_fired
    check grep -q '^ft: end' server.log
    ! grep -m 3 '^ft: wrong' server.log || fail "$executed puts executed: $*"
    sed -n 's/.*\(was=rc .*\)/\1/p' client.log | sed -n '1p' | cut -c 1-150 | sed 's/^/# /' |
        grep . || fail "RC did not fail"
}

# windows PUT...: for some numbers of executed puts, or for each
windows() {
    local executed
    if [ -z "${RC_VARUNA_LONG:-}" ]; then
        window 2 kill "$@"
        return
    fi
    for ((executed = 0; executed <= $#; ++executed)); do
        window $executed kill "$@"
        window $executed kill_silent "$@"
    done
}

test_one_place() { windows 0:1 0:2 0:3 0:4; }
test_one_place_nothing_executed() { window 0 kill 0:1 0:2 0:3; }
test_one_place_all_executed() { window 3 kill 0:1 0:2 0:3; }
test_value_returns() { windows 0:1 0:2 0:1 0:2; }
test_overlapping_places() { windows 0:1 128:2 64:3 0:4 256:5; }
test_overlapping_places_and_values_return() { windows 0:1 128:2 0:1 128:2 0:1; }

run_tests 3
