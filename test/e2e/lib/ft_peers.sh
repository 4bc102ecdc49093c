# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# For the tests that run test/e2e/peers/ft_peers.c, which source it:
# functions that start and check servers and one client, each in its own process.

. "$(dirname "${BASH_SOURCE[0]}")/ft_fabric.sh"

program=$apps/ft_peers
lifetime=600 # Of a process, in seconds

ucx_defaults
export UCX_LOG_LEVEL=info UCX_RC_VARUNA_CTL_DIR=none
nic_gives_up 100ms 3
# The emulated NIC is a thread that can be without a CPU for seconds, which is not a hang
export UCX_RC_VARUNA_DRAIN_TIMEOUT=60s
export UCX_IB_RX_QUEUE_LEN=512

# start NAME HOST ARGS...: starts a process with input ${fd_of[NAME]} and log NAME.log.
# It runs ft_many if the first argument is a number, ft_peers otherwise
declare -A fd_of pid_of
start() {
    local name=$1 host=$2 fd program=$program
    shift 2
    [[ ! $1 =~ ^[0-9]+$ ]] || program=$apps/ft_many
    mkfifo "$name.in"
    : >"$name.log" # It must exist before it is read
    (
        # An input ends only when no other process holds it open
        for fd in "${fd_of[@]}"; do
            exec {fd}>&-
        done
        exec timeout "$lifetime" "$emu" exec -n "$fabric" "$host" -- stdbuf -oL "$run" \
            "$program" "$@" <"$name.in" >"$name.log" 2>&1
    ) &
    pid_of[$name]=$!
    exec {fd}>"$name.in"
    fd_of[$name]=$fd
}

# servers HOST NAME...
servers() {
    local host=$1 name
    shift
    for name in "$@"; do
        start "$name" "$host" server
    done
    for name in "$@"; do
        await 60 "$name.log" '^ft: address'
        grep '^ft: address' "$name.log" >"$name.addr"
    done
}

# client HOST EPS SERVER...: starts the client, and waits until each endpoint has
# completed something
client() {
    local host=$1 eps=$2
    shift 2
    names=("$@")
    start client "$host" client "$eps" "${names[@]/%/.addr}"
    await_more
}

# witness HOST: starts one more server on this host, and opens the client's endpoints to
# it. It proves that the host is alive, so the client gives up other processes of the
# host that are silent. Without it the host may be dead, and the client waits for them.
witness() {
    servers "$1" witness
    names+=(witness)
    echo "open witness.addr" >&"${fd_of[client]}"
    await_more $((${#names[@]} - 1))
}

# await_more [NUMBER...]: waits until each endpoint to these servers (all) has completed
# more than the slowest one has completed now
await_more() {
    local i before
    [ $# -gt 0 ] || set -- "${!names[@]}"
    for i in "$@"; do
        before=$(completed "$i")
        await_above "$i" "${before:-0}"
    done
}

# completed NUMBER: prints the last count of this server's slowest endpoint, or of its
# first one if column=9
completed() {
    awk -v i="$1" -v column="${column:-5}" \
        '/^ft: now / && $3 == i { n = $column } END { print n }' client.log
}

# is_above NUMBER COUNT
is_above() {
    local now
    now=$(completed "$1")
    [ "${now:-0}" -gt "$2" ]
}

await_above() {
    comes is_above "$@" ||
        fail "server $1 completes nothing beyond $2: $(tail -n 3 client.log)"
}

counted=(0 0)
# posts_fast: since it was asked last, the client has posted, and nothing by the slow path
posts_fast() {
    local seen old=("${counted[@]}")
    seen=$(grep -c '^ft: counters' client.log) || true
    echo counters >&"${fd_of[client]}"
    await 60 client.log '^ft: counters' $((seen + 1))
    counted=("$(field client.log counters posted)" "$(field client.log counters slow)")
    [ "${counted[0]}" -gt "${old[0]}" ] && [ "${counted[1]}" = "${old[1]}" ]
}

# is_stuck NUMBER SEEN: this server's slowest endpoint has completed nothing in the last
# three reports of the client, which come after SEEN others, that is, for a second
is_stuck() {
    grep "^ft: now $1 " client.log | tail -n +$(($2 + 1)) | tail -n 3 |
        awk '{ ++count; least[$5] }
             END { for (i in least) ++n; exit !(count == 3 && n == 1) }'
}

# await_stuck NUMBER: waits until a process waits for a peer's receive buffers, and until
# this server is stuck after that
await_stuck() {
    local seen
    no_receives
    seen=$(grep -c "^ft: now $1 " client.log) || true
    comes is_stuck "$1" "$seen" ||
        fail "server $1 still completes something: $(tail -n 3 client.log)"
}

# no_receives: waits until a process waits for a peer's receive buffers
no_receives() {
    await_true has_rnr_waits
}

# process NAME: prints the pid of its program
process() {
    program_of "${pid_of[$1]}"
}

# end NAME: closes its input, and waits until it exits
end() {
    local fd=${fd_of[$1]}
    exec {fd}>&-
    wait "${pid_of[$1]}" || fail "$1 failed: $(tail -n 5 "$1.log")"
}

# field FILE LINE NAME: prints a field of the last line "ft: LINE ..."
field() {
    grep "^ft: $2" "$1" | tail -n 1 | grep -oE " $3 [0-9.]+" | cut -d' ' -f3
}

# good NUMBER: checks that this server received everything once and in order
good() {
    local name=${names[$1]} what="peer $1 "
    [ "$(field client.log "$what" failed)" = 0 ] &&
        [ "$(field client.log "$what" twice)" = 0 ] &&
        [ "$(field client.log "$what" completed)" = \
            "$(field client.log "$what" posted)" ] ||
        fail "completions: $(grep "^ft: $what" client.log)"
    end "$name"
    [ "$(field "$name.log" received wrong)" = 0 ] &&
        [ "$(field "$name.log" received received)" = \
            "$(field client.log "$what" sent)" ] &&
        [ "$(field "$name.log" received memory)" = \
            "$(field client.log "$what" memory)" ] ||
        fail "$name: $(tail -n 1 "$name.log"): $(grep "^ft: $what" client.log)"
    echo "# $(grep "^ft: $what" client.log)"
}

# all_good: checks all servers, and that no endpoint failed
all_good() {
    local i
    end client
    check grep -q '^ft: errors 0' client.log
    for i in "${!names[@]}"; do
        good "$i"
    done
}

no_switch() {
    ! grep -q 'rc_varuna: switched' client.log ||
        fail "it switched: $(grep 'rc_varuna: switched' client.log)"
}

# unhurried COMMAND...: runs "COMMAND... SECONDS" with a HANG_TIMEOUT of SECONDS, which must not
# fire. On a busy machine a NIC, which is a thread, may be without a CPU for that long, so a
# failure is repeated with longer times. A mistake fails with each
unhurried() {
    local seconds status
    for seconds in 1 4 16 64; do
        (
            mkdir "timeout-$seconds"
            cd "timeout-$seconds"
            export UCX_RC_VARUNA_HANG_TIMEOUT=${seconds}s
            "$@" $seconds
        ) &
        status=0
        wait $! || status=$?
        [ $status -ne 0 ] || return 0
        echo "# failed with a HANG_TIMEOUT of $seconds s"
    done
    fail "it fails with each HANG_TIMEOUT"
}
