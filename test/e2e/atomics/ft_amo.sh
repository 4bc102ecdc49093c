# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For the tests of atomics under contention, which source it: a fabric with a server on
# host 0 and clients on other hosts (test/e2e/atomics/ft_amo.c), and the judge of their
# results.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_fabric.sh"

app=$apps/ft_amo

ucx_defaults
export UCX_LOG_LEVEL=info
nic_gives_up 5ms 2

# word N: prints word N, as the server's CPU found it
word() {
    awk -v n="$1" '$1 == "word" && $2 == n { print $3 }' server.out
}

# judge KIND...: checks the histories in client.*.out
judge() {
    local kind number
    for kind in "$@"; do
        case $kind in
        fadd)
            awk '$1 == "fadd" { print $2 }' client.*.out | sort -n |
                awk '$1 != NR - 1 { print "result " $1 " instead of " NR - 1
                     exit 1 } END { print "fadd", NR > "count" }' ||
                fail "fetch-and-add: results are missing or duplicate"
            [ "$(word 0)" = "$(awk '{ print $2 }' count)" ] ||
                fail "fetch-and-add: $(word 0) is left, not $(cat count)"
            ;;
        add)
            [ "$(word 1)" = "$(cat client.*.out | grep -c '^add$')" ] ||
                fail "add: $(word 1) is left"
            ;;
        cas | loop)
            number=2
            [ "$kind" = cas ] || number=6
            awk -v kind="$kind" -v last="$(word "$number")" '
                $1 == kind && $4 == $2 {
                    if ($2 in next_of) { print "two swapped " $2; exit 1 }
                    next_of[$2] = $3
                    ++count
                }
                $1 == kind { value[$3] = 1; result[$4] = 1 }
                $1 == "loop" { result[$2] = 1 }
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
                fail "compare-and-swap: $kind: $(cat judge.out)"
            ;;
        gcas)
            # Each value seen in the word, except UIDs, was written by a CSWAP that its
            # client counted as a success. The last value contains this count
            { cat client.*.out; echo "last $(word 5)"; } | awk '
                $1 == "gcas" && NF == 4 {
                    if ($4 "" == $2 "") {
                        won[$3] = 1
                        ++count[$3 % 16]
                        by_uid += ($2 >= 2 ^ 63)
                    } else {
                        seen[$4] = 1
                    }
                    if ($2 < 2 ^ 63) seen[$2] = 1
                }
                $1 == "last" { last = $2; seen[last] = 1 }
                END {
                    for (v in seen)
                        if (v != 0 && !(v in won)) {
                            print "the CSWAP that wrote " v " was taken for a failure"
                            exit 1
                        }
                    if (int(last / 2 ^ 32) != count[last % 16]) {
                        print "the word says " int(last / 2 ^ 32) \
                              ", its writer " count[last % 16]
                        exit 1
                    }
                    if (by_uid < 10) { print "only " by_uid " UIDs"; exit 1 }
                    for (id in count) total += count[id]
                    print "# " total " successes, " by_uid " of them by a UID"
                }' >judge.out || fail "get and compare-and-swap: $(cat judge.out)"
            cat judge.out
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

# start MODE CLIENTS: creates a fabric and starts its server
start() {
    local i
    fabric_up --hosts $(($2 + 1))
    export UCX_RC_VARUNA_ATOMIC_MODE=$1
    # Remove the output of the previous server
    rm -f client.*.out server.out server.err stop
    mkfifo stop
    timeout 600 "$emu" exec -n "$fabric" 0 -- "$run" "$app" server \
        <stop >server.out 2>server.err &
    server=$!
    exec 9>stop
    for ((i = 0; i < 1200; ++i)); do
        ! grep -qs '^ft: address of all' server.out || break
        kill -0 "$server" 2>/dev/null || break
        pause 0.05
    done
    address=$(sed -n 's/^ft: address//p' server.out)
    [[ $address == *' of all '* ]] || fail "no server: $(tail -n 2 server.out server.err)"
}

