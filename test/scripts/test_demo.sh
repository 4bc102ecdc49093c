#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The demo's parts that need no fabric.

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

test_trace_check() {
    check bash "$top/src/tools/demo/test_demo_trace_check.sh" \
        "$RCV_BUILD/src/tools/demo/demo_trace_check"
}

run_tests
