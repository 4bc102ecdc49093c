#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Chaos: clients on several hosts read and write registers of several servers over
# rc_varuna, and send messages, while links and packets fail at random
# (test/e2e/chaos/ft_chaos.c). In the end all operations have completed, histories are
# linearizable, and the emulator's trace contains each write once.
#
# RC_VARUNA_CHAOS=SECONDS: duration (20); ten seconds for each seed.
# RC_VARUNA_CHAOS_SEED=N: the first seed (1; with RC_VARUNA_LONG a random one).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

seconds=${RC_VARUNA_CHAOS:-20}
seed=${RC_VARUNA_CHAOS_SEED:-${RC_VARUNA_LONG:+$RANDOM}}
seed=${seed:-1}

test_the_check_for_linearizability() {
    "$apps/ft_history_test" >out || fail "$(head -n 5 out)"
}

test_chaos() {
    local seeds=$(((seconds + 9) / 10))
    echo "# seeds from $seed: RC_VARUNA_CHAOS_SEED=$seed repeats them"
    # With the first seed no NIC dies, so all links are usable until the end
    drive ft_chaos -s "$seed" -n 1 -T 10
    grep -E ' [1-9][0-9]* recoveries .*all certified' certified | sed 's/^/# /' ||
        fail "no recovery was recorded: $(cat certified)"
    cat out >all
    if ((seeds > 1)); then
        drive ft_chaos -k -s $((seed + 1)) -n $((seeds - 1)) -T 10
    fi
    cat out >>all
    [ "$(grep -o '^chaos: seed [0-9]*' all | sort -u | wc -l)" -eq "$seeds" ] ||
        fail "seeds are missing"
}

# Without evidence on RC: neither a log nor a PSN; on NICs that differ for longer. Other
# NICs need not show what late-write has not placed yet, so the sweep has that quirk.
test_chaos_on_other_nics() {
    local quirk log
    RC_VARUNA_QUIRK=$(with_quirks psn-lost) UCX_RC_VARUNA_LOG=fallback drive ft_chaos -s "$seed" -n 1 -T 4
    ((seconds >= 60)) || return 0
    export UCX_RC_VARUNA_ORDERED_SL=y # Otherwise nothing orders writes to one register
    for quirk in '' psn-lost psn-stale ooo; do
        for log in all fallback; do
            RC_VARUNA_QUIRK=$(with_quirks "$quirk") UCX_RC_VARUNA_LOG=$log \
                drive ft_chaos -k -s "$seed" -n $((seconds / 60)) -T 10
        done
    done
}

run_tests
