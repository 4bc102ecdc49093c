#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# UCX's own ucx_perftest over rc_varuna, with each of its tests. While it runs, the
# link in use is cut at a packet with a given number; the other one takes over and
# is cut in its turn, when the first one is back. The tests have to end well on both
# sides with all of their iterations, each cut must have been made, rc_varuna must
# have switched, and the trace must have no request executed twice. RC_VARUNA_LONG=1
# takes all tests with threads, those that can sleep sleeping, and UCT's with each way
# to send.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

perftest=${RCV_PERFTEST:-ucx_perftest}
iodemo=$apps/io_demo
port=$((20000 + RANDOM % 10000))
cuts=0
# Selectors for the packets that count, if not all do
of_data=

export UCX_TLS=rc_varuna UCX_RC_VARUNA_ATOMIC_MODE=extended
# The second cut wants the traffic to stay where it is
export UCX_RC_VARUNA_RETURN_DELAY=inf

uct_tests=(am_lat put_lat add_lat get fadd swap cswap am_bw put_bw add_mr)
ucp_tests=(tag_lat tag_bw tag_sync_lat tag_sync_bw ucp_put_lat ucp_put_bw
           ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap stream_bw stream_lat
           ucp_am_lat ucp_am_bw)

rule() {
    check "$emu" fault add -n "$fabric" "$@" >>rules.log
}

# cut_twice HOW: link 0 of the client at a packet, then link 1, on which link 0 has
# returned meanwhile
cut_twice() {
    rule packet link=0 $of_data nth=100 "$1=1:0"
    rule packet link=1 $of_data nth=60 up=1:0
    rule packet link=1 $of_data nth=150 "$1=1:1"
}

# bring_back: link 0 of the client, once all cuts are made. Rules count packets on a
# link of their own: where a slow start has link 1 come to its number first, the last
# cut leaves no link
bring_back() {
    until "$emu" fault list -n "$fabric" --check >/dev/null 2>&1; do
        sleep 0.2
    done
    "$emu" link -n "$fabric" 1:0 up
}

# next_port: one that nobody has, or had a moment ago
next_port() {
    local used
    used=$(awk 'NR > 1 { sub(/.*:/, "", $2); print $2 }' /proc/net/tcp \
               /proc/net/tcp6 2>/dev/null)
    port=$((port + 1))
    while grep -q "$(printf %04X $port)" <<<"$used"; do
        port=$((port + 1))
    done
}

# pair ARGUMENT...: a server on host 0, its client on host 1
pair() {
    local server status=0
    next_port
    timeout 100 "$emu" exec -n "$fabric" 0 -- "$run" "$perftest" \
        -p $port "$@" >server.log 2>&1 &
    server=$!
    await_listener $port $server
    timeout 100 "$emu" exec -n "$fabric" 1 -- "$run" "$perftest" \
        -p $port localhost "$@" >client.log 2>&1 || status=$?
    [ $status -eq 0 ] || fail "$*: the client ended with $status:" \
                              "$(tail -n 4 client.log)"
    wait "$server" || fail "$*: the server failed: $(tail -n 4 server.log)"
}

