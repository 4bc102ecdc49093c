#!/bin/sh
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: ucx_config_h.sh UCX_INFO OUT [TREE_CONFIG_H [LIBDIR]]
#
# Writes the configuration header of the UCX that UCX_INFO belongs to into the
# file OUT (untouched when it would not change), with the build-ids of the
# libraries in LIBDIR: all is compiled again for another UCX. If there is a file
# TREE_CONFIG_H, compares the definitions that decide on the layout of UCX's
# structures; when one differs, says which and fails.
# Called by configure (config/m4/ucx.m4) and contrib/setup.sh.

set -e
ucx_info=$1
out=$2
tree=$3
libdir=$4
here=$(dirname "$0")

# Definitions of a config.h, "NAME VALUE" a line, that matter to the layout of
# structures and to what UCX is able to do
relevant() {
    sed -n 's/^#define[ \t]\{1,\}\([A-Za-z_0-9]*\)[ \t]*\(.*[^ \t]\)\{0,1\}[ \t]*$/\1 \2/p' |
        grep -E '^(ENABLE_|UCS_|UCT_|UCM_|NVALGRIND|HAVE_(STATS|DC|MLX5|IB|TL_|DEVX|DECL_(IBV|MLX5)|STRUCT_(IBV|MLX5)|IBV_|XPMEM|PROFILING|TUNING))' |
        sed 's/[ \t]*$//' | LC_ALL=C sort -u
}

defines=$("$ucx_info" -b 2>/dev/null | grep '^#define') || {
    echo "\"$ucx_info -b\" does not print the configuration of UCX"
    exit 1
}

tmp=$(mktemp "$out.XXXXXX")
trap 'rm -f "$tmp" "$tmp.tree" "$tmp.run"' EXIT
{
    echo "/* Made by ucx_config_h.sh from \"ucx_info -b\": do not edit. */"
    echo "#ifndef RC_VARUNA_UCX_CONFIG_H"
    echo "#define RC_VARUNA_UCX_CONFIG_H"
    printf '%s\n' "$defines" | grep -v '^#define UCX_CONFIG_H'
    [ -z "$libdir" ] || "$here/ucx_build_ids.sh" "$libdir"
    echo "#endif"
} >"$tmp"
chmod 644 "$tmp"
if ! cmp -s "$tmp" "$out"; then
    cp "$tmp" "$out"
fi

if [ -z "$tree" ] || [ ! -f "$tree" ]; then
    echo "it is not configured: taking the installed one's configuration"
    exit 0
fi

relevant <"$tree" >"$tmp.tree"
printf '%s\n' "$defines" | relevant >"$tmp.run"
if cmp -s "$tmp.tree" "$tmp.run"; then
    echo "yes"
    exit 0
fi

echo "$tree does not match the configuration of the installed UCX" \
     "($ucx_info -b):"
LC_ALL=C comm -23 "$tmp.tree" "$tmp.run" | sed 's/^/  only in the tree:      /'
LC_ALL=C comm -13 "$tmp.tree" "$tmp.run" | sed 's/^/  only in the installed: /'
echo "Configure the tree as the runtime was, or remove its config.h"
exit 1
