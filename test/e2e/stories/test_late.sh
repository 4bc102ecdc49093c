#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Packets that arrive after the end of what they were meant for.
#
# Control messages arrive after the end of their endpoint. Links are not ordered
# with each other: an endpoint sends requests on link 0, gets no answer, repeats them on
# link 1, completes and is closed; then its first requests arrive. The server takes the
# request to open for a new endpoint's, but must not execute the old endpoint's other
# requests for it: the memory may be freed.
#
# A write arrives after the end of its RC connection, whose successor on that link has the
# number of the dead connection's queue pair, if that is free, and expects the very sequence
# number: the write would be executed, and the next one be taken for a duplicate.
#
# Plugins with these mistakes (mutant.sh) show that the tests detect them.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export UCX_LOG_LEVEL=debug
# A write on the third link triggers the delivery of the late packets
export UCX_RC_VARUNA_LINKS=mlx5_0:1,mlx5_1:1
export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=100ms
export UCX_RC_VARUNA_ATOMIC_MODE=proxy
export UCX_RC_VARUNA_RETURN_DELAY=inf # Send CLOSE on link 1 after leaving link 0
job=ft_atom_job

# lines ROLE PATTERN: prints the number of matching lines
lines() {
    grep -cE "$2" "$1.log" || true
}

# await_lines ROLE PATTERN COUNT
await_lines() {
    await 60 "$1.log" "$2" "$3"
}

# has_opened: the client's endpoint is open, so it does not ask again
has_opened() {
    [ "$(lines client ': opening -> ')" -ge 1 ] || { ask client "idle 0.02" && false; }
}

# close_before_arrival: adds 1 to the server's word over an endpoint, closes the
# endpoint after it has left link 0, and then delivers its messages on link 0. $answer
# is the word that the server sees then
close_before_arrival() {
    local vqp
    fabric_up --links 3 --time-scale 0.02 # So that the NIC waits for late packets
    jobs_start
    comes has_opened || fail "the first endpoint is not open" # The last OPEN_REQ is the next one's
    ask server "set 0"
    fault packet host=1 link=0 op=send count=all \
        delay=until:down=1:2
    ask client second
    ask client "run 8 0 fadd:0:1"
    faults_fired
    vqp=$(grep -o 'send OPEN_REQ vqp=[0-9]*' client.log | tail -n 1)
    vqp=${vqp#*=}
    [ "$(lines server "received OPEN_REQ vqp=$vqp .* on mlx5_0:1")" -eq 0 ] ||
        fail "the first request was not late"
    await_lines client "switched vqp=$vqp from=mlx5_0:1 .* to=mlx5_1:1" 1
    ask client close
    await_lines server "received CLOSE vqp=$vqp .* on mlx5_1:1" 1
    link 1:2 down
    await_lines server "received OPEN_REQ vqp=$vqp .* on mlx5_0:1" 1
    # The late target is closed again; the late atomic came after it
    await_lines client "send CLOSE vqp=$vqp " 2
    await_lines server "received CLOSE vqp=$vqp " 2
    ask client "idle 0.2"
    ask server get
}

test_late_requests_do_nothing() {
    close_before_arrival
    [ "$answer" = "ft: ok 1" ] || fail "the atomic was executed twice: $answer"
    [ "$(lines server 'opened target')" -eq 3 ] || fail "nothing was opened late"
    [ "$(lines server 'closed target')" -eq 2 ] || fail "a target is left"
}

test_they_would_if_their_opening_was_ignored() {
    launcher=$("$top/test/e2e/lib/mutant.sh" any_opening)
    close_before_arrival
    [ "$answer" = "ft: ok 2" ] || fail "the mistake was not detected: $answer"
}

# Numbers of the server's connected queue pairs on link 0
numbers() {
    "$emu" status -n "$fabric" --qps | sed -nE 's/^qp ([^ ]*) .* rc +rt[rs] +link 0:0.*/\1/p'
}

# on_rc LINK COUNT: the client's endpoint has got RC on this link so often
on_rc() {
    [ "$(lines client "planned swap from .* to rc on mlx5_$1:1")" -ge "$2" ] ||
        { ask client "idle 0.02" && false; }
}

word_is() {
    ask server get
    [ "$answer" = "ft: ok $1" ]
}

# write_late: the second write of the connection on link 0 arrives twice: it is sent again at
# once, and the first one is delivered ("link 1:2 down") when another connection is there
write_late() {
    export UCX_RC_VARUNA_RETURN_DELAY=0 UCX_RC_VARUNA_SPARE_QPS=0
    export UCX_RC_VARUNA_HOLD_MIN=1ms UCX_RC_VARUNA_PACKET_LIFETIME=1000s
    fabric_up --links 3 --reuse-qpns --time-scale 0.02 # As above
    fault packet host=1 link=0 type=rc op=write nth=2 delay=until:down=1:2
    jobs_start
    comes on_rc 0 1 || fail "the endpoint does not get RC"
    first=$(numbers)
    [ -n "$first" ] || fail "the server has no queue pair"
    ask client "put 2 ep"
    faults_fired
    link 1:0 down
    ask client "put 3 ep"
    comes on_rc 1 1 || fail "the endpoint does not get RC on the next link"
    link 1:0 up
    comes on_rc 0 2 || fail "the endpoint does not return"
    word_is 3 || fail "$answer"
    link 1:2 down
}

test_late_write_is_dropped() {
    write_late
    ask client "idle 0.1"
    ask client "put 4 ep"
    word_is 4 || fail "the late write was executed: $answer"
    [ "$(numbers)" != "$first" ] || fail "the queue pair has the number of the one before"
    jobs_stop
    "$emu" trace -n "$fabric" --check >trace.log 2>&1 || fail "$(tail -n 2 trace.log)"
}

test_it_would_not_if_queue_pairs_did_not_rest() {
    launcher=$("$top/test/e2e/lib/mutant.sh" no_rest)
    write_late
    comes word_is 2 || fail "the mistake was not detected: $answer"
    ask client "put 4 ep"
    word_is 2 || fail "the mistake was not detected at the next write: $answer"
}

run_tests
