#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# NICs that go and come back while a client has traffic to a server (ft_peers.c): an
# administrator removes one and adds it, or it dies and is reset. Nothing is repeated that was
# executed, and what a process has on NICs does not grow.
#
# RC_VARUNA_LONG=1: 1,000 cycles instead of 30.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

cycles=30
[ -z "${RC_VARUNA_LONG:-}" ] || cycles=1000
lifetime=$((600 + 10 * cycles))

# Many failures in a row are no flapping here
export UCX_RC_VARUNA_HOLD_MIN=10ms UCX_RC_VARUNA_HOLD_MAX=10ms
export UCX_RC_VARUNA_PACKET_LIFETIME=50ms

# nic_pair: one server, and one client with two endpoints; both obey
nic_pair() {
    mkdir -m 700 ctl
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl
    fabric_up
    servers 0 one
    client 1 2 one
}

# ctl NAME COMMAND...: a command to the process of that name
ctl() {
    local pid
    pid=$(process "$1")
    shift
    "$RCV_PREFIX/bin/rc_varuna_ctl" -d ctl "$pid" "$@" 2>&1
}

# shows NAME LINK STATE: the status of a process
shows() {
    ctl "$1" status >status && grep -q "link=${nics}_$2:1 .*$3" status
}

await_state() {
    comes shows "$@" || fail "$* does not come: $(cat status)"
}

# refused NAME COMMAND TEXT: the command is answered with this error
refused() {
    ! ctl "$1" $2 >answer || fail "$2 is accepted"
    grep -q "$3" answer || fail "$2: $(cat answer)"
}

test_bad_input() {
    nic_pair
    refused client "nic ${nics}_7 remove" 'no such NIC'
    refused client "nic ${nics}_7 add" 'no such NIC'
    refused client "nic ${nics}_0 add" 'was not removed'
    refused client "nic ${nics}_0" 'expected'
    refused client "nic ${nics}_0 remove now" 'expected'
    refused client "nic ${nics}_0 replace" 'expected'
    check ctl client nic "${nics}_0" remove
    refused client "nic ${nics}_0:1 remove" 'is being removed'
    refused client "nic ${nics}_1 remove" 'no other link'
    await_state client 0 'state=down down_by=nic.* nic=absent .*waits_for=-'
    refused client "nic ${nics}_0 remove" 'is being removed'
    refused client "nic ${nics}_1 remove" 'no other link'
    await_more
    check ctl client nic "${nics}_0" add
    await_state client 0 'state=up down_by=- .* nic=working'
    refused client "nic ${nics}_0 add" 'was not removed'
    await_more
    all_good
    no_switch
}

# cycle NAME LINK: the NIC is removed and added while the client has traffic
cycle() {
    check ctl "$1" nic "${nics}_$2" remove
    await_state "$1" "$2" ' nic=absent '
    check ctl "$1" nic "${nics}_$2" add
    await_state "$1" "$2" 'state=up .* nic=working'
}

# What all processes have on the NICs: queue pairs, memory regions, and KB of queues
on_nics() {
    "$emu" status -n "$fabric" |
        sed -nE 's/^in use: .* QPs ([0-9]+), regions ([0-9]+), queues ([0-9]+) KB$/\1 \2 \3/p'
}

# has_flat NAME...: whether processes have no more files than at first (each context, completion
# queue and event channel has one, and so has a command that was answered a moment ago), and no
# more on the NICs than one thing in two cycles would be: what waits needs some, for a while
declare -A files memory
first=()
has_flat() {
    local name i now
    read -ra now < <(on_nics)
    for i in "${!first[@]}"; do
        [ "${now[i]}" -le $((first[i] + allowed[i])) ] || return 1
    done
    for name in "$@"; do
        [ "$(ls "/proc/$(process "$name")/fd" | wc -l)" -le "${files[$name]}" ] || return 1
    done
}

