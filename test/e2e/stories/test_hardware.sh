#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# How the plugin handles NICs and fabrics on which an assumption of docs/HARDWARE.md is
# false, or which differ from the emulator's default.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_jobs.sh"

export UCX_LOG_LEVEL=debug

# fabric_down_checked: fails unless each quirk of the fabric has acted
fabric_down_checked() {
    check "$emu" quirk -n "$fabric" list --check >quirks
    fabric_down
}

# opened NAME=VALUE...: opens the transport in a process; its log is open.log
opened() {
    env UCX_LOG_FILE=stderr "$@" timeout 300 "$emu" exec -n "$fabric" 0 -- "$run" \
        ucx_info -d -t rc_varuna >open.log 2>&1 || fail "$(tail -n 3 open.log)"
}

# lifetime_is SECONDS VALUE: checks the lifetime with this value of the option
lifetime_is() {
    opened UCX_RC_VARUNA_PACKET_LIFETIME="$2"
    grep -q "rc_varuna: packet lifetime $1 s" open.log ||
        fail "$2 is not $1 s: $(grep 'packet lifetime' open.log)"
}

# Measures the time until an operation in flight on a failed DC lane is repeated on the
# next link. Without spare queue pairs, a server that does not call progress offers only
# DC.
time_from_dc() {
    jobs_start UCX_RC_VARUNA_SPARE_QPS=0
    ask client "run 1 put_short 0"
    ask server compute
    fault packet host=1 link=0 op=write nth=5 silent=1:0
    ask client "run 2 put_short 0"
    fault packet host=1 link=1 type=dc op=write nth=5 silent=1:1
    ask client "run 3 put_short 0"
    faults_fired
    ask server go
    jobs_stop
    sed -n 's/.*switched .* from=mlx5_1:1 was=dc .* time_us=\([0-9]*\).*/\1/p' client.log |
        grep . || fail "nothing was switched: $(grep switched client.log)"
}

test_lifetime_is_the_subnet_timeout() {
    fabric_up
    lifetime_is 1.074 auto
    fabric_up --subnet-timeout 14
    lifetime_is 0.067 auto
    lifetime_is 0.040 40ms
}

# "inf" is longer than an endpoint waits
test_lifetime_is_bounded() {
    fabric_up --subnet-timeout 31
    lifetime_is 8796.093 auto
    grep -q 'DIAG .*whose DC lane fails cannot recover' open.log || fail "no warning"
    lifetime_is 8796.093 inf
    lifetime_is 0.060 60ms
    ! grep -q 'whose DC lane fails cannot recover' open.log || fail "a warning"
}

test_lifetime_is_unknown() {
    fabric_up --quirk roce
    lifetime_is 2.000 auto
    fabric_down_checked
    fabric_up --subnet-timeout 0
    lifetime_is 2.000 auto
}

# with_timeout SUBNET_TIMEOUT: sets $time to that time
with_timeout() {
    fabric_up --links 3 --subnet-timeout "$1"
    time_from_dc >time
    time=$(cat time)
    echo "# subnet timeout $1: $time us"
    rm server.* client.*
}

# is_short: it has taken less than the longer one of the two lifetimes
is_short() {
    local time
    with_timeout 10
    [ "$time" -lt 1000000 ]
}

# Operations in flight on DC are repeated after the lifetime, and not much later. On a busy
# machine one of many times is short
test_lifetime_is_waited_for() {
    local time
    export UCX_RC_VARUNA_PACKET_LIFETIME=auto UCX_RC_VARUNA_RETURN_DELAY=inf
    comes is_short || fail "it takes more than a second"
    with_timeout 18
    [ "$time" -ge 1073741 ] || fail "it took $time us"
}

# order_of PORT PATTERN FILE: checks that the log reports the order of its packets, once
order_of() {
    local count
    count=$(grep -cE "rc_varuna: $1: .*packets of service level" "$3") || true
    [ "$count" -eq 1 ] || fail "$count lines about the order of $1"
    grep -qE "rc_varuna: $1: $2" "$3" ||
        fail "not \"$2\": $(grep 'packets of service level' "$3")"
}

# sls FILE: prints the service levels that UCX uses
sls() {
    sed -n 's/.*SL=\([0-9]*\) (AR support.* was selected.*/\1/p' "$1" | sort -u | xargs
}

