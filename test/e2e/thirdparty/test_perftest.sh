#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# All tests of ucx_perftest over rc_varuna. Meanwhile the link in use is cut at a packet
# with a given number; the other link takes over, and is cut when the first one has
# returned. Both sides must exit with status 0 after all iterations, each cut must have
# been made, rc_varuna must have switched, and the trace must contain no request
# executed twice. RC_VARUNA_LONG=1 adds all tests with threads, tests that sleep, and
# UCT's tests with each way to send.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

perftest=${RCV_PERFTEST:-ucx_perftest}
iodemo=$apps/io_demo
cuts=0
# Selectors for the packets to count, or all
of_data=

export UCX_TLS=rc_varuna
! has_extended || export UCX_RC_VARUNA_ATOMIC_MODE=extended
# For the second cut, traffic must stay on link 1
export UCX_RC_VARUNA_RETURN_DELAY=inf

uct_tests=(am_lat put_lat add_lat get fadd swap cswap am_bw put_bw add_mr)
ucp_tests=(tag_lat tag_bw tag_sync_lat tag_sync_bw ucp_put_lat ucp_put_bw
           ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap stream_bw stream_lat
           ucp_am_lat ucp_am_bw)

rule() {
    check "$emu" fault add -n "$fabric" "$@" >>rules.log
}

# cut_twice HOW: cuts link 0 of the client at a packet, then link 1; packets on link 1
# have brought link 0 back meanwhile
cut_twice() {
    rule packet link=0 $of_data nth=100 "$1=1:0"
    rule packet link=1 $of_data nth=60 up=1:0
    rule packet link=1 $of_data nth=150 "$1=1:1"
}

# bring_back: brings up link 0 of the client after all cuts. Each rule counts packets on
# its own link: if link 1 reaches its number first after a slow start, no link is left
bring_back() {
    until "$emu" fault list -n "$fabric" --check >/dev/null 2>&1; do
        sleep 0.2
    done
    "$emu" link -n "$fabric" 1:0 up
}

# pair ARGUMENT...: runs a server on host 0 and its client on host 1
pair() {
    local server status=0
    next_port
    timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" "$perftest" \
        -p $port "$@" >server.log 2>&1 &
    server=$!
    await_listener $port $server
    timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" "$perftest" \
        -p $port localhost "$@" >client.log 2>&1 || status=$?
    [ $status -eq 0 ] || fail "$*: the client ended with $status:" \
                              "$(tail -n 4 client.log)"
    wait "$server" || fail "$*: the server failed: $(tail -n 4 server.log)"
}

# its_results COUNT: checks that the last line of numbers has all iterations, and rates
its_results() {
    awk -v count="$1" '
        { line = $0; sub(/^(Final:|\[thread [0-9]+\])/, "", line); split(line, f) }
        line ~ /^ *[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+( |$)/ {
            good = (f[1] >= count) && ($NF > 0)
        }
        END { exit !good }' client.log ||
        fail "not all results were printed: $(tail -n 2 client.log)"
    # Newer series of UCX need the kernel's routes, which some kernels do not offer
    if grep -E ' (ERROR|FATAL) |Assertion' client.log server.log |
       grep -vE ' (netlink|sock)\.c:' >errors; then
        fail "errors were logged: $(head -n 3 errors)"
    fi
}

# cuts_were_made WORDS...: checks that links were cut and rc_varuna has switched
cuts_were_made() {
    "$emu" fault list -n "$fabric" --check >faults.log ||
        fail "$*: a link was not cut: $(cat faults.log)"
    grep -q 'rc_varuna: switched' client.log server.log ||
        fail "$*: nothing was switched"
    check "$emu" fault clear -n "$fabric"
    cuts=$((cuts + 2))
}

# all_fired: whether all cuts were made. If a client gets no CPU for seconds, link 0 may return
# before the client misses an answer; it has few packets on link 1 then
all_fired() {
    "$emu" fault list -n "$fabric" --check >/dev/null
}

# cut_under COUNT ARGUMENT...: runs the test with COUNT iterations and both cuts, again if not
# all cuts were made. Every other time the cuts are silent, unless $always_told: then link 1 has
# so many packets that link 0 would return before the cut is detected without a port event.
cut_under() {
    local count=$1 how=down back tries
    shift
    ((cuts % 4)) || how=${always_told:-silent}
    for ((tries = 0; tries < 5; ++tries)); do
        link 1:0 up
        link 1:1 up
        cut_twice $how
        bring_back &
        back=$!
        pair -n "$count" -w 10 "$@"
        kill $back 2>/dev/null || true
        its_results "$count"
        ! all_fired || break
        check "$emu" fault clear -n "$fabric"
    done
    cuts_were_made "$@"
}

# judge: checks the trace, and prints how often a link was cut
judge() {
    local status=0
    "$emu" trace -n "$fabric" --check >trace.log || status=$?
    [ $status -ne 1 ] || fail "the trace: $(tail -n 3 trace.log)"
    echo "# $cuts links cut"
}

# iterations TEST: fewer for a latency test, which waits for each answer
iterations() {
    case $1 in
    *_bw | *_mr) echo 1500 ;;
    *) echo 250 ;;
    esac
}

