#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Dependencies of the emulator and of the plugin, from the includes of their sources and
# from the symbols of their objects: they point down, in the order of test/meta/layers/.
#
# A call through a table of functions names no symbol of the implementation, so it is
# not counted. test/meta/layers/ lists the headers that declare such tables, and their
# purpose. In the plugin the rows of the bus, the handlers of inner interfaces, the
# sinks of events of endpoints and ports, the operations of a mode of atomics, jobs of
# the clock, and the requests of a destroyed lane go up to another room; in the emulator
# the two ends of the wire, forks, and the service thread's callbacks. A header that is
# not listed fails.
#
# Parts of the endpoint, the responder and a target that are private are used by their owners
# alone, and the large structures consist of few parts.
#
# A folder that is pure calls only what test/meta/layers/ lists. No function is longer than
# it says.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

libc=$(gcc -print-file-name=libc.so.6)

# modules SRC: prints "file" lines; a module is x.c together with x.h
modules() {
    (cd "$1" && find . -name '*.[ch]' -o -name '*.inl' | sed 's|^\./||' | xargs wc -l) |
        awk '$2 != "total" { sub(/\.(c|h|inl)$/, "", $2)
                             if ($1 > lines[$2]) lines[$2] = $1 }
             END { for (module in lines) print "file", module, lines[module] }'
}

