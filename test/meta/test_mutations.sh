#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Tests of the tests: the plugin is built with each deliberate mistake of test/mutations
# (mutant.sh), and a test must detect it. The same run without the mistake must pass.
# Each run shows the mistake at any speed of the machine: concurrent events are held
# until they are due, or are those for which the rule itself waits. Where only many
# operations at a time show it, it is run again if none of them has met another.

needs=extended # of most
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/ft_env.sh"

export UCX_RC_VARUNA_RETURN_DELAY=inf

# For each mistake, options of a short sweep that detects it, and the sweep's message
finds_blind_resend='-s put_short -f mute -n 2'
shows_blind_resend='was executed 2 times'
finds_no_fence='-s put_bcopy -f late_down -n 1'
shows_no_fence='put 0 was executed 2 times'
finds_no_psn='-s put_short -f silent -n 4'
shows_no_psn='ambiguous, though on RC'
finds_log_before_data='-s put_short -f post_down -n 2'
shows_log_before_data='put 0 was never executed'
finds_no_gate='-s get_large -f silent -n 1'
shows_no_gate='operation 0 read 0xe*, which is not of -1'
finds_one_log='-s put_short -f exec_silent -n 2'
shows_one_log='put 1 was never executed'
finds_believe_status='-s put_short -f exec_silent -n 2'
shows_believe_status='has completed, but put 3 is not there'
finds_am_unordered='-s am_short -f mute -n 1-3'
shows_am_unordered='message.* arrived'
# With these, a run never ends, so it is given up early. Runs without them take what they need
limit_old_errors=5
finds_old_errors='-q -s am_short -f silent -n 1'
shows_old_errors='the final flush did not end'
# With one link, whose path is held down for the whole run after the first error
hold_no_generation=600s
limit_no_generation=5
finds_no_generation='-q -L 1 -s put_short -f mute -n 1'
shows_no_generation='the final flush did not end'

# shown COMMAND...: runs it until it fails, at most 10 times. A run without the mistake never
# does
shown() {
    local i
    for ((i = 0; i < 10; ++i)); do
        "$@" || return 0
    done
    return 1
}

