# shellcheck shell=bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A UCP job with checked contents over rc_varuna, in which a fault hits an exact packet:
# for stories/test_failover.sh, verbs/test_verbs.sh, which source it. After each run the
# program has found memory, return values, completions and order correct, the emulator's trace contains each put exactly once, the fault has
# fired, and the endpoint has switched.
#
# RC_VARUNA_FAILOVER: number of consecutive messages to hit in each way (2). Data and
# log entries alternate, so 2 is the minimum. RC_VARUNA_JOB_LIMIT: seconds for each
# program of a job (300), which only end a hang. test_sanitizers.sh allows more.
# $fabric_options: more words for "mlx5emu up".

. "$(dirname "${BASH_SOURCE[0]}")/ft_fabric.sh"

program=$RCV_BUILD/src/tools/demo/varuna_demo
judge=$RCV_BUILD/src/tools/demo/demo_trace_check
first=${RC_VARUNA_FAILOVER_FIRST:-601}
sweep=${RC_VARUNA_FAILOVER:-2}
limit=${RC_VARUNA_JOB_LIMIT:-300}

ucx_defaults
export UCX_TLS=rc_varuna UCX_LOG_LEVEL=info
nic_gives_up 10ms 2
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s

# switch_sum KEY: prints the sum of KEY in the client's log lines about switches
switch_sum() {
    sed -nE "s/.*switched .* $1=([0-9]+).*/\1/p" client.log |
        awk '{ sum += $1 } END { print sum + 0 }'
}

# Puts that were compared with their target, in all jobs of a test
equal=0
different=0

# has_started: the server has written its port, or has ended
has_started() {
    [ -s port ] || ! kill -0 "$server" 2>/dev/null
}

# job RULE...: one run with this fault, and with the faults $second and $third unless
# empty
job() {
    local server status=0
    rm -f port client.log ledger summary
    # shellcheck disable=SC2086 # words
    fabric_up --links "${links:-2}" --trace 400000 ${fabric_options:-}
    fault "$@"
    # shellcheck disable=SC2086 # words of a rule
    [ -z "${second:-}" ] || fault $second
    # shellcheck disable=SC2086
    [ -z "${third:-}" ] || fault $third

    timeout "$limit" "$emu" exec -n "$fabric" 0 -- "$run" "$program" server -p 0 \
        -P "$PWD/port" -g 120 >server.log 2>&1 &
    server=$!
    comes has_started
    [ -s port ] || fail "$*: the server did not start: $(tail -n 1 server.log)"

    timeout "$limit" "$emu" exec -n "$fabric" 1 -- "$run" "$program" client 127.0.0.1 \
        -p "$(cat port)" -t "$limit" -n 3000 -g 120 -l "$PWD/ledger" -S "$PWD/summary" \
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
