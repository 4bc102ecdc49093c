#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Why blind repetition is wrong. A client writes A to a word; the acknowledgement is
# lost with the link. A third party, which has seen A, writes B over it. A blind
# repetition (RC_VARUNA_BASELINE=resend, resend_cache) writes A over B; rc_varuna
# does not. If it cannot know whether A was executed, UCX_RC_VARUNA_AMBIGUOUS decides.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

ucx_defaults
baselines=$RCV_BUILD/src/uct/ib/varuna/.libs/libuct_varuna_baselines.so
export UCX_LOG_LEVEL=info
nic_gives_up 10ms 2
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s

# abc MODE: $final is the final value of the word, and how often A was seen. With
# hold=yes the other link fails too, and returns after B was written, so that a
# comparison finds B.
abc() {
    local status=0 holder='' launcher=("$run")
    fabric_up
    fault ack link=0 op=write size=264 silent=1:0
    [ -z "${hold:-}" ] || fault exec link=0 op=write size=264 silent=1:1
    if [ "$1" != varuna ]; then
        local -x RC_VARUNA_BASELINE=$1
        launcher+=(-l "$baselines")
    fi

    load_server_start ${role:-server} 8192
    if [ -n "${hold:-}" ]; then
        (await 60 server.log '^ft: overwritten'
         link 1:1 up) 9>&- &
        holder=$!
    fi
    load_server_call "${launcher[@]}" "$apps/ft_load" ${what:-one} >client.log 2>&1 || status=$?
    load_server_stop
    [ -z "$holder" ] || wait "$holder" || fail "the link did not return"
    faults_fired
    # All that was executed: puts, and entries of a log
    "$emu" trace -n "$fabric" --json >trace.json 2>trace.err
    fabric_down
    final=$(sed -n 's/^ft: final //p' server.log)
    echo "# $1: the client ended with $status; final $final"
    return $status
}

# vfs FILE VALUE: checks the value of this file in UCX's VFS tree
vfs() {
    grep -q "^vfs: .*/$1 $2$" client.log ||
        fail "$1 is not $2: $(grep "/$1 " client.log)"
}

# vfs_value FILE: prints the value of this file
vfs_value() {
    sed -n "s|^vfs: .*/$1 ||p" client.log | tail -n 1
}

# vfs_above FILE NUMBER: checks that the value is greater
vfs_above() {
    [ "$(vfs_value "$1")" -gt "$2" ] || fail "$1 is $(vfs_value "$1")"
}

test_varuna_does_not_repeat_what_was_executed() {
    abc varuna || fail "the client failed"
    grep -q 'switched .*was=rc' client.log || fail "RC did not fail"
    # The same counts in UCX's VFS tree
    vfs vqp/0/executed 1
    vfs vqp/0/repeated 0
    vfs vqp/0/ambiguous 0
    vfs vqp/0/switches 1
    vfs link/mlx5_0:1/switches 1
    vfs link/mlx5_0:1/executed 1
    vfs link/mlx5_0:1/repeated 0
    grep -q '^vfs: .*/vqp/0/state ' client.log || fail "no state"
    grep -q '^vfs: .*/link/mlx5_1:1/state up$' client.log || fail "no link"
    [ "$final" = "B, seen 1 times" ] || fail "A was written again: $final"
    [ "$(targets)" -gt 2 ] || fail "no log was written"
}

# Without the PSN, and with B over A, the requester cannot know whether A was executed,
# because A's log entry was lost with the link. The policy decides
test_ambiguous_put_is_repeated() {
    local hold=yes
    RC_VARUNA_QUIRK=psn-lost UCX_RC_VARUNA_AMBIGUOUS=repeat abc varuna ||
        fail "the client failed"
    vfs vqp/0/ambiguous 1
    vfs vqp/0/compared_different 1
    vfs vqp/0/repeated 1
    # The new lane completed the repetition first, some time after the gate
    vfs vqp/0/resumed 1
    vfs_above vqp/0/recovery_usec 0
    vfs_above vqp/0/resume_usec "$(vfs_value vqp/0/recovery_usec)"
    [ "$final" = "B, seen 2 times" ] || fail "A was not repeated: $final"
}