# flat NAME...: remembers what these processes have, or checks that it is no more than before
flat() {
    local name kb allowed=(10 10 1024) known=${first[*]:+yes}
    if [ -z "$known" ]; then
        read -ra first < <(on_nics)
        [ ${#first[@]} -eq 3 ] || fail "$("$emu" status -n "$fabric")"
        for name in "$@"; do
            files[$name]=$(ls "/proc/$(process "$name")/fd" | wc -l)
        done
        echo "# QPs, regions, KB of queues: ${first[*]}; files: ${files[*]}"
    else
        comes has_flat "$@" ||
            fail "QPs, regions, KB of queues: ${first[*]}, then $(on_nics)" \
                "files: ${files[*]}: $(for name; do ls -l "/proc/$(process "$name")/fd"; done)"
        echo "# QPs, regions, KB of queues: then $(on_nics)"
    fi
    for name in "$@"; do
        kb=$(awk '/^RssAnon/ { print $2 }' "/proc/$(process "$name")/status")
        echo "# $name: $kb KB" # The NICs have their own memory
        # A link that is not released is 4 MB, each time. What is released has holes in the heap
        # when it is taken again, which grows by 20 MB in 1,000 cycles; what is in use does not
        [ -z "$known" ] || [ "$kb" -le $((memory[$name] + 65536)) ] ||
            fail "$name: KB: ${memory[$name]}, then $kb"
        [ -n "$known" ] || memory[$name]=$kb
    done
}

# The client and the server in turn: nothing fails, so nothing is repeated
test_remove_and_add() {
    local i
    nic_pair
    for ((i = 0; i < cycles / 2; ++i)); do
        cycle client $((i % 2))
        cycle one $((i % 2))
        await_more
        [ $i -ne 3 ] || flat client one
    done
    flat client one
    all_good
}

# resets NAME HOST LINK: its NIC dies, and works again
resets() {
    check "$emu" nic -n "$fabric" "$2:$3" kill
    await_state "$1" "$3" ' nic=dead '
    await_more
    check "$emu" nic -n "$fabric" "$2:$3" revive
    await_state "$1" "$3" 'state=up .* nic=working'
    await_more
}

# New endpoints, and a process that was not there then, use the NICs too. In any life of the peer's
# NICs, what has complete keys is posted by the fast path, which knows mlx5
test_kill_and_revive() {
    local i
    nic_pair
    for ((i = 0; i < cycles / 2; ++i)); do
        resets client 1 $((i % 2))
        resets one 0 $((i % 2))
        [ $i -ne 3 ] || flat client one
    done
    flat client one
    [ "$nics${UCX_RC_VARUNA_LANES:-}" != mlx5 ] || comes posts_fast ||
        fail "slow posts with complete keys: ${counted[*]}"
    witness 0
    all_good
}

# The same with NICs that have no DC
test_remove_and_add_with_verbs() {
    export UCX_RC_VARUNA_LANES=verbs
    cycles=$((cycles * 2 / 5))
    test_remove_and_add
}

test_kill_and_revive_with_verbs() {
    export UCX_RC_VARUNA_LANES=verbs
    cycles=$((cycles * 2 / 5))
    test_kill_and_revive
}

# The user is told of the death of a NIC in a few lines, however many queue pairs were on it
test_few_lines() {
    mkdir -m 700 ctl
    export UCX_RC_VARUNA_CTL_DIR=$PWD/ctl UCX_LOG_LEVEL=warn
    fabric_up
    servers 0 one
    client 1 64 one
    resets client 1 0
    all_good
    grep -q "WARN .*${nics}_0:1 is dead" client.log || fail "no line says that it is dead"
    [ "$(grep -cE 'WARN|ERROR' client.log)" -le 10 ] ||
        fail "$(grep -cE 'WARN|ERROR' client.log) lines: $(grep -E 'WARN|ERROR' client.log | tail -n 5)"
}

run_tests 2
