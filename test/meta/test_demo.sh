#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# The demo; its program, over TCP on this machine; its judge, which must refuse traces with
# one error each, and accept correct ones; and what it reads in logs about switches.

. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib/tap.sh"
. "$top/contrib/demo_switches.sh"

demo=${RCV_DEMO:-$RCV_BUILD/src/tools/demo/varuna_demo}
judge=${RCV_JUDGE:-$RCV_BUILD/src/tools/demo/demo_trace_check}
base=$((0x700000000000))
big=$((base + 4096))

# word EP SEQ INDEX: prints the contents of a put, as in demo_word.h
word() {
    printf '0x%016x' $(((0xa7 << 56) | ($1 << 48) | ($2 << 17) | $3))
}

# entry SEQ ADDR LENGTH DATA [FLAG [QPN [OP [HOST]]]]: prints a line of a trace
entry() {
    local duplicate=false partial=false last=false
    [ -z "${5:-}" ] || local "$5=true"
    printf '{"seq":%d,"op":"%s","host":%d,"addr":"0x%x","length":%d,' \
        "$1" "${7:-write}" "${8:-0}" "$2" "$3"
    printf '"data":"%s","qpn":%d,"src_qpn":7,"duplicate":%s,' \
        "$4" "${6:-1}" "$duplicate"
    printf '"partial":%s,"last":%s}\n' "$partial" "$last"
}

# Endpoint 0: two small puts into one slot, then a big one; endpoint 1: one
ledger() {
    cat >ledger <<END
area $base 1048576
put 0 1 $base 8
put 0 2 $base 8
put 0 3 $big 8192
put 1 1 $((base + 64)) 8
END
}

one() { entry "$1" "$base" 8 "$(word 0 1 0)"; }
two() { entry "$1" "$base" 8 "$(word 0 2 0)"; }
three() { entry "$1" "$big" 8192 "$(word 0 3 0)" "" "${2:-1}"; }
other() { entry "$1" $((base + 64)) 8 "$(word 1 1 0)" "" 3; }

# judged STATUS TEXT: runs the judge on ./trace, and checks its status and output
judged() {
    local out status=0
    ledger
    out=$("$judge" ledger 0 <trace 2>&1) || status=$?
    [ "$status" -eq "$1" ] || fail "status $status instead of $1: $out"
    [[ $out == *"$2"* ]] || fail "no \"$2\" in: $out"
}

test_judge_accepts_right_traces() {
    # as posted
    { one 1; other 2; two 3; three 4; } >trace
    judged 0 "executed=4"
    # other memory, and the same addresses on another host
    { one 1; two 2; three 3; other 4
      entry 5 4096 8 0x1 "" 1 send
      entry 6 "$base" 8 0x1 "" 1 write 1
      entry 7 $((base - 8)) 8 0x2; } >trace
    judged 0 "executed=4"
    # a repeated one that was not executed
    { one 1; two 2; three 3; other 4
      entry 5 "$base" 8 "$(word 0 2 0)" duplicate; } >trace
    judged 0 "suppressed=1"
}

test_judge_accepts_cut_puts() {
    # divided by UCX into two messages
    { one 1; two 2
      entry 3 "$big" 4096 "$(word 0 3 0)"
      entry 4 $((big + 4096)) 4096 "$(word 0 3 512)"; other 5; } >trace
    judged 0 "messages=5"
    # one message in two parts, and one of another queue between them
    { one 1; two 2
      entry 3 "$big" 4096 "$(word 0 3 0)" partial
      other 4
      entry 5 $((big + 4096)) 4096 "$(word 0 3 512)" last; } >trace
    judged 0 "messages=4"
    # cut by a failure, and repeated on another lane
    { one 1; two 2
      entry 3 "$big" 4096 "$(word 0 3 0)" partial
      three 4 2; other 5; } >trace
    judged 0 "cut=1"
}

