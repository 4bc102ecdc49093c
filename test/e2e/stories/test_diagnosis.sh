#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Which side of a silent link has failed. rc_varuna reports only what the evidence
# shows, or operators would look at the wrong host. Each job also sends to itself and to
# processes of its host, which the NIC loops back in any state of the link.


. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

# The heartbeat detects the fault, not the NIC's own timers
nic_gives_up 4s 7
silent='is silent on mlx5_0:1 and answers on another link: '

# job NAME HOST SERVER...: starts a job that sends to itself and to these servers
job() {
    local name=$1 host=$2 i
    shift 2
    start "$name" "$host" client 1 self "${@/%/.addr}"
    for ((i = 0; i <= $#; ++i)); do
        await 60 "$name.log" "^ft: now $i completed [1-9]"
    done
}

# says NAME FAULT COUNT: the log of NAME must report only FAULT, COUNT times
says() {
    await 60 "$1.log" "$silent$2" "$3"
    ! grep "$silent" "$1.log" | grep -v "$silent$2" | grep . ||
        fail "$1 knows more, or less, than that: $2"
}

jobs_end() {
    local name
    for name in "$@"; do
        end "$name"
        check grep -q '^ft: errors 0' "$name.log"
        ! grep -E '^ft: peer .* failed [1-9]|^ft: peer .* twice [1-9]' "$name.log" ||
            fail "$name: completions"
    done
}

# With two hosts, neither can know which side has failed. Two processes of one host
# count as one witness
two_hosts() {
    fabric_up
    servers 0 s0
    servers 1 s1 t1
    job a 0 s0 s1 t1
    job b 1 s1 s0
    job c 0 s0 s1
    link "$1:0" silent
    says a 'unknown fault' 2
    says b 'unknown fault' 1
    says c 'unknown fault' 1
    await 60 a.log 'switched .*from=mlx5_0:1' 2
    await 60 b.log 'switched .*from=mlx5_0:1' 1
    await 60 c.log 'switched .*from=mlx5_0:1' 1
    # A later finding would be logged
    sleep 1
    jobs_end a b c
    says a 'unknown fault' 2
    says b 'unknown fault' 1
    says c 'unknown fault' 1
    ! grep -E 'is suspected|nobody answers' ./*.log ||
        fail "a host blames one side without evidence"
    fabric_down --force # Ends the servers
}

test_two_hosts_the_first_is_silent() {
    two_hosts 0
}

test_two_hosts_the_second_is_silent() {
    two_hosts 1
}

# With three hosts, the silent one finds that no peer answers on its link, and the
# others that only this host does not
test_three_hosts() {
    fabric_up --hosts 3
    servers 0 s0
    servers 1 s1
    servers 2 s2
    job a 0 s0 s1 s2
    job b 1 s1 s0 s2
    link 0:0 silent
    await 60 a.log "${silent}local fault" 2
    await 60 b.log "${silent}remote fault: other peers answer" 1
    await 60 a.log 'link mlx5_0:1 is suspected: 2 peers behind several ports'
    await 60 a.log 'link mlx5_0:1 is down: nobody answers on it'
    link 0:0 up
    await 60 a.log 'link mlx5_0:1 is up again'
    jobs_end a b
    ! grep "${silent}remote" a.log || fail "a blames other hosts"
    ! grep "${silent}local" b.log || fail "b blames itself"
    ! grep 'is suspected' b.log || fail "b suspects its own link"
    fabric_down --force # Ends the servers
}

# lists FILE OWN NIC: this side has said which links there are, its own and the peer's
lists() {
    check test "$(grep -c 'none of our links reaches' "$1")" -eq 1
    grep -qE "ours are $2 \(LID [^;]*\); the peer's are NIC $3 \(LID [^;]*\)\. UCX_RC" "$1" ||
        fail "it lists other links: $(grep reaches "$1")"
}

# Each host names only links to a network of its own. UCP calls the peer unreachable; both
# sides say why, and list the links of both
no_common_link() {
    local server port status=0 args=(-t tag_lat -n 10)
    export UCX_TLS=rc_varuna UCX_LOG_LEVEL=warn
    fabric_up "${@:2}"
    next_port
    UCX_RC_VARUNA_LINKS=$1_0 timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" ucx_perftest \
        -p $port "${args[@]}" >server.log 2>&1 &
    server=$!
    await_listener $port $server
    UCX_RC_VARUNA_LINKS=$1_1 timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" ucx_perftest \
        -p $port localhost "${args[@]}" >client.log 2>&1 || status=$?
    [ $status -ne 0 ] || fail "it works without a common link"
    ! wait $server || fail "the server works without a common link"
    lists server.log "$1_0:1" 1
    lists client.log "$1_1:1" 0
}

test_no_common_link() { no_common_link mlx5; }

test_no_common_link_on_verbs() { no_common_link verbs --quirk no-mlx5dv; }

# Each interface of the server has one link, and the client's only link is one of them: UCP
# asks for each pair, and none of the answers is a warning
test_peer_limits_its_links() {
    local server port status=0 args=(-t tag_lat -n 10)
    export UCX_TLS=rc_varuna UCX_LOG_LEVEL=warn
    fabric_up
    next_port
    UCX_RC_VARUNA_VQP_LINKS=1 timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" ucx_perftest \
        -p $port "${args[@]}" >server.log 2>&1 &
    server=$!
    await_listener $port $server
    UCX_RC_VARUNA_LINKS=mlx5_1 timeout 300 "$emu" exec -n "$fabric" 1 -- "$run" ucx_perftest \
        -p $port localhost "${args[@]}" >client.log 2>&1 || status=$?
    [ $status -eq 0 ] || fail "$(tail -n 3 client.log)"
    wait $server || fail "$(tail -n 3 server.log)"
    ! grep 'none of our links reaches' client.log server.log || fail "a false alarm"
}

run_tests 2
