#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# A running process receives control messages of a program that uses plain UCX
# (ft_ctl.c).
#
# RC_VARUNA_HOSTILE_SEEDS: the seeds of the hostile peer, one run for each;
# RC_VARUNA_HOSTILE_STEPS: its steps in each run. RC_VARUNA_KEEP: a directory for the
# logs of a failed run. test_fuzz.sh runs the same with a victim that is built with
# sanitizers (RC_VARUNA_HOSTILE_RUN: its launcher, RC_VARUNA_HOSTILE_APPS: its
# directory), and test_sanitizers.sh with everything built with them.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_env.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/ft_load.sh"

test_plain_ucx_is_answered() {
    local mismatched
    fabric_up
    load_server_start server 65536
    load_server_call "$apps/ft_greet" >greet.log 2>&1 ||
        fail "$(tail -n 5 greet.log server.log)"
    check grep -q '^ft: greeted on 2 links' greet.log
    # Forged messages on both links had no effect, as ft_greet has checked, and were
    # counted
    mismatched=$(counter mismatched)
    [ "$mismatched" -ge 14 ] || fail "of 14 forged messages $mismatched were counted"
}

# tell NAME LINE: sends a command to a process
tell() {
    echo "$2" >"$1.in"
}

# answer NAME PATTERN: waits for the next line "ft: PATTERN...", and prints it without
# "ft: "
declare -A lines_read
answer() {
    local i line='' lives=yes
    for ((i = 0; i < 6000; ++i)); do
        kill -0 "${pids[$1]}" 2>/dev/null || lives=no
        line=$(tail -n +$((${lines_read[$1]:-0} + 1)) "$1.log" |
               grep -n -m 1 -E "^ft: $2") && break
        [ $lives = yes ] || break
        ! grep -hE '^ft: die|ERROR: AddressSanitizer|runtime error:' ./*.log || break
        pause 0.05
    done
    [ -n "$line" ] || hostile_fail "$1 does not say \"$2\""
    lines_read[$1]=$((${lines_read[$1]:-0} + ${line%%:*}))
    said=${line#*:ft: }
}

# hostile_fail WORDS...: fails, and prints and keeps the logs
hostile_fail() {
    [ -z "${RC_VARUNA_KEEP:-}" ] || cp ./*.log ./*.shots "$RC_VARUNA_KEEP"
    tail -n 4 ./*.log | cut -c 1-300 | sed 's/^/# /'
    fail "seed $seed: $*"
}

# hostile_start NAME HOST COMMAND...: starts a process that reads NAME.in and writes
# NAME.log
declare -A pids
hostile_start() {
    local name=$1 host=$2
    shift 2
    mkfifo "$name.in"
    timeout 900 "$emu" exec -n "$fabric" "$host" -- "$@" <>"$name.in" >"$name.log" 2>&1 &
    pids[$name]=$!
}

# bounded: checks the maximum numbers of objects that the victim has reported
bounded() {
    local words i name
    declare -A limits=([targets]=64 [peers]=32 [held]=4096 [queue]=1024 [inbox]=4096
                       [rc]=128)
    read -ra words <<<"$said"
    for ((i = 1; i < ${#words[@]}; i += 2)); do
        name=${words[i]}
        ((words[i + 1] <= ${limits[$name]:-256})) || hostile_fail "too many $name"
    done
}

# fuzz SEED STEPS: runs a process with a friend and a hostile peer
fuzz() {
    local seed=$1 steps=$2 name
    lines_read=()
    fabric_up --hosts 3
    # Only the hostile peer can cause a failure of the friend's operations. Failures of
    # others are detected soon, and the objects of dead processes are freed soon
    unset UCX_RC_MLX5_TIMEOUT UCX_RC_MLX5_RETRY_COUNT
    export UCX_RC_VARUNA_HEARTBEAT_MISSES=100 UCX_RC_VARUNA_ORPHAN_TIMEOUT=2s
    export UCX_LOG_LEVEL=${RC_VARUNA_HOSTILE_LOG:-warn}
    hostile_start victim 0 "${RC_VARUNA_HOSTILE_RUN:-$run}" \
        "${RC_VARUNA_HOSTILE_APPS:-$apps}/ft_victim"
    hostile_start friend 1 "$run" "$apps/ft_victim"
    hostile_start fuzz 2 "$apps/ft_fuzz" -l fuzz.shots "$seed" "$steps"
    for name in victim friend; do
        answer $name friend
        eval "$name=\${said#friend }"
        answer $name hostile
        eval "$name"'_hostile=${said#hostile }'
    done
    tell victim "friend 4 $friend"
    tell friend "friend 4 $victim"
    tell victim "rounds 20"
    answer victim rounds
    tell victim baseline
    answer victim baseline

    tell fuzz "$victim_hostile"
    answer fuzz address
    tell victim "hostile ${said#address }"
    tell fuzz "$friend_hostile"
    answer fuzz fuzzed
    echo "# seed $seed: $said"
    tell victim "rounds 20"
    answer victim rounds
    tell victim forget
    answer victim forgot
    echo "# victim: $said"
    tell victim settle
    answer victim now
    echo "# victim: $said"
    answer victim "(not )?settled"
    [ "$said" = settled ] || hostile_fail "$said"
    tell friend stop
    answer friend right
    [[ $said == *" 0 failovers"* ]] || hostile_fail "friend: $said"
    tell victim stop
    answer victim most
    echo "# victim: $said"
    bounded
    answer victim right
    echo "# victim: $said"
    [[ $said == *" 0 failovers"* ]] || hostile_fail "victim: $said"
    tell friend end
    tell victim end
    answer friend end
    answer victim end
    for name in victim friend; do
        wait "${pids[$name]}" || hostile_fail "$name ended with $?"
    done
    # Any process can send any number of them
    ! grep 'no handler installed' victim.log ||
        hostile_fail "unknown messages flood the log"
    rm -f ./*.in
}

test_fuzz() {
    local seed
    for seed in ${RC_VARUNA_HOSTILE_SEEDS:-1}; do
        fuzz "$seed" "${RC_VARUNA_HOSTILE_STEPS:-2000}"
    done
}

# hold NAMES COUNT LEAST MOST: a stranger's messages wait for their predecessor. The
# victim must hold between LEAST and MOST of them, and give up the stranger's vQPs
hold() {
    tell victim baseline
    answer victim baseline
    echo "$victim_hostile" | timeout 600 "$emu" exec -n "$fabric" 2 -- \
        "$apps/ft_stranger" hold "$1" "$2" >stranger.log 2>&1 ||
        hostile_fail "the stranger: $(grep -v "^ *[0-9]" stranger.log | head -n 6)"
    grep -q "^ft: held under $1 names, refused" stranger.log ||
        hostile_fail "$(grep held stranger.log)"
    tell victim "rounds 5"
    answer victim rounds
    tell victim most
    answer victim most
    echo "# $1 names: $said"
    [[ $said =~ \ held\ ([0-9]+) ]]
    ((BASH_REMATCH[1] > $3 && BASH_REMATCH[1] <= $4)) ||
        hostile_fail "$1 names of the stranger hold ${BASH_REMATCH[1]}"
    tell victim settle
    answer victim "(not )?settled"
    [ "$said" = settled ] || hostile_fail "$said"
}

# Messages that cannot be delivered fill a process's limit of held messages. Its vQPs to
# and from others are not affected. With a short packet lifetime the wait would end too
# early
test_held_messages_are_bounded() {
    local seed=0 name
    lines_read=()
    fabric_up --hosts 3
    # Nothing fails here, so NICs must not take a slow process for a dead one
    unset UCX_RC_MLX5_TIMEOUT UCX_RC_MLX5_RETRY_COUNT
    unset UCX_DC_MLX5_TIMEOUT UCX_DC_MLX5_RETRY_COUNT
    export UCX_RC_VARUNA_HEARTBEAT_MISSES=100 UCX_RC_VARUNA_PACKET_LIFETIME=600s
    export UCX_RC_VARUNA_ORPHAN_TIMEOUT=2s UCX_LOG_LEVEL=error
    hostile_start victim 0 "$run" "$apps/ft_victim"
    hostile_start friend 1 "$run" "$apps/ft_victim"
    for name in victim friend; do
        answer $name friend
        eval "$name=\${said#friend }"
        answer $name hostile
        eval "$name"'_hostile=${said#hostile }'
    done
    tell victim "friend 4 $friend"
    tell friend "friend 4 $victim"
    tell victim "rounds 5"
    answer victim rounds
    hold 1 16500 15000 16384
    hold 6 16000 60000 65536
    for name in friend victim; do
        tell $name stop
        answer $name right
        echo "# $name: $said"
        [[ $said == *" 0 failovers"* ]] || hostile_fail "$name: $said"
    done
    tell friend end
    tell victim end
    answer friend end
    answer victim end
    rm -f ./*.in
}

run_tests
