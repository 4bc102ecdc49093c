#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Ports of NICs without direct verbs that are down when a program starts: they become links
# when they come up, whether the program reads the ports' events or looks at them itself.

export RC_VARUNA_QUIRK=no-mlx5dv
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_peers.sh"

nic_gives_up 4s 7
export UCX_LOG_LEVEL=debug
export UCX_RC_VARUNA_HOLD_MIN=2ms UCX_RC_VARUNA_HOLD_MAX=10ms
# Nothing else than the other link's failure moves the traffic
export UCX_RC_VARUNA_RETURN_DELAY=inf

# late HOST...: the first link is down at these hosts when the programs start; later the
# second one fails
late() {
    local host
    fabric_up
    for host in "$@"; do
        link "$host:0" down
    done
    servers 0 s0
    client 1 1 s0
    await_more
    no_switch
    for host in "$@"; do
        link "$host:0" up
    done
    for host in "$@"; do
        await 60 "$([ "$host" = 0 ] && echo s0.log || echo client.log)" \
            'link verbs_0:1 is up again'
    done
    await_more
    link 0:1 down
    await 60 client.log 'switched .*from=verbs_1:1 .*to=verbs_0:1'
    await_more
    all_good
}

test_of_both() { late 0 1; }
test_of_the_server() { late 0; }
test_of_both_without_events() { UCX_RC_VARUNA_PORT_EVENTS=n late 0 1; }
test_of_the_client_without_events() { UCX_RC_VARUNA_PORT_EVENTS=n late 1; }

run_tests 2
