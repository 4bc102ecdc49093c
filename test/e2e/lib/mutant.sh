#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: test/e2e/lib/mutant.sh
#
# Builds the plugin with deliberate mistakes in it (varuna_mutate.h), and lays it
# out with its launcher in mutant/ of the build directory. Prints the launcher's
# path: what it runs takes UCX_RC_VARUNA_MUTATE. Called by tests; RCV_BUILD is the
# build directory.

set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${RCV_BUILD:-$top/_build}
plugin=$build/src/uct/ib/varuna
prefix=$build/mutant

make -s -C "$plugin" -j2 CFLAGS="-g -O1" mutant/libuct_varuna.la \
    >"$build/mutant.log" 2>&1 || {
    tail -n 20 "$build/mutant.log" >&2
    exit 1
}
mkdir -p "$prefix/bin" "$prefix/lib/ucx"
cp -u "$plugin/mutant/.libs/libuct_varuna.so.0" "$prefix/lib/ucx/"
cp -u "$build/src/tools/rc_varuna_run/rc_varuna_run" "$prefix/bin/"
echo "$prefix/bin/rc_varuna_run"
