#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The order of atomics and other operations: what a flush completes, and what a fence
# orders (rule 9 of docs/ATOMICS.md).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

job=ft_atom_job

# begin MODE [ENV...]: starts a server with these settings, and a client on RC
begin() {
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=$1
    fabric_up
    jobs_start "${@:2}"
    wait_for_rc
}

# The callback of one of several atomics posts a flush, which covers the others. The
# callback of a flush posts another flush, for which other flushes need not wait
test_flush_in_callbacks() {
    local mode
    for mode in proxy extended; do
        begin $mode
        ask client "order 8 flushes"
    done
}

# An atomic after a fence waits for the reads before the fence, and later operations
# wait too. The answer to the read is lost, the link fails, and the read is repeated on
# another link. It must not see the put that follows the atomic
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
        [ "$answer" = "ft: ok 2" ] || fail "the put was lost: $answer"
        faults_fired
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
    faults_fired
}

# ... and an atomic of the proxy waits for all operations. These are held back
# meanwhile, otherwise it would wait forever
test_fence_among_puts() {
    local mode
    for mode in proxy extended; do
        begin $mode
        ask client "order 8 puts"
        ask server get
        [ "$answer" = "ft: ok 1" ] || fail "$answer"
    done
}

# placed MODE: puts are acknowledged before they are in memory, and only later requests
# of their queue pair wait for them. So an atomic after a fence or a flush must not rely
# on the acknowledgement. On RC, and on the other link after the first one has failed
placed() {
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=$1
    jobs_on_rc --quirk late-write:60s:1
    ask client "order 8 placed"
    ask client "order 4 placed"
    link 1:0 silent
    ask client "order 8 placed"
    check "$emu" quirk -n "$fabric" list --check >quirks
}

test_puts_are_placed_before_atomics() {
    placed proxy
}

# posts_on ROLE LINK: the endpoint of this client does
posts_on() {
    grep -o 'active ([a-z_]* epoch=[0-9]* on [a-z0-9]*_[0-9]' "$1.log" | tail -n 1 |
        grep -q "_$2\$" || fail "the $1 does not use link $2"
}

# crossed MODE HOST [remote-]: two clients use different NICs of the server, as HOST has lost
# its first link. What one of them has put and flushed is acknowledged before it is in
# memory, and waits there for later requests to the same NIC, of which there are no others.
# The other's atomic must find it, and must not be overwritten
crossed() {
    local value kinds=("${3:-}"{ep,comp,iface}) links=(1 0) i
    export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=$1 UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    fabric_up --hosts 3 --quirk late-write:60s
    link "$2:0" down
    jobs_start
    other_start 2
    for ((i = 1; i <= 12; ++i)); do
        value=$(printf %x $((i * 256)))
        ask client "put $value ${kinds[i % 3]}"
        ask other "run 8 0 fadd:0:1"
        [[ $answer == *":$value" ]] ||
            fail "after a flush (${kinds[i % 3]}) of $value another client's atomic finds: $answer"
        ask server get
        [ "$answer" = "ft: ok $(printf %x $((i * 256 + 1)))" ] ||
            fail "after $value + 1, the word is $answer"
    done
    posts_on client "${links[$2 - 1]}"
    posts_on other "${links[2 - $2]}"
    check "$emu" quirk -n "$fabric" list --check >quirks
    other_stop
}

test_flush_covers_atomics_over_another_nic() {
    crossed proxy 1
}

test_flush_covers_atomics_that_come_over_another_nic() {
    crossed proxy 2
}

test_flush_covers_extended_atomics_over_another_nic() {
    crossed extended 1
}

# UCP's fences of several lanes: the NIC executes the atomic, and there is no home
test_remote_flush_covers_another_nic() {
    crossed native 1 remote-
}

# sees VALUE: what the client puts and flushes is in memory then
sees() {
    local kind value=$1
    for kind in ep comp iface; do
        ask client "put $value remote-$kind"
        ask server get
        [ "$answer" = "ft: ok $value" ] ||
            fail "after a remote flush ($kind) of $value, the word is ${answer#ft: ok }"
        value=$(printf %x $((0x$value + 1)))
    done
}

# With UCT_FLUSH_FLAG_REMOTE the server's CPU finds what is flushed, over either NIC. Writes wait
# in the NIC until their queue pair reads
test_remote_flush_is_placed() {
    local mode
    for mode in native proxy extended; do
        export UCX_LOG_LEVEL=debug UCX_RC_VARUNA_ATOMIC_MODE=$mode
        jobs_on_rc --quirk late-write:60s:1
        sees 10
        link 1:0 silent
        sees 20
        posts_on client 1
        check "$emu" quirk -n "$fabric" list --check >quirks
    done
}

# Atomics that no NIC would execute fail when they are posted, and others do not
test_refused_at_once() {
    local mode
    for mode in proxy extended native; do
        begin $mode
        ask client "order 8 refused"
        [ $mode = native ] || ask client "order 4 refused"
    done
}

# A pending request that waits for an atomic fails when it is called
test_pending_fails() {
    begin proxy
    ask client "order 8 pending"
}

run_tests