# includes SRC: prints "uses" lines for #include "...", and for #include
# <uct/ib/varuna/...>, which the plugin uses for files of other folders
includes() {
    (cd "$1" && grep -rHoE --include='*.[ch]' --include='*.inl' \
                     '^#include ("[^"]+"|<uct/ib/varuna/[^>]+>)' .) |
        awk -F'["<>]' '{
            file = $1
            sub(/^\.\//, "", file)
            sub(/:.*/, "", file)
            path = (file ~ /\//) ? file : "./" file
            sub(/[^\/]*$/, $2, path)
            if (sub(/^uct\/ib\/varuna\//, "", $2)) path = $2
            while (sub(/[^\/.]+\/\.\.\//, "", path) || sub(/^\.\//, "", path)) {
            }
            sub(/\.(c|h|inl)$/, "", file)
            sub(/\.(c|h|inl)$/, "", path)
            if (file != path) print "uses", file, path, "include"
        }'
}

# symbols OBJECTS_DIR SRC: prints "uses" lines for undefined symbols that another object
# defines. Symbols that libc also defines are wrappers for programs, so they do not
# count. An object without a source is stale.
symbols() {
    nm -D --defined-only "$libc" | awk '{ sub(/@.*/, "", $3); print "libc", $3 }' >libc
    (cd "$2" && find . -name '*.c' | sed 's|^\./|source |; s|\.c$||') >sources
    # "OBJECT MODULE" of those with a source
    (cd "$1" && find . -path '*/.libs/*.o' -o -name '*.o' \
                       ! -path '*/.libs/*' -path '*/ctl/*') |
        sed -E 'h; s|^\./||; s|\.o$||; s|\.libs/||; s|[^/]*_la-||; s|mlx5emu-||; H; x; s|\n| |' |
        awk '$1 == "source" { there[$2] = 1; next } $2 in there' sources - >objects.list
    (cd "$1" && xargs nm -A) < <(cut -d ' ' -f 1 objects.list) |
        awk 'FNR == NR { module_of[$1] = $2; next }
             { module = module_of[substr($1, 1, index($1, ":") - 1)] }
             $(NF - 1) ~ /^[TDBRC]$/ { print "defines", $NF, module }
             $(NF - 1) == "U" { print "needs", $NF, module }' objects.list - |
        sort >symbols
    awk '$1 == "libc"    { libc[$2] = 1 }
         $1 == "defines" { where[$2] = $3 }
         $1 == "needs" && !($2 in libc) && ($2 in where) && (where[$2] != $3) {
             print "uses", $3, where[$2], $2
         }' libc symbols
}

# long_functions SRC LIMIT: prints functions of more lines, from that of the opening brace to
# that of the closing one
long_functions() {
    (cd "$1" && find . -name '*.[ch]' -o -name '*.inl' | sort | xargs awk -v limit="$2" '
        FNR == 1 { open = 0 }
        !open && /^[A-Za-z_]/ && match($0, /[A-Za-z_0-9]+\(/) {
            name = substr($0, RSTART, RLENGTH - 1)
        }
        !open && (/^\{$/ || /^[A-Za-z_].*\) *\{$/) { open = FNR; ++functions }
        open && /^\}/ {
            if (FNR - open + 1 > limit)
                print FILENAME ": " name " has " FNR - open + 1 " lines"
            open = 0
        }
        END { print "# " functions " functions of at most " limit " lines" }') |
        sed 's|^\./||'
}

# functions_are_short LAYERS SRC: fails if a function is longer than LAYERS allows
functions_are_short() {
    long_functions "$2" "$(sed -n 's/^function //p' "$1")" >functions
    [ "$(awk '/^#/ { print $2 }' functions)" -gt 100 ] || fail "there are no functions in $2"
    grep '^#' functions
    ! grep -v '^#' functions >long || fail "too long: $(paste -sd ';' long)"
}

# impure LAYERS SRC OBJECTS: prints "MODULE SYMBOL" for each symbol of none of the objects that
# a folder uses, if LAYERS says what it may call, but not this. Inline functions of UCX show
# as what they use: ucs_get_time() as gettimeofday() and more. Functions of fortified builds,
# and versions of C, count as the functions that they replace
impure() {
    symbols "$3" "$2" >/dev/null
    awk '$1 == "calls"   { pure[$2] = 1; for (i = 3; i <= NF; ++i) allowed[$2, $i] = 1 }
         $1 == "defines" { there[$2] = 1 }
         $1 == "needs" && !($2 in there) {
             folder = $3
             sub(/\/.*/, "", folder)
             if (!(folder in pure)) next
             symbol = $2
             sub(/@.*/, "", symbol)
             sub(/^__isoc[0-9]*_/, "", symbol)
             if (symbol ~ /^__.*_chk$/) gsub(/^__|_chk$/, "", symbol)
             if (!((folder, symbol) in allowed)) print $3, symbol
         }' "$1" symbols
}

# purity LAYERS SRC OBJECTS: fails if a folder calls what it may not
purity() {
    impure "$@" >calls
    [ "$(grep -c '^needs.* core/' symbols)" -gt 20 ] || fail "there are no objects in $3"
    [ ! -s calls ] || fail "not pure: $(paste -sd ';' calls)"
}

# judge LAYERS SRC OBJECTS: prints the picture; fails if a dependency points up
judge() {
    {
        sed -E '/^(#|(table|calls|function|part|members) )/d; /^(cycle|lines|upward|apart) /b; s/^/layer /' "$1"
        modules "$2"
        includes "$2"
        symbols "$3" "$2"
    } >graph
    # A module without a file belongs to another project
    awk 'FNR == NR { if ($1 == "file") there[$2] = 1; next }
         $1 != "uses" || (($2 in there) && ($3 in there))' graph graph |
        awk -f "$top/test/meta/layers.awk" >picture
    sed 's/^/# /' picture
    [ "$(grep -c '^file' graph)" -gt 20 ] || fail "there are no sources in $2"
    [ "$(grep -c '^needs' symbols)" -gt 100 ] || fail "there are no objects in $3"
    ! grep '^wrong' picture >wrong || fail "$(wc -l <wrong) times: $(head -n 1 wrong)"
}

# parts LAYERS SRC: fails unless exactly the modules that LAYERS names use a part
parts() {
    local part
    sed -n 's/^part //p' "$1" | sort >listed
    [ -s listed ] || fail "$1 names no parts"
    cut -d ' ' -f 1 listed | while read -r part; do
        (cd "$2" && grep -rlE --include='*.[ch]' --include='*.inl' \
                            "\b(ep|resp|target)->$part\b" .) |
            sed -E 's|^\./||; s|\.[a-z]+$||' | sort -u | paste -sd ' ' | sed "s|^|$part |"
    done | sort >found
    diff listed found >difference ||
        fail "other files use a part: $(grep '^[<>]' difference)"
}

# members LAYERS SRC: fails if a structure that LAYERS names has more members than it says.
# Those of a structure within count as one
members() {
    local limit names
    read -r limit names < <(sed -n 's/^members //p' "$1")
    find "$2" -name '*.h' -exec cat {} + | awk -v names="$names" -v limit="$limit" '
        BEGIN { for (i = split(names, list, " "); i > 0; --i) wanted[list[i]] }
        /^(typedef )?struct [a-z_]+ \{$/ {
            name = $(NF - 1)
            count = depth = 0
            next
        }
        name == "" { next }
        { gsub(/\/\*[^*]*\*\//, "") }
        in_comment { if (!sub(/.*\*\//, "")) next; in_comment = 0 }
        /\/\*/ { sub(/\/\*.*/, ""); in_comment = 1 }
        /^}/ {
            if (name in wanted) {
                found[name]
                if (count > limit) printf("too large: %s has %d members\n", name, count)
            }
            name = ""
            next
        }
        {
            depth += gsub(/\{/, "{")
            depth -= gsub(/}/, "}")
            if (depth == 0) count += gsub(/;|UCS_STATS_NODE_DECLARE/, ";")
        }
        END { for (name in wanted) if (!(name in found)) print "there is no", name }' >large
    [ ! -s large ] || fail "$(cat large)"
}

test_emulator() {
    judge "$top/test/meta/layers/mlx5emu" "$top/src/tools/mlx5emu" "$RCV_BUILD/src/tools/mlx5emu"
}

test_plugin() {
    judge "$top/test/meta/layers/varuna" "$top/src/uct/ib/varuna" "$RCV_BUILD/src/uct/ib/varuna"
}

# tables LAYERS SRC: fails unless exactly the headers with pointers to functions are
# listed
tables() {
    (cd "$2" && grep -rlE --include='*.h' \
                     '\(\*[a-z_]+\)\(|^ +uct_[a-z_]+_(handler|callback)_t +[a-z_]+;' .) |
        sed 's|^\./||' | sort >found
    sed -n 's/^table \([^ ]*\) .*/\1/p' "$1" | sort >listed
    [ "$(wc -l <found)" -gt 3 ] || fail "there are no tables of functions in $2"
    diff listed found >difference ||
        fail "$1 does not list the tables of functions: $(grep '^[<>]' difference)"
}

test_tables() {
    tables "$top/test/meta/layers/mlx5emu" "$top/src/tools/mlx5emu"
    tables "$top/test/meta/layers/varuna" "$top/src/uct/ib/varuna"
}

test_new_table_is_found() {
    cp -r "$top/src/uct/ib/varuna" src
    echo 'typedef void (*uct_varuna_up_t)(void);' >>src/core/varuna_numbers.h
    fails 1 '> core/varuna_numbers.h' tables "$top/test/meta/layers/varuna" src
}

test_parts_of_the_endpoint() {
    parts "$top/test/meta/layers/varuna" "$top/src/uct/ib/varuna"
}

test_large_structures_have_parts() {
    members "$top/test/meta/layers/varuna" "$top/src/uct/ib/varuna"
}

test_member_too_many_is_found() {
    cp -r "$top/src/uct/ib/varuna" src
    sed -i '/^struct uct_varuna_ctl {/r /dev/stdin' src/ctl/varuna_ctl.h \
        < <(seq -f '    int m%.0f; /* of; two */' 20)
    fails 1 'too large: uct_varuna_ctl has 4' members "$top/test/meta/layers/varuna" src
}

test_user_of_a_part_is_found() {
    cp -r "$top/src/uct/ib/varuna" src
    echo 'static int uct_varuna_up(uct_varuna_ep_t *ep) { return ep->hang.beats; }' \
        >>src/requester/varuna_eps.c
    fails 1 '> hang .*varuna_eps' parts "$top/test/meta/layers/varuna" src
}

# The document contains the picture of the rooms
test_architecture_shows_the_picture() {
    judge "$top/test/meta/layers/varuna" "$top/src/uct/ib/varuna" \
        "$RCV_BUILD/src/uct/ib/varuna"
    sed -nE 's|^ +([a-z/]+/) +[0-9]+ modules +|\1 |p' picture | sed 's/  */ /g' >printed
    sed -n '/^## Files and layers/,/^## /p' "$top/docs/ARCHITECTURE.md" |
        awk '/^```/ { inside = !inside; next } inside' | sed 's/  */ /g' >shown
    diff printed shown >difference ||
        fail "docs/ARCHITECTURE.md shows another picture: $(cat difference)"
}

test_core_is_pure() {
    purity "$top/test/meta/layers/varuna" "$top/src/uct/ib/varuna" \
        "$RCV_BUILD/src/uct/ib/varuna"
}

# object NAME CALLS OPTION...: compiles a stand-in for an object of core/ into objects/
object() {
    local name=$1 calls=$2
    shift 2
    [ -e "objects/core/.libs/libvaruna_objs_la-$name.o" ] || fail "there is no $name"
    printf '#include <stdio.h>\n#include <ucs/time/time.h>\nunsigned long f(void) { %s }\n' \
        "$calls" |
        gcc -x c -O2 -c -o "objects/core/.libs/libvaruna_objs_la-$name.o" "$@" - ||
        fail "$name does not compile"
}

test_impure_call_is_found() {
    local layers=$top/test/meta/layers/varuna src=$top/src/uct/ib/varuna flags
    flags=$(sed -n 's/^UCX_CPPFLAGS = //p' "$RCV_BUILD/src/uct/ib/varuna/Makefile" |
                sed "s|\$(top_builddir)|$RCV_BUILD|g")
    cp -r "$RCV_BUILD/src/uct/ib/varuna" objects
    object varuna_msg 'return fopen("links", "r") != NULL;' $flags
    fails 1 'not pure: core/varuna_msg fopen' purity "$layers" "$src" objects
    object varuna_msg 'return ucs_get_time();' $flags
    fails 1 'not pure: core/varuna_msg ' purity "$layers" "$src" objects
    object varuna_msg 'return ucs_time_from_sec(1.0);' $flags
    purity "$layers" "$src" objects
}

test_functions_are_short() {
    functions_are_short "$top/test/meta/layers/mlx5emu" "$top/src/tools/mlx5emu"
    functions_are_short "$top/test/meta/layers/varuna" "$top/src/uct/ib/varuna"
}

test_long_function_is_found() {
    local layers=$top/test/meta/layers/varuna limit
    limit=$(sed -n 's/^function //p' "$layers")
    cp -r "$top/src/uct/ib/varuna" src
    {
        printf 'static int\nuct_varuna_short(int a)\n{\n'
        seq -f '    a += %.0f;' $((limit - 2))
        printf '}\n\nvoid uct_varuna_long(void) {\n'
        seq -f '    f(%.0f);' $((limit - 1))
        echo '}'
    } >>src/core/extended/varuna_amo_sm.h
    fails 1 "too long: core/extended/varuna_amo_sm.h: uct_varuna_long has $((limit + 1)) lines" \
        functions_are_short "$layers" src
}

# The test detects an include and a call that point up
test_upward_include_is_found() {
    cp -r "$top/src/tools/mlx5emu" src
    echo '#include "../proto/emu_engine.h"' >>src/base/emu_lock.c
    fails 1 'wrong: base/emu_lock uses proto/emu_engine' \
        judge "$top/test/meta/layers/mlx5emu" src "$RCV_BUILD/src/tools/mlx5emu"
}

test_upward_call_is_found() {
    cp -r "$RCV_BUILD/src/tools/mlx5emu" objects
    rm objects/base/.libs/*emu_lock.o
    echo 'extern int emu_qp_modify(void); int emu_lock(void) { return emu_qp_modify(); }' |
        gcc -x c -c -o objects/base/.libs/libemu_engine_la-emu_lock.o -
    fails 1 'wrong: base/emu_lock uses proto/emu_modify' \
        judge "$top/test/meta/layers/mlx5emu" "$top/src/tools/mlx5emu" objects
}

# Stale objects of moved files do not count
test_object_without_source() {
    cp -r "$RCV_BUILD/src/tools/mlx5emu" objects
    echo 'void emu_lock(void) { }' |
        gcc -x c -c -o objects/proto/.libs/libemu_engine_la-emu_moved.o -
    judge "$top/test/meta/layers/mlx5emu" "$top/src/tools/mlx5emu" objects
    ! grep -q emu_moved symbols || fail "$(grep emu_moved symbols)"
}

# The responder is below the atomics of the requester, but apart
test_folders_that_are_apart() {
    cp -r "$top/src/uct/ib/varuna" src
    echo '#include <uct/ib/varuna/responder/amo/varuna_home_nic.h>' >>src/requester/extended/varuna_amo.c
    fails 1 'wrong: requester/extended/varuna_amo uses responder/amo/varuna_home_nic, and' \
        judge "$top/test/meta/layers/varuna" src "$RCV_BUILD/src/uct/ib/varuna"
}

# Which lanes a link has depends on its lane set
test_no_lane_is_found_by_its_kind() {
    ! grep -rnE 'lanes?\[UCT_VARUNA_LANE_[A-Z0-9]+\]' "$top/src/uct/ib/varuna" |
        grep -v 'LANE_LAST\]' || fail "uct_varuna_link_rc() or uct_varuna_link_base() finds it"
}

test_cycle_and_length_are_found() {
    cp -r "$top/src/tools/mlx5emu" src
    echo '#include "emu_mr.h"' >>src/core/emu_fabric.c
    fails 1 'wrong: a cycle of' \
        judge "$top/test/meta/layers/mlx5emu" src "$RCV_BUILD/src/tools/mlx5emu"
    seq 901 >src/wqe/emu_long.c
    fails 1 'wrong: wqe/emu_long has a file of 901 lines' \
        judge "$top/test/meta/layers/mlx5emu" src "$RCV_BUILD/src/tools/mlx5emu"
}

run_tests