# made MISTAKE: builds it, once for all tests. Sets $launcher and $plugin, which are
# empty for "none"
made() {
    launcher=
    plugin=
    [ "$1" != none ] || return 0
    launcher=$(check "$top/test/e2e/lib/mutant.sh" "$1")
    plugin=${launcher%/bin/*}/lib/ucx/libuct_varuna.so.0
}

# sweep MISTAKE OPTIONS...: runs ft_sweep; its output is in ./out. The limit of a run is less
# than the minute after which the driver takes a job for dead
sweep() {
    local status=0 mistake=$1
    shift
    UCX_RC_VARUNA_HOLD_MIN=${hold:-2ms} UCX_RC_VARUNA_HOLD_MAX=${hold:-10ms} \
    timeout 300 "$apps/ft_sweep" -p rc ${plugin:+-P "$plugin"} \
        -N "mutant-$mistake" -w "${limit:-55}" "$@" "$RCV_PREFIX" "$apps/ft_job" >out 2>&1 ||
        status=$?
    return $status
}

# found MISTAKE: checks that the sweep fails with it, with the expected message
found() {
    local options=finds_$1 shows=shows_$1 hold=hold_$1 limit=limit_$1
    hold=${!hold:-}
    limit=${!limit:-}
    made "$1"
    # shellcheck disable=SC2086 # words
    if sweep "$1" ${!options}; then
        fail "$1 was not found by: ${!options}: $(tail -n 1 out)"
    fi
    grep -m 1 "^FAILED.*${!shows}" out | cut -c 1-200 | sed "s/^/# $1: /" ||
        fail "$1: the sweep failed for another reason: $(tail -n 3 out)"
}

test_blind_resend() { found blind_resend; }
test_no_fence() { found no_fence; }
test_no_psn() { found no_psn; }
test_log_before_data() { found log_before_data; }
test_no_gate() { found no_gate; }
test_one_log() { found one_log; }
test_believe_status() { found believe_status; }
test_am_unordered() { found am_unordered; }
test_old_errors() { found old_errors; }
test_no_generation() { found no_generation; }

# jobs_up MISTAKE JOB OPTIONS...: starts a server and a client with RC, on a fabric with
# these options
jobs_up() {
    . "$top/test/e2e/lib/ft_jobs.sh"
    made "$1"
    launcher=${launcher:-$run}
    job=$2
    jobs_timeout=900
    run_time=300
    rm -f memory {server,client}.{in,out,log}
    fabric_up "${@:3}"
    UCX_LOG_LEVEL=debug jobs_start
    wait_for_rc
}

# fail_busy NUMBER: the first link fails at the put of this number, which is repeated on the
# other one
fail_busy() {
    fault packet host=1 link=0 type=rc nth=1 silent=1:0
    ask client "warm $1"
    faults_fired
}

# is_connecting: whether the client has asked for RC, which has a fault
is_connecting() {
    have_faults_fired || { ask client "idle 0.02" && false; }
}

# knows_of_it: whether the client has learned that its port is down, in a progress call
knows_of_it() {
    grep -q 'link mlx5_0:1 is down: port event' client.log ||
        { ask client "idle 0.02" && false; }
}

# fail_idle NUMBER: the first link fails while nothing is in flight, and the put of this number
# is the first one on the other link. The CONNECT_REQ that follows ends the old queue pair, so
# it is held until that put is in memory
fail_idle() {
    # FENCE_REQ has 76 bytes, and passes
    fault packet host=1 op=send size=80- count=all delay=until:cleared
    link 1:0 down
    comes knows_of_it || fail "the client does not know of the port"
    ask client "warm $1"
    comes is_connecting || fail "no CONNECT_REQ: $(cat faults.log)"
    check "$emu" fault clear -n "$fabric"
}

# overwrite MISTAKE HOW: puts a word on RC, and again when the first link fails (fail_busy,
# fail_idle). $last is then what is in memory. The first link's NIC keeps
# what it has accepted until the queue pair or the memory goes: the last of many writes, and
# in the fabric's time a minute takes 20, so no time is over before
overwrite() {
    local i word=1000
    jobs_up "$1" ft_job --quirk 0:0=late-write:60s:1 --time-scale 0.05
    for ((i = 0; i < 40; ++i)); do
        ask client "warm $((word + i))"
    done
    # The same place as that of the last one
    word=$((word + 39))
    "fail_$2" $((word + 512))
    jobs_stop
    check grep -q 'rc_varuna: switched' client.log
    last=$(od -An -v -t u8 -w8 memory | grep -oE "\\b($word|$((word + 512)))\$" || true)
    fabric_down
    [ "$last" = "$word" ] || [ "$last" = $((word + 512)) ] || fail "no word: \"$last\""
    last=$((last - word))
}

# overwrites MISTAKE HOW: with the mistake, and only then, the old write is over the new one
overwrites() {
    local last
    overwrite none "$2"
    [ "$last" -eq 512 ] || fail "without a mistake the old write is over the new one"
    overwrite "$1" "$2"
    [ "$last" -eq 0 ] || fail "$1 was not found"
    echo "# $1: the old write is over the new one"
}

test_fence_no_reset() { overwrites fence_no_reset busy; }

test_never_owes() {
    # On the control lane nothing passes what is held. That is no failure of the link
    nic_gives_up 8s 7
    local -x UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0
    overwrites never_owes idle
}

# not_certified MISTAKE MESSAGE: a plugin with the mistake records its recoveries, and
# rc_varuna_audit, which has no mistake, does not certify them
not_certified() {
    local status=0
    made "$1"
    mkdir audit
    # Without log entries, which would prove the same
    UCX_RC_VARUNA_LOG=fallback UCX_RC_VARUNA_AUDIT=$PWD/audit sweep "$1" -s put_short -f exec_silent -n 2 || true
    "$RCV_PREFIX/bin/rc_varuna_audit" audit >certified || status=$?
    [ $status -eq 1 ] || fail "$1: status $status: $(tail -n 2 certified)"
    grep -m 1 -o "operation [0-9]*, a put.*$2" certified | sed 's/^/# /' ||
        fail "$1: the audit has another reason: $(head -n 3 certified)"
}

test_plan_psn_late() { not_certified plan_psn_late 'verdict is "repeat", but .* "executed"'; }
test_verdict_ignored() {
    not_certified verdict_ignored 'was repeated, but its verdict is "executed"'
}

# Mistakes in atomics are detected by a short sweep with a late last confirm, by the
# interleavings of the unit test, or under contention
flush_options='-p lane -w 8 -c 1 -s cswap -f exec_slow -n 10'

# sweep_atoms MISTAKE OPTIONS...: runs ft_atom_sweep; its output is in ./out
sweep_atoms() {
    local mistake=$1
    shift
    made "$mistake"
    UCX_RC_VARUNA_RETURN_DELAY=0 UCX_RC_VARUNA_ATOMIC_MODE=extended \
        timeout 300 "$apps/ft_atom_sweep" ${plugin:+-P "$plugin"} -N "mutant-$mistake" "$@" "$RCV_PREFIX" "$apps/ft_atom_job" >out 2>&1
}

# unit PROGRAM TEST: runs a gtest; its output is in ./out
unit() {
    timeout 600 "$1" --gtest_filter="test_varuna_$2" >out 2>&1
}

# found_by_unit MISTAKE TEST: checks that the gtest fails with the mistake, and only
# then
found_by_unit() {
    local program
    unit "$RCV_BUILD/test/gtest/gtest_varuna" "$2" ||
        fail "$2 fails without a mistake: $(tail -n 3 out)"
    program=$(check "$top/test/e2e/lib/mutant.sh" -g "$1")
    shown unit "$program" "$2" || fail "$1 was not found by $2"
    grep -q 'FAILED  \] test_varuna_' out ||
        fail "$1: $2 failed otherwise: $(tail -n 3 out)"
}

# contend MISTAKE HOW: as test_home.sh, until a result is lost. Many compare and swaps
# wait between their read and their write. HOW is lose, or leave
contend() {
    . "$top/test/e2e/atomics/ft_amo.sh"
    run=$launcher
    case $2 in
    lose)
        lose_home extended 8 0.2 3ms
        progressed 20000
        ;;
    leave) leave_home extended 8 20000 0.2 3ms ;;
    esac
    judge_home extended
}

# contended MISTAKE HOW: the same; its output is in ./out
contended() {
    (contend "$@") >out 2>&1
}

# found_by_contention MISTAKE HOW: checks that results are lost or duplicate
found_by_contention() {
    made "$1"
    shown contended "$@" || fail "$1 was not found"
    grep -m 1 -E '^# (fetch-and-add|add|compare-and-swap|swap):|our bit was' \
        out | cut -c 1-200 || fail "$1: it failed for another reason: $(tail -n 3 out)"
}

test_amo_any_nic() { found_by_contention amo_any_nic lose; }
test_amo_cpu() { found_by_contention amo_cpu lose; }
test_amo_move_unfenced() { found_by_contention amo_move_unfenced leave; }

test_amo_no_help() { found_by_unit amo_no_help amo.cas_chain; }
test_amo_mark_late() { found_by_unit amo_mark_late amo.swap; }
test_amo_fail_unmarked() {
    found_by_unit amo_fail_unmarked amo_steps.failed_cas_marks
}

test_amo_half_data() { found_by_unit amo_half_data amo_halves.adds; }
test_amo_half_alone() { found_by_unit amo_half_alone amo_halves.half_is_data; }
test_amo_half_lower() { found_by_unit amo_half_lower amo_halves.adds; }
test_amo_one_look() { found_by_unit amo_one_look amo.cas_chain; }
test_amo_mark_first() { found_by_unit amo_mark_first amo.cas_chain; }
test_amo_no_gen() { found_by_unit amo_no_gen amo.cas_chain; }
test_amo_gen_16() {
    found_by_unit amo_gen_16 amo_steps.generation_of_the_slow
}

# shellcheck disable=SC2086 # words
test_amo_not_flushed() {
    local delay
    # Until the memory is read before the last confirm, which comes after the delay
    for delay in 500 500 1000 1000 2000 2000 4000; do
        ! sweep_atoms amo_not_flushed $flush_options -d $delay || continue
        grep -m 1 '^FAILED.*[89a-f][0-9a-f]\{15\} is the final value of' out |
            cut -c 1-200 | sed "s/^/# /" ||
            fail "the sweep failed for another reason: $(tail -n 3 out)"
        return
    done
    fail "amo_not_flushed was not found: $(tail -n 1 out)"
}

# fenced MISTAKE: runs a test of test_atomics_rules.sh
fenced() {
    made "$1"
    timeout 300 "$apps/ft_atom_bench" ${plugin:+-P "$plugin"} -n 300 \
        -N "mutant-$1" fenced extended "$RCV_PREFIX" "$apps/ft_atom_job" >out 2>&1
}

test_amo_fence_passed() {
    fenced none || fail "without a mistake: $(tail -n 3 out)"
    shown fenced amo_fence_passed || fail "amo_fence_passed was not found"
    grep -m 1 -o 'a fence was passed: .*' ft_atom_bench.log | sed 's/^/# /' ||
        fail "it failed for another reason: $(tail -n 3 out)"
}

# shellcheck disable=SC2086 # words
test_atomics_without_a_mistake() {
    sweep_atoms none $flush_options -d 500 || fail "$(head -n 3 out)"
}

# by_peers MISTAKE TEST [SCRIPT]: runs a test of test_peers.sh, or of SCRIPT; its output
# is in ./out
by_peers() {
    made "$1"
    mkdir -p "$1/bin"
    ln -sf "$RCV_PREFIX"/bin/{mlx5emu,rc_varuna_audit} "$1/bin/"
    cat >"$1/bin/rc_varuna_run" <<EOF
#!/bin/sh
exec "$RCV_PREFIX/bin/rc_varuna_run" ${plugin:+-l "$plugin"} "\$@"
EOF
    chmod +x "$1/bin/rc_varuna_run"
    RCV_PREFIX=$PWD/$1 TAP_FILTER="^$2\$" timeout 900 bash \
        "$top/test/e2e/${3:-peers/test_peers.sh}" >out 2>&1
}

test_amo_cpu_plain() { found_by_unit amo_cpu_plain cpu.atomic_with_threads; }
test_amo_forgetful() { found_by_unit amo_forgetful amo_kept.in_order; }

# placed MISTAKE: runs what test_puts_are_placed_before_atomics runs. The NIC keeps a write
# until its queue pair reads
placed() {
    local number
    jobs_up "$1" ft_atom_job --quirk late-write:60s:1
    number=$(grep -c '^ft: ' client.out)
    tell client "order 8 placed"
    await 300 client.out '^ft: ' $((number + 1))
}

test_amo_no_read() {
    local -x UCX_RC_VARUNA_ATOMIC_MODE=proxy
    placed none
    [ "$(tail -n 1 client.out)" = "ft: ok" ] || fail "without a mistake: $(tail -n 1 client.out)"
    jobs_stop
    fabric_down
    placed amo_no_read
    grep -m 1 -o 'after a .*, an atomic finds .*' client.out | sed 's/^/# /' ||
        fail "amo_no_read was not found: $(tail -n 1 client.out)"
    fabric_abandon
    trap - EXIT
}

# found_between_clients MISTAKE TEST: an atomic does not find what another client has flushed
found_between_clients() {
    local suite=atomics/test_atomics_order.sh
    by_peers none "$2" $suite || fail "without a mistake: $(grep '^#' out)"
    shown by_peers "$1" "$2" $suite || fail "$1 was not found"
    grep -m 1 -E "^# after (a flush .* another client's atomic finds|.* the word is)" out ||
        fail "$1: it failed otherwise: $(tail -n 3 out)"
}

test_amo_flush_unplaced() {
    found_between_clients amo_flush_unplaced test_flush_covers_atomics_over_another_nic
}

test_flush_not_remote() {
    local name=test_remote_flush_is_placed suite=atomics/test_atomics_order.sh
    by_peers none $name $suite || fail "without a mistake: $(grep '^#' out)"
    ! by_peers flush_not_remote $name $suite || fail "flush_not_remote was not found"
    grep -m 1 "^# after a remote flush .* the word is" out ||
        fail "it failed otherwise: $(tail -n 3 out)"
}

test_amo_no_detour() {
    found_between_clients amo_no_detour \
        test_flush_covers_atomics_that_come_over_another_nic
}

test_amo_raw_get() {
    shown by_peers amo_raw_get test_loops_extended atomics/test_atomics_loop.sh ||
        fail "amo_raw_get was not found"
    grep -m 1 -E '^# compare-and-swap: loop: (nobody wrote|a chain)' out ||
        fail "it failed otherwise: $(tail -n 3 out)"
}

test_compare_each() {
    local name=test_one_place_all_executed
    by_peers none $name stories/test_window.sh || fail "without a mistake: $(grep '^#' out)"
    ! by_peers compare_each $name stories/test_window.sh || fail "compare_each was not found"
    grep -m 1 "ft: wrong: word .* shows" out ||
        fail "it failed for another reason: $(tail out)"
}

test_doubt_nobody() {
    local name=test_messages_to_the_dead_hang
    by_peers none $name || fail "without a mistake: $(grep '^#' out)"
    ! FT_DEAD_WAIT=60 by_peers doubt_nobody $name || fail "doubt_nobody was not found"
    grep '^# messages to dead processes occupy all DCIs' out ||
        fail "it failed for another reason: $(tail out)"
}

# rested MISTAKE TEST: checks that test_standby.sh detects it on a lane without traffic
rested() {
    by_peers none "$2" stories/test_standby.sh ||
        fail "without a mistake: $(grep '^#' out)"
    ! by_peers "$1" "$2" stories/test_standby.sh || fail "$1 was not found"
    grep -oE 'a message was found in call .*|message [0-9]+ is not found' out |
        sed 's/^/# /' || fail "it failed for another reason: $(tail out)"
}

test_no_standby() { rested no_standby test_message_is_found; }
test_sleep_rested() { rested sleep_rested test_message_wakes; }

test_without_a_mistake_nothing_is_found() {
    local options hold plugin=
    for options in "${!finds_@}"; do
        hold=hold_${options#finds_}
        hold=${!hold:-}
        # shellcheck disable=SC2086 # words
        sweep none ${!options} || fail "${!options}: $(head -n 3 out)"
    done
}

# A mistake that no test uses proves nothing
test_each_mistake_is_tested() {
    local patch
    for patch in "$top"/test/mutations/*.patch; do
        patch=$(basename "$patch" .patch)
        grep -qrE "\\b$patch\\b" "$top"/test/meta/test_mutations.sh "$top"/test/e2e/*/test_*.sh ||
            fail "no test uses the mistake $patch"
    done
}

# A patch that does not apply is not skipped, and none is applied with fuzz
test_patch_that_does_not_apply() {
    local mistakes=$top/test/mutations
    mkdir -p tree/test/e2e tree/src
    cp -a "$top/test/e2e/lib" tree/test/e2e/
    cp -a "$top/src/uct" tree/src/
    mkdir tree/test/mutations
    sed 's/^-    return epoch .*/-    return epoch;/' "$mistakes/one_log.patch" \
        >tree/test/mutations/gone.patch
    sed 's/^     *return .*/     return 1;/; s/^ static inline/ static/' \
        "$mistakes/one_log.patch" >tree/test/mutations/fuzzy.patch
    fails 1 "gone.patch no longer applies to src/uct/ib/varuna/core/varuna_oplog.h" \
        env RCV_BUILD="$RCV_BUILD" bash tree/test/e2e/lib/mutant.sh gone
    fails 1 "fuzzy.patch no longer applies" \
        env RCV_BUILD="$RCV_BUILD" bash tree/test/e2e/lib/mutant.sh fuzzy
    fails 1 "All incarnations of a vQP log in one ring" \
        env RCV_BUILD="$RCV_BUILD" bash tree/test/e2e/lib/mutant.sh -n
    fails 1 "there is no mistake" env RCV_BUILD="$RCV_BUILD" \
        bash tree/test/e2e/lib/mutant.sh nonsense
}

# A mutant of old objects and new sources would not load
test_build_that_is_older_than_the_sources() {
    local varuna=src/uct/ib/varuna
    mkdir -p old/$varuna old/test/gtest
    touch -d 2001-01-01 old/$varuna/libuct_varuna.la
    touch old/$varuna/Makefile
    fails 1 'old is older than .*/varuna/.*\.[a-z]*: build first' \
        env RCV_BUILD="$PWD/old" bash "$top/test/e2e/lib/mutant.sh" no_fence
    touch old/$varuna/libuct_varuna.la
    touch -d 2001-01-01 old/$varuna/Makefile
    fails 1 'old is older than .*/Makefile.am: build first' \
        env RCV_BUILD="$PWD/old" bash "$top/test/e2e/lib/mutant.sh" no_fence
}

run_tests 3