# its_results COUNT: the last line of numbers tells of all iterations, and rates
its_results() {
    awk -v count="$1" '
        { line = $0; sub(/^(Final:|\[thread [0-9]+\])/, "", line); split(line, f) }
        line ~ /^ *[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+( |$)/ {
            good = (f[1] >= count) && ($NF > 0)
        }
        END { exit !good }' client.log ||
        fail "not all results are there: $(tail -n 2 client.log)"
    # Newer series of UCX ask the kernel for routes, which some kernels don't offer
    if grep -E ' (ERROR|FATAL) |Assertion' client.log server.log |
       grep -vE ' (netlink|sock)\.c:' >errors; then
        fail "there are errors: $(head -n 3 errors)"
    fi
}

# cuts_were_made WORDS...: and rc_varuna has done what it is for
cuts_were_made() {
    "$emu" fault list -n "$fabric" --check >faults.log ||
        fail "$*: a link was not cut: $(cat faults.log)"
    grep -q 'rc_varuna: switched' client.log server.log ||
        fail "$*: nothing was switched"
    check "$emu" fault clear -n "$fabric"
    cuts=$((cuts + 2))
}

# cut_under COUNT ARGUMENT...: the test with so many iterations, and both cuts. Every
# other time they are silent, unless link 1 has so many packets of its own that link 0
# is back before anybody can notice that ($always_told): a port event is not missed.
cut_under() {
    local count=$1 how=down back
    shift
    ((cuts % 4)) || how=${always_told:-silent}
    link 1:0 up
    link 1:1 up
    cut_twice $how
    bring_back &
    back=$!
    pair -n "$count" -w 10 "$@"
    kill $back 2>/dev/null || true
    its_results "$count"
    cuts_were_made "$@"
}

# judge: what the trace has, and how often a link was cut
judge() {
    local status=0
    "$emu" trace -n "$fabric" --check >trace.log || status=$?
    [ $status -ne 1 ] || fail "the trace: $(tail -n 3 trace.log)"
    fabric_down
    echo "# $cuts links cut"
}

# iterations TEST: a latency test has each packet answered before the next
iterations() {
    case $1 in
    *_bw | *_mr) echo 1500 ;;
    *) echo 250 ;;
    esac
}

uct_test() {
    cut_under "$(iterations "$1")" -x rc_varuna -d varuna_mlx5_0:1 -t "$@"
}

# UCP 1.18 and 1.22 have no atomics with error handling but by their old protocols,
# whatever the transport
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
            uct_test $name -D zcopy -s 8000 # A segment is the most
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
    # A put wakes nobody up, so tests that wait for one in memory don't sleep
    [ -z "${RC_VARUNA_LONG:-}" ] || names=(tag_lat tag_bw tag_sync_lat tag_sync_bw
                                           stream_bw stream_lat ucp_am_lat ucp_am_bw)
    for name in "${names[@]}"; do
        ucp_test "$name" -e -E sleep
    done
    judge
}

# Two devices of rc_varuna, the link of each standing by for the other one
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
                fail "$name: nobody left $link:" \
                     "$(grep -hoE 'switched .* reason' client.log server.log)"
        done
    done
    judge
}

# Each thread has a worker of its own. Small queues: it is about their number. An
# interface has one timer (varuna_clock.h): UCX 1.13 bears 300 in a process. Packets are
# counted without control messages, which are longer: 32 endpoints that open have more
# than a hundred of them, on both links
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

# all_is_done COUNT: so many reads and writes of io_demo's are over, and none waits
all_is_done() {
    local done
    done=$(sed -n 's/.*DEMO.* total min:.* total:\([0-9]*\) | read .*/\1/p' \
               client.log | awk '{ sum += $1 } END { print sum + 0 }')
    [ "$done" -eq "$1" ] || fail "$done of $1 reads and writes"
    if grep -aE ' ERROR |corrupt|mismatch' client.log server.log |
       grep -avE ' (netlink|sock)\.c:' >errors; then
        fail "there are errors: $(head -n 3 errors)"
    fi
}

# An application of UCX's: servers and clients that check what they read and wrote.
# It connects by address, for which UCP wants a transport on the device of that
# address; the data take rc_varuna. Its requests (-r) are small: UCP 1.13 posts what
# waited for the connection as it would have gone to the other transport, which
# takes more in one message
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
        timeout -s INT 100 "$emu" exec -n "$fabric" 0 -- "$run" \
            "$iodemo" -p $port -q $api -r 96 -d 512:100000 >server.log 2>&1 &
        server=$!
        await_listener $port $server
        timeout 100 "$emu" exec -n "$fabric" 1 -- "$run" "$iodemo" \
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
