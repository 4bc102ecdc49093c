#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# UCP uses only rc_varuna for its atomics of 32 and 64 bits, as device atomics in mode
# extended and as CPU atomics in mode proxy. ucx_info shows it, and a UCP program checks
# it with a target that makes no progress (test/e2e/atomics/ft_ucp_amo.c).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

app=$apps/ft_ucp_amo
export UCX_TLS=rc_varuna

# rc_varuna's mode and UCP's
pairs=('proxy cpu' 'proxy guess')
! has_extended || pairs+=('extended device' 'extended guess')

declare -A domains=([extended]=device [proxy]=cpu)

# use MODE UCP_MODE: selects the modes
use() {
    export UCX_RC_VARUNA_ATOMIC_MODE=$1 UCX_ATOMIC_MODE=$2
}

# on HOST COMMAND...: runs it for at most ${limit:-200} seconds
on() {
    local host=$1
    shift
    timeout "${limit:-200}" "$emu" exec -n "$fabric" "$host" -- "$run" "$@"
}

# All ten operations in both widths, on each link
test_ucx_info_tells_all_operations() {
    local mode op
    fabric_up
    for mode in extended proxy; do
        export UCX_RC_VARUNA_ATOMIC_MODE=$mode
        on 0 ucx_info -d -t rc_varuna >out 2>&1 || fail "$(tail -n 3 out)"
        for op in add and or xor fadd fand for fxor swap cswap; do
            [ "$(grep -c " atomic_$op: 32, 64 bit" out)" -eq 2 ] ||
                fail "$mode: $op: $(grep " atomic_$op:" out)"
        done
        [ "$(grep -c " domain: ${domains[$mode]}" out)" -eq 2 ] ||
            fail "$mode: $(grep domain: out)"
    done
}

# selects RESULT: checks the worker's atomics, of one device or of all CPUs, and the
# endpoint's lane for them
selects() {
    on 0 ucx_info -ew -u a >out 2>&1 || fail "$(tail -n 3 out)"
    grep -qE "atomics: $1\$" out || fail "$(grep atomics: out)"
}

test_ucp_selects_atomics() {
    local modes
    fabric_up
    for modes in "${pairs[@]}"; do
        use $modes
        selects '[0-9]+:rc_varuna/varuna_mlx5_0:1(, [0-9]+:rc_varuna/varuna_mlx5_1:1)?'
        grep -qE 'lane\[0\]: .*rc_varuna/varuna_mlx5_0:1.* amo#0' out ||
            fail "$modes: $(grep lane out)"
    done
    # ... and shows it if it does not
    use extended cpu
    selects ' *'
    ! grep -q 'amo#' out || fail "$(grep lane out)"
    use proxy device
    selects ' *'
    ! grep -q 'amo#' out || fail "$(grep lane out)"
}

# works SECONDS: runs a server, and a client with this time limit
works() {
    local i server status=0
    rm -f address end
    mkfifo end
    limit=300 on 0 "$app" server "$PWD/address" <end >server.out 2>&1 &
    server=$!
    exec 7>end
    for ((i = 0; i < 1200; ++i)); do
        [ ! -e address ] || break
        pause 0.05
    done
    limit=$1 on 1 "$app" client "$PWD/address" >client.out 2>&1 || status=$?
    exec 7>&-
    wait $server || fail "the server: $(tail -n 3 server.out)"
    return $status
}

test_program_with_atomics() {
    local modes
    fabric_up
    for modes in "${pairs[@]}"; do
        use $modes
        works 200 || fail "$modes: $(tail -n 3 client.out)"
        grep -qx 'ft: ok 22 atomics' client.out ||
            fail "$modes: $(tail -n 3 client.out)"
    done
}

# UCP's software atomics do not work with such a target, so the test above has not used
# them
test_emulated_atomics_need_the_target() {
    fabric_up
    use extended cpu
    ! works 2 || fail "completed without the target: $(tail -n 3 client.out)"
}

# adder NAME HOST TLS PAUSE
adder() {
    UCX_TLS=$3 limit=300 on "$2" "$apps/ft_ucp_add" other "$PWD/owner" 2000 "$4" \
        >"$1.out" 2>&1 &
    pids+=($!)
}

