#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Atomics are executed exactly once: clients on several hosts contend for the words of
# one server, without and with faults of links. The judge checks all histories together:
# fetch-and-adds by their sorted results, swaps and compare-and-swaps as chains of
# unique values, and the words that the server's CPU finds after the clients' flushes
# (test/e2e/atomics/ft_amo.c).


. "$(dirname "${BASH_SOURCE[0]}")/ft_amo.sh"

# quiet MODE WIDTH: runs without faults
quiet() {
    start "$1" 3
    clients 3 "$2" 1500 4 fadd add cas swap bits
    finish
    judge fadd add cas swap
}

# faulty MODE WIDTH RULE...: one client's link fails while all clients continue
faulty() {
    local mode=$1 width=$2
    shift 2
    start "$mode" 3
    fault "$@"
    clients 3 "$width" 0 4 fadd add cas swap bits
    await_faults
    progressed 300
    release
    finish
    judge fadd add cas swap
    grep -q 'rc_varuna: switched' client.*.out || fail "$*: nothing was switched"
    faults_fired
}

test_extended_64() {
    quiet extended 8
}

test_extended_32() {
    quiet extended 4
}

# won_by_uid N: runs N operations; prints the successes that compared with a UID of a
# get
won_by_uid() {
    local tries won
    for ((tries = 0; tries < 1800; ++tries)); do
        won=$(awk '$1 == "gcas" && $4 != "" && $2 >= 2 ^ 63 && $4 "" == $2 ""' \
              client.*.out | wc -l)
        [ "$won" -lt "$1" ] || return 0
        pause 0.1
    done
    fail "only $won successes compared with a UID"
}

# "Get, then compare and swap until it succeeds": a get may return a UID. A successful
# CSWAP that compares with it must return it, independent of the resolved value
test_extended_get_then_cswap() {
    start extended 2
    clients 2 8 0 1 gcas
    won_by_uid 20
    release
    finish
    judge gcas
}

test_proxy_64() {
    quiet proxy 8
}

