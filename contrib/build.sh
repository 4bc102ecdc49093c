#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/build.sh [PREFIX]
#        contrib/build.sh --ucx UCX_PREFIX --ucx-src DIR [PREFIX]
#
# Builds and installs into PREFIX (default: $RC_VARUNA_PREFIX, or _install in the
# checkout). Run it again to build what has changed, or after an update of UCX.
#
# It builds for Debian's UCX, and installs missing packages; or for the UCX that is installed
# in UCX_PREFIX, whose source tree is DIR. Then it installs no package, and later runs in the
# same build directory use the same UCX. docs/INSTALL.md has the lines for HPC-X, DOCA, RHEL
# and Ubuntu.

set -euo pipefail
prog=build
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

with_src=
while :; do
    case ${1:-} in
    --ucx) RC_VARUNA_UCX=${2:?UCX_PREFIX is missing} ;;
    --ucx-src) RC_VARUNA_UCX_SRC=${2:?DIR is missing} with_src=yes ;;
    *) break ;;
    esac
    shift 2
done
only_help "$@"
[ $# -le 1 ] || die "at most one PREFIX"
[ -z "$with_src" ] || [ -n "${RC_VARUNA_UCX:-}" ] ||
    die "--ucx UCX_PREFIX is missing: the UCX that was built from $RC_VARUNA_UCX_SRC"
prefix=$(readlink -m "${1:-${RC_VARUNA_PREFIX:-$top/_install}}")

# ucx_arguments: prints the arguments of configure for the UCX; installs Debian's if no
# other one is named, now or before
ucx_arguments() {
    local found src

    if [ -n "${RC_VARUNA_UCX:-}" ]; then
        [ -n "${RC_VARUNA_UCX_SRC:-}" ] ||
            die "--ucx-src DIR is missing: the source tree of the UCX in $RC_VARUNA_UCX"
        echo "--with-ucx=$(readlink -m "$RC_VARUNA_UCX")"
        echo "--with-ucx-src=$(readlink -m "$RC_VARUNA_UCX_SRC")"
        return
    fi

    if grep -qs '^--with-ucx=' "$build_dir/configure.args"; then
        grep '^--with-ucx' "$build_dir/configure.args"
        return
    fi

    found=$(command -v ucx_info || true)
    case $found in
    '' | /bin/* | /usr/bin/*) ;;
    *) die "the UCX that is first in PATH is not Debian's: $found. Name it by" \
           "--ucx ${found%/bin/*} --ucx-src DIR" ;;
    esac
    src=$("$top/contrib/setup.sh") || exit
    echo "--with-ucx-src=$src"
}

# configure_args: prints one per line
configure_args() {
    echo "--prefix=$prefix"
    echo "$ucx"
    if [ -n "${RC_VARUNA_DEVEL:-}" ] || [ -n "$was_devel" ]; then
        echo --enable-devel-mode
    fi
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

ucx=$(ucx_arguments)
was_devel=$(grep -sx -e --enable-devel-mode "$build_dir/configure.args" || true)
configure
run_make
say "make install"
run_install install
say "installed in $prefix"
