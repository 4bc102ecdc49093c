#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# An endpoint is closed while its link has just failed, or before it has heard that it is
# open (test/e2e/peers/ft_close.c). Its process lives on and makes no progress; its peer lives on
# as well, and must not keep the target, its queue pair and its log rings.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"

emu=$RCV_PREFIX/bin/mlx5emu
run=$RCV_PREFIX/bin/rc_varuna_run
fabric=close-$$

# Nobody is given up for being silent, so only CLOSE closes
export UCX_RC_VARUNA_ORPHAN_TIMEOUT=0

# await PATTERN FILE: up to 60 s
await() {
    local i
    for ((i = 0; i < 1200; ++i)); do
        ! grep -qs -e "$1" "$2" || return 0
        sleep 0.05
    done
    fail "\"$1\" is not in $2: $(tail -n 3 "$2")"
}

# program_of PID: the program that mlx5emu became, or runs
program_of() {
    pgrep -P "$1" | while read -r child; do
        program_of "$child"
    done | grep . || echo "$1"
}

# begin MODE: a server, and a client whose endpoint is open; descriptors 8 and 9 are their
# stdin
begin() {
    check "$emu" up -n "$fabric" --hosts 2 --links 2
    trap '"$emu" down -n "$fabric" --force >/dev/null 2>&1' EXIT
    mkfifo server.in client.in
    timeout 200 "$emu" exec -n "$fabric" 0 -- "$run" "$apps/ft_load" lone 65536 \
        <server.in >server.log 2>&1 &
    server=$!
    exec 9>server.in
    await '^ft: address' server.log
    server_program=$(program_of $server)
    timeout 200 "$emu" exec -n "$fabric" 1 -- "$run" "$apps/ft_close" "$1" \
        <client.in >client.log 2>&1 9>&- &
    client=$!
    exec 8>client.in
    sed -n 's/^ft: address *//p' server.log >&8
    await '^ft: open' client.log
    until_open 1
    [ "$1" = new ] || [ "$(count_queue_pairs)" -gt 0 ] ||
        fail "the server has no queue pair for the endpoint"
}

end() {
    echo end >&8
    exec 8>&- 9>&-
    wait $client || fail "the client ended with $?: $(tail -n 5 client.log)"
    wait $server || fail "the server ended with $?: $(tail -n 5 server.log)"
    check "$emu" down -n "$fabric"
    trap - EXIT
}

# Of the server, which are connected to somebody
count_queue_pairs() {
    "$emu" status -n "$fabric" --qps | grep -cE '^qp .* rc +rt[rs] +link 0:' || :
}

# Its targets, as it counts them now
count_targets() {
    local shown
    shown=$(grep -c '^ft: shown' server.log || :)
    kill -USR1 "$server_program"
    while [ "$(grep -c '^ft: shown' server.log)" -eq "$shown" ]; do
        kill -0 $server || fail "the server has died: $(tail -n 9 server.log)"
        sleep 0.02
    done
    sed -n 's|^vfs: .*/target/open ||p' server.log | tail -n 1
}

# until_open NUMBER: targets
until_open() {
    local i
    for ((i = 0; i < ${tries:-600}; ++i)); do
        [ "$(count_targets)" != "$1" ] || return 0
        sleep 0.1
    done
    fail "$(count_targets) targets are open, and not $1"
}

# All that the server had for the endpoint is gone
until_gone() {
    local i
    until_open 0
    for ((i = 0; i < 600; ++i)); do
        [ "$(count_queue_pairs)" -gt 0 ] || return 0
        sleep 0.1
    done
    fail "$(count_queue_pairs) queue pairs are left"
}

close_endpoint() {
    echo close >&8
    await '^ft: closed' client.log
}

# CLOSE is sent over the link which the endpoint has used, and is lost
test_its_link_has_failed() {
    local side
    begin used
    for side in 0 1; do
        check "$emu" link -n "$fabric" $side:0 silent
    done
    close_endpoint
    until_gone
    end
}

# No port says that it is down, and both are
test_no_link_is_left_for_a_while() {
    local link
    begin used
    for link in 0 1; do
        check "$emu" link -n "$fabric" 1:$link silent
    done
    close_endpoint
    sleep 0.5
    [ "$(count_targets)" -eq 1 ] || fail "the links were not silent"
    check "$emu" link -n "$fabric" 1:1 up
    until_gone
    end
}

# Its answer is not looked at, as if it were lost
test_it_was_not_open() {
    begin new
    close_endpoint
    until_gone
    end
}

run_tests
