#!/usr/bin/env bash
# Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
# See LICENSE for terms (BSD-3-Clause).
#
# Debian's Open MPI and its OpenSHMEM over rc_varuna, a rank on each host of an
# emulated fabric: programs with checked messages, collectives, windows, puts, gets,
# atomics, waits and locks (test/mpi), left alone and with links that fail while
# they run.

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

emu=$RCV_PREFIX/bin/mlx5emu
launcher=$RCV_PREFIX/bin/rc_varuna_run

unset "${!UCX_@}"
export UCX_TLS=rc_varuna,self UCX_LOG_LEVEL=info
export UCX_RC_MLX5_TIMEOUT=20ms UCX_RC_MLX5_RETRY_COUNT=3
export UCX_DC_MLX5_TIMEOUT=20ms UCX_DC_MLX5_RETRY_COUNT=3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Open MPI's ucx components take known transports and devices only, unless told
# otherwise; ranks are many for the processors here, so they yield
mpi=(--oversubscribe --mca pml ucx --mca osc ucx --mca spml ucx --mca atomic ucx
     --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any
     --mca btl self --mca mpi_yield_when_idle 1 -x SHMEM_SYMMETRIC_SIZE=8M)

# launch HOSTS PROGRAM ARGUMENT...: one rank on each host, output in job.log
launch() {
    local hosts=$1 host args=()
    shift
    for ((host = 0; host < hosts; ++host)); do
        [ $host -eq 0 ] || args+=(:)
        args+=(-np 1 "$emu" exec -n "$fabric" $host -- "$launcher" "$@")
    done
    timeout 120 mpirun "${mpi[@]}" "${args[@]}" >job.log 2>&1
}

fabric_up() {
    fabric=mpi-$$
    check "$emu" up -n "$fabric" --hosts "$1" --links 2
    trap '"$emu" down -n "'"$fabric"'" --force >/dev/null 2>&1' EXIT
}

fabric_down() {
    check "$emu" down -n "$fabric"
    trap - EXIT
}

# the_job PROGRAM HOSTS ARGUMENT...: runs the program, which must find no error
the_job() {
    local compiler=mpicc
    [ "$1" = mpi_check ] || compiler=oshcc
    check $compiler -O2 -Wall -Wextra -Werror -Wno-deprecated-declarations \
        -o "$1" "$top/test/mpi/$1.c"
    launch "$2" "$PWD/$1" "${@:3}" ||
        fail "the job ended with $?: $(grep -v INFO job.log | tail -n 5)"
    grep -q "$1: .* 0 errors" job.log ||
        fail "no summary: $(tail -n 3 job.log)"
    echo "# $(grep -oE '[0-9]+ (ranks|PEs), [0-9]+ rounds, 0 errors' job.log)"
}

# cut_links HOSTS: one link after the other fails and comes back, in turn with
# an event and silently, while the job runs
cut_links() {
    local hosts=$1 i how link
    for ((i = 0; i < 600; ++i)); do
        ! grep -q '_check: started' job.log 2>/dev/null || break
        sleep 0.1
    done
    for ((i = 0; ; ++i)); do
        how=down
        ((i % 2)) || how=silent
        link=$((i % hosts)):$((i / hosts % 2))
        "$emu" link -n "$fabric" $link $how || return 0 # The fabric is gone
        sleep 0.4
        "$emu" link -n "$fabric" $link up || return 0
        echo "$link $how" >>cuts.log
        sleep 0.6
    done
}

left_alone() {
    fabric_up 2
    the_job "$1" 2 1 all
    fabric_down
}

links_fail() {
    local cutter
    fabric_up 4
    cut_links 4 2>/dev/null &
    cutter=$!
    the_job "$1" 4 6 all
    kill $cutter 2>/dev/null || true
    wait $cutter 2>/dev/null || true
    [ -s cuts.log ] || fail "no link was cut"
    grep -q 'rc_varuna: switched' job.log || fail "nothing was switched"
    echo "# $(wc -l <cuts.log) links cut," \
        "$(grep -c 'rc_varuna: switched' job.log) endpoints switched"
    fabric_down
}

test_mpi_left_alone() {
    left_alone mpi_check
}

test_mpi_while_links_fail() {
    links_fail mpi_check
}

test_shmem_left_alone() {
    left_alone shmem_check
}

test_shmem_while_links_fail() {
    links_fail shmem_check
}

run_tests
