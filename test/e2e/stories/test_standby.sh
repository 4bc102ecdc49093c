#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A lane without traffic is not polled in every call of progress (ft_standby.c).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

standby() {
    fabric_up
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" "$apps/ft_standby" "$1" \
        >standby.log 2>&1 || fail "$1 ended with $?: $(tail -n 5 standby.log)"
    sed -n 's/^ft:/#/p' standby.log
    fabric_down
}

# A message on it is found within a bounded number of calls,
test_message_is_found() {
    standby polling
}

# and wakes a sleeping process.
test_message_wakes() {
    standby sleeping
}

run_tests