test_judge_sees_lost_puts() {
    { one 1; two 2; other 3; } >trace
    judged 1 "never executed"
    { one 1; two 2; other 3
      entry 4 "$big" 4096 "$(word 0 3 0)" partial; } >trace
    judged 1 "never executed"
    { one 1; two 2; other 3
      entry 4 $((big + 4096)) 4096 "$(word 0 3 512)"; } >trace
    judged 1 "lacks bytes"
    { one 1; two 2; other 3
      entry 4 $((big + 4096)) 4096 "$(word 0 3 512)" last; } >trace
    judged 1 "without its beginning"
    : >trace
    judged 1 "never executed"
}

test_judge_sees_repeated_puts() {
    { one 1; two 2; two 3; three 4; other 5; } >trace
    judged 1 "again"
    # after its successor: memory is reverted
    { one 1; two 2; one 3; three 4; other 5; } >trace
    judged 1 "again"
    # the end of a cut one arrives after the repetition
    { one 1; two 2; other 3
      entry 4 "$big" 4096 "$(word 0 3 0)" partial
      three 5 2
      entry 6 $((big + 4096)) 4096 "$(word 0 3 512)" last; } >trace
    judged 1 "written again"
}

test_judge_sees_swapped_puts() {
    { two 1; one 2; three 3; other 4; } >trace
    judged 1 "was the next"
}

test_judge_sees_foreign_writes() {
    { one 1; two 2; three 3; other 4; entry 5 "$base" 8 0xdead; } >trace
    judged 1 "no put"
    { one 1; two 2; three 3; other 4
      entry 5 "$base" 8 "$(word 0 9 0)"; } >trace
    judged 1 "no put"
    { one 1; two 2; three 3; other 4
      entry 5 $((base + 128)) 8 "$(word 0 2 0)"; } >trace
    judged 1 "wrong place"
}

test_judge_sees_an_incomplete_trace() {
    { one 1; two 2; three 4; other 5; } >trace
    judged 1 "too short"
    { one 1; two 2; three 3; other 4; echo '{"lost":5}'; } >trace
    judged 1 "too short"
    echo nonsense >trace
    judged 2 "no JSON object"
    echo '{"seq": 1}' >trace
    judged 2 "'op'"
}

test_judge_sees_bad_arguments() {
    fails 2 "usage" "$judge"
    fails 2 "No such file" "$judge" ledger 0
    fails 2 "number of a host" "$judge" ledger x
    echo "put 0 1 1 1" >ledger
    fails 2 "no ledger" "$judge" ledger 0
}

# start_server OPTIONS...: starts it in the background; sets $server and $port
start_server() {
    local i
    UCX_TLS=tcp timeout 300 "$demo" server -p 0 -P port "$@" >server.log 2>&1 &
    server=$!
    for ((i = 0; i < 1200; ++i)); do
        [ ! -s port ] || break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    port=$(cat port) || fail "the server did not start: $(cat server.log)"
}

# UCX 1.13 may complete a zero-copy send twice if its TCP connection breaks. The number of
# operations is what ends a load, and not its time
client() {
    UCX_TLS=tcp UCX_ZCOPY_THRESH=inf timeout 300 "$demo" client 127.0.0.1 -p "$port" -t 250 \
        "$@"
}

test_program_over_tcp() {
    start_server
    check client -n 3000 -S summary -l ledger >client.log
    wait "$server" || fail "server: $(cat server.log)"
    check grep -q '^summary: ok=1 .* posted=3000 completed=3000 ' summary
    puts=$(sed 's/.* puts=\([0-9]*\).*/\1/' summary)
    [ "$(grep -c ^put ledger)" -eq "$puts" ] || fail "puts are missing in the ledger"
    grep -q '^  OK' client.log || fail "$(cat client.log)"
}

