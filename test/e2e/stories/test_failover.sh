#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A link that fails at an exact packet: a UCP job with checked contents runs over
# rc_varuna, and the fault hits the n-th message of the requester's primary link
# (lib/ft_failover.sh).

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_failover.sh"

test_silent_before_the_message_arrives() {
    action=silent=1:0
    each packet host=1 link=0 op=write
}

test_silent_after_execution_before_the_acknowledgement() {
    action=silent=1:0
    each ack link=0 op=write
}

test_down_before_the_message_arrives() {
    action=down=1:0
    each packet host=1 link=0 op=write
}

test_responder_down_after_execution() {
    action=down=0:0
    each ack link=0 op=write
}

test_cut_in_the_middle_of_a_large_put() {
    job packet host=1 link=0 op=write size=64k- pkt=middle nth=3 silent=1:0
}

# With error handling, the new protocols of UCP replace gets by messages. They are the default
# from 1.16 on, and 1.22 has gets again
test_read_is_lost() {
    case $("$top/config/ucx_version.sh" installed ucx_info) in
    1.1[6-9].* | 1.2[01].*) export UCX_PROTO_ENABLE=n ;;
    esac
    action=silent=1:0
    first=101
    each packet host=1 link=0 op=read
}

test_message_is_lost() {
    action=silent=1:0
    first=301
    each packet host=1 link=0 op=send
}

# The last message proves to the server that all puts are in memory. They are acknowledged
# before they are, and are in memory when a message, a read or the reset of their own queue pair
# is over. The message is lost with its link, and comes on another one. (It has 42 bytes.)
test_message_after_acknowledged_puts() {
    action=silent=1:0
    fabric_options='--quirk late-write:60s:1'
    first=1
    sweep=1
    each packet host=1 link=0 type=rc op=send size=42
}

# The first messages of an endpoint use DC, whose responder has no PSN to read. Odd
# messages are data, even ones log entries. A put that was executed without its log
# entry is found by comparing the target.
test_fallback_lane_after_execution() {
    action=silent=1:0
    first=1
    sweep=$((sweep + 4))
    each ack link=0 op=write
    [ "$equal" -gt 0 ] || fail "no put was found to be executed"
    echo "# compared: $equal equal, $different different"
}

test_fallback_lane_before_execution() {
    action=silent=1:0
    first=1
    sweep=$((sweep + 2))
    each packet host=1 link=0 op=write
    [ "$different" -gt 0 ] || fail "no put was found to be lost"
}

# Two of three links fail, the second one at a read of the first recovery.
test_comparison_is_interrupted() {
    RC_VARUNA_QUIRK=$(with_quirks psn-lost)
    export RC_VARUNA_QUIRK
    action=silent=1:0
    links=3
    local n
    for n in 1 2 3; do
        second="packet host=1 link=1 op=read nth=$n silent=1:1"
        sweep=1 each ack link=0 op=write
    done
    ((equal + different > 0)) || fail "no put was compared"
}

# As with a NIC that cannot read its PSN. Which messages are data and which are log
# entries differs from run to run.
test_without_psn() {
    RC_VARUNA_QUIRK=$(with_quirks psn-lost)
    export RC_VARUNA_QUIRK
    action=silent=1:0
    sweep=1
    while ((equal == 0 && first < 613)); do
        each ack link=0 op=write
        first=$((first + 1))
    done
    [ "$equal" -gt 0 ] || fail "no put was found to be executed"
}

test_large_put_without_psn() {
    RC_VARUNA_QUIRK=$(with_quirks psn-lost)
    export RC_VARUNA_QUIRK
    job ack link=0 op=write size=64k- pkt=last nth=3 silent=1:0
    [ "$equal" -gt 0 ] || fail "the put was not found to be executed"
}

# On Ethernet no NIC says whether writes stay in order. If the user knows that they do, the log
# shows what was executed where no PSN can be read: on DC, or if the peer's NIC is dead. At most
# the put in the gap is compared with its target
test_order_that_the_user_knows() {
    export UCX_RC_VARUNA_ORDER=certain UCX_RC_VARUNA_PACKET_LIFETIME=100ms
    local rule shown=0
    fabric_options='--quirk roce'
    for rule in 'type=dc nth=4 silent=1:0' 'type=rc nth=200 kill=0:0'; do
        # shellcheck disable=SC2086 # words of a rule
        job exec link=0 host=1 op=write $rule
        echo "# $rule: executed=$(switch_sum executed) lost=$(switch_sum lost)" \
             "ambiguous=$(switch_sum ambiguous)"
        ! grep -E 'switched .* ambiguous=([2-9]|[0-9]{2,})' client.log ||
            fail "$rule: more than one put of an endpoint is in doubt"
        ((shown += $(switch_sum executed)))
    done
    ((shown > 0)) || fail "no log shows anything"
}

run_tests
