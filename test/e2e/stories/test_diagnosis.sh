#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Whose fault a silent link is: rc_varuna says it as far as the evidence goes, and no
# further, or operators look at the wrong host. Each job also sends to itself and to
# processes of its own host, which goes on inside the NIC whatever the link does.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

# The heartbeat finds it, not the NIC's own timers
nic_gives_up 4s 7
silent='is silent on mlx5_0:1 and answers on another link: '

# job NAME HOST SERVER...: sends to itself and to these
job() {
    local name=$1 host=$2 i
    shift 2
    start "$name" "$host" client 1 self "${@/%/.addr}"
    for ((i = 0; i <= $#; ++i)); do
        await 60 "$name.log" "^ft: now $i completed [1-9]"
    done
}

# says NAME FAULT COUNT: so many times, and nothing else
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

# With two hosts, neither can know. Two processes of one host are no two witnesses
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
    # What is found out later would be told
    sleep 1
    jobs_end a b c
    says a 'unknown fault' 2
    says b 'unknown fault' 1
    says c 'unknown fault' 1
    ! grep -E 'is suspected|nobody answers' ./*.log || fail "nobody can know that"
    fabric_down --force # The servers go on
}

test_two_hosts_the_first_is_silent() {
    two_hosts 0
}

test_two_hosts_the_second_is_silent() {
    two_hosts 1
}

# With three, the silent one finds that nobody answers on its link, and the others that
# it alone does not
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
    ! grep "${silent}remote" a.log || fail "a accuses others"
    ! grep "${silent}local" b.log || fail "b accuses itself"
    ! grep 'is suspected' b.log || fail "b suspects its own link"
    fabric_down --force # The servers go on
}

run_tests