# A put that is read back is two operations: the second must not exceed -n.
# With seed 10 the first operation is such a put, as the second run shows.
test_program_posts_no_more_than_told() {
    local n
    for n in 1 2; do
        rm -f port
        start_server
        check client -n $n -s 10 -S summary >client.log
        wait "$server" || fail "server: $(cat server.log)"
        check grep -q "^summary: ok=1 .* posted=$n completed=$n " summary
        check grep -q " puts=1 " summary
    done
}

test_program_sleeps_on_events() {
    start_server -W -w 1
    check client -W -w 3 -r 2000 -t 1 >client.log
    wait "$server" || fail "server: $(cat server.log)"
}

test_program_fails_with_its_server() {
    local status=0 client i
    start_server
    client -S summary >client.log 2>&1 &
    client=$!
    for ((i = 0; i < 1200; ++i)); do
        ! grep -q 'in flight' client.log || break
        sleep 0.1
    done
    kill -9 "$(pgrep -P "$server")" || fail "no server: $(cat server.log)"
    wait $client || status=$?
    [ "$status" -eq 1 ] || fail "status $status: $(cat client.log)"
    check grep -q '^summary: ok=0 .* checked=0 ' summary
    # each operation completed, some with an error
    check grep -Eq ' posted=([0-9]+) completed=\1 failed=[1-9]' summary
}

test_program_fails_with_its_client() {
    local status=0
    start_server
    timeout 300 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port
                       echo nonsense, longer than the header of a message >&3
                       cat <&3 || true" &>/dev/null || fail "the server does not exit"
    wait "$server" || status=$?
    [ "$status" -eq 1 ] || fail "status $status: $(cat server.log)"
    check grep -q "no message of varuna_demo" server.log

    rm port
    start_server
    bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
    status=0
    wait "$server" || status=$?
    [ "$status" -eq 1 ] || fail "status $status: $(cat server.log)"
    check grep -q "the other side is gone" server.log
}

# Each kind of sabotage is detected and named. The server waits for messages that are lost. A
# client that gets no CPU for as long as that ends in another way, and is run again, with a
# server that waits longer
test_program_notices_sabotage() {
    local mode text status wait
    gcc -shared -fPIC -D_GNU_SOURCE -o sabotage.so \
        "$top/test/meta/demo_sabotage.c" -ldl
    while read -r mode text; do
        for wait in 2 4 8 16 32; do
            rm -f port
            start_server -g $wait
            status=0
            UCX_TLS=tcp SABOTAGE=$mode LD_PRELOAD=$PWD/sabotage.so timeout 300 \
                "$demo" client 127.0.0.1 -p "$port" -t 250 -n 6000 >client.log 2>&1 ||
                status=$?
            wait "$server" || true
            [ $status -eq 1 ] || fail "$mode: status $status: $(cat client.log)"
            ! grep -q "FAILED: .*$text" client.log || continue 2
        done
        fail "$mode: no \"$text\": $(cat client.log)"
    done <<END
put-lost wrong
put-repeated wrong
completion-twice completed twice
get-lost get returned wrong data
message-lost came where .* was expected
message-twice came again
message-torn wrong contents
END
    # and without sabotage there is no error
    rm -f port
    start_server
    UCX_TLS=tcp LD_PRELOAD=$PWD/sabotage.so timeout 300 \
        "$demo" client 127.0.0.1 -p "$port" -t 250 -n 6000 >client.log 2>&1 ||
        fail "$(cat client.log)"
}

test_program_refuses_bad_arguments() {
    fails 2 "'server' or 'client HOST'" "$demo"
    fails 2 "'server' or 'client HOST'" "$demo" client
    fails 2 "between 0 and 65535" "$demo" server -p 65536
    fails 2 "between 1 and 8" "$demo" server -w 9
    fails 2 "not a number of seconds" "$demo" server -t x
    fails 2 "neither peer nor none" "$demo" server -e all
    fails 2 "needs the server's port" "$demo" client localhost -p 0
    fails 0 "Usage" "$demo" --help
}

