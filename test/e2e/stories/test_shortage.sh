#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# NICs that run out of queue pairs, memory regions or address handles, at the start or later:
# the job runs on the other NIC, a warning says so, and they are asked again, seldom. Each
# test checks that a NIC has refused something. short.c is preloaded.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export UCX_LOG_LEVEL=debug
runs=0

# short_up [OPTION...]: a fabric, and a launcher of jobs whose NICs may be short
short_up() {
    mkdir short
    gcc -shared -fPIC -Wall -Wextra -Werror -D_GNU_SOURCE -o short.so \
        "$top/test/e2e/stories/short.c" -ldl -libverbs
    cat >launch <<END
#!/bin/sh
exec "$run" sh -c 'LD_PRELOAD=$PWD/short.so:\$LD_PRELOAD exec "\$@"' sh "\$@"
END
    chmod +x launch
    launcher=$PWD/launch
    fabric_up "$@"
}

# short_of WHAT DEVICE [LENGTH]: from now on; LENGTH: only of regions with so many bytes
short_of() {
    echo "${3:-}" >"short/$1.$2"
}

# Bytes of the memory that a server registers, and a client: ft_plan.h, ft_ops.h
server_region=$((260 * 1024)) client_region=$((8 * 1024 * 1024))

# enough_of WHAT DEVICE: again
enough_of() {
    rm "short/$1.$2"
}

# refusals WHAT DEVICE: prints how many there were
refusals() {
    stat -c %s "short/$1.$2.refused" 2>/dev/null || echo 0
}

# has_refused WHAT DEVICE [COUNT]
has_refused() {
    [ "$(refusals "$1" "$2")" -ge "${3:-1}" ]
}

# has_passed SECONDS: since this script has begun
has_passed() {
    [ $SECONDS -ge "$1" ]
}

# asked_seldom SINCE WHAT DEVICE [MORE]: it works until eight seconds have passed since then,
# and the NIC was asked no more often than the distances of varuna_clock.h allow: 1, 2, 4,
# 8, 16, 16 s and so on. MORE (0): what was asked for beside that, at the start
asked_seldom() {
    local count at=0 distance=1 most=$((1 + ${4:-0}))
    works_until has_passed $(($1 + 8))
    while ((at += distance, at <= SECONDS - $1 + 1)); do
        ((most += 1, distance = distance < 16 ? 2 * distance : 16))
    done
    count=$(refusals "$2" "$3")
    echo "# $count refusals in $((SECONDS - $1)) s, $most at most"
    [ "$count" -le $most ] || fail "$count refusals in $((SECONDS - $1)) s, not $most"
}

# loud ROLE: prints what a user sees of its log by default
loud() {
    grep -aE 'UCX +(WARN|ERROR|FATAL)' "$1.log" || true
}

# loud_lines ROLE: prints their number
loud_lines() {
    loud "$1" | wc -l
}

# quiet ROLE WHAT DEVICE: beside the errors by which UCX reports each refusal, it has told the
# user about the device once
quiet() {
    local count
    count=$(loud "$1" | grep -cv 'UCX *ERROR') || true
    [ "$count" -eq 1 ] || fail "$count warnings of the $1: $(loud "$1" | head -n 5)"
    grep -q "UCX *WARN.*rc_varuna: $3.*" < <(loud "$1") || fail "no warning: $(loud "$1")"
    count=$(loud_lines "$1")
    [ "$count" -le $(($(refusals "$2" "$3") + 1)) ] ||
        fail "$count lines of the $1: $(loud "$1" | head -n 20)"
}

# works [PLAN]: the client's operations are executed
works() {
    ask client "run $((++runs)) ${1:-mixed1} 0"
}

# works_until COMMAND...: it works, and the command becomes true
works_until() {
    works_and() {
        works put_short
        "$@" || { ask client "idle 0.05" && false; }
    }
    comes works_and "$@" || fail "not true: $*: $(grep -a rc_varuna client.log | tail -n 5)"
}

# rc_lines LINK COUNT: the endpoint has got RC on this link so often
rc_lines() {
    has_lines client.log "planned swap from .* to rc on mlx5_$1:1" "$2"
}

# A queue pair on the second NIC is wanted when the first one fails. DC carries the traffic
test_client_without_queue_pairs() {
    local since
    short_up
    export FT_SHORT=$PWD/short
    jobs_start FT_SHORT=
    wait_for_rc
    short_of qp mlx5_1
    since=$SECONDS
    link 1:0 down
    works_until has_refused qp mlx5_1 2
    asked_seldom $since qp mlx5_1
    works
    quiet client qp mlx5_1
    enough_of qp mlx5_1
    works_until rc_lines 1 1
    await 1 client.log 'DIAG .*mlx5_1:1 gives a queue pair again, after'
}