# lane FILE TRANSPORT: it has the atomics
lane() {
    grep -qE "lane\[[0-9]\]: .*$2/.* amo#" "$1" ||
        fail "$1: not by $2: $(grep lane "$1")"
}

# One word, and four ways to change it at the same time: by the owner's instructions, over
# "self", over "posix" by another process of its host, and by rc_varuna. The adders of
# the other "host" are on the same machine, so they are not offered posix
test_words_are_shared_with_other_transports() {
    local pid pids=() i width
    fabric_up
    use proxy guess
    mkfifo end
    UCX_TLS=rc_varuna,posix,self limit=300 on 0 "$apps/ft_ucp_add" owner "$PWD/owner" \
        2000 200 <end >owner.out 2>&1 &
    pids+=($!)
    exec 7>end
    for ((i = 0; i < 1200; ++i)); do
        [ ! -e owner ] || break
        pause 0.05
    done
    adder posix 0 rc_varuna,posix,self 200
    adder remote 1 rc_varuna 0
    adder other_remote 1 rc_varuna 0
    for i in owner posix remote other_remote; do
        await 60 $i.out '^ft: ready'
    done
    touch owner.go
    # None goes on, and so ends, before all have begun
    for i in owner posix remote other_remote; do
        await 60 $i.out '^ft: begun'
    done
    touch owner.all
    for pid in "${pids[@]:1}"; do
        wait $pid || fail "$(tail -n 3 posix.out remote.out other_remote.out)"
    done
    exec 7>&-
    wait "${pids[0]}" || fail "the owner: $(tail -n 3 owner.out)"
    lane owner.out self
    lane posix.out posix
    lane remote.out rc_varuna
    lane other_remote.out rc_varuna
    for width in 8 4; do
        cat ./*.out | awk -v w=$width '($1 == "fadd" || $1 == "cpu") && $2 == w { print $3 }' |
            sort -n | awk '$1 != NR - 1 { print "result " $1 " instead of " NR - 1; exit 1 }
                END { exit !(NR == 5000) }' >wrong ||
            fail "$width bytes: results are missing or duplicate: $(cat wrong)"
        # Each began before any of them had ended
        awk -v w=$width '($1 == "fadd") && ($2 == w) {
            if (!(FILENAME in low)) low[FILENAME] = $3
            high[FILENAME] = $3
        } END {
            for (f in low) for (g in low) if (low[f] > high[g]) {
                print f " began after " g " had ended"; exit 1
            }
        }' ./*.out || fail "$width bytes: they were not at the same time"
        grep -qx "word $width 5000" owner.out || fail "$(grep "^word" owner.out)"
    done
}

# ask_server: it checks its pointers
ask_server() {
    local checks
    checks=$(grep -c '^ft: checked' server.out) || true
    echo >&7
    await 60 server.out '^ft: checked' $((checks + 1))
}

# ask_client PATTERN: its atomic ends like this
ask_client() {
    echo >&8
    await 60 client.out "$1"
}

# null_checks WHEN [altstack]: the target is a runtime whose handler of SIGSEGV ends by a
# jump. UCX must not handle that signal itself
null_checks() {
    local server client
    fabric_up
    use proxy cpu
    export UCX_ERROR_SIGNALS=
    mkfifo server.in client.in
    on 0 "$apps/ft_ucp_null" server "$PWD/address" "$@" <server.in >server.out 2>&1 8>&- &
    server=$!
    exec 7>server.in
    await_true test -e address
    on 1 "$apps/ft_ucp_null" client "$PWD/address" <client.in >client.out 2>&1 7>&- &
    client=$!
    exec 8>client.in
    ask_client '^ft: added 1$'
    ask_server
    ask_client '^ft: added 2$'
    ask_server # From now on the word is not accessible
    ask_client '^ft: refused: Address not valid'
    ask_server
    exec 8>&-
    wait $client || fail "the client: $(tail -n 3 client.out)"
    exec 7>&-
    wait $server || fail "the server ended with $?: $(tail -n 3 server.out)"
}

test_null_checks_before()              { null_checks before; }
test_null_checks_before_with_a_stack() { null_checks before altstack; }
test_null_checks_after()               { null_checks after; }
test_null_checks_after_with_a_stack()  { null_checks after altstack; }

run_tests