test_ambiguous_put_fails_the_endpoint() {
    local hold=yes
    ! RC_VARUNA_QUIRK=psn-lost UCX_RC_VARUNA_AMBIGUOUS=fail abc varuna ||
        fail "the client's endpoint did not fail"
    check grep -q 'not known whether a put_zcopy of 264 bytes was executed' \
        client.log
    vfs vqp/0/ambiguous 1
    vfs vqp/0/repeated 0
    [ "$final" = "B, seen 1 times" ] || fail "A was written again: $final"
}

# on_dc POLICY: the same on the fallback lane, which has no PSN
on_dc() {
    local hold=yes what=first status=0
    UCX_RC_VARUNA_AMBIGUOUS=$1 abc varuna || status=$?
    # One put is ambiguous, and it is not equal
    vfs vqp/0/ambiguous 1
    vfs vqp/0/compared_equal 0
    vfs vqp/0/compared_different 1
    vfs link/mlx5_0:1/ambiguous 1
    return $status
}

# A overwrites B once, and the put is counted, as RECOVERY.md describes
test_fallback_lane_repeats_over_a_third_party() {
    on_dc repeat || fail "the client failed"
    check grep -q 'switched .*was=dc .*ambiguous=1' client.log
    vfs vqp/0/repeated 1
    [ "$final" = "B, seen 2 times" ] || fail "A was not repeated: $final"
}

# ... or the endpoint fails, and B is not lost
test_fallback_lane_fails_behind_a_third_party() {
    ! on_dc fail || fail "the client's endpoint did not fail"
    check grep -q 'not known whether a put_zcopy of 264 bytes was executed' \
        client.log
    vfs vqp/0/repeated 0
    [ "$final" = "B, seen 1 times" ] || fail "A was written again: $final"
}

# No other process writes: the target equals the put, which is not repeated
test_fallback_lane_finds_its_own() {
    local role=lone what=first
    abc varuna || fail "the client failed"
    check grep -q 'switched .*was=dc .*ambiguous=1' client.log
    vfs vqp/0/ambiguous 1
    vfs vqp/0/compared_equal 1
    vfs vqp/0/repeated 0
    [ "$final" = "A, seen 0 times" ] || fail "not A, or overwritten: $final"
}

# The CPU cannot read a GPU's memory, so the policy decides at once. The pages of the client
# fault when a CPU reads or writes them
test_memory_of_a_device_is_not_accessed() {
    local role=lone what=device
    abc varuna || fail "the client failed: $(tail -n 3 client.log)"
    vfs vqp/0/ambiguous 1
    vfs vqp/0/compared_equal 0
    vfs vqp/0/compared_different 0
    vfs vqp/0/repeated 1
    [ "$final" = "A, seen 0 times" ] || fail "not A, or overwritten: $final"
}

# ... or fails the endpoint
test_memory_of_a_device_is_left_to_the_policy() {
    local role=lone what=device
    ! UCX_RC_VARUNA_AMBIGUOUS=fail abc varuna || fail "the client's endpoint did not fail"
    check grep -q 'not known whether a put_zcopy of 264 bytes was executed' \
        client.log
    vfs vqp/0/compared_equal 0
    vfs vqp/0/repeated 0
}

# The message before it has no completion of its own and is repeated. The server does
# not connect RC, so no planned swap requests its completion either
test_fallback_lane_finds_its_own_behind_a_message() {
    local role=idle what=second
    export UCX_RC_VARUNA_SPARE_QPS=0
    abc varuna || fail "the client failed"
    check grep -q 'switched .*was=dc .*ambiguous=1' client.log
    vfs vqp/0/compared_equal 1
    [ "$final" = "A, seen 0 times" ] || fail "not A, or overwritten: $final"
}

# targets: prints how many different addresses puts have written: two of the client, and
# each entry of a log
targets() {
    grep -E '"op": ?"write"' trace.json | grep -oE '"addr": ?"[^"]*"' | sort -u | wc -l
}

