#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Atomics which are executed exactly once, end to end: clients on hosts of their own
# contend for the words of one server, without and with faults of links. Judged are
# the histories of all together: fetch-and-adds by their sorted results, swaps and
# compare-and-swaps as chains of unique values, and what the server's CPU finds in
# the words behind the clients' flushes (test/apps/ft_amo.c).

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

emu=$RCV_PREFIX/bin/mlx5emu
run=$RCV_PREFIX/bin/rc_varuna_run
app=$RCV_BUILD/test/apps/ft_amo

unset "${!UCX_@}"
export UCX_LOG_LEVEL=info
export UCX_RC_MLX5_TIMEOUT=5ms UCX_RC_MLX5_RETRY_COUNT=2
export UCX_DC_MLX5_TIMEOUT=5ms UCX_DC_MLX5_RETRY_COUNT=2
export UCX_RC_VARUNA_PACKET_LIFETIME=60ms

# word N: what the server found
word() {
    awk -v n="$1" '$1 == "word" && $2 == n { print $3 }' server.out
}

# judge KIND...: the histories in client.*.out
judge() {
    local kind
    for kind in "$@"; do
        case $kind in
        fadd)
            awk '$1 == "fadd" { print $2 }' client.*.out | sort -n |
                awk '$1 != NR - 1 { print "result " $1 " instead of " NR - 1
                     exit 1 } END { print "fadd", NR > "count" }' ||
                fail "fetch-and-add: results are missing or doubled"
            [ "$(word 0)" = "$(awk '{ print $2 }' count)" ] ||
                fail "fetch-and-add: $(word 0) is left, not $(cat count)"
            ;;
        add)
            [ "$(word 1)" = "$(cat client.*.out | grep -c '^add$')" ] ||
                fail "add: $(word 1) is left"
            ;;
        cas)
            awk -v last="$(word 2)" '
                $1 == "cas" && $4 == $2 {
                    if ($2 in next_of) { print "two swapped " $2; exit 1 }
                    next_of[$2] = $3
                    ++count
                }
                $1 == "cas" { value[$3] = 1; result[$4] = 1 }
                END {
                    for (r in result)
                        if (r != 0 && !(r in value)) {
                            print "nobody wrote " r; exit 1
                        }
                    for (at = 0; at in next_of; at = next_of[at]) ++length_
                    if (length_ != count || at != last) {
                        print "a chain of " length_ " to " at ", but " count \
                              " succeeded and " last " is left"
                        exit 1
                    }
                    if (count < 10) { print "only " count " succeeded"; exit 1 }
                }' client.*.out >judge.out ||
                fail "compare-and-swap: $(cat judge.out)"
            ;;
        swap)
            { awk '$1 == "swap" { print $3 }' client.*.out; word 3; } |
                sort -n >got
            { echo 0; awk '$1 == "swap" { print $2 }' client.*.out; } |
                sort -n >put
            cmp -s got put || fail "swap: $(diff got put | head -n 3)"
            ;;
        esac
    done
}

# start MODE CLIENTS: a fabric and its server
start() {
    local i
    fabric=atomics-$$
    check "$emu" up -n "$fabric" --hosts $(($2 + 1)) --links 2
    trap '"$emu" down -n "'"$fabric"'" --force >/dev/null 2>&1' EXIT
    export UCX_RC_VARUNA_ATOMIC_MODE=$1
    rm -f client.*.out stop
    mkfifo stop
    timeout 120 "$emu" exec -n "$fabric" 0 -- "$run" "$app" server \
        <stop >server.out 2>server.err &
    server=$!
    exec 9>stop
    for ((i = 0; i < 200; ++i)); do
        ! grep -q '^ft: address' server.out || break
        sleep 0.05
    done
    address=$(sed -n 's/^ft: address//p' server.out)
    [ -n "$address" ] || fail "no server: $(tail -n 2 server.out server.err)"
}

# clients N WIDTH COUNT DEPTH KIND...
clients() {
    local n=$1 i
    shift
    pids=()
    for ((i = 1; i <= n; ++i)); do
        timeout 120 "$emu" exec -n "$fabric" "$i" -- "$run" "$app" client \
            "$address" "$i" "$@" >"client.$i.out" 2>"client.$i.err" 9>&- &
        pids+=($!)
    done
}

finish() {
    local i=0 pid
    for pid in "${pids[@]}"; do
        i=$((i + 1))
        wait "$pid" ||
            fail "client $i ended with $?: $(tail -n 1 "client.$i.out" |
                  cut -c 1-200; grep -v INFO "client.$i.err" | tail -n 2)"
    done
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 2 server.err)"
}

