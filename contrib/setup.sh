#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/setup.sh [-h | --derive-sources DIR | --install PACKAGE...]
#
# Installs missing Debian packages, and downloads the source tree of the installed UCX
# version. Prints the directory of this tree on stdout, and everything else on stderr.
# Quick if nothing is missing.
#
# The source package comes from the mirrors of this machine's own packages: a private
# apt configuration is derived from the system's, with source entries in place of the
# binary ones. The system's configuration is not changed. --derive-sources only writes
# this configuration to DIR. --install only installs the named packages if they are
# missing; some of the longer tests need it.

set -euo pipefail
prog=setup
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
    # the build system and the scripts
    autoconf automake libtool pkg-config make gcc g++ libc6-dev
    procps
    # the runtime and its headers
    libucx0 libucx-dev ucx-utils libnuma-dev
    # the emulator
    libibverbs-dev libzydis-dev libjansson-dev
    # programs for tests of the emulator
    ibverbs-utils perftest
    # the tests: models of the protocols, counts of instructions, third-party programs
    spin valgrind
    openmpi-bin libopenmpi-dev
    # plots of the evaluation
    python3-matplotlib
    # the source package
    dpkg-dev xz-utils
)


missing_packages() {
    local package status

    for package in "${packages[@]}"; do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" \
                 2>/dev/null || true)
        [ "$status" = installed ] || echo "$package"
    done
}

install_packages() {
    local missing log

    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        die "this system has no apt: name an installed UCX and its source tree by" \
            "contrib/build.sh --ucx PREFIX --ucx-src DIR (docs/INSTALL.md)"
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -gt 0 ] || return 0

    if [ "$(id -u)" -ne 0 ]; then
        die "these packages are missing: ${missing[*]}
        Install them as root:  apt-get install ${missing[*]}"
    fi

    log=$(mktemp)
    say "installing ${missing[*]}"
    say "  apt-get update"
    quietly "$log" apt-get update || die "apt-get update failed"
    say "  apt-get install"
    DEBIAN_FRONTEND=noninteractive quietly "$log" \
        apt-get install -y --no-install-recommends "${missing[@]}" ||
        die "apt-get install failed"
    rm -f "$log"
}

# derive_sources DIR: writes the system's apt sources, as source entries, to
# DIR/sources.list and DIR/sources.list.d
derive_sources() {
    local dir=$1 file list parts

    eval "$(apt-config shell list Dir::Etc::sourcelist/f \
                             parts Dir::Etc::sourceparts/d)"
    mkdir -p "$dir/sources.list.d"
    : >"$dir/sources.list"

    for file in "$list" "$parts"/*.list; do
        [ -r "$file" ] || continue
        # one line per source: "deb" or "deb-src", options, URI, suite, components
        sed -n 's/^[ \t]*deb\(-src\)\{0,1\}[ \t]/deb-src /p' "$file" |
            sort -u >"$dir/sources.list.d/$(basename "$file" .list).list"
    done

    for file in "$parts"/*.sources; do
        [ -r "$file" ] || continue
        # deb822 paragraphs; the field is one line, and its case is ignored
        sed 's/^[Tt][Yy][Pp][Ee][Ss]:.*/Types: deb-src/' "$file" \
            >"$dir/sources.list.d/$(basename "$file")"
    done

    grep -qs deb-src "$dir"/sources.list.d/* ||
        die "apt on this machine has no package sources ($list, $parts):" \
            "set RC_VARUNA_UCX_SRC to a UCX source tree"
}

# private_apt DIR: makes an apt configuration that writes only to DIR
private_apt() {
    local dir=$1

    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
    derive_sources "$dir"
    cat >"$dir/apt.conf" <<EOF
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "$dir/sources.list.d";
Dir::State::lists "$dir/lists";
Dir::Cache "$dir/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
EOF
}

# fetch_ucx PACKAGE VERSION DEST: gets and unpacks the source package
fetch_ucx() {
    local package=$1 version=$2 dest=$3 tmp log

    tmp=$(mktemp -d "$(dirname "$dest")/fetch.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$tmp'" EXIT
    log=$tmp/log
    private_apt "$tmp/apt"

    say "getting the source package $package $version (it first downloads" \
        "some ten megabytes of package lists)"
    # A mirror without a source index fails here, which does no harm
    APT_CONFIG=$tmp/apt/apt.conf quietly "$log" apt-get update ||
        say "some package lists are not available; continuing without them"
    mkdir "$tmp/src"
    (cd "$tmp/src" &&
     APT_CONFIG=$tmp/apt/apt.conf quietly "$log" \
        apt-get source --download-only "$package=$version") ||
        die "the source package $package $version is not available from this" \
            "machine's package sources. If a newer version is offered," \
            "upgrade libucx0; or set RC_VARUNA_UCX_SRC to a source tree"

    say "unpacking into $dest"
    quietly "$log" dpkg-source --no-check -x "$tmp"/src/*.dsc "$tmp/tree" ||
        die "the source package does not unpack"
    rm -rf "$dest"
    mv "$tmp/tree" "$dest"
    rm -rf "$tmp"
    trap - EXIT
}

# ucx_source: gets the source tree if it is missing, and prints its directory
ucx_source() {
    local deps package version dest

    if [ -n "${RC_VARUNA_UCX_SRC:-}" ]; then
        [ -d "$RC_VARUNA_UCX_SRC" ] ||
            die "RC_VARUNA_UCX_SRC: there is no directory $RC_VARUNA_UCX_SRC"
        echo "$RC_VARUNA_UCX_SRC"
        return
    fi

    read -r package version < <(dpkg-query -W \
        -f '${source:Package} ${source:Version}\n' libucx0) ||
        die "libucx0 is not installed by the package manager: set" \
            "RC_VARUNA_UCX_SRC to the source tree of your UCX"
    deps=$(deps_dir)
    dest=$deps/$package-$version
    mkdir -p "$deps" 2>/dev/null || die "cannot write to $deps; set RC_VARUNA_DEPS=DIR"

    (
        # Several runs may share the directory
        flock 9
        [ -f "$dest/src/uct/base/uct_iface.h" ] ||
            fetch_ucx "$package" "$version" "$dest"
        why=$("$top/config/ucx_config_h.sh" ucx_info "$dest/config.h") ||
            die "$why"
    ) 9>"$deps/lock" || exit 1
    echo "$dest"
}

case ${1:-} in
'')
    install_packages
    ucx_source
    ;;
--derive-sources)
    private_apt "$(readlink -m "${2:?DIR is missing}")"
    ;;
--install)
    packages=("${@:2}")
    [ ${#packages[@]} -gt 0 ] || die "PACKAGE is missing"
    install_packages
    ;;
*)
    [ "$1" = -h ] || [ "$1" = --help ] || exec >&2
    usage
    [ "$1" = -h ] || [ "$1" = --help ] || exit 2
    ;;
esac
