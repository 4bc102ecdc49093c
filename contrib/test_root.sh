#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/test_root.sh ROOT SUITE UCX_SRC
#
# Builds and installs the files of this checkout in a minimal Debian, which has the
# packages that docs/INSTALL.md names for the plugin, and nothing else of ours; and checks
# that its UCX has the options of rc_varuna then. SUITE is Debian's (trixie), and UCX_SRC a
# source tree of its UCX. ROOT, an absolute path, is made, or used again.
#
# Needs to be run by root, debootstrap, and a mirror (DEBIAN_MIRROR). CC and CXX:
# compilers, which are installed (gcc-13, g++-13).

set -euo pipefail
prog=test_root
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

only_help "$@"
[ $# -eq 3 ] || { usage >&2; exit 2; }
root=$1
[[ $root == /?* ]] || die "$root is not an absolute path"
src=$(readlink -e "$3") || die "there is no directory $3"
log=$root.log
cc=${CC:-gcc}
cxx=${CXX:-g++}

# plugin_packages: prints what the table in docs/INSTALL.md has for Debian
plugin_packages() {
    awk -F '|' '/^\|.*\| (the plugin|`configure`)/ { print $3 }' "$top/docs/INSTALL.md" |
        tr -d '`'
}

in_root() {
    chroot "$root" env -u RC_VARUNA_BUILD -u RC_VARUNA_UCX_SRC DEBIAN_FRONTEND=noninteractive \
        CC="$cc" CXX="$cxx" "$@"
}

if [ ! -e "$root/usr/bin/apt-get" ]; then
    say "debootstrap $2"
    quietly "$log" debootstrap --variant=minbase "$2" "$root" \
        ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} || die "debootstrap failed"
fi
say "apt-get install"
# shellcheck disable=SC2046 # words
quietly "$log" in_root apt-get install -y --no-install-recommends \
    "$cc" "$cxx" make libc6-dev autoconf automake libtool $(plugin_packages) ||
    die "apt-get install failed"

rm -rf "$root"/root/{checkout,ucx,prefix}
mkdir -p "$root"/root/{checkout,ucx}
(cd "$top" && git ls-files | tar -cf - -T -) | tar -xf - -C "$root/root/checkout"
cp -r "$src/." "$root/root/ucx"
in_root /root/checkout/contrib/build.sh --ucx /usr --ucx-src /root/ucx /root/prefix ||
    die "it does not build in $root"
grep -H 'warning:' "$root/root/checkout/_build/make.log" && die "the compiler warns"
in_root /root/prefix/bin/rc_varuna_run -v ucx_info -cf >"$log" 2>&1 ||
    die "$(tail -n 3 "$log")"
grep '^rc_varuna_run:' "$log"
grep -q '^UCX_RC_VARUNA_LINKS=all' "$log" || die "the plugin was not opened, see $log"
say "$(in_root "$cc" --version | head -n 1): it works"
