#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# contrib/compile_all.sh accepts the source tree of the build, says what does not compile,
# and finds a version of UCX with operations that the plugin's tables lack: UCX would call
# NULL.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

ucx_src=$(sed -n 's/^--with-ucx-src=//p' "$RCV_BUILD/configure.args")
export RC_VARUNA_BUILD=$RCV_BUILD

compile_all() {
    "$top/contrib/compile_all.sh" "$@"
}

# changed_tree FILE SCRIPT: makes "tree", the real one, in which sed has changed a header
changed_tree() {
    local dir=. part

    mkdir tree
    for part in $(tr / ' ' <<<"$1"); do
        ln -s "$ucx_src/$dir"/* "tree/$dir/"
        rm "tree/$dir/$part"
        dir=$dir/$part
        [ "$dir" = "./$1" ] || mkdir "tree/$dir"
    done
    sed "$2" "$ucx_src/$1" >"tree/$1"
    ! cmp -s "$ucx_src/$1" "tree/$1" || fail "sed has changed nothing in $1"
}

# The files that know UCX's versions
test_tree_of_the_build() {
    fails 0 '^UCX [0-9.]+: 1[0-9] files compile' compile_all -f 'ucx/*' "$ucx_src"
}

test_two_trees_of_which_one_fails() {
    local status=0
    changed_tree src/uct/base/uct_md.h 's/uct_md_reg_log_lvl/uct_md_reg_log_level/'
    compile_all -f 'md/varuna_md_open.c' "$PWD/tree" "$ucx_src" >out 2>&1 || status=$?
    [ $status -eq 1 ] || fail "status $status"
    grep -q '^UCX [0-9.]*: [1-9][0-9]* errors, see .*/tree)$' out || fail "$(cat out)"
    grep -q '^ .*uct_md_reg_log_lvl' out || fail "no error: $(cat out)"
    grep -q '^UCX [0-9.]*: 1 files compile' out || fail "$(cat out)"
}

test_operation_of_an_interface_that_is_not_known() {
    changed_tree src/uct/base/uct_iface.h \
        's/^} uct_iface_internal_ops_t;/void (*ep_new)(void); &/'
    fails 1 'UCX has internal operations that are not known' \
        compile_all -f 'md/varuna_md_open.c' "$PWD/tree"
}

test_operation_of_a_memory_domain_that_is_not_known() {
    changed_tree src/uct/base/uct_md.h 's/^struct uct_md_ops {/&void (*mem_new)(void);/'
    fails 1 'UCX has operations of memory domains that are not known' \
        compile_all -f 'md/varuna_md_open.c' "$PWD/tree"
}

test_arguments() {
    mkdir empty
    fails 2 '^usage' compile_all
    fails 1 'there is no directory' compile_all /nowhere
    fails 1 'is not a UCX source tree' compile_all "$PWD/empty"
    fails 1 'no source file matches' compile_all -f 'nothing/*' "$ucx_src"
}

run_tests
