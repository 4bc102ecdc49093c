#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A lane without traffic is not polled in every call of progress (ft_standby.c).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

# standby MODE [NICS [UP-OPTION...]]: with options, completions come before arming
standby() {
    fabric_up "${@:3}"
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" "$apps/ft_standby" "$1" \
        "varuna_${2:-mlx5}_1:1" \
        >standby.log 2>&1 || fail "$1 ended with $?: $(tail -n 5 standby.log)"
    sed -n 's/^ft:/#/p' standby.log
    [ $# -le 2 ] || grep -q 'quirk .*blind-arm.*acted [1-9]' <("$emu" quirk -n "$fabric" list) ||
        fail "no completion was early: $("$emu" quirk -n "$fabric" list)"
}

# A message on it is found within a bounded number of calls,
test_message_is_found() {
    standby polling
}

# and wakes a sleeping process.
test_message_wakes() {
    standby sleeping
}

# One that came just before the process asked to be woken does, too: mlx5 raises an event,
test_early_message_wakes() {
    standby late
}

# and where the NIC does not, the process looks again
test_early_message_wakes_on_other_nics() {
    standby late verbs --quirk no-mlx5dv,blind-arm
}

run_tests
