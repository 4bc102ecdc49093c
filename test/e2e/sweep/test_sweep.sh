#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The sweep: operations of each kind, and batches of all kinds, over rc_varuna, with
# each fault of the emulator at the 1st, 2nd, 3rd, ... event, until a run ends without
# the fault. ft_sweep.c judges each run: memory, values read, completions, order of
# messages, the guarantees of flush and fence, and the emulator's trace (each put
# executed exactly once, in order).
#
# RC_VARUNA_SWEEP=full: all events, and more batches. Otherwise long series skip some
# events. A failure prints the options that repeat it: RC_VARUNA_SWEEP_ARGS="-p rc -s
# fence -f late -n 3" runs only this.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

full=${RC_VARUNA_SWEEP:-}
logs="all fallback"

# The lane must not change between the choice of the fault and the run
export UCX_RC_VARUNA_RETURN_DELAY=inf

plans=put_short,put_bcopy,put_zcopy,put_large,get_bcopy,get_zcopy,get_large
plans+=,am_short,am_bcopy,am_zcopy,flush,fence

# sweep OPTIONS...: on NICs without DC there is nothing to do for DC
sweep() {
    if [ "$nics" = verbs ] && [[ " $* " == *' -p dc '* ]]; then
        echo "# no DC: $*"
        return
    fi
    # shellcheck disable=SC2086 # words
    drive ft_sweep "$@" ${RC_VARUNA_SWEEP_ARGS:-}
    grep -q '^swept: [1-9]' out || fail "no fault fired"
}

test_rc_fails() {
    if [ "$full" = full ]; then
        sweep -p rc -s "$plans"
    else
        sweep -p rc -s "$plans" -t 5
    fi
}

test_rc_fails_in_batches() {
    if [ "$full" = full ]; then
        sweep -p rc -s mixed0,mixed1,mixed2,mixed3,mixed4,mixed5,mixed6,mixed7
    else
        sweep -p rc -s mixed0 -t 7
    fi
}

test_dc_fails() {
    if [ "$full" = full ]; then
        sweep -p dc -s "$plans,mixed0,mixed1"
    else
        sweep -p dc -s "$plans" -t 5
        sweep -p dc -s mixed1 -t 40
        # One queue pair loses all that it sends, but the link answers pings
        sweep -p dc -s flush -f late,mute
    fi
}

# A second failure hits each event on the link that took over: fence, repetitions, new
# connection. The third link survives, or fails at the same event of the next recovery
# (third, third_down).
test_fails_again_while_recovering() {
    if [ "$full" = full ]; then
        sweep -L 3 -s "$plans,mixed3" -f silent,exec_silent,down,late,mute \
            -n 2-5 -d all
    else
        sweep -L 3 -p rc -s put_short,mixed3 -f silent -t 5 \
            -n 3 -d all
        sweep -L 3 -p dc -s put_bcopy -f silent -n 2 -d all -t 3
    fi
}

# The same at each named step of a recovery: a second and a third failure. The test
# fails if the fault of a step does not fire. docs/TESTING.md has the table.
test_fails_again_at_each_step() {
    if [ "$full" = full ]; then
        sweep -L 3 -p rc -s put_bcopy,put_zcopy,get_zcopy,am_bcopy,mixed3 \
            -f silent,exec_silent,down -n 3 \
            -d silent,down,remote_silent,drop,delay,other,back,third -S all
    else
        sweep -L 3 -p rc -s put_bcopy -f silent -n 3 -d third -S all
        sweep -L 3 -p rc -s get_zcopy -f down -n 3 -d silent -S all
        sweep -L 3 -p rc -s am_bcopy -f down -n 3 -d silent \
            -S drain,stopped,repeat,swapped
    fi
}

# ... and at each step of the planned return to the first link.
test_fails_again_while_returning() {
    export UCX_RC_VARUNA_RETURN_DELAY=10ms
    if [ "$full" = full ]; then
        sweep -L 3 -p rc -s put_bcopy,put_zcopy,get_zcopy,am_bcopy \
            -f silent,exec_silent,down -n 3 \
            -d silent,down,remote_silent,drop,delay,other -S return
    else
        sweep -L 3 -p rc -s put_bcopy -f silent -n 3 -d silent -S return
        sweep -L 3 -p rc -s am_bcopy -f down -n 3 -d other -S return
    fi
}

# NICs die, the client's or the server's, before and after each event. Each run needs
# new processes, so only the full sweep has many.
#
# A client's NIC that dies in silence may still write the answers of reads, so that only the
# other operations continue (gtest_varuna: test_varuna_drain).
kills=kill,exec_kill,late_kill,remote_kill,exec_remote_kill,remote_kill_silent
test_nics_die() {
    if [ "$full" = full ]; then
        sweep -s "$plans,mixed0,mixed1" -f $kills
        sweep -L 3 -s put_short,get_bcopy,mixed3 -f silent,exec_down -n 3 \
            -d kill,remote_kill
        export UCX_RC_VARUNA_DRAIN_TIMEOUT=500ms
        sweep -p rc -f kill_silent,late_kill_silent \
            -s put_short,put_bcopy,put_zcopy,put_large,am_short,am_bcopy,am_zcopy
    else
        sweep -p rc -s get_bcopy -f $kills -n 2
        sweep -p rc -s put_bcopy -f late_kill -n 1
        sweep -p dc -s am_bcopy -f kill,exec_remote_kill -n 1
        export UCX_RC_VARUNA_DRAIN_TIMEOUT=500ms
        sweep -p rc -s put_bcopy -f kill_silent -n 2
        sweep -p rc -s put_bcopy -f late_kill_silent -n 1
    fi
}

