#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A link that fails at an exact packet: a UCP job with checked contents runs over
# rc_varuna, and the fault hits the n-th message of the requester's primary link. After
# each run the program has found memory, return values, completions and order correct,
# the emulator's trace contains each put exactly once, the fault has fired, and the
# endpoint has switched.
#
# RC_VARUNA_FAILOVER: number of consecutive messages to hit in each way (2). Data and
# log entries alternate, so 2 is the minimum. RC_VARUNA_JOB_LIMIT: seconds for each
# program of a job (60), a sixth of them for its start. test_sanitizers.sh allows more.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

program=$RCV_BUILD/src/tools/demo/varuna_demo
judge=$RCV_BUILD/src/tools/demo/demo_trace_check
first=${RC_VARUNA_FAILOVER_FIRST:-601}
sweep=${RC_VARUNA_FAILOVER:-2}
limit=${RC_VARUNA_JOB_LIMIT:-60}

ucx_defaults
export UCX_TLS=rc_varuna UCX_LOG_LEVEL=info
nic_gives_up 10ms 2

# switch_sum KEY: prints the sum of KEY in the client's log lines about switches
switch_sum() {
    sed -nE "s/.*switched .* $1=([0-9]+).*/\1/p" client.log |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# Puts that were compared with their target, in all jobs of a test
equal=0
different=0

# job RULE...: one run with this fault, and with the fault $second unless empty
job() {
    local server i status=0
    rm -f port client.log ledger summary
    fabric_up --links "${links:-2}" --trace 400000
    fault "$@"
    # shellcheck disable=SC2086 # words of a rule
    [ -z "${second:-}" ] || fault $second

    timeout "$limit" "$emu" exec -n "$fabric" 0 -- "$run" "$program" server -p 0 \
        -P "$PWD/port" -g 20 >server.log 2>&1 &
    server=$!
    for ((i = 0; i < 20 * limit / 6; ++i)); do
        [ ! -s port ] || break
        kill -0 $server 2>/dev/null || break
        sleep 0.05
    done
    [ -s port ] || fail "$*: the server did not start: $(tail -n 1 server.log)"

    timeout "$limit" "$emu" exec -n "$fabric" 1 -- "$run" "$program" client 127.0.0.1 \
        -p "$(cat port)" -t 20 -n 3000 -g 20 -l "$PWD/ledger" -S "$PWD/summary" \
        >client.log 2>&1 || status=$?
    [ $status -eq 0 ] ||
        fail "$*: the client ended with $status: $(grep FAILED client.log)"
    wait $server || fail "$*: the server ended with $?"

    faults_fired
    grep -q 'rc_varuna: switched' client.log server.log ||
        fail "$*: nothing was switched"
    "$emu" trace -n "$fabric" --json 2>trace.err | "$judge" ledger 0 >judge.log ||
        fail "$*: the trace is wrong: $(head -n 2 judge.log trace.err)"
    equal=$((equal + $(switch_sum equal)))
    different=$((different + $(switch_sum different)))
    fabric_down
}

# each RULE...: runs jobs with the rule at consecutive messages
each() {
    local n
    for ((n = first; n < first + sweep; ++n)); do
        job "$@" "nth=$n" "$action"
    done
}

test_silent_before_the_message_arrives() {
    action=silent=1:0
    each packet host=1 link=0 op=write
}

test_silent_after_execution_before_the_acknowledgement() {
    action=silent=1:0
    each ack link=0 op=write
}

test_down_before_the_message_arrives() {
    action=down=1:0
    each packet host=1 link=0 op=write
}

test_responder_down_after_execution() {
    action=down=0:0
    each ack link=0 op=write
}

test_cut_in_the_middle_of_a_large_put() {
    job packet host=1 link=0 op=write size=64k- pkt=middle nth=3 silent=1:0
}

# With error handling, UCP 1.18 replaces gets by messages, except with its old protocols
test_read_is_lost() {
    case $("$top/config/ucx_version.sh" installed ucx_info) in
    1.18.*) export UCX_PROTO_ENABLE=n ;;
    esac
    action=silent=1:0
    first=101
    each packet host=1 link=0 op=read
}

test_message_is_lost() {
    action=silent=1:0
    first=301
    each packet host=1 link=0 op=send
}

# The first messages of an endpoint use DC, whose responder has no PSN to read. Odd
# messages are data, even ones log entries. A put that was executed without its log
# entry is found by comparing the target.
test_fallback_lane_after_execution() {
    action=silent=1:0
    first=1
    sweep=$((sweep + 4))
    each ack link=0 op=write
    [ "$equal" -gt 0 ] || fail "no put was found to be executed"
    echo "# compared: $equal equal, $different different"
}

test_fallback_lane_before_execution() {
    action=silent=1:0
    first=1
    sweep=$((sweep + 2))
    each packet host=1 link=0 op=write
    [ "$different" -gt 0 ] || fail "no put was found to be lost"
}

# Two of three links fail, the second one at a read of the first recovery.
test_comparison_is_interrupted() {
    export RC_VARUNA_QUIRK=psn-lost
    action=silent=1:0
    links=3
    local n
    for n in 1 2 3; do
        second="packet host=1 link=1 op=read nth=$n silent=1:1"
        sweep=1 each ack link=0 op=write
    done
    ((equal + different > 0)) || fail "no put was compared"
}

# As with a NIC that cannot read its PSN. Which messages are data and which are log
# entries differs from run to run.
test_without_psn() {
    export RC_VARUNA_QUIRK=psn-lost
    action=silent=1:0
    sweep=1
    while ((equal == 0 && first < 613)); do
        each ack link=0 op=write
        first=$((first + 1))
    done
    [ "$equal" -gt 0 ] || fail "no put was found to be executed"
}

test_large_put_without_psn() {
    export RC_VARUNA_QUIRK=psn-lost
    job ack link=0 op=write size=64k- pkt=last nth=3 silent=1:0
    [ "$equal" -gt 0 ] || fail "the put was not found to be executed"
}

run_tests
