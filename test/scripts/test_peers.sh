#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Peers beside each other in one client: one dies, is stopped, computes, or loses its
# NIC, and the others do not notice; and a NIC of the client's own dies. Each message
# comes once and in order, each put completes once (test/apps/ft_peers.c). A test waits
# for what shall happen, never for a time.

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

emu=$RCV_PREFIX/bin/mlx5emu
run=$RCV_PREFIX/bin/rc_varuna_run
program=$RCV_BUILD/test/apps/ft_peers
fabric=peers-$$

unset "${!UCX_@}"
export UCX_LOG_LEVEL=info UCX_RC_VARUNA_CTL_DIR=none
export UCX_RC_MLX5_TIMEOUT=100ms UCX_RC_MLX5_RETRY_COUNT=3
export UCX_DC_MLX5_TIMEOUT=100ms UCX_DC_MLX5_RETRY_COUNT=3
export UCX_IB_RX_QUEUE_LEN=512

fabric_up() {
    check "$emu" up -n "$fabric" "$@"
    trap '"$emu" down -n "$fabric" --force >/dev/null 2>&1' EXIT
}

fabric_down() {
    check "$emu" down -n "$fabric" --force
    trap - EXIT
}

# await SECONDS FILE PATTERN [COUNT]: until so many lines of the file say it
await() {
    local i count
    for ((i = 0; i < $1 * 20; ++i)); do
        count=$(grep -cE "$3" "$2" 2>/dev/null) || true
        [ "${count:-0}" -lt "${4:-1}" ] || return 0
        sleep 0.05
    done
    fail "\"$3\" did not come in $1 s: $(tail -n 5 "$2")"
}