# client_start I WIDTH COUNT DEPTH KIND...: one more; it has "clients" before it
client_start() {
    : >"client.$1.out" # "progressed" may read it before the client runs
    timeout 600 "$emu" exec -n "$fabric" "$1" -- "$run" "$app" client \
        "$address" "$@" <go >"client.$1.out" 2>"client.$1.err" 8>&- 9>&- &
    pids+=($!)
}

# clients N WIDTH COUNT DEPTH KIND...: starts N clients; COUNT 0: until "release"
clients() {
    local n=$1 i
    shift
    pids=()
    rm -f go
    mkfifo go
    exec 8<>go
    for ((i = 1; i <= n; ++i)); do
        client_start "$i" "$@"
    done
}

# release: ends the clients with a COUNT of 0
release() {
    exec 8>&-
}

# last_words I: prints the last words of client I. UCX's threads may log lines after
# them
last_words() {
    { grep -a 'ft: die' "client.$1.out" || tail -n 1 "client.$1.out"; } | tail -n 1 |
        cut -c 1-200
}

# clients_run: fails if a client has ended, whichever it is
clients_run() {
    local i
    for i in "${!pids[@]}"; do
        kill -0 "${pids[i]}" 2>/dev/null ||
            fail "client $((i + 1)) ended: $(last_words $((i + 1)))"
    done
}

# progressed N: waits until each client has N more results
progressed() {
    local i n=${#pids[@]} tries want
    for ((i = 1; i <= n; ++i)); do
        want[i]=$(($(wc -l <"client.$i.out") + $1))
    done
    for ((i = 1; i <= n; ++i)); do
        for ((tries = 0; tries < 1800; ++tries)); do
            [ "$(wc -l <"client.$i.out")" -lt "${want[i]}" ] || continue 2
            clients_run
            pause 0.1
        done
        fail "client $i makes no progress"
    done
}

finish() {
    local i=0 pid
    for pid in "${pids[@]}"; do
        i=$((i + 1))
        wait "$pid" ||
            fail "client $i ended with $?: $(last_words "$i"
                  grep -v INFO "client.$i.err" | tail -n 2)"
    done
    exec 9>&-
    wait $server || fail "the server ended with $?: $(tail -n 2 server.err)"
}

# lose_home MODE WIDTH [PROB TIME]: runs three clients, one of which loses its link to
# the home NIC. Some compare and swaps (PROB of them) wait for TIME between their read
# and their write, so that a write of another NIC, or of the CPU, in between is lost
lose_home() {
    start "$1" 3
    fault rmw op=cas "prob=${3:-0.05}" count=all \
        "delay=${4:-1ms}"
    clients 3 "$2" 0 4 fadd add cas swap bits
    progressed 50
    link 1:0 silent
    progressed 100
}

# moved TO COUNT: waits until the server has logged COUNT moves of its home to NIC TO
moved() {
    local tries
    for ((tries = 0; tries < 600; ++tries)); do
        [ "$(cat server.out server.err |
             grep -c "atomics .* move from .* to $1")" -lt "$2" ] || return 0
        pause 0.1
    done
    fail "the home NIC has not moved to $1: $(tail -n 3 server.err)"
}

# leave_home MODE WIDTH RESULTS [PROB TIME]: as lose_home, but the home NIC's port is
# down too briefly for the clients connected to it: their packets are repeated, and the
# server's report of its port (PORTS, 62 bytes) is lost. The server gets the port event,
# and moves to the other NIC
leave_home() {
    export UCX_RC_MLX5_TIMEOUT=200ms UCX_RC_MLX5_RETRY_COUNT=7
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=60s
    export UCX_RC_VARUNA_RETURN_DELAY=inf
    lose_home "$1" "$2" "${@:4}"
    fault packet host=0 op=send size=64 count=all \
        drop
    link 0:0 down
    moved mlx5_1 1
    link 0:0 up
    progressed "$3"
}

# judge_home MODE: ends all, and checks that no result is lost. In mode proxy no NIC
# executes atomics, so the rules cannot fire and no lane fails
judge_home() {
    release
    finish
    judge fadd add cas swap
    [ "$1" = proxy ] ||
        grep -q 'rc_varuna: switched' client.1.out client.1.err ||
        fail "client 1 did not lose its link"
    [ "$1" = proxy ] || faults_fired
}
