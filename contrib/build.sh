#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/build.sh [PREFIX]
#
# Installs what is needed to build, then builds and installs into PREFIX (default:
# $RC_VARUNA_PREFIX, or _install in the checkout). Run it again to build what has changed,
# or after an update of UCX.

set -euo pipefail
prog=build
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

only_help "$@"
[ $# -le 1 ] || die "at most one PREFIX"
prefix=$(readlink -m "${1:-${RC_VARUNA_PREFIX:-$top/_install}}")

# configure_args: prints one per line
configure_args() {
    echo "--prefix=$prefix"
    echo "--with-ucx-src=$ucx_src"
    echo --enable-baselines # contrib/eval.sh and tests use them; nothing is installed
    # words, so that several can be given
    printf '%s\n' ${RC_VARUNA_CONFIGURE:-}
}

# configure: runs configure, unless it was run with the same arguments before, for the
# same UCX
configure() {
    local args

    make_configure
    if [ -x "$build_dir/config.status" ] &&
       configure_args | cmp -s - "$build_dir/configure.args" && ! ucx_has_changed; then
        return 0
    fi

    if [ -e "$top/config.status" ]; then
        die "the checkout itself was configured: run \"make distclean\" in it" \
            "(this script builds in $build_dir)"
    fi
    mapfile -t args < <(configure_args | sed '/^$/d')
    rm -f "$build_dir/configure.args"
    run_configure "${args[@]}"
    configure_args >"$build_dir/configure.args"
}

ucx_src=$("$top/contrib/setup.sh")
configure
run_make
say "make install"
run_install install
say "installed in $prefix"
