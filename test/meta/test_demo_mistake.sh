#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# contrib/demo.sh fails if a switch between living NICs waits for the packet lifetime.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

# RESET is tried only if all is complete that the queue pair has sent
test_demo_sees_fences_that_wait() {
    local mutant
    mutant=$(check "$top/test/e2e/lib/mutant.sh" reset_drained)
    fails 1 'FAILED: .* switches from RC between living NICs waited .*\(fence=other\)' \
        env RCV_BUILD="$RCV_BUILD" RCV_PREFIX="$RCV_PREFIX" timeout 600 \
        "$top/contrib/demo.sh" -l "$mutant"
}

run_tests