# The server sleeps for seconds in its own code; recovery does not wait for it
test_server_computes() {
    sweep -p rc -z 2 -s put_short,get_bcopy -f silent,exec_down -n 3
}

# Queue pairs hang, which a timeout detects (test_hangs.sh has a short version)
if [ "$full" = full ]; then
    test_queue_pairs_hang() {
        export UCX_RC_VARUNA_HANG_TIMEOUT=200ms
        sweep -s "$plans,mixed0" -f hang,exec_hang
    }
fi

# All links fail, and return later
test_all_links_fail() {
    if [ "$full" = full ]; then
        sweep -L 2 -s "$plans" -f silent,exec_silent,down -n 3 \
            -d silent,down,exec_silent
    else
        sweep -L 2 -p rc -s put_short,am_short -f silent -n 3 -d silent
    fi
    grep -qE 'without any link [1-9]' out || fail "a link was left"
}

# Without a log on RC: the PSN decides, and if the peer's NIC is dead, the targets
test_no_log_on_rc() {
    export UCX_RC_VARUNA_LOG=fallback
    if [ "$full" = full ]; then
        sweep -s "$plans,mixed0,mixed1"
        sweep -L 3 -s "$plans,mixed3" -f silent,exec_silent,late -n 2-5 -d all
        sweep -L 3 -p rc -s put_bcopy,put_zcopy,mixed3 -f silent,exec_silent,down -n 3 \
            -d silent,down,drop,delay,third -S all
        sweep -p rc -s "$plans,mixed0" -f remote_kill,exec_remote_kill,remote_kill_silent
        sweep -L 3 -p rc -s put_short,mixed3 -f exec_remote_kill -n 2-5 -d silent,down \
            -m 1-20
    else
        sweep -p rc -s put_short -t 12
        sweep -L 3 -p rc -s put_zcopy -f silent -n 3 -d third \
            -S fenced,fence_rep,repeated,swap
        sweep -p rc -s put_short -f exec_remote_kill -n 2-3
    fi
}

# On other NICs and networks: no PSN to query, writes that reach memory after their
# acknowledgement, packets in another order. mlx5emu's quirks, docs/EMULATOR.md. In turn
# with a log on each lane and with a log on DC only.
# with_quirk QUIRK OPTIONS...
with_quirk() {
    local log quirk=$1
    shift
    for log in $logs; do
        RC_VARUNA_QUIRK=$(with_quirks "$quirk") UCX_RC_VARUNA_LOG=$log sweep "$@"
        # rc_varuna avoids the service levels without order, if it may
        [ "$quirk" = ooo ] || grep -q '^quirks acted: [1-9]' out ||
            fail "$quirk never acted"
    done
}

# quirk_fails QUIRK: RC and DC, a second and a third failure at each step
quirk_fails() {
    if [ "$full" = full ]; then
        with_quirk "$1" -s "$plans,put_apart,mixed0,mixed1"
        with_quirk "$1" -L 3 -p rc -s put_bcopy,put_zcopy,mixed3 \
            -f silent,exec_silent,down -n 3 -d silent,down,third -S all
        with_quirk "$1" -L 3 -p rc -s put_short,mixed3 -f silent -n 2-5 -d all
    else
        logs=all with_quirk "$1" -p rc -s put_short -t 25
        logs=fallback with_quirk "$1" -p rc -s put_zcopy -t 25
    fi
}

test_psn_is_lost() { quirk_fails psn-lost; }
test_psn_is_stale() { quirk_fails psn-stale; }
test_writes_are_late() { quirk_fails late-write; }
test_some_levels_without_order() { UCX_RC_VARUNA_ORDERED_SL=y quirk_fails ooo; }

test_the_judge_of_networks_without_order() {
    RC_VARUNA_QUIRK=ooo-all "$apps/ft_judge_test" >out || fail "$(head -n 5 out)"
}

# A queue pair that is stopped completes nothing, though its NIC takes commands. On RC the
# responder's end proves what was executed; on DC nothing does, and the endpoint fails
test_nothing_is_flushed() {
    export UCX_RC_VARUNA_DRAIN_TIMEOUT=100ms
    if [ "$full" = full ]; then
        with_quirk late-flush:60s -p rc -s "$plans,mixed0" -f silent,exec_silent,down,late,late_down,mute
    else
        logs=all with_quirk late-flush:60s -p rc -s put_bcopy,get_bcopy,am_short \
            -f exec_silent,late -n 1
    fi
}

# Nothing orders writes to one place, so there are none
test_network_without_order() {
    if [ "$full" = full ]; then
        with_quirk ooo-all -s put_apart
        with_quirk ooo-all -L 3 -s put_apart -f silent,exec_silent,down -n 2-8 \
            -d silent,down,third -S all
        UCX_RC_VARUNA_ORDERED_SL=y with_quirk ooo,dead-sl -s put_apart
    else
        logs=fallback with_quirk ooo-all -p rc -s put_apart -t 70
        logs=all with_quirk ooo-all -p dc -s put_apart -t 70
    fi
}

run_tests 3