# The baselines, in the same run. They write no log, although LOG=all is the default
test_resend_does() {
    abc resend || fail "the client failed"
    [ "$(targets)" -le 2 ] || fail "$(targets) addresses were written"
    [ "$final" = "B, seen 2 times" ] || fail "nothing was repeated: $final"
}

test_resend_cache_does() {
    abc resend_cache || fail "the client failed"
    [ "$(targets)" -le 2 ] || fail "$(targets) addresses were written"
    grep -q 'switched .*lane=rc' client.log || fail "RC was not in reserve"
    [ "$final" = "B, seen 2 times" ] || fail "nothing was repeated: $final"
}

test_none_fails() {
    ! abc none || fail "the client's endpoint did not fail"
    [ "$(targets)" -le 2 ] || fail "$(targets) addresses were written"
    [ "$final" = "B, seen 1 times" ] || fail "A was written again: $final"
}

# What users install repeats nothing blindly, whatever is set
test_installed_plugin_has_no_baselines() {
    nm "$baselines" >symbols
    grep -q ' uct_varuna_baseline_find$' symbols || fail "they have another name"
    nm "$RCV_PREFIX/lib/ucx/libuct_varuna.so.0" >symbols
    ! grep ' uct_varuna_baseline_find$' symbols || fail "they are in the plugin"
    [ -z "$(find "$RCV_PREFIX" -name '*baselines*')" ] || fail "they are installed"
    RC_VARUNA_BASELINE=resend abc varuna || fail "the client failed"
    [ "$final" = "B, seen 1 times" ] || fail "A was written again: $final"
}

# The benchmark that counts the repetitions of each baseline injects the same failures
# into all, and checks that they lose the same puts
test_equal_points_of_failure() {
    "$top/contrib/bench/recovery.sh" -e 4 -b 16 -n 2 -u 16 -r 1 4096 >out 2>&1 ||
        fail "$(tail -n 3 out)"
    sed 's/^/# /' out
    awk '$1 == 4096 { lost[$2] = $5; repeated[$2] = $6; twice[$2] = $7; ++n }
         END { exit !(n == 3 && lost["varuna"] > 0 &&
                      repeated["varuna"] == lost["varuna"] && !twice["varuna"] &&
                      twice["resend"] > 0 && twice["resend_cache"] > 0 &&
                      repeated["resend"] == lost["resend"] + twice["resend"]) }' out ||
        fail "the table is wrong"
}

# The same script prints how long the steps of a switch take
test_times_of_steps() {
    "$top/contrib/bench/recovery.sh" -t -r 1 >out 2>&1 || fail "$(tail -n 3 out)"
    sed 's/^/# /' out
    awk -F' *[|] *' '$2 == 4096 && $5 == 1 && $6 > 0 && $7 > 0 && $8 > 0 { ++seen[$3] }
                     END { exit !(seen["detect"] && seen["drain"] && seen["fence"] &&
                                  seen["repeat"] && seen["all"]) }' out ||
        fail "the table is wrong"
    ! "$top/contrib/bench/recovery.sh" -t -r many >out 2>&1 || fail "-r many is taken"
    grep -q '"many" is not a number' out || fail "$(cat out)"
    ! "$top/contrib/bench/recovery.sh" -t -o NUM_DCI=8 >out 2>&1 || fail "-o NUM_DCI is taken"
    grep -q 'NUM_DCI=8 is not an option of UCX' out || fail "$(cat out)"
}

# ... and those of ucx_perftest
test_times_of_loads() {
    "$top/contrib/bench/recovery.sh" -l -r 1 get_4k >out 2>&1 || fail "$(tail -n 3 out)"
    sed 's/^/# /' out
    [ "$(grep -cE '^\| get_4k \| (down|silent) \| (mlx5|verbs) \| none 1 \|( [0-9]+ /){2}' \
        out)" -eq 4 ] || fail "the table is wrong"
    fails 1 'no load all, but' "$top/contrib/bench/recovery.sh" -l -r 1 all
}

run_tests 2