uct_test() {
    cut_under "$(iterations "$1")" -x rc_varuna -d varuna_mlx5_0:1 -t "$@"
}

# With error handling, UCP 1.18 and 1.22 support atomics only by their old protocols,
# over any transport
ucp_test() {
    case $1 in
    ucp_*add | ucp_*swap)
        UCX_PROTO_ENABLE=n cut_under "$(iterations "$1")" -t "$@"
        ;;
    *)
        cut_under "$(iterations "$1")" -t "$@"
        ;;
    esac
}

test_uct() {
    local name
    fabric_up --trace 262144
    for name in "${uct_tests[@]}"; do
        case $name in
        get) uct_test $name -D bcopy ;;
        *) uct_test $name ;;
        esac
    done
    if [ -n "${RC_VARUNA_LONG:-}" ]; then
        for name in am_lat put_lat am_bw put_bw; do
            uct_test $name -D bcopy -s 2000
        done
        for name in am_lat am_bw; do
            uct_test $name -D zcopy -s 8000 # A segment is the maximum
        done
        for name in put_lat put_bw get; do
            uct_test $name -D zcopy -s 20000
        done
    fi
    judge
}

test_ucp_with_error_handling() {
    local name
    fabric_up --trace 262144
    for name in "${ucp_tests[@]}"; do
        ucp_test "$name" -e
    done
    judge
}

test_threads() {
    local name
    fabric_up --trace 262144
    local names=(tag_bw ucp_put_lat ucp_get ucp_cswap)
    [ -z "${RC_VARUNA_LONG:-}" ] || names=("${ucp_tests[@]}")
    for name in "${names[@]}"; do
        ucp_test "$name" -e -T 2 -M multi
    done
    judge
}

test_sleep() {
    local name
    fabric_up --trace 262144
    local names=(tag_lat ucp_am_bw stream_lat)
    # A put wakes no process up, so tests that wait for one in memory do not sleep
    [ -z "${RC_VARUNA_LONG:-}" ] || names=(tag_lat tag_bw tag_sync_lat tag_sync_bw
                                           stream_bw stream_lat ucp_am_lat ucp_am_bw)
    for name in "${names[@]}"; do
        ucp_test "$name" -e -E sleep
    done
    judge
}

# Two devices of rc_varuna; the link of each is the backup of the other
test_two_rails() {
    local name link
    local always_told=down
    export UCX_MAX_RNDV_RAILS=2 UCX_RNDV_THRESH=8k
    export UCX_NET_DEVICES=varuna_mlx5_0:1,varuna_mlx5_1:1
    fabric_up --trace 262144
    for name in tag_bw ucp_am_bw; do
        cut_under 200 -t "$name" -e -s 262144
        check grep -qE \
            '(ep_cfg|cfg#).*rc_varuna/varuna_mlx5_0:1.* rc_varuna/varuna_mlx5_1:1' \
            client.log
        for link in mlx5_0:1 mlx5_1:1; do
            grep -qE "switched .*from=$link" client.log server.log ||
                fail "$name: no endpoint left $link:" \
                     "$(grep -hoE 'switched .* reason' client.log server.log)"
        done
    done
    judge
}

