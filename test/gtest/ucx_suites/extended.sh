#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: extended.sh uct|ucp [GTEST_ARGUMENT]...
#
# Runs UCX's own tests of atomics and fences for rc_varuna in mode extended, or in the
# mode of UCX_RC_VARUNA_ATOMIC_MODE; the other suites use the default mode. No test may
# be skipped. Called by ucx_rc_varuna_extended and ucp_rc_varuna_extended.

set -euo pipefail
level=$1
shift

args=()
for arg in "$@"; do
    case $arg in
    '--gtest_filter=*')
        arg='--gtest_filter=rc_varuna/*amo*:rc_varuna/*atomic*:rc_varuna/*fence*'
        ;;
    esac
    args+=("$arg")
done

export UCX_RC_VARUNA_ATOMIC_MODE=${UCX_RC_VARUNA_ATOMIC_MODE:-extended}
exec "$(dirname "$0")/run.sh" "$level" rc_varuna "${args[@]}"
