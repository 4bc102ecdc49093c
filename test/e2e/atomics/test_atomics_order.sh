#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The order of atomics and of what is posted beside them: what a flush covers, and what
# a fence holds (rule 9 of docs/ATOMICS.md).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

job=ft_atom_job

# begin MODE [ENV...]: a server, with that, and a client on RC
begin() {
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=$1
    fabric_up
    jobs_start "${@:2}"
    wait_for_rc
}

# end [fired]: "fired" if all faults must have
end() {
    [ -z "${1:-}" ] || faults_fired
    jobs_stop
    fabric_down
}

# A callback of one of several atomics posts a flush, which covers the others. That of a
# flush posts another one, as others do: nobody has to wait for it
test_flush_in_callbacks() {
    local mode
    for mode in proxy extended; do
        begin $mode
        ask client "order 8 flushes"
        end
        rm -f ./*.in
    done
}

# An atomic that takes a fence waits for the reads before it, and so does what comes
# behind it: the answer to the read is lost, the link ends, and the read is repeated on
# another one. It must not find there what the put behind the atomic has written
test_fence_behind_read() {
    local mode
    for mode in proxy extended; do
        begin $mode
        ask server "set 1"
        fault ack host=1 link=0 type=rc op=read \
            count=all drop
        fault err host=1 link=0 type=rc \
            silent=1:0
        ask client "order 8 read"
        ask server get
        [ "$answer" = "ft: ok 2" ] || fail "the put is lost: $answer"
        end fired
        rm -f ./*.in
    done
}

# The same on DC: the server computes until it sees the put, and has no queue pair for RC
test_fence_behind_read_on_dc() {
    begin proxy UCX_RC_VARUNA_SPARE_QPS=0
    ask server "set 1"
    tell server "until 2"
    ask client second
    ask client warm
    fault ack host=1 link=0 type=dc op=read \
        count=all drop
    fault err host=1 link=0 type=dc \
        silent=1:0
    ask client "order 8 read"
    await_answer server 3
    [[ $answer == "ft: ok"* ]] || fail "the server: $answer"
    ask client close
    end fired
}

# ... and for the proxy it waits for all, which is held back meanwhile, or it would
# wait for ever
test_fence_among_puts() {
    local mode
    for mode in proxy extended; do
        begin $mode
        ask client "order 8 puts"
        ask server get
        [ "$answer" = "ft: ok 1" ] || fail "$answer"
        end
        rm -f ./*.in
    done
}

# placed MODE: puts are acknowledged before they are in memory, and only what comes over their
# queue pair waits for them: so an atomic after a fence or a flush must not rely on the
# acknowledgement. On RC, and on the other link after the first one has failed
placed() {
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=$1
    fabric_up --quirk late-write:5ms:1
    jobs_start
    wait_for_rc
    ask client "order 8 placed"
    ask client "order 4 placed"
    link 1:0 silent
    ask client "order 8 placed"
    check "$emu" quirk -n "$fabric" list --check >quirks
    end
}

test_puts_are_placed_before_atomics() {
    placed proxy
}

# What no NIC would execute fails when it is posted, and nothing else does
test_refused_at_once() {
    local mode
    for mode in proxy extended native; do
        begin $mode
        ask client "order 8 refused"
        [ $mode = native ] || ask client "order 4 refused"
        end
        rm -f ./*.in
    done
}

# A pending request that waits for an atomic, and fails when it is called
test_pending_fails() {
    begin proxy
    ask client "order 8 pending"
    end
}

run_tests
