#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Fuzzes parsers of untrusted bytes (test/fuzz/). Each harness is compiled with
# libFuzzer and the address and undefined-behaviour sanitizers, runs its seeds and the
# inputs that were found before (test/fuzz/found/HARNESS/), and then searches for new
# ones.
#
# test_hostile.sh also fuzzes a running process, with a plugin that is built with
# sanitizers.
#
# RC_VARUNA_FUZZ: seconds for each harness (2). Inputs that it finds are in the build
# directory, fuzz/HARNESS/; add them to test/fuzz/found/ with the fix.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"

emu=$top/src/tools/mlx5emu
varuna=$top/src/uct/ib/varuna
seconds=${RC_VARUNA_FUZZ:-2}
sanitize=address,undefined
work=$RCV_BUILD/fuzz

# make_variable NAME: prints the value that configure found
make_variable() {
    sed -n "s/^$1 = //p" "$RCV_BUILD/src/uct/ib/varuna/Makefile" |
        sed "s|\$(top_builddir)|$RCV_BUILD|g"
}

# compile OPTION... -- FILE...: compiles what no harness before it has compiled with these
# options. Sets $objects
compile() {
    local options=() file object cache
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    cache=$work/objects/$(cksum <<<"${options[*]}" | tr ' ' -)
    mkdir -p "$cache"
    objects=()
    for file in "$@"; do
        object=$cache/$(tr / _ <<<"${file#"$top"/}").o
        objects+=("$object")
        [ ! -e "$object" ] || continue
        clang -c -g -O1 -w -std=gnu11 -D_GNU_SOURCE -fno-sanitize-recover=all \
            -fsanitize=fuzzer-no-link,$sanitize -I"$top/test/fuzz" "${options[@]}" \
            -o "$object" "$file" || return 1
    done
}

# build NAME ARGUMENT...: builds a harness and the program that writes its seeds, with more
# files and options
build() {
    local dir=$work/$1 argument objects
    local files=("$top/test/fuzz/fuzz_$1.c") options=() libraries=()
    shift
    for argument in "$@"; do
        case $argument in
        *.c) files+=("$argument") ;;
        -l* | -L* | -Wl*) libraries+=("$argument") ;;
        *) options+=("$argument") ;;
        esac
    done
    mkdir -p "$dir"
    compile "${options[@]}" -- "${files[@]}" "$top/test/fuzz/fuzz_seeds.c" &&
    clang -w -fsanitize=fuzzer,$sanitize -o "$dir/fuzzer" \
        "${objects[@]:0:${#files[@]}}" "${libraries[@]}" &&
    clang -w -fsanitize=$sanitize -o "$dir/seeder" "${objects[@]}" "${libraries[@]}" ||
        fail "$dir does not build"
}

