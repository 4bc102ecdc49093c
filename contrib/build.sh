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

case ${1:-} in
-*)
    sed -n '/^# usage/,/^$/{s/^# \{0,1\}//;p}' "$0"
    [ "$1" = -h ] || [ "$1" = --help ] || exit 2
    exit 0
    ;;
esac
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

# needs_autogen: whether configure is missing, or older than its sources
needs_autogen() {
    [ ! -x "$top/configure" ] ||
        [ -n "$(find "$top/configure.ac" "$top/config/m4" -name '*.m4' \
                     -newer "$top/configure" -o -name configure.ac \
                     -newer "$top/configure")" ]
}

# configure: runs configure, unless it was run with the same arguments before, for the
# same UCX
configure() {
    local args

    mkdir -p "$build_dir"
    if needs_autogen; then
        say "autogen.sh"
        quietly "$build_dir/autogen.log" "$top/autogen.sh" ||
            die "autogen.sh failed"
    fi

    if [ -x "$build_dir/config.status" ] &&
       configure_args | cmp -s - "$build_dir/configure.args" && ! ucx_has_changed; then
        return 0
    fi

    if [ -e "$top/config.status" ]; then
        die "the checkout itself was configured: run \"make distclean\" in it" \
            "(this script builds in $build_dir)"
    fi
    say "configure ($build_dir)"
    mapfile -t args < <(configure_args | sed '/^$/d')
    rm -f "$build_dir/configure.args"
    (cd "$build_dir" &&
     quietly configure.log "$top/configure" "${args[@]}") ||
        die "configure failed"
    configure_args >"$build_dir/configure.args"
}

ucx_src=$("$top/contrib/setup.sh")
configure
say "make (a minute the first time)"
quietly "$build_dir/make.log" make -C "$build_dir" -j"$(nproc)" ||
    die "make failed"
say "make install"
quietly "$build_dir/install.log" make -C "$build_dir" install ||
    die "make install failed"
say "installed in $prefix"
