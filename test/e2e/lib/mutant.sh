#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# usage: test/e2e/lib/mutant.sh [-g|-c] NAME
#        test/e2e/lib/mutant.sh -n
#
# Builds the plugin with the deliberate mistake test/mutations/NAME.patch, or with the
# exercise test/exercises/NAME.patch. It works in copies of the sources and of the build
# directory (mutants/NAME), compiles only the plugin's objects that the patch changes, and
# replaces them in the archive of all objects. A mistake is in the plugin, so tests are not
# compiled again, except for those that the patch changes, and those of its lines "Compile:
# FILE...", which have the change inline. Prints the path of a launcher that loads this
# plugin; with -g, or for an exercise: the path of gtest_varuna with the patch, or of
# gtest_mlx5emu if it changes the emulator, which is built in the same copy; -c: only compiles
# the sources that the patch changes; -n: only checks that all patches apply. RCV_BUILD is the
# build directory.

set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

# patched: prints the files that the patch changes
patched() {
    sed -n 's|^+++ b/||p' "$patch"
}

# check_patch: checks that it applies exactly, or prints how to renew it
check_patch() {
    ! patch -d "$top" -p1 -F0 --dry-run <"$patch" >/dev/null 2>&1 || return 0
    cat >&2 <<END
${patch#"$top/"} no longer applies to $(patched | paste -sd ' '). What it does:
$(sed '/^$/,$d; s/^/    /' "$patch")
Make this change in the present code, put the output of "git diff -U2" below these lines,
and undo the change.
END
    return 1
}

# check_patches: checks all patches
check_patches() {
    local patch status=0

    for patch in "$top"/test/{mutations,exercises}/*.patch; do
        [ ! -e "$patch" ] || check_patch || status=1
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
-c)
    goal=objects
    shift
    ;;
esac
name=${1:?which patch}
patch=$top/test/mutations/$name.patch
[ -e "$patch" ] || {
    patch=$top/test/exercises/$name.patch
    [ $goal = objects ] || goal=gtest
}
[ -e "$patch" ] || {
    echo "there is no mistake and no exercise $name" >&2
    exit 1
}
check_patch || exit 1
build=$(cd "${RCV_BUILD:-$top/_build}" && pwd)
copy=$build/mutants/$name
[ $goal != objects ] || copy+=.objects
varuna=src/uct/ib/varuna
emu=src/tools/mlx5emu
program=gtest_varuna
others=mlx5emu # Tests of the other program
if [ $goal != plugin ] && grep -q "^$emu/" < <(patched); then
    program=gtest_mlx5emu
    others=uct
fi

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
    [ $program = gtest_varuna ] || tests+=("$emu") programs+=("$emu")
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
    rm -f "$copy/_build/test/gtest/$program"
    for file in $(compiled_again); do
        find "$copy/_build/test/gtest" -name "$program-$(basename "$file" .cc).o" -delete
    done
}

# compiled_again: prints the tests that the patch changes, and those that it names
compiled_again() {
    patched | grep '^test/.*\.cc$' || true
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
    for file in $(patched); do
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

# compile_sources: compiles the sources that the patch changes, and nothing that includes them
compile_sources() {
    local file dir objects

    for dir in $varuna $emu; do
        mapfile -t objects < <(
            for file in $(patched | sed -n "s|^$dir/\(.*\)\.c$|\1|p"); do
                cd "$copy/_build/$dir/$(dirname "$file")/.deps"
                find . -name "*-$(basename "$file").Plo" |
                    sed "s|^\./\(.*\)\.Plo$|$(dirname "$file")/\1.lo|"
            done)
        [ ${#objects[@]} -eq 0 ] || make_in "$dir" "${objects[@]}"
    done
    mapfile -t objects < <(patched |
        sed -n "s|^test/gtest/\(.*/\)\([^/]*\)\.cc$|\1$program-\2.o|p")
    [ ${#objects[@]} -eq 0 ] || make_in test/gtest "${objects[@]}"
}

# newer FILE DIRECTORY PATTERN: prints a file of the directory that matches and is newer
newer() {
    find "$top/$2" -path "*/test/gtest/$others" -prune -o -newer "$build/$1" -regex ".*/$3" -print -quit
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
[ $goal = plugin ] || check_build "test/gtest/$program" test/gtest
[ $program = gtest_varuna ] || check_build $emu/mlx5emu $emu
mkdir -p "$build/mutants"
exec 8>"$copy.lock"
flock 8
if [ $goal = objects ]; then
    rm -rf "$copy"
    copy_all
    compile_sources
    rm -rf "$copy"
    exit
elif [ $goal = gtest ]; then
    made=$copy/_build/test/gtest/$program
    is_new "$made" "$build/test/gtest/$program" || {
        rm -rf "$copy"
        copy_all
        replace_objects
        [ $program = gtest_varuna ] || make_in $emu all
        make_in test/gtest "$program"
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