# The same on lanes of verbs, where RC is connected on the second link at once: it cannot be,
# and operations wait until the NIC has a queue pair or the first link is back
test_client_without_queue_pairs_of_verbs() {
    local since
    export UCX_RC_VARUNA_LANES=verbs
    short_up
    export FT_SHORT=$PWD/short
    jobs_start FT_SHORT=
    works
    short_of qp mlx5_1
    since=$SECONDS
    link 1:0 down
    assign client "run $((++runs)) mixed1 0"
    comes has_refused qp mlx5_1 2 || fail "nothing was refused"
    enough_of qp mlx5_1
    await_ok client
    asked_seldom $since qp mlx5_1
    quiet client qp mlx5_1
}

# The second link needs an address handle, for data and for control messages. When the first
# one fails, operations wait for it
test_client_without_address_handles() {
    local since
    short_up
    export FT_SHORT=$PWD/short
    short_of ah mlx5_1
    since=$SECONDS
    jobs_start FT_SHORT=
    works
    asked_seldom $since ah mlx5_1 5
    link 1:0 down
    assign client "run $((++runs)) mixed1 0"
    comes has_refused ah mlx5_1 || fail "nothing was refused"
    enough_of ah mlx5_1
    await_ok client
    await 1 client.log 'DIAG .*mlx5_1:1 gives an address handle again, after'
}

# The responder gives its spare queue pairs away, and gets no others
test_server_without_queue_pairs() {
    local since
    short_up
    jobs_start FT_SHORT="$PWD/short" UCX_RC_VARUNA_SPARE_QPS=1
    wait_for_rc
    short_of qp mlx5_1
    since=$SECONDS
    link 1:0 down
    works_until rc_lines 1 1 # The spare one
    works_until has_refused qp mlx5_1 2
    asked_seldom $since qp mlx5_1
    quiet server qp mlx5_1
    enough_of qp mlx5_1
    works_until has_lines server.log 'mlx5_1:1 gives a queue pair again, after'
}

# starts_without ROLE WHAT DEVICE: it does, and works over the other NIC
starts_without() {
    local who=$1 client=$PWD/short server=
    short_up
    [ "$who" = client ] || { server=$client && client=; }
    short_of "$2" "$3"
    export FT_SHORT=$client
    jobs_start FT_SHORT="$server"
    has_refused "$2" "$3" || fail "$3 has refused nothing"
    works
    quiet "$who" "$2" "$3"
}

test_client_starts_without_queue_pairs() {
    starts_without client qp mlx5_1
}

test_client_starts_without_queue_pairs_of_the_primary() {
    starts_without client qp mlx5_0
}

test_server_starts_without_queue_pairs() {
    starts_without server qp mlx5_1
}

test_client_starts_without_regions() {
    starts_without client mr mlx5_1
}

test_server_starts_without_regions_of_the_primary() {
    starts_without server mr mlx5_0
}

# The memory of operations is registered on one NIC only. The other one refuses them when the
# endpoint comes there, and they wait for the first one
refused_on_the_second() {
    local who=$1 client=$PWD/short server=
    short_up
    [ "$who" = client ] || { server=$client && client=; }
    short_of mr mlx5_1 "$2"
    export FT_SHORT=$client
    jobs_start FT_SHORT="$server"
    has_refused mr mlx5_1 || fail "nothing was refused"
    wait_for_rc
    works
    link 1:0 down
    assign client "run $((++runs)) mixed1 0"
    await 1 client.log 'DIAG .*a NIC of mlx5_1:1 has not registered the memory of a request'
    link 1:0 up
    await_ok client
    works
    # UCX says so when our own NIC refuses a request
    [ "$(loud_lines "$who")" -le 6 ] || fail "$(loud "$who" | head -n 20)"
}

test_region_of_the_client_on_one_nic() {
    refused_on_the_second client $client_region
}

test_region_of_the_server_on_one_nic() {
    refused_on_the_second server $server_region
}

# The same on the primary: the traffic leaves it
test_region_of_the_server_not_on_the_primary() {
    short_up
    short_of mr mlx5_0 $server_region
    jobs_start FT_SHORT="$PWD/short"
    has_refused mr mlx5_0 || fail "nothing was refused"
    works
    has_lines client.log 'DIAG .*a NIC of mlx5_0:1 has not registered the memory of a request' ||
        fail "nothing was posted there"
    works mixed2
    works mixed3
    quiet server mr mlx5_0
}

# Only then an interface is not opened
test_nothing_can_be_opened() {
    short_up
    short_of qp mlx5_0
    short_of qp mlx5_1
    FT_SHORT=$PWD/short UCX_LOG_FILE=stderr "$emu" exec -n "$fabric" 0 -- "$launcher" \
        ucx_info -d -t rc_varuna >open.log 2>&1 || fail "$(tail -n 3 open.log)"
    has_refused qp mlx5_0 && has_refused qp mlx5_1 || fail "nothing was refused"
    grep -q 'ERROR rc_varuna: mlx5_[01]:1, the last link, cannot be opened' open.log ||
        fail "no error: $(grep -a rc_varuna open.log)"
}

run_tests