# On all service levels packets stay in order
test_order_is_kept() {
    fabric_up
    opened
    order_of mlx5_0:1 'packets of service level 0 stay in order' open.log
    order_of mlx5_1:1 'packets of service level 0 stay in order' open.log
}

# On service levels 8 to 15, if the user agrees: all lanes use the first one, even those of the
# control plane, and packets stay in order
test_order_is_requested() {
    fabric_up --quirk ooo
    opened
    order_of mlx5_0:1 'packets of service level 0 may overtake each other' open.log
    [ "$(sls open.log)" = 0 ] || fail "UCX has taken $(sls open.log)"
    export UCX_RC_VARUNA_ORDERED_SL=y
    jobs_start
    wait_for_rc
    ask client "run 1 mixed1 0"
    jobs_stop
    order_of mlx5_0:1 'packets of service level 8 stay in order' client.log
    [ "$(sls client.log)" = 8 ] || fail "UCX has taken $(sls client.log)"
    [ "$(grep -c 'DIAG .*traffic moves from service level 0, .* to 8$' client.log)" -eq 2 ] ||
        fail "the move of $(grep -c 'traffic moves' client.log) NICs is told"
    "$emu" quirk -n "$fabric" list >quirks
    [ "$(grep -c 'quirk .:.=ooo  *acted 0$' quirks)" -eq 4 ] ||
        fail "packets overtook others: $(grep acted quirks)"
}

# Nothing arrives over the level in order: what was not sent yet uses the first one
test_ordered_level_is_dead() {
    fabric_up --quirk ooo --quirk dead-sl
    export UCX_RC_VARUNA_ORDERED_SL=y
    jobs_start
    wait_for_rc
    ask client "run 1 mixed1 0"
    jobs_stop
    grep -q 'DIAG .*mlx5_0:1: nothing arrives over service level 8, so traffic moves back to 0' \
         client.log || fail "not told: $(grep 'service level' client.log)"
    fabric_down_checked
}

# One that works at first is kept when its link fails
test_ordered_level_is_kept() {
    fabric_up --quirk ooo
    export UCX_RC_VARUNA_ORDERED_SL=y
    jobs_start
    wait_for_rc
    fault packet host=1 link=0 op=write nth=5 silent=1:0
    ask client "run 1 mixed1 0"
    faults_fired
    await 60 client.log 'control messages to peer .* on mlx5_0:1 fail'
    jobs_stop
    ! grep 'moves back' client.log server.log || fail "a link that has failed changes its level"
}

# The user's choice has priority
test_order_is_not_wanted() {
    fabric_up --quirk ooo
    opened UCX_IB_SL=3
    order_of mlx5_0:1 'packets of service level 3 may overtake each other' open.log
    [ "$(sls open.log)" = 3 ] || fail "UCX has taken $(sls open.log)"
    opened UCX_IB_SL=9
    order_of mlx5_0:1 'packets of service level 9 stay in order' open.log
}

# No level is in order, which is logged; rc_varuna works
test_order_is_not_available() {
    jobs_on_rc --quirk ooo-all
    ask client "run 1 mixed1 0"
    jobs_stop
    order_of mlx5_0:1 'packets of service level 0 may overtake each other' client.log
    grep -q 'DIAG .*take one out of ar_sl_mask' client.log || fail "no advice"
    fabric_down_checked
}

# Without the mask the order is unknown
test_order_is_unknown() {
    fabric_up --no-devx
    opened
    order_of mlx5_0:1 'it is unknown whether packets of service level 0 stay' open.log
    fabric_up --quirk roce
    opened
    order_of mlx5_0:1 'it is unknown whether packets of service level 0 stay' open.log
    grep -q 'DIAG .*UCX_RC_VARUNA_LOG=fallback gives the same guarantees' open.log ||
        fail "no advice"
    opened UCX_RC_VARUNA_LOG=fallback
    ! grep -q 'gives the same guarantees' open.log || fail "advice to do what was done"
    opened UCX_RC_VARUNA_ORDER=certain
    order_of mlx5_0:1 'packets of service level 0 stay in order, as UCX_RC_VARUNA_ORDER says' \
             open.log
}

# What queue pairs say counts more than what the user says
test_order_is_claimed() {
    fabric_up --quirk roce --quirk ooo
    opened UCX_RC_VARUNA_ORDER=certain
    grep -q 'WARN .*ORDER=certain is ignored on mlx5_0:1' open.log || fail "no warning"
    grep -q 'rc_varuna: mlx5_0:1: queue pairs may place writes before earlier ones' open.log ||
        fail "not said: $(grep mlx5_0:1: open.log)"
    fabric_up
    opened UCX_RC_VARUNA_ORDER=unknown
    order_of mlx5_0:1 'it is unknown whether packets of service level 0 stay' open.log
}

