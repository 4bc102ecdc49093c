#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Requests that neither complete nor fail. An endpoint must leave a queue pair that
# hangs while its link and its peer are alive. It must wait for a peer that computes and
# has no receive buffers left.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export UCX_RC_VARUNA_RETURN_DELAY=inf UCX_RC_VARUNA_HANG_TIMEOUT=200ms

# With unfinished puts only; and with messages while the peer's application works
test_queue_pair_hangs() {
    drive ft_sweep -N hang -f hang,exec_hang -s put_short,am_short -t 4
    grep -qE 'switches [1-9]' out || fail "nothing was switched"
    grep -q "none of its requests needs a receive buffer" ft_sweep.log ||
        fail "puts: wrong reason"
    grep -q "the peer's application is not busy" ft_sweep.log ||
        fail "messages: wrong reason"
}

# Writes do not arrive, but everything else does: the peer answers, and its application
# works. Only puts are unfinished, which need no receive buffers. The NIC's own timers
# would take half a minute.
test_writes_vanish() {
    export UCX_LOG_LEVEL=debug UCX_RC_MLX5_TIMEOUT=4s UCX_RC_MLX5_RETRY_COUNT=7
    jobs_on_rc
    fault packet host=1 link=0 type=rc op=write \
        count=all drop
    ask client "run 1 put_short 0"
    faults_fired
    jobs_stop
    grep -q 'oldest request hangs .*none of its requests needs a receive buffer' \
        client.log || fail "$(grep 'request hangs' client.log)"
    grep -q 'switched .*reason="requests hang"' client.log ||
        fail "$(grep 'rc_varuna: switched' client.log)"
}

# A queue pair hangs at each event of a recovery from another fault
test_queue_pair_hangs_and_link_fails() {
    drive ft_sweep -N hang -L 3 -p rc -f hang -s mixed1 -n 3 -d silent,down -t 9
}

# More messages than the peer has receive buffers, while its application computes until the
# timeout has passed three times. A read, a put and a flush follow them.
test_peer_computes() {
    # Messages that wait for buffers go on within this time when the peer works again
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_HANG_TIMEOUT=1s
    fabric_up
    jobs_start UCX_RC_MLX5_RX_QUEUE_LEN=32 UCX_DC_MLX5_RX_QUEUE_LEN=32
    wait_for_rc
    ask server compute
    assign client "run 1 am_flood 0"
    await 60 client.log 'the peer answers on mlx5_0:1 and computes: no failure' 3
    ask server go
    await_ok client
    jobs_stop
    ! grep -qE 'rc_varuna: switched|request hangs' client.log ||
        fail "$(grep -E 'rc_varuna: switched|request hangs' client.log)"
}

# With fewer than 33 buffers UCX's receive queue is longer than its completion queue,
# which overruns. Acknowledged messages would be lost.
test_receive_queue_is_short() {
    export UCX_LOG_LEVEL=debug UCX_IB_RX_QUEUE_LEN=12
    export UCX_RC_MLX5_RX_QUEUE_LEN=12 UCX_DC_MLX5_RX_QUEUE_LEN=12
    export UCX_RC_VARUNA_STANDBY_RX_QUEUE_LEN=12
    jobs_on_rc
    ask server compute
    assign client "run 1 am_flood 0"
    await_true has_rnr_waits
    ask server go
    await_ok client
    jobs_stop
    check grep -q 'a receive queue of 12 is too short' server.log
    ! grep -E 'CQ error|did not come' client.log server.log ||
        fail "the completion queue overran"
}

# has_returned: a few puts; whether the client is on RC of the first link after its last switch
has_returned() {
    ask client "run $((++i)) put_short 0"
    awk '/rc_varuna: switched/ { back = 0 }
         /planned swap from .* to rc on mlx5_0:1/ { back = 1 }
         END { exit !back }' client.log
}

# half_messages ROUNDS [QUIRK]: a link is cut between two packets of a message, for whose rest
# the receiver holds a buffer. Once its queue pair is stopped, the buffer is used again: the
# messages that follow, of this and of other endpoints, are more than the queue has, and one
# buffer that is lost would stop them.
half_messages() {
    local i=1 round last
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_RETURN_DELAY=0 UCX_RC_VARUNA_HANG_TIMEOUT=inf
    RC_VARUNA_QUIRK=$(with_quirks "${2:-}") fabric_up --mtu 256
    jobs_start UCX_RC_MLX5_RX_QUEUE_LEN=64
    wait_for_rc
    for ((round = 0; round < $1; ++round)); do
        fault packet host=1 link=0 type=rc op=send size=200- nth=2 silent=1:0
        ask client "run $((++i)) am_zcopy 0"
        faults_fired
        check "$emu" fault clear -n "$fabric"
        link 1:0 up
        comes has_returned || fail "the traffic does not return"
    done
    for ((last = i + 10; i < last;)); do
        ask client "run $((++i)) am_flood 0"
    done
    jobs_stop
    [ "$(grep -c 'rc_varuna: switched' client.log)" -eq "$1" ] ||
        fail "a receive queue was stuck: $(grep 'rc_varuna: switched' client.log)"
}

