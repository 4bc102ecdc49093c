#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Debian's Open MPI and its OpenSHMEM over rc_varuna, two ranks on two hosts of an
# emulated fabric, and eight on four: programs with checked messages, collectives,
# windows with locks, fences and posts, puts, gets, atomics, waits and locks
# (test/e2e/thirdparty/mpi), without faults and with links that fail meanwhile.
# RC_VARUNA_LONG=1 adds runs with each of these alone, so that all cuts hit it, and with
# three and four ranks.

. "$(dirname "${BASH_SOURCE[0]}")/ft_mpi.sh"

# the_job PROGRAM HOSTS RANKS ARGUMENT...: runs the program with RANKS ranks on each
# host; it must find no error
the_job() {
    local compiler=mpicc count=$(($2 * $3))
    [[ $1 == mpi_* ]] || compiler=oshcc
    check $compiler -O2 -Wall -Wextra -Werror -Wno-deprecated-declarations \
        -o "$1" "$top/test/e2e/thirdparty/mpi/$1.c"
    launch "$2" "$3" "$PWD/$1" "${@:4}" ||
        fail "the job ended with $?: $(grep -v INFO job.log | tail -n 5)"
    grep -qE "$1: $count (ranks|PEs), .* 0 errors" job.log ||
        fail "no summary: $(tail -n 3 job.log)"
    echo "# $(grep -oE '[0-9]+ (ranks|PEs), [0-9]+ rounds, 0 errors' job.log)"
}

# cuts_suffice HOSTS: whether each host's first link was cut in one way or the other, packets
# were lost, and an endpoint has switched
cuts_suffice() {
    [ "$(wc -l <cuts.log)" -ge "$1" ] && [ "$(packets_lost)" -gt 0 ] &&
        grep -q 'rc_varuna: switched' job.log
}

# cut_links HOSTS: while the job runs, one link after the other fails and returns,
# alternately with an event and silently. The job goes on until that has had an effect
cut_links() {
    local hosts=$1 i how link
    await 300 job.log '_check: started'
    for ((i = 0; ; ++i)); do
        how=down
        ((i % 2)) || how=silent
        link=$((i % hosts)):$((i / hosts % 2))
        "$emu" link -n "$fabric" $link $how || return 0 # The fabric is removed
        sleep 0.4
        "$emu" link -n "$fabric" $link up || return 0
        echo "$link $how" >>cuts.log
        ! cuts_suffice "$hosts" || touch enough
        sleep 0.6
    done
}

# packets_lost: prints the number of packets lost on failed links
packets_lost() {
    fabric_sum dropped_by_link
}

left_alone() {
    fabric_up
    the_job "$1" 2 1 1 all
}

# links_fail PROGRAM HOSTS RANKS SECONDS WHAT: runs it while links fail
links_fail() {
    local cutter lost
    fabric_up --hosts "$2"
    rm -f enough cuts.log job.log
    cut_links "$2" >/dev/null 2>&1 &
    cutter=$!
    CHECK_UNTIL=$PWD/enough the_job "$@"
    kill $cutter 2>/dev/null || true
    wait $cutter 2>/dev/null || true
    [ -s cuts.log ] || fail "no link was cut"
    lost=$(packets_lost)
    [ "$lost" -gt 0 ] || fail "no packet was lost on a cut link"
    grep -q 'rc_varuna: switched' job.log || fail "nothing was switched"
    echo "# $5: $(wc -l <cuts.log) links cut, $lost packets lost," \
        "$(grep -c 'rc_varuna: switched' job.log) endpoints switched"
}

test_settings_reach_all_hosts() {
    fabric_up --hosts 3
    launch 3 2 sh -c 'echo "heap of $SHMEM_SYMMETRIC_SIZE"' || fail "$(tail -n 5 job.log)"
    check test "$(grep -cx 'heap of 8M' job.log)" -eq 6
}

test_mpi_left_alone() {
    left_alone mpi_check
}

test_mpi_while_links_fail() {
    links_fail mpi_check 4 2 6 all
}

