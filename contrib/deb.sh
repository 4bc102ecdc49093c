#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/deb.sh [DIRECTORY]
#
# Builds a Debian package of rc_varuna and mlx5emu for this machine's Debian and its
# UCX, in DIRECTORY (default: the checkout), and prints its name. It installs next to
# libucx0, and has no files in common with it:
#
#   apt-get install ./rc-varuna_*.deb
#
# It depends on exactly this version of libucx0. Run this again after an update of it.
#
# DEBFULLNAME and DEBEMAIL: the maintainer, as for Debian's tools.

set -euo pipefail
prog=deb
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

only_help "$@"
[ $# -le 1 ] || die "at most one DIRECTORY"
out=$(readlink -m "${1:-$top}")
mkdir -p "$out"

# Debian's directories differ from those of contrib/build.sh, so it has its own build
# directory
build_dir=${RC_VARUNA_DEB_BUILD:-$top/_build-deb}
ucx_src=$("$top/contrib/setup.sh")
make_configure
arch=$(dpkg --print-architecture)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
if [ ! -x "$build_dir/config.status" ] || ucx_has_changed; then
    run_configure --prefix=/usr --libdir=/usr/lib/"$multiarch" --with-ucx-src="$ucx_src"
fi

run_make

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
package=$root/package
run_install install-strip DESTDIR="$package"
find "$package" -name '*.la' -delete
find "$package/usr/lib" -type f -name '*.so*' -exec chmod 644 {} +
find "$package/usr/share/man" -name '*.[1-8]' -exec gzip -9n {} +
install -D -m 644 "$top/LICENSE" "$package/usr/share/doc/rc-varuna/copyright"
install -m 644 "$top/README.md" "$top/NEWS" "$top"/docs/*.md \
    "$package/usr/share/doc/rc-varuna/"

version=$(sed -n 's/^PACKAGE_VERSION=.//p' "$top/configure" | tr -d "'" | sed -n 1p)
maintainer="${DEBFULLNAME:-rc_varuna authors} <${DEBEMAIL:-rc_varuna@localhost}>"
printf 'rc-varuna (%s) unstable; urgency=low\n\n  * See NEWS.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date -R -r "$top/NEWS")" |
    gzip -9n >"$package/usr/share/doc/rc-varuna/changelog.gz"
chmod 644 "$package/usr/share/doc/rc-varuna/changelog.gz"
ucx=$(dpkg-query -W -f '${Version}' libucx0)

# Dependencies of the binaries, and exactly the UCX for which they are built: its
# internal structures are not stable, and the plugin refuses any other version
mkdir "$root/debian"
printf 'Source: rc-varuna\n\nPackage: rc-varuna\nArchitecture: any\n' \
    >"$root/debian/control"
mapfile -t binaries < <(find "$package" -type f -perm -u+x -o -type f \
                             -name '*.so*')
depends=$(cd "$root" && dpkg-shlibdeps --ignore-missing-info -O \
              -l"/usr/lib/$multiarch/ucx" "${binaries[@]}" 2>"$root/shlibs.log" |
          sed -n 's/^shlibs:Depends=//p') ||
    die "dpkg-shlibdeps failed: $(tail -n 3 "$root/shlibs.log")"

mkdir "$package/DEBIAN"
cat >"$package/DEBIAN/control" <<END
Package: rc-varuna
Version: $version
Architecture: $arch
Maintainer: $maintainer
Section: net
Priority: optional
Depends: $depends, libucx0 (= $ucx)
Description: fault-tolerant UCX transport over several RDMA links
 rc_varuna is a transport for UCX, Open MPI and OpenSHMEM programs which
 survives the failure of an RDMA link: it knows of each operation in flight
 whether the peer executed it, and repeats only those that were lost.
 .
 The package also holds mlx5emu, emulated mlx5 NICs and links for machines
 without RDMA hardware.
END
name=rc-varuna_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$package" "$out/$name" >&2 ||
    die "dpkg-deb failed"
echo "$out/$name"
