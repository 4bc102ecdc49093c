#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/test_ucx.sh PREFIX SRC [-f GTEST_FILTER] [SUITE...]
#        contrib/test_ucx.sh PREFIX SRC -- COMMAND...
#
# Builds the plugin for the UCX that is installed in PREFIX, whose source tree is SRC, and
# runs test suites with it, by default those of the table in docs/TESTING.md. All goes to
# _build-ucx-VERSION and _install-ucx-VERSION of the checkout. The other arguments, the
# results and the exit status are those of contrib/test.sh; with the second form, those of
# another script of contrib/ that builds what it runs: contrib/bench/run.sh -i.
#
# Neither is part of this project: get a release of UCX, and configure it with
#   --with-verbs --with-mlx5-dv --enable-mt
# by its contrib/configure-release to measure costs, as this leaves out its assertions.

set -euo pipefail
prog=test_ucx
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

suites=(test_plugin gtest_varuna test_perftest test_failover test_messages test_late
        test_atomics test_stories test_peers test_restart test_detectors test_api
        test_chaos test_sweep test_shortage)

case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
esac
[ $# -ge 2 ] || { "$0" -h >&2; exit 2; }

ucx=$(readlink -e "$1") || die "there is no directory $1"
src=$(readlink -e "$2") || die "there is no directory $2"
shift 2
[ -x "$ucx/bin/ucx_info" ] || die "there is no $ucx/bin/ucx_info"
libs=$ucx/lib
[ -d "$libs" ] || libs=$ucx/lib64
export PATH=$ucx/bin:$PATH LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
version=$("$top/config/ucx_version.sh" installed "$ucx/bin/ucx_info")
[ -n "$version" ] || die "$ucx/bin/ucx_info -v does not tell a version"
if printf '%s\n' 1.18 "$version" | sort -CV; then
    suites+=(test_dmabuf)
fi

export RC_VARUNA_UCX=$ucx RC_VARUNA_UCX_SRC=$src
export RC_VARUNA_BUILD=$top/_build-ucx-$version
export RC_VARUNA_PREFIX=$top/_install-ucx-$version
say "UCX $version"
if [ "${1:-}" = -- ]; then
    shift
    exec "$@"
fi

args=("$@")
if [ "${1:-}" = -f ]; then
    shift 2
fi
[ $# -gt 0 ] || args+=("${suites[@]}")
exec "$top/contrib/test.sh" "${args[@]}"
