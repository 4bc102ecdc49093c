#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A flapping port causes a few switches on both hosts, and then none: the port's host
# gets its events, and informs its peers.


. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

# The NIC's own timers detect nothing during the test
nic_gives_up 4s 7
# A slow machine must not look like a silent link
export UCX_RC_VARUNA_HEARTBEAT_MISSES=50

# Two jobs, one in each direction; the primary link flaps at host 0. They only put, so
# none waits for the other side's program
start_jobs() {
    local name
    fabric_up
    servers 0 s0
    servers 1 s1
    start a 0 writer 1 s1.addr
    start b 1 writer 1 s0.addr
    for name in a b; do
        await 60 $name.log '^ft: now 0 completed [1-9]'
    done
}

# flap COUNT: the port goes down and up until the job of its host has seen COUNT failures
flap() {
    link 0:0 flap 500ms,0.7
    await 300 a.log 'link mlx5_0:1 is down: port event' "$1"
    await 60 a.log 'rc_varuna: switched'
    await 60 b.log 'rc_varuna: switched'
}

jobs_end() {
    local name
    for name in a b; do
        end $name
        check grep -q '^ft: errors 0' $name.log
        ! grep -E '^ft: peer .* failed [1-9]|^ft: peer .* twice [1-9]' $name.log ||
            fail "$name: completions"
    done
}

# await_more_of NAME COUNT: waits for so many more reports of the job
await_more_of() {
    local seen
    seen=$(grep -c '^ft: now 0 ' "$1.log") || true
    await 60 "$1.log" '^ft: now 0 ' $((seen + $2))
}

# few_switches MAXIMUM: checks that each job has switched, but not more often
few_switches() {
    local name count
    for name in a b; do
        count=$(grep -c 'rc_varuna: switched' $name.log || true)
        echo "# $name: $count switches"
        [ "$count" -ge 1 ] && [ "$count" -le "$1" ] ||
            fail "$name switched $count times: $(grep switched $name.log | tail -n 3)"
    done
    # Host 0 has informed host 1
    check grep -q "switched .*reason=\"the peer's port is down\"" b.log
}

# is_on_rc NAME: the last move was from the fallback to RC on the other link, and the job
# has completed much since then
is_on_rc() {
    last=$(grep -E 'rc_varuna: switched|planned swap from' "$1.log" | tail -n 1)
    grep -q 'planned swap from dc on mlx5_1:1 to rc on mlx5_1:1' <<<"$last" &&
        awk '/rc_varuna: switched/ { n = done } /^ft: now 0 / { done = $5 }
             END { exit !(done > n + 1000) }' "$1.log"
}

# on_rc NAME: waits for that, while the port flaps
on_rc() {
    local last
    comes is_on_rc "$1" || fail "$1: the last move is: $last"
}

# measure: operations that each job has completed per tick of its CPU time since the
# last call. Jobs never sleep, so waiting costs CPU time too
declare -A completed_at ticks_at rate
measure() {
    local name completed ticks
    for name in a b; do
        completed=$(awk '/^ft: now 0 / { n = $5 } END { print n }' $name.log)
        ticks=$(awk '{ sub(/.*\) /, ""); print $12 + $13 }' \
            "/proc/$(process $name)/stat")
        rate[$name]=$(((completed - ${completed_at[$name]:-0}) * 10 /
                       (ticks - ${ticks_at[$name]:-0} + 1)))
        completed_at[$name]=$completed
        ticks_at[$name]=$ticks
    done
}

test_both_hosts_are_damped() {
    local name
    local -A before
    export UCX_LOG_LEVEL=debug
    start_jobs
    measure
    await_more_of a 6
    await_more_of b 6
    measure
    before[a]=${rate[a]} before[b]=${rate[b]}
    flap 20
    measure
    for name in a b; do
        # The rate depends on other load of the machine, so it is only printed
        echo "# $name: ${before[$name]} undisturbed, ${rate[$name]} while the port flaps"
        on_rc $name
    done
    link 0:0 up
    few_switches 5
    jobs_end
    fabric_down --force # Ends the servers
}

# If traffic does not return to the primary link, it moves once. There is no heartbeat,
# so host 1 learns of the failure only from host 0
test_nobody_returns() {
    export UCX_RC_VARUNA_RETURN_DELAY=inf UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    start_jobs
    flap 6
    link 0:0 up
    few_switches 1
    jobs_end
    fabric_down --force # Ends the servers
}

run_tests
