#!/bin/sh
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: ucx_version.sh installed UCX_INFO    version of an installed UCX
#        ucx_version.sh source DIR            version of a UCX source tree
#
# Prints x.y.z, or nothing where that cannot be told.
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
*)
    echo "ucx_version.sh: what is \"$1\"?" >&2
    exit 2
    ;;
esac
