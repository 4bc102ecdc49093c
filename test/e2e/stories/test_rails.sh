#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Hosts with eight NICs: two at each PCIe switch, two switches at each root complex. Which
# links a vQP uses, what they cost, and what happens if they fail.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

ucx_defaults
export UCX_LOG_LEVEL=debug

# order_of RAIL: prints the links of an interface on this NIC, by number
order_of() {
    load_server_start lone 8192 UCX_RC_VARUNA_LINKS="mlx5_$1:1,all"
    load_server_stop
    sed -n 's/.*links in order of preference: //p' server.log | sed 's/mlx5_//g; s/:1//g'
}

# order_is RAIL ORDER
order_is() {
    local order
    order=$(order_of "$1")
    [ "$order" = "$2" ] || fail "rail $1 uses the links $order, not $2"
}

test_rails_fall_back_to_the_nearest() {
    export UCX_RC_VARUNA_VQP_LINKS=inf
    fabric_up --links 8 --topology 2,2/2,2
    order_is 0 '0 1 2 3 4 5 6 7'
    order_is 3 '3 2 0 1 4 5 6 7'
    order_is 6 '6 7 4 5 0 1 2 3'
}

# Without a topology all are equally near, and not all rails fall back to link 0
test_rails_go_round() {
    export UCX_RC_VARUNA_VQP_LINKS=3
    fabric_up --links 8
    order_is 0 '0 1 2'
    order_is 6 "6 0 1"
}

# cost NICS: sets $qps and $memory (KB) to what one interface uses on a host with so many
cost() {
    fabric_up --links "$1" --topology 2,2/2,2
    load_server_start lone 8192
    qps=$("$emu" status -n "$fabric" | sed -n 's/^process .* \([0-9]*\) QPs.*/\1/p')
    memory=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$server_program/status")
    load_server_stop
    echo "# $1 NICs, VQP_LINKS=$UCX_RC_VARUNA_VQP_LINKS: $qps queue pairs, $memory KB"
    [ "$qps" -gt 0 ] && [ "$memory" -gt 0 ] || fail "nothing was counted"
}

# An interface of two links costs less than twice as much on a host with eight NICs. The
# last count shows that more links would be counted
test_eight_nics_cost_less_than_twice_two() {
    local qps_of_two memory_of_two
    export UCX_RC_VARUNA_VQP_LINKS=auto
    cost 2
    qps_of_two=$qps
    memory_of_two=$memory
    cost 8
    [ "$qps" -lt $((2 * qps_of_two)) ] || fail "too many queue pairs"
    [ "$memory" -lt $((2 * memory_of_two)) ] || fail "too much memory"
    UCX_RC_VARUNA_VQP_LINKS=inf
    cost 8
    [ "$qps" -ge $((2 * qps_of_two)) ] || fail "all links cost no more than two"
}

# What DCIs cost, on two NICs. The emulator's half of a queue pair is counted too
test_memory_of_dcis() {
    local qps_before memory_before
    [ $nics = mlx5 ] || return 0
    export UCX_RC_VARUNA_VQP_LINKS=inf UCX_RC_VARUNA_DC_NUM_DCI=1
    cost 2
    qps_before=$qps
    memory_before=$memory
    UCX_RC_VARUNA_DC_NUM_DCI=64
    cost 2
    [ "$qps" -eq $((qps_before + 2 * 63)) ] || fail "$((qps - qps_before)) queue pairs more"
    memory=$(((memory - memory_before) / (2 * 63)))
    echo "# $memory KB for each DCI"
    [ "$memory" -lt 320 ] || fail "$memory KB for each DCI"
}

run_tests