# flapping HOST COUNT: its first link fails COUNT times, and comes back with other addresses.
# The client works, and each time its traffic moves away and back
flapping() {
    local i
    for ((i = 1; i <= $2; ++i)); do
        link "$1:0" down
        leaves_link_0 $i
        link "$1:0" up
        returns_to_link_0 $i
    done
}

runs=0

# works_once PLAN PATTERN COUNT: one plan; whether COUNT lines of the client's log match
works_once() {
    ask client "run $((++runs)) $1 0"
    has_lines client.log "$2" "$3" || { ask client "idle 0.01" && false; }
}

starts_on_link_0() {
    if [ -z "${UCX_RC_VARUNA_LANES:-}" ]; then
        wait_for_rc
    else
        comes works_once put_short 'backlog -> active .rc .* on mlx5_0:1' 1 ||
            fail "$(grep ' -> active' client.log)"
    fi
}

# The endpoint is on RC of link 0, as often as that. With DC it has been on that before
returns_to_link_0() {
    comes works_once mixed1 'planned swap from .* to rc on mlx5_0:1' \
        $(($1 + (${UCX_RC_VARUNA_LANES:+1}0 == 0))) ||
        fail "the traffic does not return for time $1: $(grep -E 'swap|switched' client.log |
                                                   tail -n 3)"
}

# It has left it because of a failure, as often as that
leaves_link_0() {
    comes works_once put_short 'rc_varuna: switched .* from=mlx5_0:1' "$1" ||
        fail "the traffic does not leave for time $1"
}

# moving HOST COUNT OPTION...: of the fabric
moving() {
    local host=$1 count=$2
    shift 2
    fabric_up --quirk "$host:0=gid-moves" "$@"
    jobs_start
    starts_on_link_0
    flapping "$host" "$count"
    jobs_stop
    ! grep -q 'endpoint .* fails\|cannot be used yet' client.log server.log ||
        fail "$(grep 'endpoint .* fails\|cannot be used yet' client.log server.log)"
    fabric_down_checked
}

# said WHO COUNT: it has used another address COUNT times
said() {
    local count
    count=$(grep -c 'rc_varuna: mlx5_0:1 has another address' "$1.log") || true
    [ "$count" -ge "$2" ] || fail "the $1 has used another address $count times"
}

# The link comes back with another LID; all know it then
test_lid_of_client_moves() {
    moving 1 3
    said client 3
}

test_lid_of_server_moves() {
    moving 0 3
    said server 3
    grep -q 'received LINKS_REP' client.log || fail "the client was told nothing"
}

# On RoCE, addresses get other places in the table of GIDs
test_gid_of_client_moves() {
    moving 1 3 --quirk roce
    said client 3
}

test_gid_of_server_moves() {
    moving 0 3 --quirk roce
    said server 3
}

# Without DC, the data lane and the bus share an address
test_gid_of_client_moves_without_dc() {
    export UCX_RC_VARUNA_LANES=verbs
    moving 1 3 --quirk roce
    said client 3
}

test_gid_of_server_moves_without_dc() {
    export UCX_RC_VARUNA_LANES=verbs
    moving 0 3 --quirk roce
    said server 3
}

# complaints: prints what a user of the client sees at the default level, but for UCX's own
# line about each event of a port
complaints() {
    grep -E ' (WARN|ERROR) ' client.log | grep -v 'IB Async event on'
}

# has_complained COUNT: in so many lines
has_complained() {
    [ "$(complaints | wc -l)" -eq "$1" ] || fail "$(complaints)"
}

# After a flap there is nothing at the index that the user has named, and after two more there
# is again. The user is told once, however often it is tried, and when it is over
test_gid_index_is_empty() {
    fabric_up --quirk 1:0=gid-moves --quirk roce
    export UCX_IB_GID_INDEX=3
    jobs_start
    wait_for_rc
    link 1:0 down
    leaves_link_0 1
    link 1:0 up
    await 60 client.log 'another address, which cannot be used yet .*: trying again in [124] s' 3
    grep -qE 'WARN .* mlx5_0:1 has another address, .* entry 3 of its table of GIDs is empty' \
        client.log || fail "$(grep 'cannot be used' client.log)"
    has_complained 1
    link 1:0 down
    link 1:0 up
    link 1:0 down
    link 1:0 up
    await 60 client.log 'WARN .*mlx5_0:1 can be used again'
    returns_to_link_0 0
    has_complained 2
    jobs_stop
    fabric_down_checked
}

