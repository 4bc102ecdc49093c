#!/bin/sh
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: ucx_build_ids.sh LIBDIR
#
# Prints, as definitions in C, the GNU build-ids of the libraries of the UCX in LIBDIR that
# the plugin knows the insides of: "" for one without. READELF: the program to use.
# Called by configure (config/m4/ucx.m4), and by contrib/common.sh.

libdir=$1
export LC_ALL=C

# define NAME LIBRARY
define() {
    id=$("${READELF:-readelf}" -n "$libdir/$2" 2>/dev/null |
         sed -n 's/^ *Build ID: *\([0-9a-f]*\)$/\1/p' | sed -n 1p)
    echo "#define RC_VARUNA_BUILD_ID_$1 \"$id\""
}

define UCS libucs.so.0
define UCT libuct.so.0
define UCT_IB ucx/libuct_ib.so.0
# Newer series have the mlx5 part in a library of its own
[ ! -e "$libdir/ucx/libuct_ib_mlx5.so.0" ] ||
    define UCT_IB_MLX5 ucx/libuct_ib_mlx5.so.0
