#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A message that was acknowledged and then lost, as when a NIC dies with messages in its
# completion queue. The server runs the plugin of test/mutations/lose_message.patch,
# which loses message 100. No process may hang, and both sides must report the loss.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

ucx_defaults
export UCX_TLS=rc_varuna UCX_LOG_LEVEL=info UCX_WARN_UNUSED_ENV_VARS=n
nic_gives_up 10ms 2
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s

# The launchers of both sides
server_run=$run
client_run=$run

# mutate SIDE NAME: runs this side with this patch
mutate() {
    declare -g "${1}_run=$(check "$top/test/e2e/lib/mutant.sh" "$2")"
}

# pair TEST: starts both sides of ucx_perftest in $fabric with the fault ${rule[@]};
# $client is the client's pid
pair() {
    fabric_up
    [ -z "${rule[*]-}" ] || fault "${rule[@]}"
    timeout 300 stdbuf -oL \
        "$emu" exec -n "$fabric" 0 -- "$server_run" ucx_perftest -p "$port" \
        >server.log 2>&1 &
    server=$!
    await_listener "$port" "$server"
    timeout 300 stdbuf -oL "$emu" exec -n "$fabric" 1 -- "$client_run" ucx_perftest \
        127.0.0.1 -p "$port" "$@" >client.log 2>&1 &
    client=$!
}

down() {
    kill "$server" "$client" 2>/dev/null || :
    wait "$server" "$client" || :
    fabric_down --force
}

next_port

test_nothing_is_lost_without_a_fault() {
    pair -t tag_bw -s 64 -n 20000 -w 100
    wait "$client" || fail "the client ended with $?: $(tail -n 3 client.log)"
    ! grep -q 'did not come' client.log server.log || fail "a gap was reported"
    down
}

# Later messages arrive, and are held
test_later_messages_tell() {
    mutate server lose_message
    pair -t tag_bw -s 64 -n 20000 -w 10
    # Which line comes first depends on timing
    await 60 server.log 'message 100 (was acknowledged, but did not come|is missing)'
    await 60 client.log 'fails in state.*Connection reset'
    down
}

# Each message waits for the answer to the last one, so none follows the lost one. The
# requester knows that it was acknowledged, and informs the responder at the fence
test_fence_tells() {
    export UCX_ZCOPY_THRESH=0
    mutate server lose_message
    pair -t tag_lat -s 1024 -n 2000 -w 10
    await 60 server.log 'message 100 of vQP . is lost'
    sleep 1
    ! grep -q 'did not come' client.log server.log ||
        fail "the gap was reported before the fence"
    link 0:0 down
    link 1:0 down
    await 60 server.log 'message 100 was acknowledged, but did not come'
    await 60 client.log 'fails in state.*Connection reset'
    down
}

# has_switched COUNT: the client has left a link COUNT times
has_switched() {
    [ "$(grep -c 'rc_varuna: switched' client.log)" -ge "$1" ]
}

# The receiver computes between its polls, and finds messages of several links then: those of
# the newest one do not fill the memory for messages that wait for earlier ones
test_stream_to_a_receiver_that_computes() {
    local i switched used
    export UCX_RC_VARUNA_RETURN_DELAY=inf UCX_RC_VARUNA_HOLD_MIN=2ms UCX_RC_VARUNA_HOLD_MAX=10ms
    fabric_up
    mkfifo server.in client.in
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" "$apps/ft_stream" server 50 \
        <server.in >server.log 2>&1 &
    server=$!
    exec 8>server.in
    await 60 server.log '^ft: address'
    timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" "$apps/ft_stream" client \
        <client.in >client.log 2>&1 8>&- &
    client=$!
    exec 9>client.in
    sed -n 's/^ft: address *//p' server.log >&9
    await 60 client.log '^ft: started'
    for ((i = 0; i < 20; ++i)); do
        # Without a CPU for a while, its NIC gives a link up that is not cut
        switched=$(grep -c 'rc_varuna: switched' client.log) || :
        used=$(sed -nE 's/.*rc_varuna: switched .* to=[^:]*_([01]):1 .*/\1/p' client.log | tail -n 1)
        link "1:${used:-0}" down
        comes has_switched $((switched + 1)) || fail "cut $i: nothing was switched"
        link "1:${used:-0}" up
    done
    echo end >&9
    wait "$client" || fail "the client ended with $?: $(tail -n 3 client.log)"
    await 60 server.log '^ft: received'
    exec 8>&- 9>&-
    wait "$server" || fail "the server ended with $?: $(tail -n 3 server.log)"
    [ "$(sed -n 's/^ft: sent //p' client.log)" = "$(sed -n 's/^ft: received //p' server.log)" ] ||
        fail "$(grep -h '^ft: [sr]' client.log server.log)"
    ! grep -q 'fence=reset' client.log || fail "messages have waited for a fence"
    echo "# $(grep '^ft: sent' client.log)"
}

# The first message has a random number. The lane fails just before, when, and just
# after the numbers wrap around
test_numbers_wrap_around() {
    local nth rule
    mutate server am_wrap
    mutate client am_wrap
    for nth in 140 150 160; do
        rule=(ack host=1 op=send size=1024-2047 "nth=$nth" silent=1:0)
        pair -t tag_bw -s 1024 -n 20000 -w 10
        wait "$client" || fail "the client ended with $?: $(tail -n 3 client.log)"
        ! grep -q 'did not come' client.log server.log || fail "a gap was reported"
        grep -q 'rc_varuna: switched' client.log || fail "nothing was switched"
        faults_fired
        down
    done
}

run_tests
