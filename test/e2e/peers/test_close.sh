#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# An endpoint is closed when its link has just failed, or before it knows that it is
# open (ft_close.c). Its process stays but makes no progress. Its peer must not keep the
# target, its queue pair and its log rings.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

# Silent peers are not given up, so only CLOSE closes the target
export UCX_RC_VARUNA_ORPHAN_TIMEOUT=0

# begin MODE: starts a server, and a client that reads descriptor 8; its endpoint is
# open
begin() {
    fabric_up
    load_server_start lone 65536
    mkfifo client.in
    timeout 600 "$emu" exec -n "$fabric" 1 -- "$run" "$apps/ft_close" "$1" \
        <client.in >client.log 2>&1 9>&- &
    client=$!
    exec 8>client.in
    load_server_address >&8
    await 60 client.log '^ft: open'
    await_counter open 1
    [ "$1" = new ] || [ "$(count_queue_pairs)" -gt 0 ] ||
        fail "the server has no queue pair for the endpoint"
}

end() {
    echo end >&8
    exec 8>&-
    wait $client || fail "the client ended with $?: $(tail -n 5 client.log)"
}

# Connected queue pairs of the server
count_queue_pairs() {
    "$emu" status -n "$fabric" --qps | grep -cE '^qp .* rc +rt[rs] +link 0:' || :
}

no_queue_pairs() {
    [ "$(count_queue_pairs)" -eq 0 ]
}

# The server has released all resources of the endpoint
until_gone() {
    await_counter open 0
    comes no_queue_pairs || fail "$(count_queue_pairs) queue pairs are left"
}

close_endpoint() {
    echo close >&8
    await 60 client.log '^ft: closed'
}

# CLOSE is sent over the endpoint's link, and is lost
test_its_link_has_failed() {
    local side
    begin used
    for side in 0 1; do
        link "$side:0" silent
    done
    close_endpoint
    until_gone
    end
}

# Both links are silent, without a port event
test_no_link_is_left_for_a_while() {
    local link
    begin used
    for link in 0 1; do
        link 1:$link silent
    done
    close_endpoint
    sleep 0.5
    [ "$(counter open)" -eq 1 ] || fail "the links were not silent"
    link 1:1 up
    until_gone
    end
}

# The client does not process its answer, as if it were lost
test_it_was_not_open() {
    begin new
    close_endpoint
    until_gone
    end
}

run_tests