test_mpi_windows_left_alone() {
    left_alone mpi_sync_check
}

# Without progress_all.c the job may never end, as Open MPI does not progress the worker
# whose message is lost
test_mpi_windows_while_links_fail() {
    check gcc -O2 -Wall -Wextra -Werror -shared -fPIC -o progress_all.so \
        "$top/test/e2e/thirdparty/mpi/progress_all.c" -ldl
    # shellcheck disable=SC2016 # $0 and $@ are the shell's
    mpi_wrapper=(sh -c 'LD_PRELOAD="$0:${LD_PRELOAD:-}" exec "$@"' "$PWD/progress_all.so")
    links_fail mpi_sync_check 2 1 6 all
}

test_shmem_left_alone() {
    left_alone shmem_check
}

test_shmem_while_links_fail() {
    links_fail shmem_check 4 2 6 all
}

if [ -n "${RC_VARUNA_LONG:-}" ]; then
    test_mpi_each_alone() {
        local what
        for what in p2p coll rma; do
            links_fail mpi_check 4 2 15 $what
        done
    }

    test_shmem_each_alone() {
        local what
        for what in rma amo cpu wait lock coll; do
            links_fail shmem_check 4 2 15 $what
        done
    }

    test_mpi_fewer_ranks() {
        links_fail mpi_check 3 1 10 all
        links_fail mpi_check 4 1 10 all
    }

    test_shmem_fewer_pes() {
        links_fail shmem_check 3 1 10 all
        links_fail shmem_check 4 1 10 all
    }
fi

# spawns HOW [-x VARIABLE=VALUE] -- PARENT... -- CHILD...: a process on host 0 spawns one on
# host 1, each by its command. The output is in job.log
spawns() {
    local how=$1 options=() parent=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    while [ "$1" != -- ]; do parent+=("$1"); shift; done
    shift
    check mpicc -O2 -Wall -Wextra -Werror -o mpi_spawn \
        "$top/test/e2e/thirdparty/mpi/mpi_spawn.c"
    timeout 600 "$mpirun" "${mpi[@]}" -np 1 "${options[@]}" "$emu" exec -n "$fabric" 0 -- \
        "${parent[@]}" "$how" "$emu" exec -n "$fabric" 1 -- "$@" >job.log 2>&1 </dev/null
}

# spawned_over_varuna HOW: both processes have used rc_varuna, and found no error
spawned_over_varuna() {
    grep -qx "mpi_spawn: $1: [0-9]* rounds, 0 errors" job.log ||
        fail "no summary: $(grep -v INFO job.log | tail -n 5)"
    check test "$(grep -c 'ep_cfg\[1\]: tag(rc_varuna/' job.log)" -eq 2
}

# The two ways in docs/TUNING.md
test_spawn_by_the_launcher() {
    fabric_up
    spawns launcher -- "$run" "$PWD/mpi_spawn" -- "$run" "$PWD/mpi_spawn" ||
        fail "the job ended with $?: $(grep -v INFO job.log | tail -n 5)"
    spawned_over_varuna launcher
}

test_spawn_with_the_variable() {
    fabric_up
    spawns variable -x "$("$run" -p)" -- "$PWD/mpi_spawn" -- "$PWD/mpi_spawn" ||
        fail "the job ended with $?: $(grep -v INFO job.log | tail -n 5)"
    spawned_over_varuna variable
}

# ... and what it says there of a child without the plugin
test_spawn_without_the_plugin() {
    fabric_up
    ! spawns bare -- "$run" "$PWD/mpi_spawn" -- "$PWD/mpi_spawn" ||
        fail "it works without the plugin"
    while read -r line; do
        grep -qF "$line" job.log || fail "job.log has no line \"$line\""
    done < <(awk '/^A process without the plugin/ { is_there = 1 }
                  is_there && sub(/^    /, "") { print; ++count; next }
                  count > 0 { exit }' "$top/docs/TUNING.md" | tee lines)
    check test "$(wc -l <lines)" -eq 2
    fabric_down --force
}

run_tests