# switched END WAS FENCE DETECT DRAIN FENCE REPEAT: prints a line of a log; times in
# microseconds after second 1795809000
switched() {
    printf '[1795809%03d.%06d] [host:7 :0] varuna_stat.c:118  UCX  INFO  ' \
        $(($1 / 1000000)) $(($1 % 1000000))
    echo "rc_varuna: switched vqp=0 from=mlx5_0:1 was=$2 to=mlx5_1:1 lane=dc" \
         "reason=\"was=dc fence=none\" executed=2 lost=1 repeated=3 ambiguous=0 equal=0" \
         "different=0 fence=$3 time_us=$(($5 + $6 + $7)) detect_us=$4 drain_us=$5" \
         "fence_us=$6 repeat_us=$7"
}

# parts START USEC TEXT: checks what fills a pause of ./log
parts() {
    local got
    got=$(pause_parts "$1" "$2" log)
    [ "$got" = "$3" ] || fail "\"$got\" instead of \"$3\""
}

test_pause_consists_of_parts() {
    { echo "client: 4 endpoints"
      switched 2000000 rc reset 100 10 20 5
      switched 5300000 rc reset 270000 1000 5000 200
      switched 5301000 rc reset 200 0 5000 100; } >log
    # all parts are in the pause, or a part of the detection
    parts 1795809005.000000 310000 "2 270000 1000 5000 200 33800"
    parts 1795809005.100000 201000 "2 193800 1000 5000 200 1000"
    # the one that is still waiting when the pause ends did not end it
    { switched 5300000 rc reset 100000 0 4000 0
      switched 5800000 rc reset 700000 0 1000 0; } >log
    parts 1795809005.100000 201000 "2 100000 0 4000 0 97000"
    # none has ended, so this is all that is known
    parts 1795809005.150000 100000 "2 100000 0 0 0 0"
    # none is in the pause, or nobody knows when they were: the slowest
    parts 1795809001.000000 1000 "0 700000 0 1000 0 1000"
    sed -i 's/^[^ ]* //' log
    parts 1795809005.000000 1000 "0 700000 0 1000 0 1000"
    # none at all
    : >log
    parts 1795809005.000000 1000 ""
}

test_fences_that_waited() {
    { switched 1000000 rc reset 0 0 1 0
      switched 1000000 rc none 0 0 0 0
      switched 2000000 dc dc 0 0 1000000 0
      switched 3000000 rc dc 0 0 1000000 0; } >log
    [ "$(rc_fences all log | paste -sd ' ')" = "reset none dc" ] || fail "$(rc_fences all log)"
    [ -z "$(rc_fences waited log)" ] || fail "RESET, DC or none: $(rc_fences waited log)"
    { switched 4000000 rc other 0 0 1000000 0
      switched 4000000 rc nic-hung 0 0 1000000 0
      switched 4000000 rc none 0 0 0 0 | sed 's/ fence=none time.*//'; } >second
    [ "$(rc_fences waited log second | paste -sd ' ')" = "other nic-hung unknown" ] ||
        fail "$(rc_fences waited log second)"
    [ "$(switch_sum repeated log)" -eq 12 ] || fail "repeated: $(switch_sum repeated log)"
}

# The summary says what the longest pause consisted of
test_demo() {
    local part
    RCV_BUILD=$RCV_BUILD RCV_PREFIX=$RCV_PREFIX timeout 600 "$top/contrib/demo.sh" >out 2>&1 || fail "$(grep FAILED out || tail -n 5 out)"
    sed -n '/^  RC lanes/,/^  contents/{s/^/# /p}' out
    for part in detection drain fence repeat; do
        check grep -Eq "^ +$part +[0-9]+\.[0-9] ms" out
    done
    grep -Eq '^  RC lanes left without a wait +([1-9][0-9]*) of \1,' out ||
        fail "$(grep 'RC lanes' out)"
}

run_tests
