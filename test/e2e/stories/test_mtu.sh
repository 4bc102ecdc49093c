#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Ports of two hosts have other MTUs, and a link fails (lib/ft_failover.sh): RC takes the
# smaller one, and no endpoint continues over DC, whose targets would refuse its packets.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_failover.sh"

sweep=1

# warned LOG MTU PEERS-MTU: of both links
warned() {
    local port
    for port in mlx5_0:1 mlx5_1:1; do
        check grep -q "WARN .*paths from $port have an MTU of $2 bytes, and $3 at .* DC cannot" \
            "$1"
    done
}

# survives MTU-OF-HOST-0 MTU-OF-HOST-1
survives() {
    fabric_options="--mtu 0=$1 --mtu 1=$2"
    action=silent=1:0
    each packet host=1 link=0 op=write
    warned client.log "$2" "$1"
    warned server.log "$1" "$2"
}

test_client_has_less() { survives 4096 2048; }
test_server_has_less() { survives 2048 4096; }
test_both_have_less() { survives 1024 2048; }

# Only the link that fails last has other MTUs
test_one_link() {
    fabric_options='--mtu 1:1=1024'
    action=silent=1:0
    each packet host=1 link=0 op=write
    check grep -q 'WARN .*paths from mlx5_1:1 have an MTU of 1024 bytes, and 4096' client.log
}

test_lanes_of_verbs() {
    fabric_options='--quirk no-mlx5dv --mtu 0=1024 --mtu 1=2048'
    action=silent=1:0
    each packet host=1 link=0 op=write
    ! grep 'an MTU of' client.log server.log || fail "there is no DC"
}

run_tests 2
