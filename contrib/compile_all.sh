#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: contrib/compile_all.sh [-f PATTERN] DIR...
#
# Compiles the plugin against UCX source trees, without making anything: shows whether
# it can be built with these versions of UCX. A tree need not be configured or belong
# to an installed UCX: one without config.h is compiled with that of the build directory.
# Prints a line for each tree, and the first errors. The exit status is 0 if all compile.
#
#   -f PATTERN   only source files whose path in src/uct/ib/varuna matches, "ucx/*"
#
# Needs a configured build directory. The compiler's messages are kept in compile-logs/
# there.

set -euo pipefail
prog=compile_all
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
    sed -n '/^# usage/,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
}

pattern='*'
[ "${1:-}" != --help ] || set -- -h
while getopts f:h opt; do
    case $opt in
    f) pattern=$OPTARG ;;
    h) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { usage >&2; exit 2; }

plugin=src/uct/ib/varuna
makefile=$build_dir/$plugin/Makefile
logs=$build_dir/compile-logs
[ -f "$makefile" ] || die "$build_dir is not configured: contrib/build.sh does that"

# makefile_says TEXT: prints TEXT with the variables of the plugin's Makefile expanded
makefile_says() {
    printf 'include Makefile\n.DEFAULT_GOAL := says\nsays: ; @echo %s\n' "'$1'" |
        make -s -C "$build_dir/$plugin" -f -
}

# sources: prints those that match, by their path in the plugin's directory
sources() {
    local path

    # shellcheck disable=SC2016 # variables of make
    for path in $(makefile_says '$(varuna_sources) $(varuna_extended_sources) $(libuct_varuna_la_SOURCES)'); do
        # shellcheck disable=SC2053 # a pattern
        if [[ $path == *.c && $path == $pattern ]]; then
            echo "$path"
        fi
    done
}

# generate TREE VERSION DIR: makes the headers that UCX's configure would make, in DIR
generate() {
    local major minor patch header

    IFS=. read -r major minor patch <<<"$2"
    for header in uct/api/version.h ucp/api/ucp_version.h; do
        mkdir -p "$3/$(dirname "$header")"
        sed -e "s/@MAJOR_VERSION@/$major/g; s/@MINOR_VERSION@/$minor/g" \
            -e "s/@PATCH_VERSION@/$patch/g; s/@VERSION@/$2/g" \
            "$1/src/$header.in" >"$3/$header"
    done
    if [ -f "$1/config.h" ]; then
        cp "$1/config.h" "$3"
    else
        cp "$build_dir/ucx-config/config.h" "$3"
    fi
}

# compile TREE DIR FILE...: compiles files with the tree's headers and those of DIR, and
# with the options of the build
compile() {
    local tree=$1 dir=$2
    shift 2

    # shellcheck disable=SC2086 # words
    printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" \
        $compiler -fsyntax-only -DHAVE_CONFIG_H -isystem "$dir" \
        -isystem "$tree/src" -I"$build_dir" -I"$top/src"
}

# try DIR: compiles all with the tree in DIR, and prints the result
try() {
    local tree version name log scratch start=$SECONDS

    tree=$(readlink -e "$1") || die "there is no directory $1"
    version=$("$top/config/ucx_version.sh" source "$tree" 2>/dev/null || true)
    [ -n "$version" ] || die "$1 is not a UCX source tree"
    scratch=$(mktemp -d)
    log=$logs/$(basename "$tree")-$version.log
    generate "$tree" "$version" "$scratch"
    if (cd "$top/$plugin" && compile "$tree" "$scratch" "${files[@]}") >"$log" 2>&1; then
        echo "UCX $version: ${#files[@]} files compile ($((SECONDS - start)) s)"
    else
        failed=1
        echo "UCX $version: $(grep -c ' error: ' "$log" || true) errors, see $log ($1)"
        grep ' error: ' "$log" | sort -u | sed -n '1,3s/^/    /p'
    fi
    rm -rf "$scratch"
}

mapfile -t files < <(sources)
[ ${#files[@]} -gt 0 ] || die "no source file matches \"$pattern\""
# shellcheck disable=SC2016 # variables of make
compiler=$(makefile_says '$(CC) $(BASE_CPPFLAGS) $(BASE_CFLAGS) -Wmissing-prototypes')
mkdir -p "$logs"
failed=0
for tree in "$@"; do
    try "$tree"
done
exit "$failed"
