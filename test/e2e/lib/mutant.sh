#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: test/e2e/lib/mutant.sh [-g] NAME
#        test/e2e/lib/mutant.sh -n
#
# Builds the plugin with the deliberate mistake test/mutations/NAME.patch. It works in
# copies of the sources and of the build directory (mutants/NAME), compiles only the
# plugin's objects that the patch changes, and replaces them in the archive of all
# objects. The mistake is in the plugin, so tests are not compiled again, except for those
# of lines "Compile: FILE" of the patch, which have the mistake inline. Prints the path of a
# launcher that loads this plugin; -g: the path of gtest_varuna with the mistake; -n: only
# checks that all patches apply. RCV_BUILD is the build directory.

set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
patches=$top/test/mutations

# check_patch NAME: checks that it applies exactly, or prints how to renew it
check_patch() {
    local files

    ! patch -d "$top" -p1 -F0 --dry-run <"$patches/$1.patch" >/dev/null 2>&1 || return 0
    files=$(sed -n 's|^+++ b/||p' "$patches/$1.patch" | paste -sd ' ')
    cat >&2 <<END
test/mutations/$1.patch no longer applies to $files. Its mistake:
$(sed '/^$/,$d; s/^/    /' "$patches/$1.patch")
Make this mistake in the present code, put the output of "git diff -U2" below these lines,
and undo the mistake.
END
    return 1
}

# check_patches: checks all patches
check_patches() {
    local patch status=0

    for patch in "$patches"/*.patch; do
        check_patch "$(basename "$patch" .patch)" || status=1
    done
    return $status
}

goal=plugin
case ${1:-} in
-n)
    check_patches
    exit
    ;;
-g)
    goal=gtest
    shift
    ;;
esac
name=${1:?which mistake}
patch=$patches/$name.patch
[ -e "$patch" ] || {
    echo "there is no mistake $name in test/mutations" >&2
    exit 1
}
check_patch "$name" || exit 1
build=$(cd "${RCV_BUILD:-$top/_build}" && pwd)
copy=$build/mutants/$name
varuna=src/uct/ib/varuna

# fail WHAT LOG
fail() {
    echo "$name: $1" >&2
    tail -n 20 "$2" >&2
    exit 1
}

# copy_tree FROM TO PATH...: copies them with their times, which make compares
copy_tree() {
    local from=$1 to=$2
    shift 2
    mkdir -p "$to"
    tar -C "$from" -cf - "$@" | tar -C "$to" -xf -
}

# copy_all: makes the copies, and applies the patch
copy_all() {
    local audit=src/tools/rc_varuna_audit tests=() programs=() headers

    mapfile -t headers < <(cd "$build" &&
                           find . -maxdepth 2 -name '*.h' ! -path './mutants/*')
    [ $goal = plugin ] || tests=(test/gtest $audit) programs=($audit)
    copy_tree "$top" "$copy" aclocal.m4 config configure configure.ac Makefile.am \
        Makefile.in $varuna "${tests[@]}"
    copy_tree "$build" "$copy/_build" config.status libtool Makefile $varuna \
        "${programs[@]}" "${headers[@]}"
    # Objects depend on files in the copy
    find "$copy/_build" \( -name '*.Plo' -o -name '*.Po' \) \
        -exec sed -i "s#$top/\(src\|test\)/#$copy/\1/#g" {} +
    [ $goal = plugin ] || link_tests
    patch -s -d "$copy" -p1 -F0 --no-backup-if-mismatch <"$patch" >&2
}

# link_tests: the tests, which are large, are links. What is made from other sources is not
link_tests() {
    local file

    mkdir -p "$copy/_build/test"
    cp -as "$build/test/gtest" "$copy/_build/test/"
    rm -f "$copy/_build/test/gtest/gtest_varuna"
    for file in $(compiled_again); do
        find "$copy/_build/test/gtest" -name "gtest_varuna-$(basename "$file" .cc).o" -delete
    done
}

# compiled_again: prints the tests that the patch names
compiled_again() {
    sed -n 's/^Compile: //p' "$patch"
}

# make_in DIRECTORY TARGET... Optimizing would take more time than it saves
make_in() {
    make -s -C "$copy/_build/$1" -j2 abs_top_srcdir="$copy" top_srcdir="$copy" \
        abs_srcdir="$copy/$1" srcdir="$copy/$1" VPATH="$copy/$1" CFLAGS=-O0 "${@:2}" \
        >"$copy/make.log" 2>&1 || fail "it does not build" "$copy/make.log"
}

# changed_objects: prints the objects, without suffix, that depend on what the patch
# changes: those of libvaruna_objs.la, as make has recorded it
changed_objects() {
    local file

    cd "$copy/_build/$varuna"
    for file in $(sed -n 's|^+++ b/||p' "$patch"); do
        find . -name 'libvaruna_objs_la-*.Plo' -exec grep -lE "/$file([ :]|\$)" {} +
    done | sed -n 's|^\./\(.*\)\.deps/\(.*\)\.Plo$|\1\2|p' | sort -u
}

# replace_objects: compiles these, and replaces them in the archive of all objects, which
# takes less than half of the time in which libtool makes a new one
replace_objects() {
    local object objects archive=.libs/libvaruna_objs.a files=()

    mapfile -t objects < <(changed_objects)
    [ ${#objects[@]} -gt 0 ] || return 0 # The patch changes only other files
    make_in $varuna "${objects[@]/%/.lo}"
    for object in "${objects[@]}"; do
        files+=("$(sed -n "s|^pic_object='\(.*\)'|$(dirname "$object")/\1|p" \
                   "$copy/_build/$varuna/$object.lo")")
    done
    cd "$copy/_build/$varuna"
    # Members have no directories
    [ -z "$(ar t $archive | sort | uniq -d)" ] || fail "two objects have one name" /dev/null
    ar r $archive "${files[@]}" >"$copy/make.log" 2>&1 ||
        fail "the archive is not changed" "$copy/make.log"
    touch libvaruna_objs.la
    cd "$top"
}

# newer FILE DIRECTORY PATTERN: prints a file of the directory that matches and is newer. The
# emulator's tests are another program
newer() {
    find "$top/$2" -path '*/test/gtest/mlx5emu' -prune -o -newer "$build/$1" -regex ".*/$3" -print -quit
}