# descriptors ROLE: how many the program has open. An event channel of the emulator counts once:
# who reports an event opens it a second time for a moment
descriptors() {
    local pid=${1}_pid
    find "/proc/$(program_of "${!pid}")/fd" -type l -printf '%l\n' |
        awk '!/\/event[.][0-9]+$/ || !seen[$0]++' | wc -l
}

# are_descriptors CLIENT SERVER: they have that many
are_descriptors() {
    [ "$(descriptors client) $(descriptors server)" = "$1 $2" ]
}

# All links move again and again, of both hosts in turn: the spare one first, which has to
# take over the traffic then. 30 flaps; with RC_VARUNA_LONG 1000
test_all_gids_move() {
    local i host flaps=30 before
    [ -z "${RC_VARUNA_LONG:-}" ] || flaps=1000
    export UCX_RC_VARUNA_HOLD_MIN=1ms UCX_RC_VARUNA_HOLD_MAX=1ms
    export UCX_RC_VARUNA_CTL_TIMEOUT=10ms
    fabric_up --quirk gid-moves --quirk roce
    jobs_timeout=$((600 + 10 * flaps))
    jobs_start
    wait_for_rc
    for ((i = 1; 2 * i <= flaps; ++i)); do
        host=$((i % 2))
        link $host:1 down
        link $host:1 up
        link $host:0 down
        leaves_link_0 $i
        link $host:0 up
        returns_to_link_0 $i
        [ $i -ne 5 ] || before="$(descriptors client) $(descriptors server)"
    done
    # shellcheck disable=SC2086 # words
    comes are_descriptors $before ||
        fail "descriptors: $before, and now $(descriptors client) $(descriptors server)"
    jobs_stop
    for i in 0 1; do
        [ "$(grep -c "mlx5_$i:1 has another address" client.log)" -ge $((flaps / 4 - 1)) ] ||
            fail "link $i of the client did not move: $(grep -c another client.log)"
    done
    ! grep -q 'cannot be used yet' client.log server.log ||
        fail "$(grep 'cannot be used yet' client.log server.log)"
    fabric_down_checked
}

# slow_nic LINK [OPTION...]: on three links; a command to the server's NIC there takes half a
# minute once the NIC is dead, which nobody reports
slow_nic() {
    jobs_on_rc --links 3 --quirk "0:$1=slow-cmd:30s"
    check "$emu" nic -n "$fabric" "0:$1" kill --silent
}

# slow_nic_acted: it was given a command that takes so long, and answers from now on
slow_nic_acted() {
    "$emu" quirk -n "$fabric" list >quirks
    grep -q 'quirk .*slow-cmd.*acted [1-9]' quirks || fail "no command was slow: $(grep '^ *quirk' quirks)"
}

# switched_within MS FROM: prints the times of recoveries from that port
switched_within() {
    local time
    time=$(sed -n "s/.*rc_varuna: switched .* from=$2 .* time_us=\([0-9]*\).*/\1/p" client.log |
           tail -n 1)
    echo "# from $2: ${time:-never} us"
    [ -n "$time" ] || fail "not switched from $2: $(grep switched client.log)"
    [ "$time" -lt $(($1 * 1000)) ] || fail "it took $time us"
}

# The responder cannot stop the queue pair on its hung NIC, and answers nevertheless; while
# that command is in progress, it stops the one on another NIC and answers pings. A recovery
# that waited for the command would take 30 s
test_fence_does_not_wait_for_a_hung_nic() {
    export UCX_RC_VARUNA_RETURN_DELAY=inf
    slow_nic 0
    ask client "run 1 put_short 0"
    switched_within 29000 mlx5_0:1
    slow_nic_acted
    wait_for_rc 2
    fault packet host=1 link=1 type=rc op=write nth=3 silent=1:1
    ask client "run 2 put_short 0"
    faults_fired
    switched_within 29000 mlx5_1:1
    ! grep -q 'path to .*mlx5_2:1.* down' client.log || fail "the third link is in doubt"
    check "$emu" quirk -n "$fabric" remove 0:0=slow-cmd
}

run_tests 2
