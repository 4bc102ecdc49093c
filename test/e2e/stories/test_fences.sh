#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# How the end of an RC lane is stopped, with the default PACKET_LIFETIME. Lanes that have only
# carried messages and reads need no fence. If both NICs work, the others are always fenced by
# RESET: nothing waits for the lifetime, whatever the queue pairs have sent
# and received before, whether the peer's application polls or computes, and whether its NIC
# raises LAST_WQE_REACHED in time, late, or never. Each link fails after more than a thousand
# messages, so flow control has granted credits.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export UCX_TLS=rc_varuna UCX_RC_VARUNA_PACKET_LIFETIME=auto
# A lane that takes over fails by no other fault
export UCX_RC_VARUNA_RETURN_DELAY=inf

# fenced_by FENCE LOG...: checks that each RC lane which was left was fenced by RESET or not at
# all, and at least one, which is in the first log, as is expected
fenced_by() {
    local fence=$1
    shift
    grep -ahE 'switched .* was=rc ' "$@" >switched || fail "no RC lane was left"
    ! grep -vE ' fence=(none|reset) ' switched || fail "a fence waited: $(head -n 3 switched)"
    grep -aqE "switched .* was=rc .* fence=$fence " "$1" ||
        fail "no fence=$fence: $(head -n 3 switched)"
}

# cut FENCE HOW RULE ARGUMENT...: ucx_perftest, whose link fails at a packet by the rule. HOW is
# an action, on the client's port unless it names another one
cut() {
    local fence=$1 how=$2 rule=$3 server status=0
    shift 3
    next_port
    [[ $how == *=* ]] || how=$how=1:0
    # shellcheck disable=SC2086 # words
    fault packet host=1 link=0 $rule "$how"
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" ucx_perftest -p "$port" "$@" \
        >server.log 2>&1 &
    server=$!
    await_listener "$port" "$server"
    timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" ucx_perftest -p "$port" localhost \
        "$@" >client.log 2>&1 || status=$?
    [ $status -eq 0 ] || fail "$*: the client ended with $status: $(tail -n 4 client.log)"
    wait "$server" || fail "$*: the server failed: $(tail -n 4 server.log)"
    faults_fired
    fenced_by "$fence" client.log server.log
    check "$emu" fault clear -n "$fabric"
    link 1:0 up
}

# puts_and_messages HOW: the responder's queue pair has granted credits, and a fence is needed
puts_and_messages() {
    UCX_RNDV_SCHEME=put_zcopy UCX_RNDV_THRESH=1000 \
        cut reset "$1" 'type=rc op=send nth=1100' -t tag_bw -s 4000 -n 1500
}

# loads HOW HOW: all kinds of traffic, in turns one and the other way. (An atomic of mode
# proxy is a message of the bus.)
loads() {
    local mode
    cut none "$1" 'type=rc op=send nth=1100' -t tag_lat -s 8 -n 1500
    cut none "$2" 'type=rc op=send nth=1100' -t tag_bw -s 4096 -n 1500
    cut none "$1" 'type=rc op=send nth=1100' -t tag_bw -s 65536 -n 1500
    cut none "$2" 'type=rc op=send nth=1100' -t ucp_am_bw -s 64 -n 1500
    cut none "$1" 'type=rc op=send nth=1100' -t stream_bw -s 2000 -n 1500
    cut none "$2" 'type=rc op=read nth=1000' -t ucp_get -s 4096 -n 1500
    cut reset "$2" 'type=rc op=write nth=2000' -t ucp_put_bw -s 8 -n 1500
    cut reset "$1" 'type=rc op=write nth=2000' -t ucp_put_bw -s 65536 -n 500
    puts_and_messages "$1"
    for mode in $modes; do
        UCX_RC_VARUNA_ATOMIC_MODE=$mode \
            cut "${atomics:-reset}" "$1" 'type=rc nth=1000' -t ucp_cswap -s 8 -n 1500
    done
}

test_infiniband() {
    local modes='native extended'
    fabric_up
    loads down silent
    loads silent down
}

test_roce() {
    local modes='native extended'
    fabric_up --quirk "$(with_quirks roce)"
    loads down silent
}

test_verbs() {
    local modes='native' atomics=none # UCP makes messages of them
    RC_VARUNA_QUIRK=no-mlx5dv fabric_up
    loads silent down
}

# is_over: the client has answered, or never will
is_over() {
    has_answered client "$assigned" || grep -q 'did not come' server.log
}

# peer_computes HOW [QUIRK]: the server computes while messages and a put arrive, of which its
# NIC has acknowledged some; then the link fails
peer_computes() {
    local i RC_VARUNA_QUIRK=${2:-}
    export RC_VARUNA_QUIRK UCX_LOG_LEVEL=debug # For wait_for_rc
    fabric_up
    rm -f server.in client.in
    jobs_start
    [ -n "${2:-}" ] || wait_for_rc # Verbs have nothing else
    for ((i = 1; i <= 20; ++i)); do
        ask client "run $i am_flood 0"
    done
    ask server compute
    fault packet host=1 link=0 type=rc op=send nth=20 "$1=1:0"
    assign client "run $i am_flood 0"
    await 60 client.log 'rc_varuna: switched '
    ask server go
    comes is_over || fail "no answer"
    ! grep 'did not come' server.log || fail "messages were lost"
    await_ok client
    jobs_stop
    faults_fired
    fenced_by reset client.log
}

test_peer_computes() {
    peer_computes silent
    peer_computes down
}

test_peer_computes_verbs() {
    peer_computes silent no-mlx5dv
    peer_computes down no-mlx5dv
}

# Nobody can be asked at a dead NIC, and for reads nobody needs to be
test_peer_nic_dies() {
    local how
    for how in kill kill_silent; do
        fabric_up
        cut none $how=0:0 'type=rc op=read nth=1000' -t ucp_get -s 4096 -n 1500
    done
}

# UCX does not expect two events of a queue pair that it destroys
test_event_is_late() {
    fabric_up --quirk "$(with_quirks late-last-wqe:100ms)"
    puts_and_messages down
    check grep -q 'no event LAST_WQE_REACHED within' server.log
}

test_event_never_comes() {
    fabric_up --quirk "$(with_quirks no-last-wqe)"
    puts_and_messages down
    check grep -q 'no event LAST_WQE_REACHED within' server.log
}

# mistake NAME: both programs run with this mistake of test/mutations
mistake() {
    run=$(check "$top/test/e2e/lib/mutant.sh" "$1")
    launcher=$run
}

# found MESSAGE COMMAND...: checks that it fails with this message
found() {
    ! ("${@:2}") >found 2>&1 || fail "the mistake was not found"
    grep -q "$1" found || fail "it was found otherwise: $(tail -n 3 found)"
}

test_reset_waits_for_credits() {
    mistake reset_drained
    fabric_up
    found 'a fence waited' puts_and_messages down
}

test_reset_drops_messages() {
    mistake reset_drops
    found 'messages were lost' peer_computes silent no-mlx5dv
}

run_tests