# check_build PROGRAM DIRECTORY: checks that it was built from the present sources.
# Otherwise the copy's objects and list of files would be of different versions.
check_build() {
    local file

    [ -e "$build/$1" ] || {
        echo "$build has no $1: build first" >&2
        exit 1
    }
    file=$(newer "$1" "$2" '.*\.\(c\|cc\|h\|inl\)'
           newer "$2/Makefile" "$2" '\(Makefile\|sources\|ucp\|ucx\)\.am')
    [ -z "$file" ] || {
        echo "$build is older than ${file%%$'\n'*}: build first" >&2
        exit 1
    }
}

# is_new PROGRAM OF: whether it was built from the present plugin and patch
is_new() {
    [ "$1" -nt "$2" ] && [ "$1" -nt "$patch" ]
}

check_build $varuna/libuct_varuna.la $varuna
[ $goal = plugin ] || check_build test/gtest/gtest_varuna test/gtest
mkdir -p "$build/mutants"
exec 8>"$build/mutants/$name.lock"
flock 8
if [ $goal = gtest ]; then
    made=$copy/_build/test/gtest/gtest_varuna
    is_new "$made" "$build/test/gtest/gtest_varuna" || {
        rm -rf "$copy"
        copy_all
        replace_objects
        make_in test/gtest gtest_varuna
    }
else
    made=$copy/bin/rc_varuna_run
    is_new "$made" "$build/$varuna/libuct_varuna.la" || {
        rm -rf "$copy"
        copy_all
        replace_objects
        make_in $varuna libuct_varuna.la
        mkdir -p "$copy/bin" "$copy/lib/ucx"
        cp "$copy/_build/$varuna/.libs/libuct_varuna.so.0" "$copy/lib/ucx/"
        cp "$build/src/tools/rc_varuna_run/rc_varuna_run" "$copy/bin/"
    }
fi
echo "$made"
