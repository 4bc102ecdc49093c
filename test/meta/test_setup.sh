#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# contrib/setup.sh: source entries from all kinds of apt configurations, and errors if
# something is missing. contrib/build.sh with another UCX. Nothing is downloaded.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

setup=$top/contrib/setup.sh

# system_apt: makes an apt configuration of the "system", in ./etc
system_apt() {
    mkdir -p etc/sources.list.d
    cat >etc/apt.conf <<EOF
Dir::Etc::sourcelist "$PWD/etc/sources.list";
Dir::Etc::sourceparts "$PWD/etc/sources.list.d";
EOF
    export APT_CONFIG=$PWD/etc/apt.conf
}

# derive: runs the derivation of setup.sh into ./private
derive() {
    "$setup" --derive-sources "$PWD/private"
}

test_one_line_sources() {
    system_apt
    cat >etc/sources.list <<EOF
# deb http://mirror.invalid/commented stable main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.invalid/debian stable main
deb-src http://mirror.invalid/debian stable main
EOF
    check derive
    check diff - private/sources.list.d/sources.list <<EOF
deb-src [arch=amd64 signed-by=/k.gpg] http://mirror.invalid/debian stable main
deb-src http://mirror.invalid/debian stable main
EOF
}

test_deb822_sources() {
    system_apt
    cat >etc/sources.list.d/some.sources <<EOF
Types: deb
URIs: http://mirror.invalid/debian
Suites: stable
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----

types: deb deb-src
Enabled: no
URIs: http://mirror.invalid/other
EOF
    check derive
    sed 's/^[Tt]ypes:.*/Types: deb-src/' etc/sources.list.d/some.sources |
        check diff - private/sources.list.d/some.sources
}

test_apt_reads_what_is_derived() {
    system_apt
    echo "deb http://mirror.invalid/debian stable main" >etc/sources.list
    printf '%s\n' "Types: deb" "URIs: http://mirror.invalid/two" \
        "Suites: stable" "Components: main" >etc/sources.list.d/two.sources
    check derive
    export APT_CONFIG=private/apt.conf
    fails 0 'mirror.invalid/debian/dists/stable' apt-get update --print-uris
    fails 0 'mirror.invalid/two/dists/stable' apt-get update --print-uris
}

test_system_configuration_is_left_alone() {
    system_apt
    echo "deb http://mirror.invalid/debian stable main" >etc/sources.list
    find etc -type f -exec md5sum {} + | sort >before
    check derive
    find etc -type f -exec md5sum {} + | sort | check diff before -
}

test_no_package_sources() {
    system_apt
    fails 1 'has no package sources' derive
}

# fake_machine UID: makes ./bin, for a machine without libzydis-dev, where the user is
# UID and apt-get only records its arguments
fake_machine() {
    mkdir bin
    cat >bin/dpkg-query <<EOF
#!/bin/sh
for last; do :; done
[ "\$last" != libzydis-dev ] || exit 1
exec $(command -v dpkg-query) "\$@"
EOF
    printf '#!/bin/sh\necho %s\n' "$1" >bin/id
    printf '#!/bin/sh\necho "$@" >>%s/asked\n' "$PWD" >bin/apt-get
    chmod +x bin/*
    mkdir tree
    export PATH=$PWD/bin:$PATH RC_VARUNA_UCX_SRC=$PWD/tree
}

test_missing_package_is_named_to_a_user() {
    fake_machine 1000
    fails 1 'Install them as root:  apt-get install libzydis-dev$' "$setup"
    [ ! -e asked ] || fail "apt-get $(cat asked)"
}

test_missing_package_is_installed_by_root() {
    fake_machine 0
    check "$setup" >out 2>err
    check diff - asked <<EOF
update
install -y --no-install-recommends libzydis-dev
EOF
    check diff - out <<<"$PWD/tree"
}

test_packages_of_longer_tests() {
    fake_machine 0
    check "$setup" --install libzydis-dev bash 2>err
    check diff - asked <<EOF
update
install -y --no-install-recommends libzydis-dev
EOF
    check "$setup" --install bash
    [ "$(wc -l <asked)" -eq 2 ] || fail "installed packages are installed again"
    fails 1 'PACKAGE is missing' "$setup" --install
}

test_given_source_tree() {
    mkdir tree
    [ "$(RC_VARUNA_UCX_SRC=$PWD/tree "$setup" 2>/dev/null)" = "$PWD/tree" ] ||
        fail "the tree is not used"
    fails 1 'there is no directory /nowhere' \
        env RC_VARUNA_UCX_SRC=/nowhere "$setup"
}

test_no_apt() {
    mkdir bin
    ln -s "$(command -v bash)" "$(command -v dirname)" "$(command -v sed)" bin/
    fails 1 'has no apt: .* contrib/build.sh --ucx PREFIX --ucx-src DIR' \
        env PATH="$PWD/bin" bash "$setup"
}

# contrib/build.sh for a UCX that is named: no package is looked for
test_named_ucx() {
    local build=$top/contrib/build.sh
    fake_machine 0
    printf '#!/bin/sh\necho dpkg-query >>%s/asked\n' "$PWD" >bin/dpkg-query
    unset RC_VARUNA_UCX_SRC
    export RC_VARUNA_BUILD=$PWD/build RC_VARUNA_CONFIGURE=--cache-file=$PWD/cache
    fails 1 '--ucx-src DIR is missing' "$build" --ucx "$PWD/none"
    fails 1 "there is no $PWD/none/bin/ucx_info" "$build" --ucx "$PWD/none" --ucx-src "$PWD/tree"
    # The next run of another script knows it
    printf '%s\n' "--with-ucx=$PWD/none" "--with-ucx-src=$PWD/tree" >build/configure.args
    fails 1 "there is no $PWD/none/bin/ucx_info" "$build"
    ln -s /bin/true bin/ucx_info
    fails 1 "is not Debian's: $PWD/bin/ucx_info. Name it by --ucx $PWD --ucx-src DIR" "$build"
    [ ! -e asked ] || fail "it asked for packages: $(cat asked)"
}

test_unwritable_directory() {
    : >file
    fails 1 'cannot write to' env RC_VARUNA_DEPS="$PWD/file/deps" "$setup"
}

test_second_run_fetches_nothing() {
    local tree
    tree=$("$setup" 2>first)
    [ -f "$tree/config.h" ] || fail "$tree has no config.h"
    "$setup" >second 2>&1
    [ "$(cat second)" = "$tree" ] || fail "$(cat second)"
}

test_unknown_option() {
    fails 2 'usage: contrib/setup.sh' "$setup" --bogus
}

run_tests