# fuzz NAME ARGUMENT...: builds a harness with more arguments, and runs it. An input
# that takes a minute counts as one that never ends.
fuzz() {
    local name=$1 dir=$work/$1 dirs status=0
    build "$@"
    mkdir -p "$dir/seeds" "$dir/corpus"
    rm -f "$dir"/seeds/*
    check "$dir/seeder" "$dir/seeds"

    dirs=("$dir/corpus" "$dir/seeds")
    [ ! -d "$top/test/fuzz/found/$name" ] || dirs+=("$top/test/fuzz/found/$name")
    UBSAN_OPTIONS=print_stacktrace=1 \
    ASAN_OPTIONS=detect_leaks=${leaks:-1}:allocator_may_return_null=1 \
        "$dir/fuzzer" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=3000 \
        -max_len=4096 -print_final_stats=1 -artifact_prefix="$dir/found-" \
        "${dirs[@]}" >"$dir/log" 2>&1 || status=$?
    [ $status -eq 0 ] ||
        fail "$name: status $status; the input is in $dir:" \
             "$(grep -m 12 -E 'ERROR|runtime error|fuzz_|#[0-9]+ ' "$dir/log")"
    echo "# $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/log")" \
         "inputs, $(find "$dir/corpus" -type f | wc -l) of them kept"
}

fuzz_emu() {
    fuzz "$@" -I"$emu"
}

fuzz_varuna() {
    fuzz "$@" $(make_variable UCX_CPPFLAGS) -I"$RCV_BUILD" -I"$top/src" \
        $(make_variable UCX_LDFLAGS) $(make_variable UCX_LIBS)
}

test_work_requests() {
    fuzz_emu wqe "$emu/wqe/emu_wqe.c"
}

test_doorbell_instructions() {
    fuzz_emu insn "$emu/uar/emu_insn.c" -lZydis
}

test_fault_rules() {
    fuzz_emu fault_rule "$emu"/rules/*.c
}

test_engine() {
    fuzz_emu engine "$top/test/engine/engine.c" \
        "$emu"/{base,core,fault,proto,rules,trace,wire,wqe}/*.c -lpthread
}

test_devx() {
    fuzz_emu devx "$top/test/engine/engine.c" \
        "$emu"/verbs/emu_{refuse,refuse_dv,vlife,vreg}.c \
        "$emu"/{base,core,devx,fault,proto,rules,trace,wire,wqe}/*.c -lpthread
}

test_what_peers_send() {
    fuzz_varuna varuna_parse "$varuna"/core/varuna_{msg,plan,oplog}.c
}

test_parts_of_messages() {
    fuzz_varuna varuna_frag "$varuna"/core/varuna_{frag,numbers}.c
}

test_keys_and_links() {
    fuzz_varuna varuna_rkey "$varuna"/md/varuna_{rkey,nic}.c \
        "$varuna"/core/varuna_{amo_mode,clock,link}.c
}

test_what_may_be_a_uid() {
    fuzz_varuna varuna_amo "$varuna"/core/extended/varuna_amo_sm.c
}

# No object of a former run counts: nothing knows which headers it depends on
rm -rf "$work/objects"

# The plugin and the victim of test_hostile.sh, in test_sanitizers.sh's build directory
build_victim() {
    local build=$RCV_BUILD/sanitized ucx_src
    mkdir -p "$build"
    ucx_src=$(sed -n 's/^UCX_SRC = //p' "$RCV_BUILD/Makefile")
    (cd "$build"
     [ -x config.status ] ||
         CFLAGS="-g -O1" CXXFLAGS="-g -O0" "$top/configure" \
             --prefix="$build/_install" --with-ucx-src="$ucx_src" \
             --enable-sanitizer=$sanitize >configure.log 2>&1
     make -j"$(nproc)" -C src/uct/ib/varuna >victim.log 2>&1 &&
     make -j"$(nproc)" -C test/e2e ft_victim >>victim.log 2>&1) ||
        fail "the victim does not build, see $build: $(grep -m 3 rror "$build/victim.log")"
    mkdir -p "$work/victim/bin" "$work/victim/lib/ucx"
    cp -u "$build"/src/uct/ib/varuna/.libs/libuct_varuna.so.0 "$work/victim/lib/ucx/"
    cp -u "$RCV_PREFIX/bin/rc_varuna_run" "$work/victim/bin/"
}

# The build takes minutes. Without sanitizers, test_hostile.sh always runs
if [ -n "${RC_VARUNA_LONG:-}" ]; then
    # Live endpoints and a hostile peer. Options: see test_sanitizers.sh
    test_hostile_peer() {
        local options=handle_segv=0:allow_user_segv_handler=1:detect_leaks=0 log=$PWD/found
        options+=:verify_asan_link_order=0:use_sigaltstack=0
        build_victim
        ASAN_OPTIONS=$options:log_path=$log TAP_FILTER=test_fuzz \
        UBSAN_OPTIONS=print_stacktrace=1:log_path=$log \
        RC_VARUNA_HOSTILE_RUN=$work/victim/bin/rc_varuna_run \
        RC_VARUNA_HOSTILE_APPS=$RCV_BUILD/sanitized/test/e2e \
            timeout 1000 bash "$top/test/e2e/security/test_hostile.sh" >out 2>&1 ||
            fail "$(tail -n 20 out) $(cat "$log"* 2>/dev/null | head -n 20)"
        ! cat "$log"* 2>/dev/null | sed -n "1,30s/^/# /p" | grep . ||
            fail "a sanitizer reports an error"
        grep '^#' out
    }
fi

run_tests