test_receive_buffer_of_half_a_message() {
    half_messages 1
}

# The NIC does not say when the buffer is free, and the queue pair is reset all the same
test_receive_buffer_without_an_event() {
    local rounds=3
    [ -z "${RC_VARUNA_LONG:-}" ] || rounds=1000
    half_messages $rounds no-last-wqe
}

# compute SECONDS [LINK STATE]: the client does not call progress for SECONDS; then waits for
# its answer
compute() {
    await 60 client.out 'note computes'
    sleep "$1"
    [ $# -eq 1 ] || link "${@:2}"
    tell client go
    await_ok client
}

# The requester's application computes for ten times the timeout while its requests are
# unfinished. They may be complete, because it has not polled.
test_we_compute() {
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    export UCX_RC_MLX5_TIMEOUT=4s
    jobs_on_rc
    fault ack host=1 link=0 op=write delay=100ms
    assign client "run 1 put_short 4"
    compute 2
    faults_fired
    jobs_stop
    ! grep -qE 'rc_varuna: switched|request hangs' client.log ||
        fail "$(grep -E 'rc_varuna: switched|request hangs' client.log)"
}

# The application computes for longer than the give-up time while its endpoint waits for
# an answer that was lost. It has not repeated the request meanwhile, so it must not
# give up.
test_we_compute_while_recovering() {

    # It is long enough for this script to see that the endpoint waits
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_GIVE_UP=6s
    jobs_on_rc
    link 1:1 silent
    fault post host=1 link=0 op=write nth=2 down
    assign client "run 1 put_short 12"
    await 60 client.log ': drain -> fence'
    tell client compute
    compute 7 1:1 up
    faults_fired
    jobs_stop
    grep -q 'rc_varuna: switched' client.log || fail "nothing was switched"
}

# has_lost_a_write: the first rule has fired
has_lost_a_write() {
    "$emu" fault list -n "$fabric" >faults.log
    awk '$1 == 1 { n = $3 } END { exit !n }' faults.log
}

# A DC queue pair fails while the application computes, and then its NIC dies. UCX would
# abort at the error, because it cannot reset that queue pair.
test_nic_dies_behind_an_error() {
    # The NIC gives up some seconds after the first write is lost
    export UCX_LOG_LEVEL=debug UCX_DC_MLX5_TIMEOUT=2s UCX_DC_MLX5_RETRY_COUNT=1
    jobs_on_rc
    fault packet host=1 link=0 type=dc op=write \
        count=all drop
    fault err host=1 link=0 type=dc kill=1:0
    assign client "run 1 put_short 13"
    await_true has_lost_a_write
    tell client compute
    await_faults
    compute 0
    jobs_stop
    grep -q 'comes from a NIC that is dead by now' client.log ||
        fail "no error was dropped: $(grep 'rc_varuna: switched' client.log)"
    grep -q 'rc_varuna: switched .*was=dc' client.log || fail "nothing was switched"
}

# Our application calls progress every 100 ms only, half of the timeout, and a queue pair
# hangs with a message: the peer's application can't be seen to move on often enough in
# that time, but it is in two or three of them, while nothing completes.
test_we_look_seldom() {
    export UCX_LOG_LEVEL=debug
    jobs_on_rc
    fault post host=1 link=0 type=rc op=send nth=1 \
        hang
    ask client "pace 0.1"
    ask client "run 1 am_short 0"
    faults_fired
    ask client "pace 0"
    jobs_stop
    grep -q "request hangs .*the peer's application is not busy" client.log ||
        fail "$(grep -E 'rc_varuna: switched|request hangs' client.log)"
}

# UCX polls one completion per call of progress, here every 20 ms. When the link of a
# new endpoint on DC fails, a dozen completions are flushed at once and wait for the
# slow application
test_we_take_completions_slowly() {
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    export UCX_RC_VARUNA_DRAIN_TIMEOUT=40ms
    fabric_up
    jobs_start
    ask client "pace 0.02"
    fault packet host=1 link=0 op=write silent=1:0
    ask client "run 1 put_short 1"
    ask client "pace 0"
    faults_fired
    jobs_stop
    grep -q 'rc_varuna: switched' client.log || fail "nothing was switched"
    [ "$(grep -c 'handle failure .* Request canceled' client.log)" -gt 4 ] ||
        fail "there was not much to flush"
}

run_tests 2