stop_fabric() {
    if [ -n "${1:-}" ]; then
        "$emu" fault list -n "$fabric" --check >faults.log 2>&1 ||
            fail "the fault did not fire: $(cat faults.log)"
    fi
    check "$emu" down -n "$fabric"
    trap - EXIT
}

# quiet MODE WIDTH: nothing fails
quiet() {
    start "$1" 3
    clients 3 "$2" 1500 4 fadd add cas swap bits
    finish
    judge fadd add cas swap
    stop_fabric
}

# faulty MODE WIDTH RULE...: one client's link fails
faulty() {
    local mode=$1 width=$2
    shift 2
    start "$mode" 3
    check "$emu" fault add -n "$fabric" "$@" >/dev/null
    clients 3 "$width" 1500 4 fadd add cas swap bits
    finish
    judge fadd add cas swap
    grep -q 'rc_varuna: switched' client.*.out || fail "$*: nothing was switched"
    stop_fabric yes
}

test_extended_64() {
    quiet extended 8
}

test_extended_32() {
    quiet extended 4
}

test_proxy_64() {
    quiet proxy 8
}

test_proxy_32() {
    quiet proxy 4
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

# The port of the target's home NIC goes down and comes back: the proxy waits for it
target_port_returns() {
    local mode=$1
    shift
    start "$mode" 3
    check "$emu" fault add -n "$fabric" "$@" down=0:0 >/dev/null
    clients 3 8 600 4 fadd add cas swap bits
    sleep 4
    check "$emu" link -n "$fabric" 0:0 up
    finish
    judge fadd add cas swap
    stop_fabric yes
}

test_extended_target_port_returns() {
    target_port_returns extended packet host=1 link=0 op=cas nth=301
}

test_proxy_target_port_returns() {
    target_port_returns proxy packet host=1 link=0 op=send nth=101
}

test_proxy_link_fails() {
    faulty proxy 8 ack host=1 link=0 op=send nth=201 down=1:0
}

# A client is killed at some point of some operation. Nobody meets what it left but
# the server's worker, when the others are done.
test_client_dies() {
    local word tries=0
    export UCX_RC_VARUNA_ORPHAN_TIMEOUT=1s
    export UCX_LOG_FILE=stderr # Not among the server's own words
    UCX_LOG_LEVEL=debug
    start extended 3
    UCX_LOG_LEVEL=info
    unset UCX_LOG_FILE
    clients 3 8 100000000 4 fadd add cas swap bits
    for word in 1 2 3; do
        while ! grep -qs '^fadd' "client.$word.out"; do
            tries=$((tries + 1))
            [ $tries -lt 600 ] || fail "client $word does nothing"
            sleep 0.1
        done
    done
    sleep 1
    for pid in "${pids[@]}"; do
        pkill -KILL -P "$pid" || fail "client $pid was gone before"
    done
    for pid in "${pids[@]}"; do
        ! wait "$pid" || fail "a client ended by itself"
    done
    # Rule 7: the worker sweeps what they had, and gives it back
    while [ "$(grep -ac 'slots from [0-9]* are free again' server.err)" -lt 3 ]
    do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "slots of the dead stay taken"
        sleep 0.1
    done
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 2 server.err)"
    [ "$(word 0)" -gt 100 ] || fail "nothing was done: $(word 0)"
    for word in 0 1 2 3 4; do
        [ "$(word $word | wc -c)" -lt 17 ] ||
            fail "a UID stays in word $word: $(word $word)"
    done
    awk '$1 == "fadd" && NF == 2 { print $2 }' client.*.out | sort -n |
        uniq -d >doubled
    [ ! -s doubled ] || fail "results twice: $(head -n 3 doubled)"
    stop_fabric
}

# One writer only: the mode promises no more
test_reread_result_is_lost() {
    start reread 1
    check "$emu" fault add -n "$fabric" ack host=1 link=0 op=cas nth=301 \
        silent=1:0 >/dev/null
    clients 1 8 1000 1 cas
    finish
    judge cas
    grep -q 'rc_varuna: switched' client.1.out || fail "nothing was switched"
    stop_fabric yes
}

test_mismatch_is_refused() {
    start extended 1
    UCX_RC_VARUNA_ATOMIC_MODE=native
    clients 1 8 10 1 fadd
    ! wait "${pids[0]}" || fail "a native client worked on extended memory"
    grep -q "ATOMIC_MODE to the same" client.1.err client.1.out ||
        fail "no message: $(tail -n 3 client.1.err client.1.out)"
    exec 9>&-
    wait $server || fail "the server ended with $?"
    stop_fabric
}

run_tests