# start NAME HOST ARGS...: a process with its input at fd_NAME, and its log
declare -A fd_of pid_of
start() {
    local name=$1 host=$2 fd
    shift 2
    mkfifo "$name.in"
    (
        # The end of an input comes when nobody else holds it open
        for fd in "${fd_of[@]}"; do
            exec {fd}>&-
        done
        exec timeout 120 "$emu" exec -n "$fabric" "$host" -- stdbuf -oL "$run" \
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
        await 30 "$name.log" '^ft: address'
        grep '^ft: address' "$name.log" >"$name.addr"
    done
}

# client HOST EPS SERVER...: waits until each has completed something on RC
client() {
    local host=$1 eps=$2
    shift 2
    names=("$@")
    start client "$host" client "$eps" "${names[@]/%/.addr}"
    await_more
}

# await_more [NUMBER...]: these servers (all) complete more than they have
await_more() {
    local i before
    [ $# -gt 0 ] || set -- "${!names[@]}"
    for i in "$@"; do
        before=$(completed "$i")
        await_above "$i" "${before:-0}"
    done
}

# completed NUMBER: what the client said last of this server
completed() {
    awk -v i="$1" '/^ft: now / && $3 == i { n = $5 } END { print n }' client.log
}

await_above() {
    local try now
    for ((try = 0; try < 1200; ++try)); do
        now=$(completed "$1")
        [ "${now:-0}" -le "$2" ] || return 0
        sleep 0.05
    done
    fail "server $1 completes nothing beyond $2: $(tail -n 3 client.log)"
}

# program_of NAME: under the timeout, exec and launcher that we started
program_of() {
    local pid=${pid_of[$1]} child
    while [ "$(cat "/proc/$pid/comm")" != ft_peers ]; do
        child=$(pgrep -P "$pid" | head -n 1)
        [ -n "$child" ] || fail "there is no program under $1"
        pid=$child
    done
    echo "$pid"
}

# end NAME: closes its input, and waits for it
end() {
    local fd=${fd_of[$1]}
    exec {fd}>&-
    wait "${pid_of[$1]}" || fail "$1 failed: $(tail -n 5 "$1.log")"
}

# field FILE LINE NAME
field() {
    grep "^ft: $2" "$1" | tail -n 1 | grep -oE " $3 [0-9.]+" | cut -d' ' -f3
}

# good NUMBER: everything that was sent to this server came, once and in order
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

# all_good: of all servers, nothing was switched, and no endpoint failed
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

test_one_of_two_peers_dies() {
    export UCX_RC_VARUNA_GIVE_UP=3s
    fabric_up --hosts 3 --links 2
    servers 0 alive
    servers 1 dead
    client 2 2 alive dead
    kill -KILL "$(program_of dead)"
    await 60 client.log 'silent on all links: its process or host is dead or stop'
    await 60 client.log 'note endpoint .* failed' 2
    await_more 0
    end client
    no_switch
    [ "$(field client.log errors errors)" = 2 ] || fail "$(tail -n 1 client.log)"
    [ "$(field client.log 'peer 1 ' twice)" = 0 ] || fail "$(tail -n 3 client.log)"
    good 0
    fabric_down
}

test_one_of_two_peers_is_stopped_for_a_while() {
    fabric_up --hosts 3 --links 2
    servers 0 alive
    servers 1 stopped
    client 2 2 alive stopped
    kill -STOP "$(program_of stopped)"
    await 60 client.log 'silent on all links: its process or host is dead or stop'
    await_more 0
    sleep 1
    kill -CONT "$(program_of stopped)"
    await 60 client.log 'peer .* answers again'
    await_more
    all_good
    no_switch
    fabric_down
}

# Six dead processes of one host want the four DCIs of the control plane for ever;
# fences of the living one beside them must get through, and the dead ones are given
# up long before GIVE_UP
test_dead_processes_beside_a_living_one() {
    local i
    export UCX_RC_VARUNA_PEER_TIMEOUT=5s
    fabric_up --hosts 2 --links 2
    servers 0 alive d1 d2 d3 d4 d5 d6
    client 1 1 alive d1 d2 d3 d4 d5 d6
    for i in 1 2 3 4 5 6; do
        kill -KILL "$(program_of "d$i")"
    done
    await 60 client.log 'Transport retry count exceeded' 6
    check "$emu" link -n "$fabric" 1:0 down
    await 60 client.log 'rc_varuna: switched '
    ! grep -q 'note endpoint .* failed' client.log ||
        fail "the dead were given up before the fence was needed"
    echo "# $(grep -o 'switched.*' client.log)"
    await 60 client.log "the peer's process is gone" 6
    await 60 client.log 'note endpoint .* failed' 6
    await_more 0
    end client
    good 0
    fabric_down
}

# A process that is stopped while its link fails is no dead one
test_stopped_peer_whose_link_fails() {
    fabric_up --hosts 2 --links 2
    servers 0 alive stopped
    client 1 1 alive stopped
    kill -STOP "$(program_of stopped)"
    await 60 client.log 'silent on all links: its process or host is dead or stop'
    check "$emu" link -n "$fabric" 1:0 down
    await 60 client.log 'rc_varuna: switched '
    sleep 1
    kill -CONT "$(program_of stopped)"
    await 60 client.log 'rc_varuna: switched ' 2
    await_more
    all_good
    fabric_down
}

# Each fault is called by its name, and concerns those only whom it concerns: our own
# port, a peer's port, a path to one peer, a process
test_faults_are_told_apart() {
    export UCX_RC_VARUNA_GIVE_UP=3s
    # Who is silent is found by the heartbeat, not by the NIC
    export UCX_RC_MLX5_TIMEOUT=4s UCX_RC_MLX5_RETRY_COUNT=7
    fabric_up --hosts 3 --links 2
    servers 0 one
    servers 1 two
    client 2 2 one two

    # The path to one peer, whose port does not know it
    check "$emu" link -n "$fabric" 1:0 silent
    await 60 client.log 'is silent on mlx5_0:1 .*other peers answer on this link'
    await 60 client.log 'rc_varuna: switched .*from=mlx5_0:1 ' 2
    await_more
    [ "$(grep -c 'rc_varuna: switched' client.log)" -eq 2 ] ||
        fail "others were switched: $(grep 'rc_varuna: switched' client.log)"
    ! grep -q 'link mlx5_0:1 is down' client.log || fail "our link was condemned"

    # The far port of the other one, which knows it
    check "$emu" link -n "$fabric" 0:0 down
    await 60 client.log 'is silent on mlx5_0:1 .*remote fault: the peer says that its port is down'
    await 60 client.log 'rc_varuna: switched .*from=mlx5_0:1 ' 4
    await_more
    check "$emu" link -n "$fabric" 0:0 up
    check "$emu" link -n "$fabric" 1:0 up

    # Our port, for both
    check "$emu" link -n "$fabric" 2:1 down
    await 60 client.log 'link mlx5_1:1 is down: port event'
    await_more
    check "$emu" link -n "$fabric" 2:1 up

    # One of the processes
    kill -KILL "$(program_of two)"
    await 60 client.log 'silent on all links: its process or host is dead or stop'
    await_more 0
    end client
    [ "$(field client.log 'peer 1 ' twice)" = 0 ] || fail "$(tail -n 3 client.log)"
    good 0
    fabric_down
}

# compute: a peer computes for two seconds, and all of its receives are used up
compute() {
    export UCX_RC_MLX5_FC_ENABLE=n UCX_DC_MLX5_FC_ENABLE=n
    fabric_up --hosts 2 --links 2
    servers 0 alive busy
    client 1 2 alive busy
    echo "sleep 2" >&"${fd_of[busy]}"
    await 60 busy.log '^ft: awake'
    await_more
    all_good
    no_switch
    # A quarter of the time at least, nothing could be received
    check awk -v gap="$(field client.log 'peer 1 ' gap_ms)" 'BEGIN { exit !(gap > 500) }'
    fabric_down
}

test_peer_computes() {
    compute
}

test_peer_computes_and_there_is_no_heartbeat() {
    export UCX_RC_VARUNA_HEARTBEAT_INTERVAL=0 UCX_RC_VARUNA_HANG_TIMEOUT=500ms
    compute
}

# nic HOST [--silent]: the NIC of the primary link dies there
nic_dies() {
    fabric_up --hosts 2 --links 2
    servers 0 one two
    client 1 2 one two
    await 30 client.log .
    sleep 1 # RC is in use, most likely; both lanes are right
    check "$emu" nic -n "$fabric" "$1:0" kill ${2:-}
    await 60 client.log 'rc_varuna: switched .*from=mlx5_0:1 ' 4
    await_more
    all_good
    fabric_down
}

test_local_nic_dies() {
    nic_dies 1
    check grep -q 'is gone or hangs: .*(the system says so)' client.log
}

test_remote_nic_dies() {
    nic_dies 0
}

test_remote_nic_dies_in_silence() {
    nic_dies 0 --silent
}

test_local_nic_dies_in_silence() {
    export UCX_RC_VARUNA_DRAIN_TIMEOUT=500ms
    nic_dies 1 --silent
    check grep -q 'is gone or hangs: the RC lane .*(drain timeout)' client.log
}

# On DC nobody can stop what the silent NIC may still do: that is told, and nothing
# is repeated
test_local_nic_dies_in_silence_on_dc() {
    export UCX_RC_VARUNA_DRAIN_TIMEOUT=500ms UCX_RC_VARUNA_REBUILD_RATE=0.001
    fabric_up --hosts 2 --links 2
    servers 0 warm one
    # The pace lets a burst of 16 through at first
    client 1 20 warm
    check "$emu" nic -n "$fabric" 1:0 kill --silent
    await 60 client.log 'nobody can tell that its queue pair has'
    await 60 client.log 'note endpoint .* failed'
    end client
    [ "$(field client.log 'peer 0 ' twice)" = 0 ] || fail "$(tail -n 3 client.log)"
    [ "$(field client.log 'peer 0 ' failed)" -gt 0 ] || fail "$(tail -n 3 client.log)"
    fabric_down
}

run_tests