# Each thread has its own worker. Queues are small, because there are many. An interface
# has one timer (varuna_clock.h); UCX 1.13 supports 300 in a process. Rules do not count
# control messages, which are longer: to open 32 endpoints takes more than a hundred of
# them, on both links
test_32_workers() {
    local always_told=down of_data='op=send size=-32' log
    gcc -shared -fPIC -Wall -Wextra -Werror -D_GNU_SOURCE -o timers.so \
        "$top/test/e2e/thirdparty/timers.c" -ldl
    export UCX_NET_DEVICES=varuna_mlx5_0:1
    export UCX_IB_RX_QUEUE_LEN=256 UCX_RC_MLX5_RX_QUEUE_LEN=256
    export UCX_DC_MLX5_RX_QUEUE_LEN=256 UCX_RC_VARUNA_STANDBY_RX_QUEUE_LEN=128
    fabric_up --trace 262144
    export LD_PRELOAD=$PWD/timers.so
    cut_under 100 -t tag_bw -e -T 32 -M multi -E sleep
    unset LD_PRELOAD
    for log in client.log server.log; do
        grep -qx 'timers: 32 at a time' $log ||
            fail "32 interfaces have $(grep -a timers: $log || echo no timers) in $log"
    done
    judge
}

test_forks() {
    local children name log
    gcc -shared -fPIC -Wall -Werror -o forker.so "$top/test/e2e/thirdparty/forker.c"
    export LD_PRELOAD=$PWD/forker.so
    fabric_up --trace 262144
    for name in am_lat put_bw; do
        uct_test $name
        for log in client.log server.log; do
            children=$(sed -n 's/^forker: \([0-9]*\) children, 0 failed/\1/p' $log)
            ((children >= 3)) || fail "$(grep forker: $log) in $log"
            echo "# $children children in $log"
        done
    done
    unset LD_PRELOAD
    judge
}

# all_is_done COUNT: checks that COUNT reads and writes of io_demo are complete, and
# that none waits
all_is_done() {
    local done
    done=$(sed -n 's/.*DEMO.* total min:.* total:\([0-9]*\) | read .*/\1/p' \
               client.log | awk '{ sum += $1 } END { print sum + 0 }')
    [ "$done" -eq "$1" ] || fail "$done of $1 reads and writes"
    if grep -aE ' ERROR |corrupt|mismatch' client.log server.log |
       grep -avE ' (netlink|sock)\.c:' >errors; then
        fail "errors were logged: $(head -n 3 errors)"
    fi
}

# An application of UCX: servers and clients that check what they read and wrote. It
# connects by address, for which UCP needs a transport on the device of this address;
# data use rc_varuna. Its requests (-r) are small: UCP 1.13 posts requests that waited
# for the connection in the size for the other transport, which supports longer messages
test_io_demo() {
    local server status=0
    export UCX_TLS=rc_varuna,tcp UCX_MAX_RNDV_RAILS=1
    fabric_up --trace 262144
    for api in '' -A; do
        link 1:0 up
        link 1:1 up
        cut_twice silent
        next_port
        # Its server ends by a signal
        timeout -s INT 300 "$emu" exec -n "$fabric" 0 -- "$run" \
            "$iodemo" -p $port -q $api -r 96 -d 512:100000 >server.log 2>&1 &
        server=$!
        await_listener $port $server
        timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" "$iodemo" \
            -q $api -r 96 -i 300 -o read,write -d 512:100000 -c 3 -s 1 \
            127.0.0.1:$port >client.log 2>&1 ||
            fail "the client ended with $?: $(tail -n 4 client.log)"
        kill -INT "$server"
        wait "$server" || fail "the server: $(tail -n 4 server.log)"
        check grep -q "Client exit with status 'OK'" client.log
        all_is_done 300
        check grep -qE '(ep_cfg|cfg#).*(tag|am)\(rc_varuna' client.log
        cuts_were_made io_demo
    done
    judge
}

run_tests
