#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# "make distcheck", the Debian package of contrib/deb.sh, that of rc_varuna.spec, and a build in a
# minimal Debian: each needs its own build, so this suite runs only on request
# (test/long_suites). Needs lintian, rpm and debootstrap.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/ft_fabric.sh"

ucx_src=$(sed -n "s/.*--with-ucx-src=\([^' ]*\).*/\1/p" \
              < <("$RCV_BUILD/config.status" --config) | head -n 1)

# From a tarball, in a read-only directory: build, test, install, and uninstall all
# files. Not optimized, because nothing is measured
test_distcheck() {
    check make -C "$RCV_BUILD" -j"$(nproc)" distcheck \
        DISTCHECK_CONFIGURE_FLAGS="--with-ucx-src=$ucx_src CFLAGS=-O0 \
CXXFLAGS=-O0" >log 2>&1 || fail "$(tail -n 5 log)"
    grep -q 'archives ready for distribution' log || fail "$(tail -n 5 log)"
    rm -f "$RCV_BUILD"/rc_varuna-*.tar.xz
}

# It installs next to Debian's UCX, has no files in common with it, and works from there
test_debian_package() {
    local package preload
    package=$(RC_VARUNA_DEB_BUILD=$PWD/build RC_VARUNA_UCX_SRC=$ucx_src \
                  DEBEMAIL=packages@rc-varuna.org \
                  "$top/contrib/deb.sh" "$PWD/out" 2>log) ||
        fail "$(tail -n 5 log)"
    check [ -f "$package" ]
    grep -q 'libucx0 (= ' < <(dpkg-deb -f "$package" Depends) ||
        fail "it does not depend on exactly the UCX that it was built for"
    dpkg-deb --fsys-tarfile "$package" | tar -t | sed -n 's|^\.\(.*[^/]\)$|\1|p' |
        sort >ours
    dpkg -L libucx0 ucx-utils libucx-dev 2>/dev/null | sort >ucx
    comm -12 ours <(while read -r f; do [ -d "$f" ] || echo "$f"; done <ucx) >both
    [ ! -s both ] || fail "these files belong to UCX: $(cat both)"
    check grep -q '^/usr/share/man/man7/rc_varuna.7.gz$' ours

    command -v lintian >/dev/null || fail "lintian is not installed"
    lintian --fail-on error "$package" >lintian.log 2>&1 ||
        fail "lintian: $(head -n 5 lintian.log)"
    sed 's/^/# /' lintian.log

    # Its programs search for the libraries in /usr/lib, where they are not installed
    dpkg-deb -x "$package" root
    preload=$(echo "$PWD"/root/usr/lib/*/ucx/librc_varuna_preload.so)
    fabric_up --hosts 1
    "$emu" exec -n "$fabric" 0 -- \
        sh -c 'LD_PRELOAD=$LD_PRELOAD:$1 exec /usr/bin/ucx_info -d -t rc_varuna' \
        sh "$preload" >info 2>&1
    check grep -q 'Device: varuna_mlx5_1:1' info
    fabric_down
}

# On Debian no RPM provides what it needs
test_rpm_package() {
    command -v rpmbuild >/dev/null || fail "rpm is not installed"
    make -C "$RCV_BUILD" dist >log 2>&1 || fail "$(tail -n 5 log)"
    mv "$RCV_BUILD"/rc_varuna-*.tar.xz .
    rpmbuild -tb rc_varuna-*.tar.xz --nodeps --define "_topdir $PWD/rpm" \
        --define "ucx_src $ucx_src" --define "debug_package %{nil}" >log 2>&1 ||
        fail "$(tail -n 5 log)"
    rpm -qlp rpm/RPMS/*/rc_varuna-*.rpm >files
    check grep -q '/ucx/librc_varuna_preload.so$' files
    check grep -q '^/usr/bin/mlx5emu$' files
    # Without the emulator, for another UCX
    tar -xOf rc_varuna-*.tar.xz --wildcards '*/rc_varuna.spec' >rc_varuna.spec
    check rpmspec -P --without mlx5emu --define "ucx /opt/ucx" rc_varuna.spec >spec
    check grep -q -e '--with-ucx=/opt/ucx' spec
    ! grep -qE 'zydis|ucx-ib|bin/mlx5emu' spec || fail "it still needs the emulator or a package"
}

test_minimal_debian() {
    command -v debootstrap >/dev/null || fail "debootstrap is not installed"
    "$top/contrib/test_root.sh" "$PWD/root" "$(. /etc/os-release; echo "$VERSION_CODENAME")" \
        "$ucx_src" >log 2>&1 || fail "$(tail -n 5 log)"
    check grep -q "it works" log
}

run_tests
