#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# "make install" installs the right files, "make uninstall" removes all of them, and
# "make dist" contains all files. test_packages.sh tests "make distcheck" and the Debian
# package, which need their own builds.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

# quiet COMMAND...: prints its output only if it fails
quiet() {
    "$@" >log 2>&1 || fail "failed: $*: $(tail -n 5 log)"
}

# installed: prints the files below ./root, relative to the prefix, except libtool's
installed() {
    find root \( -type f -o -type l \) ! -name '*.la' ! -name '*.so.*.*' |
        sed "s|^root$RCV_PREFIX/||" | sort
}

test_install_and_uninstall() {
    sort >wanted <<'END'
bin/mlx5emu
bin/rc_varuna_audit
bin/rc_varuna_check
bin/rc_varuna_ctl
bin/rc_varuna_run
include/rc_varuna.h
lib/mlx5emu/libmlx5emu.so
lib/pkgconfig/rc_varuna.pc
lib/ucx/librc_varuna_preload.so
lib/ucx/libuct_varuna.so
lib/ucx/libuct_varuna.so.0
share/man/man1/mlx5emu.1
share/man/man1/rc_varuna_audit.1
share/man/man1/rc_varuna_check.1
share/man/man1/rc_varuna_ctl.1
share/man/man1/rc_varuna_run.1
share/man/man7/rc_varuna.7
END
    quiet make -C "$RCV_BUILD" install DESTDIR="$PWD/root"
    installed >there
    diff wanted there || fail "other files are installed"
    # Other users must not be able to write files
    [ -z "$(find root -perm /022 -type f)" ] || fail "others can write"
    quiet make -C "$RCV_BUILD" uninstall DESTDIR="$PWD/root"
    find root ! -type d >left
    [ ! -s left ] || fail "these files are left: $(cat left)"
}

test_dist_is_complete() {
    local dir=dist-test-$$
    [ -e "$top/.git" ] || { echo "# from a tarball: nothing to compare with"; return; }
    trap 'rm -rf "${RCV_BUILD:?}/$dir"' EXIT
    quiet make -C "$RCV_BUILD" distdir distdir="$dir"
    (cd "$RCV_BUILD/$dir" && find . -type f | sed 's|^\./||' | sort) >there
    git -C "$top" ls-files | grep -vxE '\.ci/run|\.gitignore' | sort >wanted
    comm -13 there wanted >missing
    [ ! -s missing ] || fail "make dist leaves out: $(tr '\n' ' ' <missing)"
}

run_tests
