#!/bin/sh
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: ucx_version.sh installed UCX_INFO    version of an installed UCX
#        ucx_version.sh source DIR            version of a UCX source tree
#        ucx_version.sh installed-revision UCX_INFO   what it was built from
#        ucx_version.sh source-revision DIR           what it is a tree of
#
# Prints x.y.z, "commit" with seven digits or "Debian" with a source package and its
# version, or nothing where that cannot be told. A tree may have both.
# Called by configure (config/m4/ucx.m4) and contrib/setup.sh.

case $1 in
installed)
    # "# Version x.y.z" up to 1.13, "# Library version: x.y.z" since
    "$2" -v 2>/dev/null |
        sed -n 's/^# *\(Library v\|V\)ersion:* *\([0-9]*\.[0-9]*\.[0-9]*\).*/\2/p' |
        sed -n 1p
    ;;
source)
    part() {
        sed -n "s/^define(\[*ucx_ver_$2\]*, *\([0-9]\{1,\}\)).*/\1/p" \
            "$1/configure.ac"
    }
    version="$(part "$2" major).$(part "$2" minor).$(part "$2" patch)"
    case $version in
    .*|*..*|*.) ;;
    *) echo "$version" ;;
    esac
    ;;
installed-revision)
    revision=$("$2" -v 2>/dev/null |
               sed -n 's/^# .*revision \([0-9a-f]\{7\}\).*/\1/p' | sed -n 1p)
    if [ -n "$revision" ] && [ "$revision" != 0000000 ]; then
        echo "commit $revision"
    elif package=$(dpkg-query -S "$2" 2>/dev/null); then
        # It was not built from a clone, and so a package may tell
        # shellcheck disable=SC2016 # for dpkg-query
        dpkg-query -W -f 'Debian ${source:Package} ${source:Version}\n' "${package%%:*}"
    fi
    ;;
source-revision)
    {
        if [ -e "$2/.git" ]; then
            git -C "$2" rev-parse HEAD 2>/dev/null
        elif [ -f "$2/configure" ]; then
            # In a release, from the clone that it was made in
            sed -n 's/^[ \t]*SCM_VERSION=\([0-9a-f]\{7,\}\).*/\1/p' "$2/configure"
        fi
    } | sed -n '1s/^\(.\{7\}\).*/commit \1/p' | grep -v ' 0000000$'
    sed -n '1s/^\([a-z0-9.+-]*\) (\([^)]*\)).*/Debian \1 \2/p' "$2/debian/changelog" 2>/dev/null
    ;;
*)
    echo "ucx_version.sh: what is \"$1\"?" >&2
    exit 2
    ;;
esac