# without_extended: $run starts programs with the plugin as configure --disable-extended builds
# it. Only two of its objects ask for that; it has none of the modes' rooms, so it is linked
# only if nothing else knows of them
without_extended() {
    local objects=$RCV_BUILD/src/uct/ib/varuna file cflags libs
    # variable NAME: prints it, as this build has it
    variable() {
        sed -n "s|^$1 = ||p" "$objects/Makefile" | sed "s|\$(top_builddir)|$RCV_BUILD|g"
    }
    cflags="$(variable BASE_CPPFLAGS) $(variable UCX_CPPFLAGS) $(variable BASE_CFLAGS)"
    libs="$(variable UCX_LDFLAGS) $(variable UCX_LIBS)"
    (cd "$top/src/uct/ib/varuna" && find . -name '*.c' ! -path '*/extended/*' \
        ! -name varuna_modes.c ! -name varuna_amo_mode.c ! -name varuna_baseline.c) |
        sed -E 's|(.*)/(.*)\.c$|\1 \2|' | while read -r folder file; do
        find "$objects/$folder/.libs" -name "libvaruna_objs_la-$file.o" -o \
            -name "libuct_varuna_la-$file.o"
    done >objects.list
    for file in core/varuna_amo_mode iface/varuna_modes; do
        gcc -O1 -fPIC -DHAVE_CONFIG_H -DUCT_VARUNA_HAVE_EXTENDED=0 $cflags -I"$RCV_BUILD" \
            -I"$top/src" -c -o "$(basename $file).o" "$top/src/uct/ib/varuna/$file.c" ||
            fail "$file does not compile"
    done
    gcc -shared -o reduced.so ./*.o @objects.list $libs -lmlx5 -libverbs -ldl -lpthread \
        -Wl,-z,nodelete,-z,defs,-Bsymbolic >link.log 2>&1 ||
        fail "it is not linked: $(tail -n 3 link.log)"
    ! nm reduced.so | grep -E 'uct_varuna_(uid|slots|arena|amo_sm|home_move)' ||
        fail "it has parts of the mode"
    printf '#!/bin/sh\nexec "%s" -l "%s" "$@"\n' "$run" "$PWD/reduced.so" >reduced_run
    chmod +x reduced_run
    run=$PWD/reduced_run
}

test_proxy_32() {
    without_extended
    quiet proxy 4
}

# refused WORDS COMMAND...: fails unless COMMAND fails and says why
refused() {
    local words=$1 status=0
    shift
    timeout 300 "$emu" exec -n "$fabric" 1 -- "$@" >refused.out 2>&1 </dev/null || status=$?
    [ $status != 0 ] || fail "$* works"
    grep -q "$words" refused.out || fail "$*: $(tail -n 3 refused.out)"
}

# Neither a mode that is not built, nor a peer that uses it, is taken for another one
test_mode_that_is_not_built() {
    start extended 1
    without_extended
    refused 'ATOMIC_MODE=extended is not in this rc_varuna.*: use proxy or native' \
        "$run" "$app" server
    UCX_RC_VARUNA_ATOMIC_MODE=proxy \
        refused "atomics of mode 'extended'.*: set UCX_RC_VARUNA_ATOMIC_MODE=proxy on both" \
        "$run" "$app" client "$address" 1 8 10 1 fadd
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 2 server.err)"
}

# The result of a compare-and-swap is lost with the link, after its execution
test_extended_result_is_lost() {
    local nth
    for nth in 301 302 303; do
        faulty extended 8 ack host=1 link=0 op=cas nth=$nth silent=1:0
    done
    faulty extended 4 ack host=1 link=0 op=cas nth=305 silent=1:0
}

test_extended_request_is_lost() {
    local nth
    for nth in 301 302 303; do
        faulty extended 8 packet host=1 link=0 op=cas nth=$nth down=1:0
    done
    faulty extended 4 packet host=1 link=0 op=cas nth=305 down=1:0
}

test_extended_body_is_lost() {
    faulty extended 8 packet host=1 link=0 op=write nth=201 silent=1:0
}

# The port of the target's home NIC goes down and returns; the proxy waits for it
target_port_returns() {
    local mode=$1
    shift
    start "$mode" 3
    fault "$@" down=0:0
    clients 3 8 0 4 fadd add cas swap bits
    await_faults
    sleep 2
    link 0:0 up
    progressed 100
    release
    finish
    judge fadd add cas swap
    faults_fired
}

test_extended_target_port_returns() {
    target_port_returns extended packet host=1 link=0 op=cas nth=301
}

test_proxy_target_port_returns() {
    target_port_returns proxy packet host=1 link=0 op=send nth=101
}

# Datagrams are not acknowledged
test_proxy_link_fails() {
    local point=ack
    [ $nics = mlx5 ] || point=exec
    faulty proxy 8 $point host=1 link=0 op=send nth=201 down=1:0
}

# Clients are killed at random points of operations. When the others have finished, only
# the server's worker finds their UIDs.
test_client_dies() {
    local word tries
    export UCX_RC_VARUNA_ORPHAN_TIMEOUT=1s
    export UCX_LOG_FILE=stderr # Keep the log apart from the server's output
    UCX_LOG_LEVEL=debug
    start extended 3
    UCX_LOG_LEVEL=info
    unset UCX_LOG_FILE
    clients 3 8 100000000 4 fadd add cas swap bits
    progressed 300
    for ((tries = 0; tries < 1800; ++tries)); do
        [ "$(cat client.*.out | grep -c '^fadd')" -le 100 ] || break
        pause 0.1
    done
    for pid in "${pids[@]}"; do
        pkill -KILL -P "$pid" || fail "client $pid had ended before"
    done
    for pid in "${pids[@]}"; do
        ! wait "$pid" || fail "a client was not killed"
    done
    # Rule 7: the worker resolves their slots, and frees them
    await 120 server.err 'slots from [0-9]* are free again' 3
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 2 server.err)"
    [ "$(word 0)" -gt 100 ] || fail "too few operations: $(word 0)"
    for word in 0 1 2 3 4; do
        [ "$(word $word | wc -c)" -lt 17 ] ||
            fail "a UID remains in word $word: $(word $word)"
    done
    awk '$1 == "fadd" && NF == 2 { print $2 }' client.*.out | sort -n |
        uniq -d >doubled
    [ ! -s doubled ] || fail "results twice: $(head -n 3 doubled)"
}

# Only one writer, on RC: the mode guarantees no more. On DC the log entry may be missing, and
# the word alone does not show whether the compare-and-swap was executed
test_reread_result_is_lost() {
    start reread 1
    fault ack host=1 link=0 type=rc op=cas nth=101 \
        silent=1:0
    clients 1 8 1000 1 cas
    finish
    judge cas
    grep -q 'rc_varuna: switched' client.1.out || fail "nothing was switched"
    faults_fired
}

test_mismatch_is_refused() {
    start extended 1
    UCX_RC_VARUNA_ATOMIC_MODE=native
    clients 1 8 10 1 fadd
    ! wait "${pids[0]}" || fail "a native client accessed extended memory"
    grep -q "ATOMIC_MODE to the same" client.1.err client.1.out ||
        fail "no message: $(tail -n 3 client.1.err client.1.out)"
    exec 9>&-
    wait $server || fail "the server ended with $?"
}

run_tests
