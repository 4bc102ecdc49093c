#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# spin searches all interleavings of the models of the protocols (test/models/): none
# may violate an assertion. Then each rule is left out in turn, and the search must find
# a violation, because a model that finds nothing proves nothing.
#
# The recovery is searched with one failure, where two are not needed: the second one
# multiplies the states by seventy. RC_VARUNA_MODELS=long also searches larger cases
# (minutes, 8 GB). To see the result of
# a search, run "spin -t -T MACROS... test/models/recovery.pml" in the directory of the
# .trail.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

models=$top/test/models

# search MODEL MACRO...: returns 0 if it has visited all states and found no violation,
# 1 if it found one, otherwise 2. The result is in pan.log. It limits CPU time, because
# the machine may be busy.
search() {
    local model=$1
    shift
    cp "$models/$model" . || return 2
    spin -a "$@" "$model" >spin.log 2>&1 || return 2
    gcc "${optimize:--O1}" -w -DSAFETY ${compress:-} ${order:-} -DMEMLIM="${memory:-3000}" -o pan pan.c \
        >>spin.log 2>&1 || return 2
    prlimit --cpu="${limit:-120}" ./pan -m"${depth:-100000}" -w"${table:-24}" >pan.log 2>&1 || return 2
    ! grep -q 'Search not completed\|max search depth too small' pan.log ||
        [ -e "$model.trail" ] || return 2
    grep -q 'errors: 0$' pan.log || return 1
}

# holds MODEL MACRO...: a full search finds no violation
holds() {
    local status=0
    search "$@" || status=$?
    [ $status -eq 0 ] || fail "$*: $(cat spin.log pan.log | head -n 5)" \
        "$(spin -t -T "${@:2}" "$1" 2>/dev/null | head -n 100 | sed 's/^/# /')"
    echo "# $*: $(sed -n 's/^ *\([0-9]*\) states, stored$/\1/p' pan.log) states"
}

# breaks MODEL MACRO...: a search finds a violation, mostly in less time than the compiler
# would take to optimize it, or the system to clear a large hash table
breaks() {
    local status=0 optimize=${optimize:--O0} table=${table:-20}
    search "$@" || status=$?
    [ $status -eq 1 ] || fail "$*: no violation was found" "$(head -n 5 pan.log)"
    echo "# $*: $(sed -n 's/^pan:1: \(.*\)/\1/p' pan.log)"
}

# broken MODEL MACRO MACRO...: defines a test that leaves out a rule
broken() {
    eval "test_${1%.pml}_fails_with_${2,,}() { breaks $1 -D$2 ${*:3}; }"
}

# recovery_broken MACRO MACRO...: the same for the recovery, with one failure
recovery_broken() {
    broken recovery.pml "$@" -DFAILURES=1
}

test_recovery_holds() {
    holds recovery.pml
}

test_recovery_holds_from_the_start() {
    holds recovery.pml -DSTART_DC -DFAILURES=1
}

# RC without a log, and NICs whose acknowledgement comes before the data is in memory
test_recovery_holds_without_a_log_on_rc() {
    holds recovery.pml -DFALLBACK -DFAILURES=1
}

test_recovery_holds_with_late_writes() {
    holds recovery.pml -DLATE -DFAILURES=1
}

recovery_broken COMPARE_EACH -DFALLBACK
recovery_broken NO_RESET -DLATE -DFALLBACK

for rule in NO_FENCE READ_BEFORE_FENCE BLIND_RESEND ONE_LOG NO_GATE \
            LOG_BEFORE_DATA OLD_ERRORS NO_PSN NO_LIFETIME STALE_ANSWER \
            NO_COMPARE NO_DRAIN FORGET_TAKEN; do
    recovery_broken $rule
done
recovery_broken NEVER_OWES -DLATE
broken recovery.pml ANY_ANSWER

# Among the last choices of each state, and near the beginning: that way round the search
# visits two million states, and not five. That is worth an optimizing compiler
from_the_end() {
    local order=-DT_REVERSE depth=60 table=22 optimize=-O1
    breaks recovery.pml "-D$1" -DSTART_DC
}

test_recovery_fails_with_late_connect() {
    local rule=LATE_CONNECT
    from_the_end $rule
}

test_recovery_fails_with_other_ring() {
    local rule=OTHER_RING
    from_the_end $rule
}

test_atomics_hold() {
    holds atomics.pml
}

test_atomics_hold_when_old_values_return() {
    holds atomics.pml -DPUT_VALUE=0
}

for rule in NO_HELPING MARK_AFTER_REPLACE FAILED_CAS_DOES_NOT_MARK \
            NO_SECOND_LOOK IGNORE_ABORTED MARK_BEFORE_TARGET NO_FENCE NO_ABORT \
            GENERATION_IGNORED CONFIRM_NOT_FLUSHED RERUN_WITHOUT_ASKING; do
    broken atomics.pml $rule
done
broken atomics.pml NO_UNDO -DPUT_VALUE=0

test_proxy_holds() {
    holds proxy.pml
}

for rule in NO_KEEP NO_ORDER NO_WINDOW FORGETFUL EARLY_ACK ANY_OPENING; do
    broken proxy.pml $rule
done

test_opening_holds() {
    holds opening.pml
}

for rule in ANY_OPENING BY_INSTANCE KEEP_LATE OLD_REPLACES; do
    broken opening.pml $rule
done

test_wake_holds() {
    holds wake.pml
}

for rule in LOOK_FIRST DRAIN_LAST WAKE_FIRST POKED_LATE; do
    broken wake.pml $rule
done

if [ "${RC_VARUNA_MODELS:-}" = long ]; then
    limit=1800 memory=8000 compress=-DCOLLAPSE
    test_recovery_holds_with_more_failures() {
        holds recovery.pml -DSTART_DC
    }
    test_recovery_holds_with_late_writes_and_more_failures() {
        holds recovery.pml -DLATE
    }
    test_recovery_holds_without_a_log_on_rc_and_more_failures() {
        holds recovery.pml -DFALLBACK
    }
    test_recovery_holds_with_late_writes_and_no_log_on_rc() {
        holds recovery.pml -DFALLBACK -DLATE
    }
    test_atomics_hold_with_other_values() {
        holds atomics.pml -DSECOND_COMPARE=0 -DSECOND_SWAP=2
        holds atomics.pml -DSECOND_COMPARE=0 -DSECOND_SWAP=2 -DPUT_VALUE=0
    }
fi

run_tests
